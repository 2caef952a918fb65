import { describe, expect, it } from 'vitest';
import { deleteBundle } from '../../../../src/sqlite/remove/delete-bundle.js';
import { deprecateTruncate } from '../../../../src/sqlite/remove/deprecate.js';
import { writePackageChannels } from '../../../../src/sqlite/schema/package-channels.js';
import {
  bundleNames,
  edgesOf,
  headsOf,
  imageOf,
  leftovers,
  nameOf,
  noLeftovers,
  smallIndex,
} from '../../../support/small-index.js';
import type { Database } from '../../../../src/sqlite/schema/database.js';

const name = (minor: number): string => nameOf('first', minor);
const edges = (database: Database, channel = 'stable'): string[] => edgesOf(database, 'first', channel);

/** Writes the package from the columns of its bundles, as a later add does. */
async function rewritten(database: Database, channels: string[]): Promise<string[]> {
  const heads = headsOf(database);
  await database.transaction(() =>
    writePackageChannels(database, {
      packageName: 'first',
      channels: channels.map((channel) => ({ name: channel, head: heads[`first/${channel}`] as string })),
      defaultChannel: channels[0] as string,
    }),
  );
  return edges(database, channels[0]);
}

const line = [
  { minor: 0 },
  { minor: 1, replaces: 0 },
  { minor: 2, replaces: 1, skips: [9] },
  { minor: 3, replaces: 2 },
];

