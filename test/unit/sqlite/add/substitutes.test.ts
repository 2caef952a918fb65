import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Database, openDatabase } from '../../../../src/sqlite/schema/database.js';
import { migrateDatabase } from '../../../../src/sqlite/schema/schema.js';
import { withIndexes } from '../../../../src/sqlite/schema/helper-indexes.js';
import { applySubstitution } from '../../../../src/sqlite/add/substitutes.js';
import { directoryWith } from '../../../support/temporary.js';

interface Input {
  replaces?: string;
  skips?: string;
  /** What it substitutes for. */
  for?: string;
}

async function emptyDatabase(): Promise<Database> {
  const database = await openDatabase(path.join(await directoryWith(), 'index.db'), { access: 'create' });
  onTestFinished(() => database.close());
  await database.transaction(() => migrateDatabase(database));
  return database;
}

/** Adds a bundle that is called as its version is. */
function add(database: Database, version: string, input: Input = {}, name = version): void {
  database.run(
    'INSERT INTO operatorbundle(name, version, replaces, skips, substitutesfor) VALUES (?, ?, ?, ?, ?)',
    name,
    version,
    input.replaces ?? '',
    input.skips ?? '',
    input.for ?? '',
  );
  applySubstitution(database, name);
}

/** Edges by bundle: `for S; replaces R; skips a,b`. */
function edges(database: Database): Record<string, string> {
  const rows = database.all<{ name: string; edges: string }>(
    `SELECT name, trim(iif(substitutesfor = '', '', 'for ' || substitutesfor || '; ')
       || iif(replaces = '', '', 'replaces ' || replaces || '; ')
       || iif(skips = '', '', 'skips ' || skips), '; ') AS edges
     FROM operatorbundle ORDER BY name`,
  );
  return Object.fromEntries(rows.map((row) => [row.name, row.edges]));
}

