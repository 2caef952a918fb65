import { execFileSync } from 'node:child_process';
import { appendFile, readFile, stat, symlink, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';
import {
  type OpenDatabaseOptions,
  isDatabaseFile,
  openDatabase,
  getNullableText,
  writesAhead,
} from '../../../../src/sqlite/schema/database.js';
import { holdLock } from '../../../support/sqlite-process.js';
import { directoryWith } from '../../../support/temporary.js';

const reading = { access: 'read' } as const;
const writing = { access: 'write' } as const;

async function numbers(count = 2000): Promise<string> {
  const file = path.join(await directoryWith(), 'numbers.db');
  const database = new Sqlite(file);
  database.exec(`CREATE TABLE number (n INTEGER, text TEXT); CREATE TABLE other (n INTEGER);
    INSERT INTO number WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count})
    SELECT n, hex(zeroblob(50)) FROM c`);
  database.close();
  return file;
}

async function refusal(file: string, options: OpenDatabaseOptions = reading): Promise<unknown> {
  return openDatabase(file, options).then(
    () => 'opened',
    (error: unknown) => error,
  );
}

describe('sqlite/database', () => {
  it.each(['read', 'write', 'create'] as const)('refuses what is no database, to %s', async (access) => {
    const directory = await directoryWith({ text: 'hello\n', page: Buffer.alloc(4096, 'x'), 'dir/a': '' });
    for (const name of ['text', 'page']) {
      const file = path.join(directory, name);
      expect(await refusal(file, { access })).toMatchObject({
        code: 'INVALID',
        message: `${file}: not a sqlite database`,
      });
    }
    const within = path.join(directory, 'dir');
    expect(await refusal(within, { access })).toMatchObject({
      code: 'INVALID',
      message: `${within}: is a directory, not a database`,
    });
    expect(await readFile(path.join(directory, 'text'), 'utf8')).toBe('hello\n');
    expect(await refusal('', { access })).toMatchObject({ code: 'USAGE' });
  });

  it('refuses missing, empty and special files, unless one is to be created', async () => {
    const directory = await directoryWith({ empty: '' });
    const [empty, none, below, pipe] = ['empty', 'none', 'empty/x', 'pipe'].map((name) =>
      path.join(directory, name),
    ) as [string, string, string, string];
    execFileSync('mkfifo', [pipe]);
    for (const options of [reading, writing]) {
      expect(await refusal(empty, options)).toMatchObject({
        code: 'INVALID',
        hint: 'check the file: it is empty',
      });
      expect(await refusal(none, options)).toMatchObject({
        code: 'NOT_FOUND',
        message: `${none}: no such file or directory`,
      });
      expect(await refusal(below, options)).toMatchObject({ code: 'NOT_FOUND' });
      expect(await refusal(pipe, options)).toMatchObject({ message: `${pipe}: is not a file` });
    }
    const missing = path.join(directory, 'no/such.db');
    expect(await refusal(missing, { access: 'create' })).toMatchObject({
      code: 'NOT_FOUND',
      message: `${missing}: its directory does not exist`,
    });
    for (const file of [empty, none]) (await openDatabase(file, { access: 'create' })).close();
  });

  it.each([4096, 5000, 50_000])('says that a database of %i bytes is cut short', async (size) => {
    const file = await numbers();
    expect((await stat(file)).size).toBeGreaterThan(50_000);
    await truncate(file, size);
    expect(await refusal(file)).toMatchObject({
      code: 'INVALID',
      message: `${file}: truncated database: ${size} bytes`,
    });
  });

  it('says that a database is damaged, when the damage is met', async () => {
    const file = await numbers();
    const bytes = await readFile(file);
    bytes.fill(0xff, 8192, 60_000);
    await writeFile(file, bytes);
    const database = await openDatabase(file, reading);
    expect(() => database.all('SELECT * FROM number')).toThrow(`${file}: damaged database`);
    expect(() => [...database.iterate('SELECT * FROM number')]).toThrow(`${file}: damaged database`);
  });

  it('takes names that mean something to sqlite as files', async () => {
    const directory = await directoryWith();
    const before = process.cwd();
    process.chdir(directory);
    try {
      for (const name of [':memory:', 'file:x?mode=memory', 'a b%20#?c.db']) {
        const database = await openDatabase(name, { access: 'create' });
        database.execute('CREATE TABLE t (x)');
        database.close();
        expect(await isDatabaseFile(path.join(directory, name))).toBe(true);
      }
    } finally {
      process.chdir(before);
    }
  });

  it('follows links', async () => {
    const file = await numbers();
    const other = path.join(path.dirname(file), 'link.db');
    await symlink(file, other);
    const database = await openDatabase(other, writing);
    database.run('DELETE FROM number');
    database.close();
    expect((await openDatabase(file, reading)).all('SELECT * FROM number')).toEqual([]);
  });

  it('knows a database, and one that writes ahead', async () => {
    const file = await numbers();
    expect(await isDatabaseFile(file)).toBe(true);
    expect(await writesAhead(file)).toBe(false);
    const database = new Sqlite(file);
    database.pragma('journal_mode = WAL');
    database.close();
    expect(await writesAhead(file)).toBe(true);
    await expect(isDatabaseFile(path.join(file, 'x'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });

  it('keeps all of a transaction or nothing, and of a part within it', async () => {
    const database = await openDatabase(await numbers(3), writing);
    const count = (): unknown => database.get('SELECT count(*) AS n FROM other');
    const add = (n: number): unknown => database.run('INSERT INTO other VALUES (?)', n);
    await expect(
      database.transaction(() => {
        add(1);
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(count()).toEqual({ n: 0 });
    await database.transaction(async () => {
      add(1);
      await database
        .transaction(() => {
          add(2);
          throw new Error('no');
        })
        .catch(() => undefined);
      await database.transaction(() => void add(3));
      expect(database.inTransaction).toBe(true);
    });
    expect(database.all('SELECT n FROM other')).toEqual([{ n: 1 }, { n: 3 }]);
  });

  it('undoes everything when a deferred key is broken at the end', async () => {
    const database = await openDatabase(await numbers(3), writing);
    database.execute(`CREATE TABLE child (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES child (id)
      DEFERRABLE INITIALLY DEFERRED)`);
    await expect(
      database.transaction(() => void database.run('INSERT INTO child VALUES (1, 9)')),
    ).rejects.toMatchObject({ code: 'INVALID', message: expect.stringContaining('FOREIGN KEY') as string });
    expect(database.inTransaction).toBe(false);
    expect(database.all('SELECT * FROM child')).toEqual([]);
  });

  it('undoes everything when the disk is full in the middle', async () => {
    const file = await numbers();
    const before = await readFile(file);
    const database = await openDatabase(file, writing);
    database.execute(`PRAGMA max_page_count = ${before.length / 4096 + 20}`);
    await expect(
      database.transaction(() => {
        for (let i = 0; i < 1000; i++) database.run('INSERT INTO number VALUES (?, ?)', i, 'x'.repeat(1000));
      }),
    ).rejects.toMatchObject({ code: 'IO', message: `${file}: no space left on device` });
    database.close();
    expect((await readFile(file)).equals(before)).toBe(true);
  });

  it('waits for another process that writes, and says so when it takes too long', async () => {
    const file = await numbers(3);
    const lock = await holdLock(file);
    const database = await openDatabase(file, { ...writing, timeoutMs: 200 });
    await expect(database.transaction(() => undefined)).rejects.toMatchObject({
      code: 'IO',
      message: `${file}: locked by another process, waited 0.2 s`,
      hint: 'run the command again when that process has finished',
    });
    // Who only reads need not wait.
    expect(database.all('SELECT n FROM number')).toHaveLength(3);
    await lock.release();
    await database.transaction(() => void database.run('DELETE FROM number'));
    expect(database.all('SELECT n FROM number')).toEqual([]);
  });

  it('lets the schema of a database call nothing with effects', async () => {
    const file = await numbers(3);
    const writer = new Sqlite(file);
    const target = path.join(path.dirname(file), 'taken');
    writer.exec(`CREATE VIEW v AS SELECT load_extension('${target}') AS x;
      CREATE TRIGGER t AFTER INSERT ON other BEGIN SELECT writefile('${target}', 'x'); END;
      CREATE TRIGGER again AFTER DELETE ON other BEGIN INSERT INTO other VALUES (1); DELETE FROM other; END`);
    writer.close();
    const database = await openDatabase(file, writing);
    expect(() => database.all('SELECT * FROM v')).toThrow(file);
    expect(() => database.run('INSERT INTO other VALUES (1)')).toThrow(file);
    // A trigger that calls itself ends.
    expect(() => database.run('DELETE FROM other')).not.toThrow(TypeError);
    await expect(stat(target)).rejects.toThrow();
  });

  it('copies a database as of one moment', async () => {
    const file = await numbers();
    const copy = path.join(path.dirname(file), 'copy.db');
    const database = await openDatabase(file, reading);
    database.copyTo(copy);
    expect((await openDatabase(copy, reading)).all('SELECT n FROM number')).toHaveLength(2000);
    expect(() => database.copyTo(path.join(copy, 'below.db'))).toThrow(`${file}: copying it`);
  });

  it('gives pages back', async () => {
    const file = await numbers();
    const database = await openDatabase(file, writing);
    database.run('DELETE FROM number');
    const before = (await stat(file)).size;
    database.vacuum();
    expect((await stat(file)).size).toBeLessThan(before / 10);
  });

  it('stops walking over rows when its reader does', async () => {
    const database = await openDatabase(await numbers(), writing);
    for (const row of database.iterate<{ n: number }>('SELECT n FROM number')) if (row.n === 3) break;
    expect(database.run('DELETE FROM number').changes).toBe(2000);
  });

  it('takes columns of any type as text', () => {
    expect([null, 'x', 7, 8n, Buffer.from('é'), Buffer.from([0xff])].map(getNullableText)).toEqual([
      null,
      'x',
      '7',
      '8',
      'é',
      '\uFFFD',
    ]);
  });

  it('reads a file that has grown behind its database', async () => {
    const file = await numbers(3);
    await appendFile(file, Buffer.alloc(10_000));
    expect((await openDatabase(file, reading)).all('SELECT n FROM number')).toHaveLength(3);
  });
});
