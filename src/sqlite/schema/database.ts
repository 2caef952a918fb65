import type { Database as Connection, Statement } from 'better-sqlite3';
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { versions } from 'node:process';
import { withOpen } from '../../core/concurrency.js';
import {
  OpmateError,
  UsageError,
  fileError,
  getMessage,
  systemCode,
  throwFileError,
} from '../../core/errors.js';
import { readBytes } from '../../files/file-region.js';
import { openRegularFile } from '../../files/read-file.js';

/** Value of a column. Other tools may store text as bytes: see `getNullableText`. */
export type ColumnValue = string | number | bigint | Buffer | null;

/** A row by column name. */
export type Row = Readonly<Record<string, ColumnValue>>;

export interface OpenDatabaseOptions {
  /** `read` never changes the file; `write` requires a database; `create` creates a missing one. */
  access: 'read' | 'write' | 'create';
  /** Name of the database in messages; default: its path. */
  name?: string | undefined;
  /** Maximum wait for another writer in milliseconds; default: 10 s. */
  timeoutMs?: number | undefined;
}

/**
 * Opens a database file. Foreign keys are enforced, as indexes rely on them: deleting a row deletes dependent rows.
 * Throws OpmateError: NOT_FOUND; INVALID for another or truncated file; IO for a file that is not readable or, if
 * requested, not writable.
 */
export async function openDatabase(file: string, options: OpenDatabaseOptions): Promise<Database> {
  const { access, name = file, timeoutMs = 10_000 } = options;
  await checkFile(file, name, access);
  const Sqlite = await loadSqlite();
  let connection: Connection | undefined;
  try {
    // An absolute path: names such as `:memory:` or `file:x` have another meaning.
    connection = hold(
      new Sqlite(path.resolve(file), {
        readonly: access === 'read',
        fileMustExist: access !== 'create',
        timeout: timeoutMs,
      }),
    );
    // The schema of a foreign index must not call functions with side effects.
    connection.exec('PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON');
    connection.exec('PRAGMA recursive_triggers = OFF; PRAGMA cell_size_check = ON');
    // Accesses the file: only now is it known to be a readable database.
    connection.exec('PRAGMA schema_version');
  } catch (error) {
    connection?.close();
    throw (await cutShortError(file, name, error)) ?? databaseError(name, error, timeoutMs);
  }
  return new Database(connection, name, timeoutMs);
}

/**
 * Objects of the native module, held until the process ends: from Node.js 24.19 on, collecting one of release 12 at
 * the wrong moment ends the process. Closing them frees nearly all of their memory, and they are few.
 */
const held: object[] = [];

function hold<T extends object>(made: T): T {
  held.push(made);
  return made;
}

/** Loads the native module on demand: most commands need no database, and it may not fit the running Node.js. */
async function loadSqlite(): Promise<typeof import('better-sqlite3')> {
  try {
    checkRelease();
    const { default: Sqlite } = await import('better-sqlite3');
    // The native part is loaded with the first connection.
    if (held.length === 0) hold(new Sqlite(':memory:')).close();
    return Sqlite;
  } catch (error) {
    const { problem, hint } = explainMissing(getMessage(error));
    throw new OpmateError('UNSUPPORTED', `sqlite databases cannot be opened: better-sqlite3: ${problem}`, {
      hint,
      cause: error,
    });
  }
}

/** Returns why the optional module cannot be loaded, and what mends it, from the message of Node.js. */
function explainMissing(message: string): { problem: string; hint: string } {
  if (/Could not locate the bindings file/.test(message)) {
    const hint = 'run npm rebuild better-sqlite3, or install opmate with Node.js 22 or later';
    return { problem: 'its install script did not run', hint };
  }
  if (/Cannot find (?:module|package) 'better-sqlite3(?:\/package\.json)?'/.test(message)) {
    return {
      problem: 'not installed',
      hint: 'run npm install better-sqlite3; before Node.js 22, it needs a C++ compiler',
    };
  }
  const problem = message.includes('NODE_MODULE_VERSION')
    ? 'it was built for another version of Node.js'
    : (message.split('\n')[0] as string);
  return { problem, hint: 'install opmate again with the version of Node.js that runs it' };
}

/** Rejects the release for Node.js 22 and later in Node.js 20, which its native module would end without a message. */
function checkRelease(): void {
  if (Number.parseInt(versions.node, 10) >= 22) return;
  const { version } = createRequire(import.meta.url)('better-sqlite3/package.json') as { version: string };
  if (Number.parseInt(version, 10) >= 13)
    throw new Error(`release ${version} needs Node.js 22 or later, this is ${versions.node}`);
}

const magic = 'SQLite format 3\0';

/** Reports whether a file starts like a database. Throws OpmateError if unreadable. */
export async function isDatabaseFile(file: string): Promise<boolean> {
  return isMagic((await readHeader(file)).header);
}

