import { describe, expect, it } from 'vitest';
import { deleteLatest } from '../../../../src/sqlite/remove/delete-bundle.js';
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

const name = (minor: number): string => nameOf('first', minor);
const manifests = { csv: Buffer.from('{"again":1}\n'), objects: Buffer.from('{"again":2}\n') };
const fetchManifests = async (image: string) => ({
  name: name(Number(/:1\.(\d+)\./.exec(image)?.[1])),
  manifests,
});
const both = ['fast', 'slow'];
const first = [
  { minor: 0, channels: both },
  { minor: 1, replaces: 0, channels: both },
  { minor: 2, replaces: 1, channels: both },
  { minor: 3, replaces: 2, channels: ['fast'] },
];

describe('sqlite/delete-latest', () => {
  it('removes the newest version only, from every channel', async () => {
    const database = await smallIndex({ first, second: [{ minor: 0 }] });
    const report = await deleteLatest(database, 'first', fetchManifests);
    expect(report.bundles).toEqual([name(3)]);
    expect(headsOf(database)).toMatchObject({ 'first/fast': name(2), 'first/slow': name(2) });
    expect(edgesOf(database, 'first', 'fast')).toEqual(['1.2 > 1.1', '1.1 > 1.0']);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('leaves the heads of other channels, whatever version they have', async () => {
    const database = await smallIndex({
      first: [
        { minor: 0, channels: ['lts'] },
        { minor: 1, channels: ['slow'] },
        { minor: 2, channels: ['fast'] },
        { minor: 3, replaces: 2, channels: ['fast'] },
      ],
    });
    expect((await deleteLatest(database, 'first', fetchManifests)).bundles).toEqual([name(3)]);
    expect(headsOf(database)).toEqual({
      'first/lts': name(0),
      'first/slow': name(1),
      'first/fast': name(2),
    });
  });

  it('refuses to choose between heads of one version', async () => {
    const database = await smallIndex({
      first: [
        { minor: 0, channels: ['slow'] },
        { minor: 1, channels: ['slow'] },
        { minor: 2, channels: ['fast'] },
      ],
    });
    database.run('PRAGMA foreign_keys = OFF');
    database.run("UPDATE operatorbundle SET version = '2.0.0'");
    database.run('PRAGMA foreign_keys = ON');
    await expect(deleteLatest(database, 'first', fetchManifests)).rejects.toMatchObject({
      message: `index.db: package first: ${name(1)} and ${name(2)} have the same version, or none`,
      hint: expect.stringContaining('options.eachChannel') as string,
    });
    expect(bundleNames(database)).toHaveLength(3);
  });

  it('removes the head of each channel everywhere where asked to, and restores what heads it then', async () => {
    const database = await smallIndex({ first, second: [{ minor: 0 }] });
    database.run('UPDATE operatorbundle SET csv = NULL, bundle = NULL WHERE name = ?', name(1));
    const report = await deleteLatest(database, 'first', fetchManifests, { eachChannel: true });
    expect(report.bundles).toEqual([name(3), name(2)]);
    expect(report.restored).toEqual([name(1)]);
    expect(headsOf(database)).toMatchObject({ 'first/fast': name(1), 'first/slow': name(1) });
    expect(edgesOf(database, 'first', 'fast')).toEqual(['1.1 > 1.0']);
    expect(bundleNames(database)).toContain(nameOf('second', 0));
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('refuses to leave a package without channels, and then changes nothing', async () => {
    const database = await smallIndex({
      first: [
        { minor: 0, channels: both },
        { minor: 1, replaces: 0, channels: ['fast'] },
      ],
    });
    const before = database.all('SELECT * FROM channel_entry');
    const options = { eachChannel: true };
    await expect(deleteLatest(database, 'first', fetchManifests, options)).rejects.toMatchObject({
      message: `index.db: without ${name(0)} package first has no channel left`,
      hint: 'remove the package with api.editIndex rm options.packages first',
    });
    expect(database.all('SELECT * FROM channel_entry')).toEqual(before);
    await expect(deleteLatest(database, 'none', fetchManifests)).rejects.toThrow(
      'no package found for packagename none',
    );
  });

  it('fails as fetching does', async () => {
    const database = await smallIndex({ first });
    database.run('UPDATE operatorbundle SET csv = NULL WHERE name = ?', name(1));
    const failing = async (image: string) => Promise.reject(new Error(`${image}: gone`));
    const options = { eachChannel: true };
    await expect(deleteLatest(database, 'first', failing, options)).rejects.toThrow(
      `${imageOf('first', 1)}: gone`,
    );
    expect(bundleNames(database)).toHaveLength(4);
  });
});