describe('sqlite/substitutes', () => {
  it('stores a skip once that is written twice', async () => {
    const database = await emptyDatabase();
    add(database, '1.0.0', { skips: '0.2.0,0.1.0,0.2.0' });
    expect(edges(database)).toEqual({ '1.0.0': 'skips 0.2.0,0.1.0' });
  });

  it('orders those that substitute for the same bundle by version, in whatever order they come', async () => {
    const rebuilds = ['1.0.0+0.1234', '1.0.0+2', '1.0.0+3'];
    for (const order of [
      [0, 1, 2],
      [0, 2, 1],
      [2, 1, 0],
      [1, 2, 0],
    ]) {
      const database = await emptyDatabase();
      add(database, '0.9.0');
      add(database, '1.0.0', { replaces: '0.9.0', skips: '0.9.5' });
      add(database, '1.1.0', { replaces: '1.0.0' });
      for (const index of order) {
        add(database, rebuilds[index] as string, { replaces: '0.9.0', skips: '0.9.5', for: '1.0.0' });
      }
      expect(edges(database)).toEqual({
        '0.9.0': '',
        '1.0.0': 'replaces 0.9.0; skips 0.9.5',
        '1.0.0+0.1234': 'for 1.0.0; replaces 0.9.0; skips 0.9.5,1.0.0',
        '1.0.0+2': 'for 1.0.0+0.1234; replaces 0.9.0; skips 0.9.5,1.0.0,1.0.0+0.1234',
        '1.0.0+3': 'for 1.0.0+2; replaces 0.9.0; skips 0.9.5,1.0.0,1.0.0+0.1234,1.0.0+2',
        '1.1.0': 'replaces 1.0.0+3',
      });
    }
  });

  it('hands the skips of a bundle that comes late to those that substitute for it', async () => {
    const database = await emptyDatabase();
    add(database, '1.0.0+1', { for: '1.0.0' });
    add(database, '1.0.0+2', { for: '1.0.0+1' });
    add(database, '1.0.0', { skips: '0.8.0,0.9.0' });
    expect(edges(database)).toEqual({
      '1.0.0': 'skips 0.8.0,0.9.0',
      '1.0.0+1': 'for 1.0.0; skips 0.8.0,0.9.0,1.0.0',
      '1.0.0+2': 'for 1.0.0+1; skips 0.8.0,0.9.0,1.0.0,1.0.0+1',
    });
  });

  it('lets a bundle replace and skip the substitutes of what it names', async () => {
    const database = await emptyDatabase();
    add(database, '1.0.0');
    add(database, '1.0.0+1', { for: '1.0.0' });
    add(database, '1.1.0');
    add(database, '1.1.0+1', { for: '1.1.0' });
    add(database, '1.2.0', { replaces: '1.1.0', skips: '1.0.0' });
    expect(edges(database)['1.2.0']).toBe('replaces 1.1.0+1; skips 1.0.0,1.0.0+1');
  });

  it('leaves bundles alone that have nothing to do with it, in the order of their skips too', async () => {
    const database = await emptyDatabase();
    add(database, '1.0.0');
    add(database, '1.0.0+1', { for: '1.0.0' });
    add(database, '3.0.0', { replaces: '2.0.0', skips: '2.1.0,2.0.1' });
    expect(edges(database)['3.0.0']).toBe('replaces 2.0.0; skips 2.1.0,2.0.1');
  });

  it.each<[string, [version: string, input: Input, name?: string][], string]>([
    [
      'itself',
      [['1.0.0', { for: '1.0.0' }]],
      'bundle "1.0.0": cyclic substitutesFor chain detected involving "1.0.0"',
    ],
    [
      'what substitutes for it',
      [
        ['1.0.0', { for: '1.0.1' }],
        ['1.0.1', { for: '1.0.0' }],
      ],
      'bundle "1.0.1": cyclic substitutesFor chain detected involving "1.0.1"',
    ],
    [
      'one of a longer circle',
      [
        ['1.0.0', { for: '1.0.2' }],
        ['1.0.1', { for: '1.0.0' }],
        ['1.0.2', { for: '1.0.1' }],
      ],
      'bundle "1.0.2": cyclic substitutesFor chain detected involving "1.0.2"',
    ],
    [
      'what another of the same version substitutes for',
      [
        ['1.0.0+1', { for: '1.0.0' }, 'a'],
        ['1.0.0+1', { for: '1.0.0' }, 'b'],
      ],
      'bundle "b": cannot determine latest substitution because of duplicate versions: bundle "a" substitutes for "1.0.0" too',
    ],
    [
      'what another without a version substitutes for',
      [
        ['', { for: '1.0.0' }, 'a'],
        ['1.0.0+1', { for: '1.0.0' }, 'b'],
      ],
      'bundle "a": version "": Version string empty',
    ],
  ])('refuses a bundle that substitutes for %s', async (_, bundles, message) => {
    const database = await emptyDatabase();
    const last = bundles.pop() as [string, Input, string?];
    for (const one of bundles) add(database, ...one);
    expect(() => add(database, ...last)).toThrow(message);
  });

  it('makes a bundle replace itself that replaces what it substitutes for, as opm does', async () => {
    const database = await emptyDatabase();
    add(database, '1.0.0');
    add(database, '1.0.0+1', { for: '1.0.0', replaces: '1.0.0' });
    expect(edges(database)).toEqual({
      '1.0.0': '',
      '1.0.0+1': 'for 1.0.0; replaces 1.0.0+1; skips 1.0.0',
    });
  });

  it('refuses a bundle for which several substitute in no order', async () => {
    const database = await emptyDatabase();
    for (const name of ['b', 'a'])
      database.run("INSERT INTO operatorbundle(name, substitutesfor) VALUES (?, '1.0.0')", name);
    expect(() => add(database, '1.0.0')).toThrow(
      'bundle "1.0.0": more than one bundle substitutes for it: a, b',
    );
    expect(() => add(database, '1.1.0', { replaces: '1.0.0' })).toThrow('more than one bundle substitutes');
  });

  it('ends where a circle is in the index already', async () => {
    const database = await emptyDatabase();
    database.run("INSERT INTO operatorbundle(name, substitutesfor) VALUES ('a', 'b'), ('b', 'a')");
    for (const input of [{ for: 'a' }, { replaces: 'a' }, { skips: 'a' }])
      expect(() => add(database, '1.0.0', input, JSON.stringify(input))).toThrow();
  });

  it('uses indexes that are gone afterwards', async () => {
    const database = await emptyDatabase();
    const schema = (): unknown => database.all('SELECT name FROM sqlite_master ORDER BY name');
    const before = schema();
    const work = (): Promise<void> =>
      withIndexes(database, 'substitutions', () => {
        expect(
          database.all<{ detail: string }>(
            "EXPLAIN QUERY PLAN SELECT name FROM operatorbundle WHERE substitutesfor = 'a'",
          )[0]?.detail,
        ).toContain('USING INDEX');
        add(database, '1.0.0');
        add(database, '1.0.0', { for: '1.0.0' });
      });
    await expect(database.transaction(work)).rejects.toThrow('UNIQUE constraint failed');
    expect(schema()).toEqual(before);
    await database.transaction(async () => {
      await expect(work()).rejects.toThrow('UNIQUE constraint failed');
    });
    expect(schema()).toEqual(before);
  });
});
