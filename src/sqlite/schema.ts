import { OpmateError } from '../core/errors.js';
import type { Database } from './database.js';

/** The schema version that opmate reads and writes: the last one there is. */
export const latestVersion = 13;

/**
 * The schema version of a database; -1 where it names none, as in an empty file and in those from before
 * versions were kept.
 */
export function readVersion(database: Database): number {
  const table = database.get(
    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'",
  );
  if (table === undefined) return -1;
  const row = database.get<{ version: number }>('SELECT version FROM schema_migrations LIMIT 1');
  return row === undefined ? -1 : Number(row.version);
}

/**
 * Brings a database to the latest schema. Runs in the caller's transaction. Throws OpmateError UNSUPPORTED
 * for a newer one.
 */
export function migrateDatabase(database: Database, to: number = latestVersion): void {
  const version = readVersion(database);
  if (version === to) return;
  throw new OpmateError('UNSUPPORTED', `${database.name}: schema version ${version} is not supported yet`);
}
