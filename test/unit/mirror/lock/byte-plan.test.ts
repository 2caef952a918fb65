import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planBytes } from '../../../../src/mirror/lock/byte-plan.js';
import type { LockedImage } from '../../../../src/mirror/lock/lock.js';
import { contentsOf, imageManifest, indexManifest, layer, lockedImage } from '../../../support/locks.js';

const base = layer('base', 1000);
const imageOf = (
  name: string,
  blobs: readonly (readonly [string, number])[],
  bundles: string[],
): LockedImage =>
  lockedImage(
    name,
    contentsOf([imageManifest(name, [base, ...blobs.map(([text, size]) => layer(text, size))])]),
    { bundles },
  );

describe('mirror/byte-plan', () => {
  it('counts every blob once, and says what each package needs, and needs alone', () => {
    const images = [
      imageOf('a', [['a', 1]], ['acme/acme.v1']),
      imageOf('b', [['both', 20]], ['acme/acme.v1', 'beta/beta.v1', 'beta/beta.v2']),
      imageOf(
        'c',
        [
          ['c', 300],
          ['tool', 4000],
        ],
        ['beta/beta.v2'],
      ),
      imageOf('d', [['tool', 4000]], []),
    ];
    const present = new Set([base.digest, layer('c', 300).digest]);
    expect(planBytes(images, (digest) => present.has(digest))).toEqual({
      images: 4,
      manifests: 4,
      blobs: 5,
      bytes: 5321,
      presentBlobs: 2,
      presentBytes: 1300,
      packages: [
        { name: 'acme', images: 2, bytes: 1021, ownBytes: 1 },
        { name: 'beta', images: 2, bytes: 5320, ownBytes: 300 },
      ],
    });
  });

  it('sums up a package by catalog where several catalogs have it', () => {
    const images = [
      imageOf('a', [['a', 1]], ['acme/acme.v1']),
      imageOf('b', [['b', 20]], ['acme/acme.v1', 'acme/acme.v2', 'beta/beta.v1']),
      imageOf('c', [['c', 300]], ['acme/acme.v2']),
    ];
    const toPackage = (name: string, ...bundles: string[]) => ({
      ...{ name, defaultChannel: 'stable', channels: [] },
      bundles: bundles.map((bundle) => ({ name: bundle, version: '1.0.0' })),
    });
    const catalogs = [
      { catalog: 'two', packages: [toPackage('acme', 'acme.v2'), toPackage('beta', 'beta.v1')] },
      { catalog: 'one', packages: [toPackage('acme', 'acme.v1')] },
    ];
    expect(planBytes(images, () => false, catalogs).packages).toEqual([
      { name: 'acme', catalog: 'one', images: 2, bytes: 1021, ownBytes: 1 },
      { name: 'acme', catalog: 'two', images: 2, bytes: 1320, ownBytes: 300 },
      { name: 'beta', images: 1, bytes: 1020, ownBytes: 0 },
    ]);
  });

  it('counts the manifests of an index, and none twice', () => {
    const [one, two] = [imageManifest('1', [layer('1', 1)]), imageManifest('2', [layer('2', 2)])];
    const index = contentsOf([one, two, indexManifest('i', [one, two])]);
    const images = [lockedImage('a', index), lockedImage('b', index), lockedImage('c', contentsOf([one]))];
    expect(planBytes(images, () => false)).toMatchObject({ images: 3, manifests: 3, blobs: 2, bytes: 3 });
  });

  it('is nothing for nothing', () => {
    const nothing = {
      images: 0,
      manifests: 0,
      blobs: 0,
      bytes: 0,
      presentBlobs: 0,
      presentBytes: 0,
      packages: [],
    };
    expect(planBytes([], () => true)).toEqual(nothing);
  });

  it('agrees with a plan without a package about what that package alone costs', () => {
    const names = fc.constantFrom('acme', 'beta', 'gamma');
    const images = fc.array(
      fc.record({
        blobs: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 4 }),
        packages: fc.array(names),
      }),
      { maxLength: 20 },
    );
    fc.assert(
      fc.property(images, (list) => {
        const locked = list.map(({ blobs, packages }, i) => {
          const layers = [...new Set(blobs)].map((size) => layer(String(size), size));
          const bundles = packages.map((name) => `${name}/${name}.v1`);
          return lockedImage(`i${i}`, contentsOf([imageManifest(`i${i}`, layers)]), { bundles });
        });
        const plan = planBytes(locked, () => false);
        for (const { name, ownBytes } of plan.packages) {
          const without = locked.filter(
            ({ bundles }) => bundles.length === 0 || bundles.some((bundle) => bundle.package !== name),
          );
          expect(plan.bytes - planBytes(without, () => false).bytes).toBe(ownBytes);
        }
      }),
    );
  });
});
