import { describe, expect, it } from 'vitest';
import { deprecateTruncate } from '../../../../src/sqlite/remove/deprecate.js';
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

const image = (minor: number): string => imageOf('first', minor);
const both = ['fast', 'slow'];
const packages = {
  first: [
    { minor: 0, channels: both },
    { minor: 1, replaces: 0, skips: [9], channels: both },
    { minor: 2, replaces: 1, channels: both },
    { minor: 3, replaces: 2, channels: ['fast'] },
  ],
  second: [{ minor: 0 }],
};

describe('sqlite/deprecate', () => {
  it('keeps a bundle as the last of its channels, and removes what is below it', async () => {
    const database = await smallIndex(packages);
    const report = await deprecateTruncate(database, [image(1), image(0)]);
    expect(report).toEqual({
      deprecated: [nameOf('first', 1)],
      packages: [],
      bundles: [nameOf('first', 0)],
      failures: [],
    });
    expect(edgesOf(database, 'first', 'fast')).toEqual(['1.3 > 1.2', '1.2 > 1.1']);
    expect(edgesOf(database, 'first', 'slow')).toEqual(['1.2 > 1.1']);
    expect(database.all('SELECT * FROM deprecated')).toEqual([{ operatorbundle_name: nameOf('first', 1) }]);
    expect(
      database.all("SELECT value, operatorbundle_path AS path FROM properties WHERE type = 'olm.deprecated'"),
    ).toEqual([{ value: '{}', path: image(1) }]);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('removes a channel that the bundle heads, but not what another channel leads to', async () => {
    const database = await smallIndex(packages);
    await deprecateTruncate(database, [image(2)]);
    expect(headsOf(database)).toEqual({
      'first/fast': nameOf('first', 3),
      'second/stable': nameOf('second', 0),
    });
    expect(bundleNames(database)).toEqual([nameOf('first', 2), nameOf('first', 3), nameOf('second', 0)]);
    const other = await smallIndex({
      first: [...packages.first, { minor: 4, replaces: 1, channels: ['other'] }],
    });
    await deprecateTruncate(other, [image(3)]);
    expect(Object.keys(headsOf(other))).toEqual(['first/other', 'first/slow']);
    expect(bundleNames(other)).toHaveLength(5);
  });

  it('names every image without which a default channel would go, and changes nothing', async () => {
    const database = await smallIndex(packages);
    const images = [image(1), image(3), imageOf('second', 0)];
    const [, first, second] = images as [string, string, string];
    const reason = 'Bundle deprecation causing default channel removal';
    await expect(deprecateTruncate(database, images)).rejects.toMatchObject({
      code: 'INVALID',
      message: `[index.db: error deprecating bundle ${first}: ${reason}, index.db: error deprecating bundle ${second}: ${reason}]`,
    });
    expect(bundleNames(database)).toHaveLength(5);
    const report = await deprecateTruncate(database, images, { permissive: true });
    expect(report.deprecated).toEqual([nameOf('first', 1)]);
    expect(report.failures.map(({ message }) => message)).toEqual([
      `index.db: error deprecating bundle ${first}: ${reason}`,
      `index.db: error deprecating bundle ${second}: ${reason}`,
    ]);
  });

  it('removes a package when the heads of all its channels are named, if it may', async () => {
    const database = await smallIndex(packages);
    await expect(
      deprecateTruncate(database, [image(3)], { allowPackageRemoval: true }),
    ).rejects.toMatchObject({
      message:
        'index.db: cannot deprecate default channel head from package without removing all other channel heads ' +
        `in package first: must deprecate ${image(2)}, head of channel slow`,
    });
    const report = await deprecateTruncate(database, [image(3), image(2), image(0)], {
      allowPackageRemoval: true,
    });
    expect(report).toMatchObject({ packages: ['first'], deprecated: [] });
    expect(bundleNames(database)).toEqual([nameOf('second', 0)]);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it('refuses images that are not in the index, unless it is empty or they may be skipped', async () => {
    const database = await smallIndex(packages);
    const images = ['quay.io/none:1', image(1), 'quay.io/none:2'];
    const message =
      'index.db: target bundlepaths for deprecation missing from registry: [quay.io/none:1 quay.io/none:2]';
    await expect(deprecateTruncate(database, images)).rejects.toMatchObject({ code: 'NOT_FOUND', message });
    const report = await deprecateTruncate(database, images, { permissive: true });
    expect(report.deprecated).toEqual([nameOf('first', 1)]);
    expect(report.failures.map((failure) => failure.message)).toEqual([message]);
    expect((await deprecateTruncate(await smallIndex({}), images)).deprecated).toEqual([]);
  });

  it('ends where entries lead round in a circle', async () => {
    const database = await smallIndex(packages);
    database.run(
      `UPDATE channel_entry SET replaces = (SELECT entry_id FROM channel_entry WHERE channel_name = 'slow' AND operatorbundle_name = 'first.v1.1.0')
        WHERE channel_name = 'slow' AND operatorbundle_name = 'first.v1.0.0'`,
    );
    expect((await deprecateTruncate(database, [image(1)])).bundles).toEqual([nameOf('first', 0)]);
  });
});
