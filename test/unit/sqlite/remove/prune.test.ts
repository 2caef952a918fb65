import { describe, expect, it } from 'vitest';
import { prunePackages } from '../../../../src/sqlite/remove/remove.js';
import { bundleNames, leftovers, noLeftovers, smallIndex } from '../../../support/small-index.js';

const packages = { first: [{ minor: 0 }], second: [{ minor: 0 }], third: [{ minor: 0 }] };

describe('sqlite/prune', () => {
  it('removes all packages but those to keep, and reports missing ones', async () => {
    const database = await smallIndex(packages);
    const report = await prunePackages(database, ['second', 'nope']);
    expect(report).toEqual({
      packages: ['first', 'third'],
      bundles: ['first.v1.0.0', 'third.v1.0.0'],
      unknown: ['nope'],
    });
    expect(bundleNames(database)).toEqual(['second.v1.0.0']);
    expect(leftovers(database)).toEqual(noLeftovers);
  });

  it.each([
    [['secnod'], 'did you mean "second"?'],
    [[], 'use a known package: "first", "second", "third"'],
  ])('does not empty an index: keep %j', async (keep, hint) => {
    const database = await smallIndex(packages);
    await expect(prunePackages(database, keep)).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: expect.stringContaining('pruning would empty the index') as string,
      hint,
    });
    expect(bundleNames(database)).toHaveLength(3);
  });

  it('leaves an index alone that holds nothing else', async () => {
    const database = await smallIndex(packages);
    expect((await prunePackages(database, Object.keys(packages))).packages).toEqual([]);
    expect((await prunePackages(await smallIndex({}), ['first'])).unknown).toEqual(['first']);
  });
});
