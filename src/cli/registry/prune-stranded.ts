import { argument, defineCommand } from '../command/declaration.js';
import { changeDatabase, getDatabase, databaseSummary, editFlags } from './database.js';
import { planPruneStranded } from './removals.js';

/** `opmate registry prune-stranded`: removes the bundles of a database file that are in no channel. */
export const command = defineCommand({
  summary: 'remove bundles that are in no channel',
  tool: 'opm',
  arguments: [argument('[database]', databaseSummary)],
  flags: editFlags,
  examples: [
    ['Edit an index in place', 'opmate registry prune-stranded index.db'],
    ['Keep the index, and write a new one', 'opmate registry prune-stranded index.db --output-db new.db'],
  ],
  run: ({ context, args: [file], options }) =>
    changeDatabase(context, options, getDatabase(file, options.database), planPruneStranded()),
});
