import { argument, defineCommand } from '../command/declaration.js';
import { catalogOutput, migrateLevel } from '../command/shared-flags.js';
import { migrateCatalog } from '../../api/migrate-catalog.js';
import { catalogForms } from '../../api/open-catalog.js';
import { reportEnding } from '../ending.js';
import { count, shellWord } from '../printable.js';

/** `opmate migrate`. */
export const command = defineCommand({
  summary: 'write a catalog to a new directory, one file per package',
  tool: 'opm',
  arguments: [
    argument('<reference>', `catalog: ${catalogForms}`),
    argument('<directory>', 'new or empty output directory'),
  ],
  flags: { output: catalogOutput, migrateLevel },
  examples: {
    'Convert a sqlite index to a file-based catalog': 'opmate migrate index.db ./new-catalog',
    'Unpack a catalog image as YAML':
      'opmate migrate registry.example.com/demo/catalog:v1 ./new-catalog -o yaml',
  },
  async runInSession({ args: [reference, directory], options, session }) {
    const { output: format, migrateLevel } = options;
    const packages = await migrateCatalog(reference, directory, session, { format, migrateLevel });
    reportEnding(
      session.logger,
      [`wrote ${count(packages.length, 'package')} to ${directory}`],
      `opmate serve ${shellWord(directory)}`,
    );
  },
});