describe('sqlite/delete-bundle', () => {
  it('has what replaced a bundle replace and skip what it did, and skip it too', async () => {
    const database = await smallIndex({ first: line });
    const report = await deleteBundle(database, name(2));
    expect(report).toMatchObject({
      bundles: [name(2)],
      packages: ['first'],
      heads: [],
      emptied: [],
      defaults: [],
    });
    const wanted = ['1.3 > 1.1', '1.3 > 1.2', '1.3 > 1.9', '1.1 > 1.0'];
    expect(edges(database)).toEqual(wanted);
    expect(leftovers(database)).toEqual(noLeftovers);
    expect(await rewritten(database, ['stable'])).toEqual(wanted);
  });

  it('removes the tail of a channel', async () => {
    const database = await smallIndex({ first: line });
    await deleteBundle(database, name(0));
    const wanted = ['1.3 > 1.2', '1.2 > 1.1', '1.2 > 1.9', '1.1 > 1.0'];
    expect(edges(database)).toEqual(wanted);
    expect(bundleNames(database)).not.toContain(name(0));
    expect(await rewritten(database, ['stable'])).toEqual(wanted);
  });

  it('makes what the head replaced the head, and drops names that the head skipped', async () => {
    const database = await smallIndex({ first: [...line, { minor: 5, replaces: 3, skips: [4] }] });
    const report = await deleteBundle(database, name(5));
    expect(report.heads).toEqual([{ packageName: 'first', channel: 'stable', head: name(3) }]);
    expect(edges(database)).toEqual(['1.3 > 1.2', '1.2 > 1.1', '1.2 > 1.9', '1.1 > 1.0']);
  });

  it('makes the newest of the bundles the head that only the head led to', async () => {
    const first = [...line, { minor: 4, replaces: 3 }, { minor: 5, replaces: 4 }];
    const database = await smallIndex({ first: [...first, { minor: 6, replaces: 1, skips: [2, 3, 4, 5] }] });
    expect(edges(database)).toEqual([
      '1.6 > 1.1',
      '1.6 > 1.2',
      '1.6 > 1.3',
      '1.6 > 1.4',
      '1.6 > 1.5',
      '1.1 > 1.0',
    ]);
    await deleteBundle(database, name(6));
    const wanted = ['1.5 > 1.4', '1.4 > 1.3', '1.3 > 1.2', '1.2 > 1.1', '1.2 > 1.9', '1.1 > 1.0'];
    expect(edges(database)).toEqual(wanted);
    expect(await rewritten(database, ['stable'])).toEqual(wanted);
  });

  it('has the newest of these skip the others where nothing says what they replace', async () => {
    const database = await smallIndex({
      first: [{ minor: 0 }, { minor: 1 }, { minor: 2 }, { minor: 3, replaces: 0, skips: [1, 2] }],
    });
    await deleteBundle(database, name(3));
    const wanted = ['1.2 > 1.0', '1.2 > 1.1'];
    expect(edges(database)).toEqual(wanted);
    expect(await rewritten(database, ['stable'])).toEqual(wanted);
  });

  it('follows the next bundle past what it skips', async () => {
    const database = await smallIndex({
      first: [
        { minor: 0 },
        { minor: 1, replaces: 0 },
        { minor: 2, replaces: 0, skips: [1] },
        { minor: 3, replaces: 1, skips: [2] },
      ],
    });
    await deleteBundle(database, name(3));
    expect(edges(database)).toEqual(['1.2 > 1.0', '1.2 > 1.1']);
  });

  it('lists the bundles that it cannot order', async () => {
    const database = await smallIndex({
      first: [{ minor: 0 }, { minor: 1 }, { minor: 2 }, { minor: 3, replaces: 0, skips: [1, 2] }],
    });
    database.execute('PRAGMA foreign_keys = OFF');
    database.run("UPDATE operatorbundle SET version = 'one' WHERE name = ?", name(1));
    database.execute('PRAGMA foreign_keys = ON');
    await expect(deleteBundle(database, name(3))).rejects.toMatchObject({
      code: 'INVALID',
      message: `index.db: package first, channel stable: without ${name(3)} nothing leads to ${name(1)}, ${name(2)}, and their versions do not determine the next one`,
    });
    expect(bundleNames(database)).toHaveLength(4);
  });

  it('leaves the graph as it is where the bundle is only skipped', async () => {
    const database = await smallIndex({ first: [...line, { minor: 4, replaces: 2, skips: [3] }] });
    const before = edges(database);
    await deleteBundle(database, name(3));
    expect(edges(database)).toEqual(before);
    await expect(deleteBundle(database, name(3))).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `index.db: bundle "${name(3)}" not found`,
      hint: `check the name: it is not in the index, only skipped or replaced by ${name(4)}`,
    });
  });

  it('suggests the nearest name for an unknown bundle', async () => {
    const database = await smallIndex({ first: line });
    await expect(deleteBundle(database, `${name(1)}x`)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: `index.db: bundle "${name(1)}x" not found`,
      hint: `did you mean "${name(1)}"?`,
    });
  });

  it('repairs each channel by itself, drops one that is empty, and chooses another default one', async () => {
    const database = await smallIndex({
      first: [
        { minor: 0, channels: ['old', 'b', 'a'] },
        { minor: 1, replaces: 0, channels: ['b', 'a'] },
        { minor: 2, replaces: 1, channels: ['b', 'a'] },
        { minor: 3, replaces: 2, channels: ['new'] },
      ],
    });
    database.execute("UPDATE channel_entry SET replaces = NULL WHERE channel_name = 'new'");
    database.execute("DELETE FROM channel_entry WHERE channel_name = 'new' AND depth > 0");
    const report = await deleteBundle(database, name(3));
    expect(report).toMatchObject({
      emptied: [{ packageName: 'first', channel: 'new' }],
      defaults: [{ packageName: 'first', channel: 'a' }],
    });
    await deleteBundle(database, name(2));
    expect(headsOf(database)).toEqual({ 'first/a': name(1), 'first/b': name(1), 'first/old': name(0) });
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('does not make a deprecated bundle a head, and forgets one that is removed', async () => {
    const database = await smallIndex({ first: line });
    await deprecateTruncate(database, [imageOf('first', 2)]);
    await expect(deleteBundle(database, name(3))).rejects.toMatchObject({
      message: `index.db: without ${name(3)} package first has no channel left`,
      hint: 'remove the package with api.editIndex rm options.packages first',
    });
    await deleteBundle(database, name(2));
    expect(edges(database)).toEqual(['1.3 > 1.2']);
    expect(database.all('SELECT * FROM deprecated')).toEqual([]);
    expect(await rewritten(database, ['stable'])).toEqual(['1.3 > 1.2']);
  });

  it('removes a bundle that is in no channel', async () => {
    const database = await smallIndex({ first: [{ minor: 0 }, { minor: 1 }] });
    expect(await deleteBundle(database, name(0))).toMatchObject({ bundles: [name(0)], packages: [] });
  });

  it('gives a new head its manifests back, if its image still holds that bundle', async () => {
    const database = await smallIndex({ first: line });
    database.run('UPDATE operatorbundle SET csv = NULL, bundle = NULL WHERE name = ?', name(2));
    const manifests = { csv: Buffer.from('{"again":1}\n'), objects: Buffer.from('{"again":2}\n') };
    const fetched: string[] = [];
    const fetchAs = (found: string) => async (image: string) => {
      fetched.push(image);
      return { name: found, manifests };
    };
    await expect(deleteBundle(database, name(3), { fetchManifests: fetchAs('other') })).rejects.toThrow(
      `its image ${imageOf('first', 2)} holds other now`,
    );
    await expect(deleteBundle(database, name(3))).rejects.toThrow('has no manifests in the index');
    const report = await deleteBundle(database, name(3), { fetchManifests: fetchAs(name(2)) });
    expect(report.restored).toEqual([name(2)]);
    expect(fetched).toEqual([imageOf('first', 2), imageOf('first', 2)]);
    expect(database.get('SELECT csv, bundle FROM operatorbundle WHERE name = ?', name(2))).toEqual({
      csv: manifests.csv,
      bundle: manifests.objects,
    });
  });

  it('refuses a channel whose head does not lead to all of it', async () => {
    const database = await smallIndex({ first: line });
    database.run('UPDATE channel_entry SET replaces = NULL WHERE operatorbundle_name = ?', name(2));
    await expect(deleteBundle(database, name(3))).rejects.toThrow(
      `package first, channel stable: its head ${name(3)} does not lead to ${name(1)}`,
    );
  });
});