/** Reports whether a database uses write-ahead logging, for which even readers create files. */
export async function writesAhead(file: string): Promise<boolean> {
  const { header } = await readHeader(file);
  return isMagic(header) && header[19] === 2;
}

function isMagic(header: Buffer): boolean {
  return header.toString('latin1', 0, magic.length) === magic;
}

async function readHeader(file: string): Promise<{ header: Buffer; size: number }> {
  return withOpen(openRegularFile(file), async (handle) => {
    const { size } = await handle.stat();
    return { header: await readBytes(handle, 0, 100), size };
  }).catch(throwFileError(file, { file }));
}

/** Rejects files that sqlite would read as an empty database, or wait for. */
async function checkFile(file: string, name: string, access: OpenDatabaseOptions['access']): Promise<void> {
  if (file === '') throw new UsageError('the name of the database is empty');
  let stats: Stats;
  try {
    stats = await stat(file);
  } catch (error) {
    const failure = fileError(name, error, { file: name });
    if (access === 'create' && failure.code === 'NOT_FOUND') return;
    throw failure;
  }
  if (stats.isDirectory())
    throw new OpmateError('INVALID', 'is a directory, not a database', { about: name });
  if (!stats.isFile()) throw new OpmateError('INVALID', 'is not a file', { about: name });
  // A new database starts as an empty file.
  if (stats.size === 0 && access !== 'create') {
    throw new OpmateError('INVALID', 'not a sqlite database', {
      about: name,
      hint: 'check the file: it is empty',
    });
  }
}

/** Returns the error for a truncated database, which sqlite reports as damaged; undefined for other causes. */
async function cutShortError(file: string, name: string, error: unknown): Promise<OpmateError | undefined> {
  if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(systemCode(error) ?? '')) return undefined;
  const { header, size } = await readHeader(file);
  if (!isMagic(header)) return undefined;
  const pageSize = header.length < 100 ? 0 : header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16);
  const pages = header.length < 100 ? 1 : header.readUInt32BE(28);
  // The page count is valid only if the two change counters agree; older libraries did not write it.
  const counted = header.length < 100 || header.readUInt32BE(24) === header.readUInt32BE(92);
  if (pageSize !== 0 && (!counted || pages * pageSize <= size)) return undefined;
  return new OpmateError('INVALID', `truncated database: ${size} bytes`, {
    about: name,
    cause: error,
    hint: 'copy it again from its source',
  });
}

/** An open database. All methods throw OpmateError that starts with its name. */
export class Database {
  readonly name: string;
  readonly #connection: Connection;
  readonly #timeoutMs: number;
  readonly #statements = new Map<string, Statement<unknown[]>>();

  /** @internal Call `openDatabase`. */
  constructor(connection: Connection, name: string, timeoutMs: number) {
    this.#connection = connection;
    this.name = name;
    this.#timeoutMs = timeoutMs;
  }

  /** Returns all rows of a query. */
  all<T = Row>(sql: string, ...parameters: ColumnValue[]): T[] {
    return this.#guarded(() => this.#prepare(sql).all(...parameters) as T[]);
  }

  /** Returns the first row of a query. */
  get<T = Row>(sql: string, ...parameters: ColumnValue[]): T | undefined {
    return this.#guarded(() => this.#prepare(sql).get(...parameters) as T | undefined);
  }

  /** Returns all rows of a query with their columns as `getColumnText` reads them. */
  textRows<K extends string>(sql: string, ...parameters: ColumnValue[]): Record<K, string>[] {
    const rows = this.all<Record<string, ColumnValue>>(sql, ...parameters);
    for (const row of rows) for (const column in row) row[column] = getColumnText(row[column]);
    return rows as Record<K, string>[];
  }

  /** Returns the first column of all rows, as `getColumnText` reads it. */
  texts(sql: string, ...parameters: ColumnValue[]): string[] {
    return this.all(sql, ...parameters).map((row) => getColumnText(Object.values(row)[0]));
  }

  /** Reports whether a query has rows. */
  has(sql: string, ...parameters: ColumnValue[]): boolean {
    return this.get(sql, ...parameters) !== undefined;
  }

