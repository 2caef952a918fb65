import type { Database as Connection, Statement } from 'better-sqlite3';
import type { Stats } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { versions } from 'node:process';
import { OpmateError, UsageError, fileError, getMessage, systemCode } from '../../core/errors.js';
import { openRegularFile } from '../../files/read-file.js';

/** What a column may hold. Texts that other tools wrote may be stored as bytes: see `toText`. */
export type ColumnValue = string | number | bigint | Buffer | null;

/** A row by column name. */
export type Row = Readonly<Record<string, ColumnValue>>;

export interface OpenDatabaseOptions {
  /** `read` never changes the file; `write` needs a database; `create` makes one if missing. */
  access: 'read' | 'write' | 'create';
  /** How messages name the database; its path where it is left out. */
  name?: string | undefined;
  /** Milliseconds to wait for another process that writes; 10 s unless told. */
  timeoutMs?: number | undefined;
}

/**
 * Opens a database file. Foreign keys are enforced, as the indexes rely on it: deleting a row deletes what
 * hangs on it. Throws OpmateError: NOT_FOUND; INVALID for a file that is no database or is cut short; IO
 * where it cannot be read, or written when that was asked for.
 */
export async function openDatabase(file: string, options: OpenDatabaseOptions): Promise<Database> {
  const { access, name = file, timeoutMs = 10_000 } = options;
  await checkFile(file, name, access);
  const Sqlite = await loadSqlite();
  let connection: Connection | undefined;
  try {
    // An absolute path, because a name such as `:memory:` or `file:x` would mean something else.
    connection = hold(
      new Sqlite(path.resolve(file), {
        readonly: access === 'read',
        fileMustExist: access !== 'create',
        timeout: timeoutMs,
      }),
    );
    // What is in an index came from somewhere else: its schema may not call anything with effects.
    connection.exec('PRAGMA trusted_schema = OFF; PRAGMA foreign_keys = ON');
    connection.exec('PRAGMA recursive_triggers = OFF; PRAGMA cell_size_check = ON');
    // Touches the file: only now is it known to be readable and a database.
    connection.exec('PRAGMA schema_version');
  } catch (error) {
    connection?.close();
    throw (await cutShortError(file, name, error)) ?? databaseError(name, error, timeoutMs);
  }
  return new Database(connection, name, timeoutMs);
}

/**
 * What the native module has made, held to the end of the process: from Node.js 24.19 on, one of release 12 that is
 * collected at the wrong moment ends the process. Closing gives back nearly all that they take, and they are few.
 */
const held: object[] = [];

function hold<T extends object>(made: T): T {
  held.push(made);
  return made;
}

/** Loaded late: it is native, most commands need no database, and it may not fit the Node.js that runs. */
async function loadSqlite(): Promise<typeof import('better-sqlite3')> {
  try {
    checkRelease();
    const { default: Sqlite } = await import('better-sqlite3');
    // The native part is loaded with the first connection.
    if (held.length === 0) hold(new Sqlite(':memory:')).close();
    return Sqlite;
  } catch (error) {
    const why = getMessage(error).includes('NODE_MODULE_VERSION')
      ? 'it was built for another version of Node.js'
      : (getMessage(error).split('\n')[0] as string);
    throw new OpmateError('UNSUPPORTED', `sqlite databases cannot be opened: better-sqlite3: ${why}`, {
      hint: 'install opmate again with the version of Node.js that runs it',
      cause: error,
    });
  }
}

/** Refuses the release for Node.js 22 and later in Node.js 20, which its native module would end without a message. */
function checkRelease(): void {
  if (Number.parseInt(versions.node, 10) >= 22) return;
  const { version } = createRequire(import.meta.url)('better-sqlite3/package.json') as { version: string };
  if (Number.parseInt(version, 10) >= 13)
    throw new Error(`release ${version} needs Node.js 22 or later, this is ${versions.node}`);
}

const magic = 'SQLite format 3\0';

/** Whether a file begins as a database does. Throws OpmateError when it cannot be read. */
export async function isDatabaseFile(file: string): Promise<boolean> {
  return isMagic((await readHeader(file)).header);
}

