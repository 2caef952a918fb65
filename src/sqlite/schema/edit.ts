import type { Stats } from 'node:fs';
import { chmod, copyFile, realpath, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import { moveWhole } from '../../files/move-whole.js';
import { publishNewFile, requireParentDirectory } from '../../files/replace-file.js';
import { stagingBeside, sweepLeftovers } from '../../files/staging.js';
import { type TemporaryPlace, openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { type CancelOptions, withOpen, keepOpen } from '../../core/concurrency.js';
import {
  OpmateError,
  UsageError,
  fileError,
  throwFileError,
  systemCode,
  throwIfCancelled,
  writeError,
} from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { type Database, openDatabase, writesAhead } from './database.js';
import { checkTables, getTables, latestVersion, migrateDatabase, readVersion } from './schema.js';

export interface EditOptions extends CancelOptions {
  /** Output file; the input stays unchanged. */
  outputFile?: string | undefined;
  /** Create a missing database. */
  create?: boolean | undefined;
  /** Release free pages after the edit. */
  vacuum?: boolean | undefined;
  /** Receives a warning if that fails. */
  logger?: Logger | undefined;
  /** Maximum wait for another writer in milliseconds. */
  timeoutMs?: number | undefined;
  /** Name of the database in messages; default: its path. */
  name?: string | undefined;
}

/**
 * Edits a database: migrates it to the latest schema and runs `work`, all in one transaction. If `work` throws or the
 * process ends, the database is unchanged. A new database, and the result with `outputFile`, appears completely or
 * not at all. Throws as opening, migrating and `work`; UsageError if `outputFile` is the input.
 */
export async function editDatabase<T>(
  file: string,
  options: EditOptions,
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  return changeDatabase(file, options, async (database) => {
    migrateDatabase(database);
    return work(database);
  });
}

/** Creates an empty index. Throws OpmateError INVALID for an existing nonempty file. */
export async function createDatabase(file: string, options: CancelOptions = {}): Promise<void> {
  const refuse = (): never => {
    throw new OpmateError('INVALID', 'file already exists', {
      about: file,
      hint: 'use another name, or remove it first',
    });
  };
  if (((await statIfPresent(file))?.size ?? 0) > 0) refuse();
  await changeDatabase(file, { ...options, create: true }, (database) => {
    // Another process may have created it since.
    if (getTables(database).size > 0) refuse();
    migrateDatabase(database);
  });
}

/** Migrates a database to a schema version, by default the latest; returns the previous version. */
export async function migrateDatabaseFile(
  file: string,
  { to = latestVersion, ...options }: EditOptions & { to?: number | undefined },
): Promise<number> {
  return changeDatabase(file, options, (database) => {
    const from = readVersion(database);
    migrateDatabase(database, to);
    return from;
  });
}

async function changeDatabase<T>(
  file: string,
  options: EditOptions,
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  const { outputFile, create = false, name = file } = options;
  const input = await statIfPresent(file);
  const isNew = input === undefined && create;
  const output = outputFile ?? file;
  await sweepLeftovers(path.dirname(path.resolve(output)));
  if (outputFile === undefined && !isNew) return changeInPlace(file, name, options, work);
  // Named only when complete: a file that others wait for cannot be removed again.
  const target = await checkOutput(output, input);
  const staging = stagingBeside(target);
  try {
    if (!isNew) await copyDatabase(file, name, staging);
    const result = await changeInPlace(staging, name, options, work);
    if (outputFile !== undefined) {
      await moveWhole(staging, target).catch(throwFileError(outputFile, { file: outputFile }));
      return result;
    }
    await publishNewFile(staging, file).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw writeError(file, error, { file });
      throw new OpmateError('IO', 'created by another process meanwhile', {
        about: file,
        cause: error,
        hint: 'run it again',
      });
    });
    return result;
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm'])
      await rm(staging + suffix, { force: true }).catch(() => undefined);
  }
}

async function changeInPlace<T>(
  file: string,
  name: string,
  { create = false, vacuum = false, timeoutMs, signal, logger }: EditOptions,
  work: (database: Database) => T | Promise<T>,
): Promise<T> {
  const access = create ? 'create' : 'write';
  return withOpen(openDatabase(file, { access, name, timeoutMs }), async (database) => {
    const result = await database.transaction(async () => {
      const worked = await work(database);
      throwIfCancelled(signal);
      return worked;
    });
    if (vacuum) giveBackPages(database, logger);
    return result;
  });
}

/** Releases free pages; a failure, as on a full disk, does not fail the edit. */
function giveBackPages(database: Database, logger: Logger = silentLogger): void {
  try {
    database.vacuum();
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    logger.log('warn', `${error.message}: changes saved, but free pages were not released`);
  }
}

