import { argument, defineCommand } from '../command/declaration.js';
import { catalogOutput, migrateLevel } from '../command/shared-flags.js';
import { catalogForms } from '../../api/open-catalog.js';
import { writeCatalogDirectory } from '../../catalog/directory-writer.js';
import { requireEmptyDirectory } from '../../files/fill-directory.js';
import { withoutCredentials } from '../../core/reference.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { renderReferences } from '../../source/render.js';
import { wrapped } from '../../source/reference-error.js';
import { useSession } from '../session.js';

/** `opmate migrate`: a catalog written into a new directory, one file a package. */
export const command = defineCommand({
  summary: 'write a catalog to a new directory, one file per package',
  tool: 'opm',
  arguments: [
    argument('<reference>', `catalog: ${catalogForms}`),
    argument('<directory>', 'new or empty output directory'),
  ],
  flags: { output: catalogOutput, migrateLevel },
  examples: [
    ['Convert a sqlite index to a file-based catalog', 'opmate migrate index.db ./new-catalog'],
    [
      'Unpack a catalog image as YAML',
      'opmate migrate registry.example.com/demo/catalog:v1 ./new-catalog -o yaml',
    ],
  ],
  async run({ context, args: [reference, directory], options }) {
    const { output: format } = options;
    const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
    await useSession(context, options, async (session) => {
      await requireEmptyDirectory(directory);
      session.logger.log('info', `rendering ${withoutCredentials(reference)} as file-based catalog`);
      const allowed = { catalogs: true, bundles: false };
      const how = { format, migrationLevel, allowed };
      const rendered = await renderReferences([reference], session, how).catch((error: unknown) => {
        throw wrapped(error, 'render catalog image');
      });
      try {
        await writeCatalogDirectory(rendered.assembly, directory, format, { signal: context.signal });
      } finally {
        await rendered.close();
      }
      session.logger.log('info', `wrote the catalog to ${directory}`);
    });
  },
});
