import { argument, defineCommand } from '../command/declaration.js';
import {
  changeDatabase,
  getDatabase,
  databaseSummary,
  editFlags,
  keptPackagesFlag,
  permissiveFlag,
} from './database.js';
import { planPrune } from './removals.js';

/** `opmate registry prune`: removes all packages but those that are named from a database file. */
export const command = defineCommand({
  summary: 'remove all other packages',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags: {
    package: keptPackagesFlag,
    ...editFlags,
    permissive: permissiveFlag,
  },
  examples: [
    ['Keep one package', 'opmate registry prune index.db -p demo'],
    ['Keep the index, and write a new one', 'opmate registry prune index.db -p demo --output-db new.db'],
  ],
  run: ({ context, args: [file], options }) =>
    changeDatabase(context, options, getDatabase(file, options.database), planPrune(options)),
});