/** Returns the path of an output file without links. */
async function checkOutput(file: string, input: Stats | undefined): Promise<string> {
  await requireParentDirectory(file);
  const stats = await statIfPresent(file);
  if (stats === undefined) {
    if ((await lstatIfPresent(file)) === undefined) return file;
    throw new OpmateError('NOT_FOUND', 'a link to a file that does not exist', { about: file });
  }
  if (!stats.isFile()) throw new OpmateError('INVALID', 'is not a file', { about: file });
  if (input !== undefined && stats.ino === input.ino && stats.dev === input.dev) {
    throw new UsageError('the output is the input', {
      subject: file,
      hint: 'remove the output to change it in place',
    });
  }
  const target = await realpath(file);
  for (const suffix of ['-journal', '-wal']) {
    if ((await statIfPresent(target + suffix)) === undefined) continue;
    // It would be read as that of the new database.
    throw new OpmateError('IO', `in use or unfinished: ${target + suffix} exists`, {
      about: file,
      hint: 'use another name',
    });
  }
  return target;
}

/** Copies a consistent state of a database to a private file, without leaving other files. */
async function copyDatabase(file: string, name: string, to: string): Promise<void> {
  const from = await realpath(file).catch(throwFileError(name, { file: name }));
  if (!(await copyByReading(from, name, to))) await copyFiles(from, name, to);
  const { mode } = await stat(from);
  await chmod(to, (mode & 0o777) | 0o600);
}

/** Copies by reading; returns false if sqlite cannot read without writing. */
async function copyByReading(from: string, name: string, to: string): Promise<boolean> {
  if (await needsFilesBeside(from)) return false;
  try {
    await withOpen(openDatabase(from, { access: 'read', name }), (source) => source.copyTo(to));
    return true;
  } catch (error) {
    if (!isUnfinished(error)) throw error;
    await rm(to, { force: true });
    return false;
  }
}

/** Reports whether reading would create or change files next to the database: it has a write-ahead log. */
async function needsFilesBeside(file: string): Promise<boolean> {
  return (await statIfPresent(file))?.isFile() === true && writesAhead(file);
}

/** Maximum attempts to copy while others write. */
const attempts = 5;

/**
 * Copies the file of a closed database with the files of an unfinished writer. Retries if another process opens it
 * meanwhile.
 */
async function copyFiles(from: string, name: string, to: string): Promise<void> {
  const suffixes = ['-journal', '-wal', ''];
  const state = async (): Promise<string> => {
    const files = await Promise.all(suffixes.map((suffix) => statIfPresent(from + suffix)));
    return JSON.stringify(files.map((file) => file && [file.ino, file.size, file.mtimeMs]));
  };
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const before = await state();
    for (const suffix of suffixes) {
      await rm(to + suffix, { force: true });
      await copyFile(from + suffix, to + suffix).catch((error: unknown) => {
        if (suffix === '' || systemCode(error) !== 'ENOENT') throw fileError(name, error, { file: name });
      });
    }
    if ((await state()) === before) return;
  }
  throw new OpmateError('IO', 'another process keeps writing to it', { about: name });
}

/** Reports whether reading failed because an unfinished transaction must be rolled back first. */
function isUnfinished(error: unknown): boolean {
  const code = error instanceof OpmateError ? systemCode(error.cause) : undefined;
  return code !== undefined && /^SQLITE_(?:READONLY|CANTOPEN)/.test(code);
}

/** Session of reading a database: where to create a private copy, if needed. */
export type ReadSession = TemporaryPlace & CancelOptions;

export interface ReadOptions {
  /** Name of the database in messages; default: its path. */
  name?: string | undefined;
  /** Maximum wait for another writer in milliseconds; default: 10 s. */
  timeoutMs?: number | undefined;
}

/**
 * Opens a database for reading at the latest schema. Neither changes the file nor creates files next to it: a
 * database with an older schema or an unfinished transaction is copied, and the copy is read. Call `close` after use.
 * Throws as opening and migrating.
 */
export async function openForReading(
  file: string,
  session: ReadSession,
  { name = file, timeoutMs }: ReadOptions = {},
): Promise<{ database: Database; close(): Promise<void> }> {
  const { signal } = session;
  throwIfCancelled(signal);
  const direct = await openAsItIs(file, name, timeoutMs);
  if (direct !== undefined) return { database: direct, close: async () => direct.close() };
  return openInTemporaryDirectory(session, async (directory) => {
    const copy = path.join(directory, 'index.db');
    await copyDatabase(file, name, copy);
    throwIfCancelled(signal);
    return keepOpen(openDatabase(copy, { access: 'write', name }), async (database) => {
      await database.transaction(() => migrateDatabase(database));
      return { database, close: async () => database.close() };
    });
  });
}

/** Opens the database in place if it has the latest schema; undefined if a copy is needed. */
async function openAsItIs(
  file: string,
  name: string,
  timeoutMs: number | undefined,
): Promise<Database | undefined> {
  let database: Database | undefined;
  try {
    if (await needsFilesBeside(file)) return undefined;
    database = await openDatabase(file, { access: 'read', name, timeoutMs });
    if (readVersion(database) === latestVersion) {
      checkTables(database);
      return database;
    }
  } catch (error) {
    database?.close();
    if (isUnfinished(error)) return undefined;
    throw error;
  }
  database.close();
  return undefined;
}
