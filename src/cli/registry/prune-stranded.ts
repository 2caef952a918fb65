import { pruneStranded } from '../../sqlite/remove/stranded.js';
import { argument, defineCommand } from '../command/declaration.js';
import { createLogger } from '../logger.js';
import { changeDatabase, getDatabase, databaseSummary, editFlags } from './database.js';
import { reportStranded } from './removals.js';

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
  async run({ context, args: [file], options }) {
    const { signal } = context;
    const place = { file: getDatabase(file, options.database), outputDb: options.outputDb };
    const logger = createLogger(context, options);
    await changeDatabase({ signal, logger }, place, pruneStranded, reportStranded);
  },
});
