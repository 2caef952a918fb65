import { describe, expect, it } from 'vitest';
import type { BundleRecord } from '../../../../src/sqlite/schema/bundle-record.js';
import type { Database } from '../../../../src/sqlite/schema/database.js';
import { insertBundle } from '../../../../src/sqlite/schema/insert-bundle.js';
import { writePackageChannels } from '../../../../src/sqlite/schema/package-channels.js';
import { bundleRecord, emptyIndex, entriesOf, packagesIn } from '../../../support/staged-bundles.js';

async function indexWith(records: BundleRecord[], deprecated: string[] = []): Promise<Database> {
  const database = await emptyIndex();
  for (const name of deprecated) database.run('INSERT INTO deprecated VALUES (?)', name);
  const text = Buffer.from('{}\n');
  for (const record of records) insertBundle(database, record, { csv: text, objects: text });
  return database;
}

const write = (database: Database, heads: Record<string, string>, defaultChannel = '') =>
  database.transaction(() =>
    writePackageChannels(database, {
      packageName: 'p',
      channels: Object.entries(heads).map(([name, head]) => ({ name, head })),
      defaultChannel,
    }),
  );

describe('sqlite/package-channels', () => {
  it('writes an entry for each bundle of the chain, and two for each that it skips', async () => {
    const database = await indexWith([
      bundleRecord('0.9.0'),
      bundleRecord('0.9.2', { replaces: 'p.v0.9.0', skips: ['p.v0.9.1', 'p.v0.8.0'] }),
    ]);
    await write(database, { alpha: 'p.v0.9.2' });
    expect(entriesOf(database, 'alpha')).toEqual([
      'p.v0.9.2@0 > p.v0.9.0@3',
      'p.v0.9.1@1',
      'p.v0.9.2@1 > p.v0.9.1@1',
      'p.v0.8.0@2',
      'p.v0.9.2@2 > p.v0.8.0@2',
      'p.v0.9.0@3',
    ]);
    expect(packagesIn(database)).toEqual(['p (alpha): alpha=p.v0.9.2']);
  });

  it('notes the package at each bundle of each channel, as opm does', async () => {
    const database = await indexWith([bundleRecord('1.0.0')]);
    await write(database, { a: 'p.v1.0.0', b: 'p.v1.0.0' }, 'b');
    expect(database.all('SELECT type, value, operatorbundle_path AS image FROM properties')).toEqual(
      Array(2).fill({
        type: 'olm.package',
        value: '{"packageName":"p","version":"1.0.0"}',
        image: 'quay.io/p:v1.0.0',
      }),
    );
  });

  it('ends a channel at a deprecated bundle, and leaves out one that begins with it', async () => {
    const records = [
      bundleRecord('1.0.0'),
      bundleRecord('2.0.0', { replaces: 'p.v1.0.0', skips: ['p.v1.5.0'] }),
      bundleRecord('3.0.0', { replaces: 'p.v2.0.0' }),
    ];
    const database = await indexWith(records, ['p.v2.0.0']);
    await write(database, { new: 'p.v3.0.0', old: 'p.v2.0.0' }, 'new');
    expect(entriesOf(database, 'new')).toEqual(['p.v3.0.0@0 > p.v2.0.0@1', 'p.v2.0.0@1']);
    expect(packagesIn(database)).toEqual(['p (new): new=p.v3.0.0']);
    await expect(write(database, { new: 'p.v3.0.0', old: 'p.v2.0.0' }, 'old')).rejects.toMatchObject({
      message: 'no default channel specified for p',
      hint: 'the head of its default channel old is deprecated',
    });
  });

  it('replaces what the package had, and the schema stays as it was', async () => {
    const database = await indexWith([bundleRecord('1.0.0'), bundleRecord('2.0.0')]);
    const schema = database.all('SELECT * FROM sqlite_master');
    await write(database, { a: 'p.v1.0.0' });
    await write(database, { b: 'p.v2.0.0' });
    expect(packagesIn(database)).toEqual(['p (b): b=p.v2.0.0']);
    expect(entriesOf(database, 'a')).toEqual([]);
    expect(database.all('SELECT * FROM sqlite_master')).toEqual(schema);
  });

  it.each([
    [{ 'p.v1.0.0': 'p.v1.0.0' }, 'Cycle detected, p.v1.0.0 replaces p.v1.0.0'],
    [{ 'p.v1.0.0': 'p.v2.0.0', 'p.v2.0.0': 'p.v1.0.0' }, 'Cycle detected, p.v2.0.0 replaces p.v1.0.0'],
    [
      { 'p.v1.0.0': 'p.v2.0.0', 'p.v2.0.0': 'p.v0' },
      'Invalid bundle p.v2.0.0, replaces nonexistent bundle p.v0',
    ],
  ])('refuses edges %j', async (edges: Record<string, string>, message) => {
    const records = ['1.0.0', '2.0.0'].map((version) =>
      bundleRecord(version, { replaces: edges[`p.v${version}`] ?? '' }),
    );
    const database = await indexWith(records);
    await expect(write(database, { a: 'p.v1.0.0' })).rejects.toMatchObject({ code: 'INVALID', message });
  });

  it('reports all that is wrong at once, and leaves the package as it was', async () => {
    const database = await indexWith([bundleRecord('1.0.0'), bundleRecord('2.0.0', { replaces: 'p.v0' })]);
    await write(database, { a: 'p.v1.0.0' });
    await expect(write(database, { a: 'p.v2.0.0', b: 'p.v3' }, 'c')).rejects.toThrow(
      '[Invalid bundle p.v2.0.0, replaces nonexistent bundle p.v0, ' +
        'failed to add channel "b" in package "p": its head p.v3 is not in the index, ' +
        'no default channel specified for p]',
    );
    expect(packagesIn(database)).toEqual(['p (a): a=p.v1.0.0']);
    expect(entriesOf(database, 'a')).toEqual(['p.v1.0.0@0']);
  });
});