/** Whether a database writes ahead to a file beside it, which even readers have to make. */
export async function writesAhead(file: string): Promise<boolean> {
  const { header } = await readHeader(file);
  return isMagic(header) && header[19] === 2;
}

function isMagic(header: Buffer): boolean {
  return header.toString('latin1', 0, magic.length) === magic;
}

async function readHeader(file: string): Promise<{ header: Buffer; size: number }> {
  try {
    const handle = await openRegularFile(file);
    try {
      const { size } = await handle.stat();
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(100), 0, 100, 0);
      return { header: buffer.subarray(0, bytesRead), size };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
}

/** Refuses what sqlite would take for an empty database, or wait for. */
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
    throw new OpmateError('INVALID', 'is a directory, not a database', { subject: name, file: name });
  if (!stats.isFile()) throw new OpmateError('INVALID', 'is not a file', { subject: name, file: name });
  // An empty file is how a new database begins.
  if (stats.size === 0 && access !== 'create') {
    throw new OpmateError('INVALID', 'not a sqlite database', {
      subject: name,
      file: name,
      hint: 'check the file: it is empty',
    });
  }
}

/** A word for a database that ends too early, which sqlite calls damaged; undefined where that is not why. */
async function cutShortError(file: string, name: string, error: unknown): Promise<OpmateError | undefined> {
  if (!/^SQLITE_(?:CORRUPT|NOTADB)/.test(systemCode(error) ?? '')) return undefined;
  const { header, size } = await readHeader(file);
  if (!isMagic(header)) return undefined;
  const pageSize = header.length < 100 ? 0 : header.readUInt16BE(16) === 1 ? 65536 : header.readUInt16BE(16);
  const pages = header.length < 100 ? 1 : header.readUInt32BE(28);
  // The page count counts only where the two change counters agree; older libraries did not write it.
  const counted = header.length < 100 || header.readUInt32BE(24) === header.readUInt32BE(92);
  if (pageSize !== 0 && (!counted || pages * pageSize <= size)) return undefined;
  return new OpmateError('INVALID', `the database is cut short: ${size} bytes`, {
    subject: name,
    cause: error,
    file: name,
    hint: 'copy it again from its source',
  });
}

