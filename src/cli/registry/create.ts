import { createDatabase } from '../../api/indexes/database-file.js';
import { argument, defineCommand } from '../command/declaration.js';
import { getDatabase } from './database.js';

/** `opmate registry create`; refuses a file with content. */
export const command = defineCommand({
  summary: 'create an empty index',
  arguments: [argument('<database>', 'new database file')],
  examples: {
    'Create an empty index': 'opmate registry create new.db',
    'Create an index, and add a bundle to it':
      'opmate registry create new.db && opmate registry add ./bundle new.db',
  },
  async runInSession({ args: [file], session: { logger, signal } }) {
    await createDatabase(getDatabase(file, undefined), { signal });
    logger.log('info', `created ${file}`);
  },
});
