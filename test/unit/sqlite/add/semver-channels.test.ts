import { describe, expect, it } from 'vitest';
import type { BundleRecord } from '../../../../src/sqlite/schema/bundle-record.js';
import type { Database } from '../../../../src/sqlite/schema/database.js';
import { addToSemverChannels } from '../../../../src/sqlite/add/semver-channels.js';
import { bundleRecord, emptyIndex } from '../../../support/staged-bundles.js';

const record = (version: string, channels: string[], change: Partial<BundleRecord> = {}): BundleRecord =>
  bundleRecord(version, { channels, ...change });

function insertRow(database: Database, { name, version, image }: BundleRecord): void {
  database.run(
    'INSERT INTO operatorbundle(name, version, bundlepath) VALUES (?, ?, ?)',
    name,
    version,
    image,
  );
}

async function add(database: Database, records: BundleRecord[], skipPatch = false): Promise<void> {
  await database.transaction(async () => {
    for (const one of records) insertRow(database, one);
    await addToSemverChannels(database, 'p', records, { skipPatch });
  });
}

/** Entries of a channel as `bundle@depth > replaced@depth`. */
function entries(database: Database, channel: string): string[] {
  return database
    .all<{ line: string }>(
      `SELECT e.operatorbundle_name || '@' || e.depth
         || ifnull(' > ' || r.operatorbundle_name || '@' || r.depth, '') AS line
       FROM channel_entry e LEFT JOIN channel_entry r ON r.entry_id = e.replaces
       WHERE e.channel_name = ? ORDER BY e.entry_id`,
      channel,
    )
    .map(({ line }) => line);
}

const heads = (database: Database): unknown =>
  database.all(
    `SELECT channel.name, head_operatorbundle_name AS head, default_channel AS standard
     FROM channel JOIN package ON package.name = package_name ORDER BY channel.name`,
  );

function everything(database: Database): unknown {
  return ['package', 'channel', 'channel_entry'].map((table) => database.all(`SELECT * FROM ${table}`));
}

/** Bundles as rows, and entries given as `[channel, bundle, depth, position that it replaces]`. */
function writeEntries(
  database: Database,
  bundles: BundleRecord[],
  rows: [channel: string, name: string, depth: number, replaces?: number][],
): void {
  for (const one of bundles) insertRow(database, one);
  for (const channel of new Set(rows.map(([name]) => name)))
    database.run("INSERT INTO channel VALUES (?, 'p', ?)", channel, bundles[0]?.name ?? null);
  database.run("INSERT INTO package VALUES ('p', ?)", rows[0]?.[0] ?? null);
  for (const [index, [channel, name, depth, replaces]] of rows.entries()) {
    const target = replaces === undefined ? null : replaces + 1;
    database.run(
      "INSERT INTO channel_entry VALUES (?, ?, 'p', ?, ?, ?)",
      index + 1,
      channel,
      name,
      target,
      depth,
    );
  }
}

