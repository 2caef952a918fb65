import { describe, expect, it } from 'vitest';
import { diffLocks, isSameSet } from '../../../../src/mirror/lock/lock-diff.js';
import { encodeLock } from '../../../../src/mirror/lock/encode-lock.js';
import { parseLock } from '../../../../src/mirror/lock/parse-lock.js';
import {
  contentsOf,
  imageManifest,
  layer,
  lockOf,
  lockedCatalog,
  lockedImage,
} from '../../../support/locks.js';

const base = layer('base', 1000);
const contents = (name: string, size: number) => contentsOf([imageManifest(name, [base, layer(name, size)])]);
const before = lockOf(
  [
    lockedImage('a', contents('a1', 1)),
    lockedImage('b', contents('b', 20)),
    lockedImage('same', contents('same', 7)),
  ],
  [lockedCatalog({ acme: ['acme.v0', 'acme.v1'], beta: ['beta.v1'] })],
);
const after = lockOf(
  [
    lockedImage('a', contents('a2', 300)),
    lockedImage('c', contents('c', 4000), { tag: undefined }),
    lockedImage('same', contents('same', 7)),
  ],
  [lockedCatalog({ acme: ['acme.v1', 'acme.v2'], gamma: ['gamma.v1'] })],
);

describe('mirror/lock-diff', () => {
  it('tells what was added, removed and changed, and the bytes of blobs once each', () => {
    expect(diffLocks(before, after)).toEqual({
      packages: { added: ['gamma'], removed: ['beta'] },
      channels: {
        added: ['gamma/stable'],
        removed: ['beta/stable'],
        changed: [{ channel: 'acme/stable', from: 'acme.v1', to: 'acme.v2' }],
      },
      bundles: { added: ['acme/acme.v2', 'gamma/gamma.v1'], removed: ['acme/acme.v0', 'beta/beta.v1'] },
      images: {
        added: [`ns/c@${contents('c', 4000).root.digest}`],
        removed: ['ns/b:v1'],
        changed: [
          { image: 'ns/a:v1', from: contents('a1', 1).root.digest, to: contents('a2', 300).root.digest },
        ],
      },
      bytes: { added: 4300, removed: 21 },
    });
  });

  it('is the other way round when the locks are', () => {
    const [there, back] = [diffLocks(before, after), diffLocks(after, before)];
    const turned = ({ added, removed }: { added: unknown; removed: unknown }) => ({
      added: removed,
      removed: added,
    });
    expect(turned(back.packages)).toEqual(there.packages);
    expect(turned(back.bundles)).toEqual(there.bundles);
    expect(turned(back.bytes)).toEqual(there.bytes);
    expect(back.images.changed.map(({ image, from, to }) => ({ image, from: to, to: from }))).toEqual(
      there.images.changed,
    );
  });

  it('finds nothing between a lock and itself', () => {
    expect(isSameSet(diffLocks(before, parseLock(encodeLock(before), 'a')))).toBe(true);
    expect(isSameSet(diffLocks(before, after))).toBe(false);
  });

  it('tells all heads of a channel that several catalogs have', () => {
    const [one, two] = [lockedCatalog({ acme: ['acme.v1'] }), lockedCatalog({ acme: ['acme.v2'] })];
    const both = lockOf([], [one, { ...two, tag: 'v2' }]);
    expect(diffLocks(lockOf([], [one]), both).channels.changed).toEqual([
      { channel: 'acme/stable', from: 'acme.v1', to: 'acme.v1, acme.v2' },
    ]);
  });
});
