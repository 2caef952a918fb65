import { argument, defineCommand } from '../command/declaration.js';
import {
  allowPackageRemovalFlag,
  changeDatabase,
  databaseFlag,
  getDatabase,
  databaseSummary,
  deprecatedImagesFlag,
  editFlags,
  permissiveFlag,
} from './database.js';
import { planDeprecate } from './removals.js';

/** `opmate registry deprecatetruncate`: deprecates bundles of a database file, and removes what is older. */
export const command = defineCommand({
  summary: 'deprecate bundles and remove older ones',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags: {
    bundleImages: deprecatedImagesFlag,
    ...editFlags,
    database: databaseFlag('index.db'),
    allowPackageRemoval: allowPackageRemovalFlag,
    permissive: permissiveFlag,
  },
  examples: [
    [
      'Deprecate a bundle',
      'opmate registry deprecatetruncate index.db -b registry.example.com/demo/bundle:v1.1.0',
    ],
    [
      'Keep the index, and write a new one',
      'opmate registry deprecatetruncate index.db -b registry.example.com/demo/bundle:v1.1.0 --output-db new.db',
    ],
  ],
  async run({ context, args: [file], options }) {
    const database = getDatabase(file, options.database, 'index.db');
    await changeDatabase(context, options, database, planDeprecate(options.bundleImages ?? [], options));
  },
});
