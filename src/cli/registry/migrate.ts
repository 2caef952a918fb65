import { invalidValue } from '../../core/errors.js';
import { migrateDatabaseFile } from '../../sqlite/schema/edit.js';
import { latestVersion } from '../../sqlite/schema/schema.js';
import { argument, defineCommand } from '../command/declaration.js';
import { text } from '../command/flags.js';
import { databaseSummary, editFlags } from './database.js';

/** `opmate registry migrate`. */
export const command = defineCommand({
  summary: 'migrate an index to a newer schema version',
  arguments: [argument('<database>', databaseSummary)],
  flags: {
    schemaVersion: text('version', 'schema version to migrate to (default: the newest)', { aliases: ['to'] }),
    outputDb: editFlags.outputDb,
  },
  examples: [
    ['Migrate an index in place', 'opmate registry migrate index.db'],
    ['Write a new index', 'opmate registry migrate index.db --output-db new.db'],
  ],
  async runInSession({ args: [file], options, session: { logger, signal } }) {
    const to = options.schemaVersion === undefined ? latestVersion : requireVersion(options.schemaVersion);
    const from = await migrateDatabaseFile(file, { to, outputFile: options.outputDb, signal });
    const done = from === to ? `is at schema version ${to}` : `migrated from schema version ${from} to ${to}`;
    logger.log('info', `${options.outputDb ?? file}: ${done}`);
  },
});

function requireVersion(text: string): number {
  const version = Number(text);
  // -1 is what a file without any table has; nobody can go back to it, but scripts may name it.
  if (/^(?:\d+|-1)$/.test(text) && version <= latestVersion) return version;
  throw invalidValue('--schema-version', text, 'not a schema version', {
    hint: `use a version from 0 to ${latestVersion}`,
  });
}