/** An open database. All of its methods throw OpmateError that begins with its name. */
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

  /** All rows of a query. */
  all<T = Row>(sql: string, ...parameters: ColumnValue[]): T[] {
    return this.#guarded(() => this.#prepare(sql).all(...parameters) as T[]);
  }

  /** The first row of a query. */
  get<T = Row>(sql: string, ...parameters: ColumnValue[]): T | undefined {
    return this.#guarded(() => this.#prepare(sql).get(...parameters) as T | undefined);
  }

  /** The first column of all rows, as `text` reads it. */
  texts(sql: string, ...parameters: ColumnValue[]): string[] {
    return this.all(sql, ...parameters).map((row) => text(Object.values(row)[0]));
  }

  /** Tells whether a query has rows. */
  has(sql: string, ...parameters: ColumnValue[]): boolean {
    return this.get(sql, ...parameters) !== undefined;
  }

  /** The rows of a query one by one. Nothing can be written until the last one was taken. */
  *iterate<T = Row>(sql: string, ...parameters: ColumnValue[]): Generator<T, void, undefined> {
    // A statement of its own: the shared one may be asked for again in between.
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

  /** Runs a statement that returns no rows; returns how many rows it changed and the last id it made. */
  run(sql: string, ...parameters: ColumnValue[]): { changes: number; id: number } {
    const { changes, lastInsertRowid } = this.#guarded(() => this.#prepare(sql).run(...parameters));
    return { changes, id: Number(lastInsertRowid) };
  }

  /** Runs statements without parameters, separated by semicolons. */
  execute(sql: string): void {
    this.#guarded(() => void this.#connection.exec(sql));
  }

  /** Whether a transaction is open. */
  get inTransaction(): boolean {
    return this.#connection.inTransaction;
  }

  /**
   * Runs `work` as one transaction that holds the write lock from its beginning: all that it writes is there
   * afterwards, or, when it throws, nothing. Within a transaction it is a part that can fail alone.
   */
  async transaction<T>(work: () => T | Promise<T>): Promise<T> {
    const nested = this.inTransaction;
    this.execute(nested ? 'SAVEPOINT part' : 'BEGIN IMMEDIATE');
    try {
      const result = await work();
      this.execute(nested ? 'RELEASE part' : 'COMMIT');
      return result;
    } catch (error) {
      // A full disk or damage ends the transaction. Where undoing fails too, closing does it.
      try {
        if (this.inTransaction) this.execute(nested ? 'ROLLBACK TO part; RELEASE part' : 'ROLLBACK');
      } catch {
        throw error;
      }
      throw error;
    }
  }

  /** Gives the pages that hold nothing any more back to the file system. Not within a transaction. */
  vacuum(): void {
    this.execute('VACUUM');
  }

  /** Makes `file`, absent or empty, a database with the same content, as of one moment. Not within a transaction. */
  copyTo(file: string): void {
    try {
      // The backups of better-sqlite3 cannot be held, see `held`.
      this.#prepare('VACUUM INTO ?').run(path.resolve(file));
    } catch (error) {
      throw databaseError(`${this.name}: copying it`, error, this.#timeoutMs);
    }
  }

  /** Closes it; a transaction that is open is undone. */
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

/** A column as text: what was stored as bytes is decoded, a number written out; null stays null. */
export function toText(value: ColumnValue): string | null {
  if (value === null || typeof value === 'string') return value;
  return Buffer.isBuffer(value) ? value.toString('utf8') : String(value);
}

/** A column as text; an empty one where it holds NULL, or there is no row. */
export function text(value: ColumnValue | undefined): string {
  return toText(value ?? null) ?? '';
}

/** The hint where tables and columns are not those of an index. */
export const notAnIndex =
  'this is not an index of operators, or it is damaged: get it from where it came from';

/** What a failure of sqlite means. */
function databaseError(name: string, error: unknown, timeoutMs: number): unknown {
  if (error instanceof OpmateError || !isSqliteError(error)) {
    if (error instanceof TypeError && /directory does not exist/.test(error.message)) {
      return new OpmateError('NOT_FOUND', 'its directory does not exist', { subject: name, cause: error });
    }
    return error;
  }
  const { code, message } = error;
  const fail = (kind: 'INVALID' | 'IO', what: string, hint?: string): OpmateError =>
    new OpmateError(kind, what, { subject: name, cause: error, file: name, hint });
  if (code === 'SQLITE_NOTADB')
    return fail('INVALID', 'not a sqlite database', 'specify the file of a sqlite index');
  if (code.startsWith('SQLITE_CORRUPT'))
    return fail('INVALID', 'the database is damaged', 'copy it again from its source');
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED')) {
    const seconds = timeoutMs / 1000;
    return fail(
      'IO',
      `locked by another process, waited ${seconds} s`,
      'run it again when that process has finished',
    );
  }
  if (code === 'SQLITE_READONLY_DBMOVED') return fail('IO', 'was moved or removed meanwhile');
  if (code.startsWith('SQLITE_READONLY'))
    return fail('IO', 'cannot be written: the file or its directory is read-only');
  if (code.startsWith('SQLITE_CANTOPEN'))
    return fail('IO', 'cannot be opened, or its journal cannot be made beside it');
  if (code === 'SQLITE_FULL') return fail('IO', 'no space left on device');
  if (code.startsWith('SQLITE_IOERR')) return fail('IO', `reading or writing failed: ${message}`);
  if (code === 'SQLITE_PERM' || code === 'SQLITE_AUTH') return fail('IO', 'permission denied');
  // What statements about an index meet in another schema.
  const isForeign = /^no such (?:table|column)|has no column named|already exists|is already a/.test(message);
  return fail('INVALID', message, isForeign ? notAnIndex : undefined);
}

function isSqliteError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && error.name === 'SqliteError' && typeof systemCode(error) === 'string';
}
