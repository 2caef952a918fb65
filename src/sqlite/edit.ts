import { randomBytes } from 'node:crypto';
import { constants, copyFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { makeTemporaryDirectory } from '../archive/temporary-directory.js';
import { type CancelOptions } from '../core/concurrency.js';
import { OpmateError, fileError, systemCode, throwIfCancelled } from '../core/errors.js';
import { type Database, type OpenDatabaseOptions, openDatabase } from './database.js';
import { latestVersion, migrateDatabase, readVersion } from './schema.js';

export interface EditOptions extends CancelOptions {
  /** Where the result goes; the input then stays as it is. */
  outputFile?: string | undefined;
  /** Make a database where there is none. */
  create?: boolean | undefined;
  /** Give free pages back when the edit is done. */
  vacuum?: boolean | undefined;
  /** Milliseconds to wait for another process that writes. */
  timeoutMs?: number | undefined;
  /** How messages name the database; its path where it is left out. */
  name?: string | undefined;
}

/**
 * Changes a database: brings it to the latest schema and runs `work`, all in one transaction. When `work`
 * throws or the process ends, the database is as it was. With `outputFile` the result appears there whole,
 * or not at all. Throws what opening and `work` throw.
 */
export async function editDatabase<T>(
  file: string,
  options: EditOptions,
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  const { outputFile, name = file } = options;
  if (outputFile === undefined) return editInPlace(file, name, options, work);
  const staging = `${outputFile}.opmate-${randomBytes(6).toString('hex')}`;
  try {
    await copyDatabase(file, staging, options);
    const result = await editInPlace(staging, name, options, work);
    await rename(staging, outputFile).catch((error: unknown) => {
      throw fileError(outputFile, error, { file: outputFile });
    });
    return result;
  } finally {
    for (const name of [staging, `${staging}-journal`])
      await rm(name, { force: true }).catch(() => undefined);
  }
}

async function editInPlace<T>(
  file: string,
  name: string,
  { create = false, vacuum = false, timeoutMs, signal }: EditOptions,
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  const isNew = (await stat(file).catch(() => undefined)) === undefined;
  const database = await openDatabase(file, { access: create ? 'create' : 'write', name, timeoutMs });
  let done = false;
  try {
    const result = await database.transaction(async () => {
      migrateDatabase(database);
      const worked = await work(database);
      throwIfCancelled(signal);
      return worked;
    });
    if (vacuum) database.vacuum();
    done = true;
    return result;
  } finally {
    database.close();
    if (isNew && !done) await rm(file, { force: true });
  }
}

/** Copies a database while nobody writes to it. */
async function copyDatabase(from: string, to: string, options: EditOptions): Promise<void> {
  const { create = false, timeoutMs } = options;
  const opened: OpenDatabaseOptions = { access: 'read', timeoutMs };
  let source: Database;
  try {
    source = await openDatabase(from, opened);
  } catch (error) {
    if (create && error instanceof OpmateError && error.code === 'NOT_FOUND') return;
    throw error;
  }
  try {
    await source.transaction(() => copyFiles(from, to), 'read');
  } finally {
    source.close();
  }
}

export interface ReadOptions extends CancelOptions {
  /** Where a private copy is made, if one is needed. */
  temporaryDirectory: string;
  now: () => Date;
  /** How messages name the database; its path where it is left out. */
  name?: string | undefined;
}

/** A database that is open for reading; `close` it when done. */
export interface ReadableDatabase {
  database: Database;
  close(): Promise<void>;
}

/**
 * Opens a database for reading at the latest schema. The file is never changed: one of an older schema, or
 * one that an interrupted writer has left unfinished, is copied, and the copy is read. Throws what opening
 * and migrating throw.
 */
export async function openForReading(file: string, options: ReadOptions): Promise<ReadableDatabase> {
  const { name = file, signal } = options;
  throwIfCancelled(signal);
  const direct = await openAsItIs(file, name);
  if (direct !== undefined) return { database: direct, close: async () => direct.close() };
  const temporary = await makeTemporaryDirectory(options.temporaryDirectory, options.now());
  try {
    const copy = path.join(temporary.path, 'index.db');
    await copyFiles(file, copy);
    const database = await openDatabase(copy, { access: 'write', name });
    const close = async (): Promise<void> => {
      database.close();
      await temporary.remove();
    };
    try {
      await database.transaction(() => migrateDatabase(database));
      return { database, close };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}

/** The database itself where it can be read in place at the latest schema; undefined where a copy is needed. */
async function openAsItIs(file: string, name: string): Promise<Database | undefined> {
  let database: Database;
  try {
    database = await openDatabase(file, { access: 'read', name });
  } catch (error) {
    if (isUnfinished(error)) return undefined;
    throw error;
  }
  try {
    if (readVersion(database) === latestVersion) return database;
  } catch (error) {
    if (!isUnfinished(error)) {
      database.close();
      throw error;
    }
  }
  database.close();
  return undefined;
}

/** Whether reading failed because what another process has begun would have to be undone first. */
function isUnfinished(error: unknown): boolean {
  const code = error instanceof OpmateError ? systemCode(error.cause) : undefined;
  return code !== undefined && /^SQLITE_(?:READONLY|CANTOPEN)/.test(code);
}

/** Copies the file of a database with what an unfinished writer has left beside it. */
async function copyFiles(from: string, to: string): Promise<void> {
  for (const suffix of ['', '-journal', '-wal']) {
    try {
      await copyFile(from + suffix, to + suffix, constants.COPYFILE_EXCL);
    } catch (error) {
      if (suffix !== '' && systemCode(error) === 'ENOENT') continue;
      throw fileError(`copy ${from + suffix}`, error, { file: from });
    }
  }
}