  /** Yields the rows of a query. Nothing can be written before the last one was read. */
  *iterate<T = Row>(sql: string, ...parameters: ColumnValue[]): Generator<T, void, undefined> {
    // A separate statement: the shared one may be used in between.
    const rows = this.#guarded(() => {
      const statement: Statement<unknown[]> = hold(this.#connection.prepare(sql));
      return hold(statement.iterate(...parameters));
    });
    try {
      for (;;) {
        const next = this.#guarded(() => rows.next() as IteratorResult<T>);
        if (next.done === true) return;
        yield next.value;
      }
    } finally {
      rows.return?.();
    }
  }

  /** Runs a statement without result rows; returns the number of changed rows and the last inserted ID. */
  run(sql: string, ...parameters: ColumnValue[]): { changes: number; id: number } {
    const { changes, lastInsertRowid } = this.#guarded(() => this.#prepare(sql).run(...parameters));
    return { changes, id: Number(lastInsertRowid) };
  }

  /** Runs statements without parameters, separated by semicolons. */
  execute(sql: string): void {
    this.#guarded(() => void this.#connection.exec(sql));
  }

  /** Reports whether a transaction is open. */
  get inTransaction(): boolean {
    return this.#connection.inTransaction;
  }

  /**
   * Runs `work` as one transaction with the write lock from its start: commits all changes or, if it throws, none.
   * Within a transaction it is a part that can fail separately.
   */
  async transaction<T>(work: () => T | Promise<T>): Promise<T> {
    const nested = this.inTransaction;
    this.execute(nested ? 'SAVEPOINT part' : 'BEGIN IMMEDIATE');
    try {
      const result = await work();
      this.execute(nested ? 'RELEASE part' : 'COMMIT');
      return result;
    } catch (error) {
      // A full disk or damage ends the transaction. If the rollback fails too, closing completes it.
      try {
        if (this.inTransaction) this.execute(nested ? 'ROLLBACK TO part; RELEASE part' : 'ROLLBACK');
      } catch {
        throw error;
      }
      throw error;
    }
  }

  /** Returns free pages to the file system. Not within a transaction. */
  vacuum(): void {
    this.execute('VACUUM');
  }

  /** Copies a consistent state to `file`, which is missing or empty. Not within a transaction. */
  copyTo(file: string): void {
    try {
      // Backups of better-sqlite3 cannot be held, see `held`.
      this.#prepare('VACUUM INTO ?').run(path.resolve(file));
    } catch (error) {
      throw databaseError(`${this.name}: copying it`, error, this.#timeoutMs);
    }
  }

  /** Closes the database and rolls back an open transaction. */
  close(): void {
    this.#connection.close();
  }

  #prepare(sql: string): Statement<unknown[]> {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = hold(this.#connection.prepare(sql));
      this.#statements.set(sql, statement);
    }
    return statement;
  }

  #guarded<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw databaseError(this.name, error, this.#timeoutMs);
    }
  }
}

/** Returns a column as text: bytes are decoded, numbers formatted; null stays null. */
export function getNullableText(value: ColumnValue): string | null {
  if (value === null || typeof value === 'string') return value;
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}

/** Returns a column as text; empty for NULL or a missing row. */
export function getColumnText(value: ColumnValue | undefined): string {
  return getNullableText(value ?? null) ?? '';
}

/** Hint for tables and columns other than those of an index. */
export const notAnIndex = 'check the file: it is not an operator index, or it is damaged';

function databaseError(name: string, error: unknown, timeoutMs: number): unknown {
  if (error instanceof OpmateError || !isSqliteError(error)) {
    if (error instanceof TypeError && /directory does not exist/.test(error.message)) {
      return new OpmateError('NOT_FOUND', 'its directory does not exist', { subject: name, cause: error });
    }
    return error;
  }
  const { code, message } = error;
  const fail = (kind: 'INVALID' | 'IO', what: string, hint?: string): OpmateError =>
    new OpmateError(kind, what, { about: name, cause: error, hint });
  if (code === 'SQLITE_NOTADB')
    return fail('INVALID', 'not a sqlite database', 'specify the file of a sqlite index');
  if (code.startsWith('SQLITE_CORRUPT'))
    return fail('INVALID', 'damaged database', 'copy it again from its source');
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    const seconds = timeoutMs / 1000;
    return fail(
      'IO',
      `locked by another process, waited ${seconds} s`,
      'run the command again when that process has finished',
    );
  }
  if (code === 'SQLITE_READONLY_DBMOVED') return fail('IO', 'moved or removed by another process');
  if (code.startsWith('SQLITE_READONLY')) return fail('IO', 'the file or its directory is read-only');
  if (code.startsWith('SQLITE_CANTOPEN'))
    return fail(
      'IO',
      'cannot be opened, or its journal cannot be made beside it',
      'specify a readable file in a writable directory',
    );
  if (code === 'SQLITE_FULL') return fail('IO', 'no space left on device');
  if (code.startsWith('SQLITE_IOERR')) return fail('IO', `read or write error: ${message}`);
  if (code === 'SQLITE_PERM' || code === 'SQLITE_AUTH') return fail('IO', 'permission denied');
  // What statements about an index meet in another schema.
  const isForeign = /^no such (?:table|column)|has no column named|already exists|is already a/.test(message);
  return fail('INVALID', message, isForeign ? notAnIndex : undefined);
}

function isSqliteError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && error.name === 'SqliteError' && typeof systemCode(error) === 'string';
}
