import { argument, defineCommand } from '../command/declaration.js';
import {
  changeDatabase,
  getDatabase,
  databaseSummary,
  eachChannelFlag,
  editFlags,
  pullFromFlag,
} from './database.js';
import { planDeleteLatest } from './removals.js';

/** `opmate registry delete-latest`: removes the newest version of a package. */
export const command = defineCommand({
  summary: 'remove the newest version of a package',
  arguments: [argument('<package>', 'package'), argument('[database]', databaseSummary)],
  flags: { ...editFlags, eachChannel: eachChannelFlag, pullFrom: pullFromFlag },
  examples: [
    ['Remove the newest version', 'opmate registry delete-latest demo index.db'],
    ['Keep the index, and write a new one', 'opmate registry delete-latest demo index.db --output-db new.db'],
  ],
  async run({ context, args: [packageName, file], options }) {
    const database = getDatabase(file, options.database);
    await changeDatabase(context, options, database, planDeleteLatest(packageName, options));
  },
});
