import { latestVersion, migrateDatabaseFile } from '../../api/indexes/database-file.js';
import { argument, defineCommand } from '../command/declaration.js';
import { parsed } from '../command/flags.js';
import { integer } from '../command/values.js';
import { databaseSummary, editFlags } from './database.js';

/** `opmate registry migrate`. */
export const command = defineCommand({
  summary: 'migrate an index to a newer schema version',
  arguments: [argument('<database>', databaseSummary)],
  flags: {
    // -1 is what a file without any table has; nobody can go back to it, but scripts may name it.
    schemaVersion: parsed(
      'version',
      'schema version to migrate to (default: the newest)',
      integer(-1, latestVersion),
      { aliases: ['to'] },
    ),
    outputDb: editFlags.outputDb,
  },
  examples: {
    'Migrate an index in place': 'opmate registry migrate index.db',
    'Write a new index': 'opmate registry migrate index.db --output-db new.db',
  },
  async runInSession({ args: [file], options, session: { logger, signal } }) {
    const to = options.schemaVersion ?? latestVersion;
    const from = await migrateDatabaseFile(file, { to, outputFile: options.outputDb, signal });
    const done = from === to ? `is at schema version ${to}` : `migrated from schema version ${from} to ${to}`;
    logger.log('info', `${options.outputDb ?? file}: ${done}`);
  },
});