describe('sqlite/semver-channels', () => {
  it('puts bundles in the order of their versions, each replacing the one below', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['alpha']), record('1.10.0', ['alpha', 'beta'])]);
    await add(database, [record('1.2.0', ['beta', 'alpha']), record('2.0.0-rc.1', ['alpha'])]);
    expect(entries(database, 'alpha')).toEqual([
      'p.v2.0.0-rc.1@0 > p.v1.10.0@1',
      'p.v1.10.0@1 > p.v1.2.0@2',
      'p.v1.2.0@2 > p.v1.0.0@3',
      'p.v1.0.0@3',
    ]);
    expect(entries(database, 'beta')).toEqual(['p.v1.10.0@0 > p.v1.2.0@1', 'p.v1.2.0@1']);
    expect(heads(database)).toEqual([
      { name: 'alpha', head: 'p.v2.0.0-rc.1', standard: 'alpha' },
      { name: 'beta', head: 'p.v1.10.0', standard: 'alpha' },
    ]);
  });

  it('takes the default channel that was named last, and keeps it otherwise', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['b', 'a'])]);
    expect(heads(database)).toContainEqual({ name: 'b', head: 'p.v1.0.0', standard: 'a' });
    await add(database, [
      record('1.1.0', ['b'], { defaultChannel: 'c' }),
      record('1.2.0', ['c'], { defaultChannel: 'b' }),
      record('1.3.0', ['c']),
    ]);
    expect(heads(database)).toContainEqual({ name: 'c', head: 'p.v1.3.0', standard: 'b' });
  });

  it('takes a channel once that is named twice', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['a', 'a'])]);
    expect(entries(database, 'a')).toEqual(['p.v1.0.0@0']);
  });

  it('keeps only the highest patch of a minor in the line, and skips the others', async () => {
    const database = await emptyIndex();
    const versions = ['0.9.0', '1.0.0-rc.1', '1.0.0', '1.0.1', '1.1.0', '1.1.1', '2.0.0'];
    await add(
      database,
      versions.map((version) => record(version, ['a'])),
      true,
    );
    expect(entries(database, 'a')).toEqual([
      'p.v2.0.0@0 > p.v1.1.1@1',
      'p.v1.1.1@1 > p.v1.0.1@2',
      'p.v1.1.0@2',
      'p.v1.1.1@2 > p.v1.1.0@2',
      'p.v1.0.1@2 > p.v0.9.0@3',
      'p.v1.0.0@3',
      'p.v1.0.1@3 > p.v1.0.0@3',
      'p.v1.0.0-rc.1@4',
      'p.v1.0.1@4 > p.v1.0.0-rc.1@4',
      'p.v0.9.0@3',
    ]);
  });

  it.each([
    ['downwards', ['2.0.0', '1.1.1', '1.1.0', '1.0.1', '1.0.0', '0.9.0']],
    ['criss-cross', ['1.0.0', '1.1.1', '0.9.0', '2.0.0', '1.0.1', '1.1.0']],
  ])('comes to the same graph when patches come one by one, %s', async (_, versions) => {
    const [together, single] = [await emptyIndex(), await emptyIndex()];
    await add(
      together,
      ['0.9.0', '1.0.0', '1.0.1', '1.1.0', '1.1.1', '2.0.0'].map((version) => record(version, ['a'])),
      true,
    );
    for (const version of versions) await add(single, [record(version, ['a'])], true);
    expect(entries(single, 'a').sort()).toEqual(entries(together, 'a').sort());
    expect(heads(single)).toEqual(heads(together));
  });

  it('leaves what was skipped skipped when the graph is read again, in other channels too', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['a', 'b']), record('1.0.1', ['a', 'b'])], true);
    await add(database, [record('1.1.0', ['a'])]);
    const skipping = (depth: number): string[] => [
      `p.v1.0.1@${depth}`,
      `p.v1.0.0@${depth + 1}`,
      `p.v1.0.1@${depth + 1} > p.v1.0.0@${depth + 1}`,
    ];
    expect(entries(database, 'a')).toEqual(['p.v1.1.0@0 > p.v1.0.1@1', ...skipping(1)]);
    expect(entries(database, 'b')).toEqual(skipping(0));
    await expect(add(database, [record('1.0.0+again', ['b'])])).rejects.toThrow(
      'Bundle version 1.0.0+again already added to index: it is bundle "p.v1.0.0" in channel "b"',
    );
  });

  it('goes on from a graph of the replaces mode, with what that skips', async () => {
    const database = await emptyIndex();
    await database.transaction(() =>
      writeEntries(
        database,
        [record('1.2.0', ['a']), record('1.0.0', ['a'])],
        [
          ['a', 'p.v1.2.0', 0, 3],
          ['a', 'p.v1.1.0', 1],
          ['a', 'p.v1.2.0', 1, 1],
          ['a', 'p.v1.0.0', 2, 4],
          // An end that is no bundle of the index, as older databases have it.
          ['a', 'p.v0.9.0', 3],
        ],
      ),
    );
    await add(database, [record('1.1.0', ['a']), record('1.3.0', ['a'])]);
    expect(entries(database, 'a')).toEqual([
      'p.v1.3.0@0 > p.v1.2.0@1',
      'p.v1.2.0@1 > p.v1.1.0@2',
      'p.v1.1.0@2 > p.v1.0.0@3',
      'p.v1.0.0@3',
      'p.v0.9.0@4',
      'p.v1.0.0@4 > p.v0.9.0@4',
    ]);
  });

  it('names every bundle whose version cannot be taken', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['a'])]);
    const before = everything(database);
    const records = [
      record('', ['a'], { name: 'without' }),
      record('1.0', ['a'], { name: 'short' }),
      record('1.0.0+1', ['b', 'a']),
      record('2.0.0+1', ['a']),
      record('2.0.0+2', ['a']),
    ];
    await expect(add(database, records)).rejects.toThrow(
      'package "p": [bundle "without" has no version, can\'t insert in semver mode, ' +
        'bundle "short": Bundle version 1.0 is not valid: No Major.Minor.Patch elements found, ' +
        'bundle "p.v1.0.0+1": Bundle version 1.0.0+1 already added to index: it is bundle "p.v1.0.0" in channel "a", ' +
        'bundle "p.v2.0.0+2": Bundle version 2.0.0+2 already added to index: it is bundle "p.v2.0.0+1" in channel "a"]',
    );
    expect(everything(database)).toEqual(before);
  });

  it('refuses a default channel that there is not, and changes nothing', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['a'])]);
    const before = everything(database);
    await expect(add(database, [record('1.1.0', ['a'], { defaultChannel: 'no' })])).rejects.toThrow(
      'the default channel (no) does not exist',
    );
    // Whatever the next bundle names: opm refuses it in every order.
    const ghost = record('1.1.0', ['a'], { defaultChannel: 'ghost' });
    await expect(add(database, [ghost, record('1.2.0', ['b'], { defaultChannel: 'b' })])).rejects.toThrow(
      `package "p": bundle "${ghost.name}": the default channel (ghost) does not exist`,
    );
    expect(everything(database)).toEqual(before);
  });

  it.each<[string, [string, string, number, number?][], string]>([
    [
      'no head',
      [
        ['a', 'p.v1.2.0', 0, 1],
        ['a', 'p.v1.0.0', 1, 0],
      ],
      'channel "a": no channel head found',
    ],
    [
      'two heads',
      [
        ['a', 'p.v1.2.0', 0],
        ['a', 'p.v1.0.0', 0],
      ],
      'channel "a": multiple candidate channel heads found: p.v1.0.0, p.v1.2.0',
    ],
    [
      'a circle below the head',
      [
        ['a', 'p.v1.2.0', 0, 1],
        ['a', 'p.v1.0.0', 1, 1],
      ],
      'channel "a": Cycle detected: bundle "p.v1.0.0" replaces itself',
    ],
    [
      'a gap in it',
      [
        ['a', 'p.v1.2.0', 0, 1],
        ['a', 'p.v1.0.0', 1, 2],
        ['a', 'p.v0.9.0', 1, 1],
      ],
      'channel "a": bundle "p.v0.9.0" is replaced and replaces another, but is not in the index',
    ],
    [
      'bundles below what is missing',
      [
        ['a', 'p.v1.2.0', 0],
        ['a', 'p.v0.9.0', 1, 2],
        ['a', 'p.v1.0.0', 2],
      ],
      'channel "a": bundle "p.v0.9.0" is not reached from the head "p.v1.2.0"',
    ],
    [
      'an order other than that of versions',
      [
        ['a', 'p.v1.0.0', 0, 1],
        ['a', 'p.v1.2.0', 1],
      ],
      'channel "a": Invalid graph: bundle "p.v1.1.0" belongs below "p.v1.2.0" and above "p.v1.0.0"',
    ],
  ])('refuses a graph with %s, and changes nothing', async (_, rows, message) => {
    const database = await emptyIndex();
    await database.transaction(() =>
      writeEntries(database, [record('1.2.0', []), record('1.0.0', [])], rows),
    );
    const before = everything(database);
    await expect(add(database, [record('1.1.0', ['a'])])).rejects.toThrow(message);
    expect(everything(database)).toEqual(before);
  });

  it('leaves other packages alone', async () => {
    const database = await emptyIndex();
    await add(database, [record('1.0.0', ['a'])]);
    const other = record('1.0.0', ['a'], { name: 'q.v1', packageName: 'q' });
    insertRow(database, other);
    await addToSemverChannels(database, 'q', [other], { skipPatch: false });
    expect(entries(database, 'a')).toEqual(['p.v1.0.0@0', 'q.v1@0']);
  });
});
