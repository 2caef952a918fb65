import { copyFile, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/sqlite/schema/database.js';
import { migrateDatabase } from '../../src/sqlite/schema/schema.js';
import { startOpmate, useSandbox } from '../support/command-line.js';
import { fillOldIndex } from '../support/old-index.js';

const sandbox = useSandbox();
const at = (name: string): string => path.join(sandbox.work, name);

/** Runs opmate in the sandbox. */
async function opmate(...args: string[]) {
  return startOpmate(args, { cwd: sandbox.work, env: sandbox.environment() }).result;
}

function query<T>(file: string, work: (database: Sqlite.Database) => T): T {
  const database = new Sqlite(at(file), { readonly: true });
  try {
    return work(database);
  } finally {
    database.close();
  }
}

const versionOf = (file: string): unknown =>
  query(file, (database) => database.prepare('SELECT version FROM schema_migrations').pluck().get());

beforeAll(async () => {
  const names = Array.from({ length: 1500 }, (_, i) => `a.v${1500 - i}`);
  const database = await openDatabase(at('old.db'), { access: 'create' });
  await database.transaction(() => {
    migrateDatabase(database, 4);
    fillOldIndex(
      database,
      4,
      names.map((name, i) => ({ name, package: 'a', version: `${1500 - i}.0.0`, provides: ['Foo'] })),
      [{ package: 'a', name: 'stable', default: true, chain: names.map((name) => ({ name })) }],
    );
  });
  database.close();
});

describe('registry create', () => {
  it('creates an empty index once', async () => {
    expect(await opmate('registry', 'create', 'new.db')).toMatchObject({
      code: 0,
      stdout: '',
      stderr: 'info: created new.db\n',
    });
    expect(versionOf('new.db')).toBe(13);
    const before = await readFile(at('new.db'));
    expect(await opmate('registry', 'create', 'new.db')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'error: new.db: file already exists\nhint: use another name, or remove it first\n',
    });
    expect((await readFile(at('new.db'))).equals(before)).toBe(true);
    await opmate('registry', 'create', 'other.db');
    expect((await readFile(at('other.db'))).equals(before)).toBe(true);
  });

  it('creates one index in two concurrent runs', async () => {
    for (const file of ['raced-1.db', 'raced-2.db', 'raced-3.db', 'raced-4.db']) {
      await rm(at(file), { force: true });
      const results = await Promise.all([1, 2].map(() => opmate('registry', 'create', file)));
      expect(results.map(({ code }) => code).sort()).toEqual([0, 1]);
      expect(versionOf(file)).toBe(13);
      expect((await readdir(sandbox.work)).filter((name) => name.startsWith(file))).toEqual([file]);
    }
  });
});

describe('registry migrate', () => {
  it('migrates to a version, then to the latest, then does nothing', async () => {
    await copyFile(at('old.db'), at('steps.db'));
    for (const [args, message] of [
      [['--to', '6'], 'migrated from schema version 4 to 6'],
      [[], 'migrated from schema version 6 to 13'],
      [[], 'is at schema version 13'],
    ] as const) {
      const result = await opmate('registry', 'migrate', 'steps.db', ...args);
      expect(result).toMatchObject({ code: 0, stdout: '', stderr: `info: steps.db: ${message}\n` });
    }
    const back = await opmate('registry', 'migrate', 'steps.db', '--to', '6');
    expect(back).toMatchObject({
      code: 1,
      stderr: 'error: steps.db: schema version 13 cannot go back to 6\n',
    });
  });

  it('writes to another file', async () => {
    const before = await readFile(at('old.db'));
    const result = await opmate('registry', 'migrate', 'old.db', '--output-db', 'out.db');
    expect(result.stderr).toBe('info: out.db: migrated from schema version 4 to 13\n');
    expect(versionOf('out.db')).toBe(13);
    expect((await readFile(at('old.db'))).equals(before)).toBe(true);
    const same = await opmate('registry', 'migrate', 'old.db', '--output-db', './old.db');
    expect(same.code).not.toBe(0);
    expect(same.stderr).toMatch(/^error: \.\/old\.db: the output is the input\nhint: /);
  });

  it.each(['14', '-2', 'x', '1.5', ''])('refuses --schema-version %s', async (to) => {
    const { code, stderr } = await opmate('registry', 'migrate', 'old.db', `--to=${to}`);
    expect(code).not.toBe(0);
    expect(stderr).toBe(
      `error: --to "${to}": expected an integer from -1 to 13\nhint: see opmate registry migrate --help\n`,
    );
  });

  it('refuses other files and leaves them unchanged', async () => {
    await writeFile(at('text.db'), 'hello\n');
    expect(await opmate('registry', 'migrate', 'text.db')).toMatchObject({
      code: 1,
      stderr: 'error: text.db: not a sqlite database\nhint: specify the file of a sqlite index\n',
    });
    expect(await opmate('registry', 'migrate', 'none.db')).toMatchObject({
      code: 1,
      stderr: 'error: none.db: no such file or directory\n',
    });
    const other = new Sqlite(at('bookmarks.db'));
    other.exec('CREATE TABLE bookmarks (url TEXT)');
    other.close();
    const before = await readFile(at('bookmarks.db'));
    expect(await opmate('registry', 'migrate', 'bookmarks.db')).toMatchObject({
      code: 1,
      stderr:
        'error: bookmarks.db: a sqlite database, but not an operator index\n' +
        'hint: specify the file of an index, which has a table operatorbundle\n',
    });
    expect((await readFile(at('bookmarks.db'))).equals(before)).toBe(true);
  });

  it('migrates once in two concurrent runs', async () => {
    await copyFile(at('old.db'), at('twice.db'));
    const results = await Promise.all([1, 2].map(() => opmate('registry', 'migrate', 'twice.db')));
    expect(results.map(({ stderr }) => stderr).sort()).toEqual([
      'info: twice.db: is at schema version 13\n',
      'info: twice.db: migrated from schema version 4 to 13\n',
    ]);
  });

  it('completes or changes nothing when killed at any point', async () => {
    const file = at('killed.db');
    const there = (): Promise<boolean> =>
      stat(`${file}-journal`).then(
        () => true,
        () => false,
      );
    const seen = new Set<unknown>();
    for (let round = 0; round < 12; round++) {
      await copyFile(at('old.db'), file);
      await rm(`${file}-journal`, { force: true });
      const running = startOpmate(['registry', 'migrate', 'killed.db'], {
        cwd: sandbox.work,
        env: sandbox.environment(),
      });
      let ended = false;
      void running.result.then(() => (ended = true));
      while (!ended && !(await there())) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setTimeout(resolve, round * 4));
      running.child.kill('SIGKILL');
      await running.result;
      const database = new Sqlite(file);
      expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
      expect(database.prepare('SELECT count(*) FROM operatorbundle').pluck().get()).toBe(1500);
      const version = database.prepare('SELECT version FROM schema_migrations').pluck().get();
      const columns = database
        .prepare("SELECT count(*) FROM pragma_table_info('operatorbundle')")
        .pluck()
        .get();
      database.close();
      seen.add(`${version} with ${columns} columns`);
    }
    expect(['4 with 4 columns', '13 with 9 columns']).toEqual(expect.arrayContaining([...seen]));
    expect(seen).toContain('4 with 4 columns');
  });
});
