import { describe, expect, it } from 'vitest';
import { toTransfers } from '../../../../src/mirror/lock/lock-plan.js';
import { contentsOf, imageManifest, layer, lockOf, lockedImage } from '../../../support/locks.js';

const contents = contentsOf([imageManifest('a', [layer('a', 1)])]);
const { digest } = contents.root;
const target = { registry: 'mirror:5000', path: 'olm' };

describe('mirror/lock-plan', () => {
  it('takes every image by digest from its repository, with what it consists of', () => {
    const lock = lockOf([
      lockedImage('app', contents, { source: 'docker://quay.io/ns/app:v1' }),
      lockedImage('sig', contents, { kind: 'signature', tag: undefined }),
      lockedImage('index', contents, {
        kind: 'catalog',
        source: 'oci:catalogs/index:v1',
        reference: 'oci:catalogs/index',
      }),
    ]);
    expect(toTransfers(lock, { target })).toMatchObject([
      {
        source: { registry: 'quay.io', repository: 'ns/app', digest },
        target: { registry: 'mirror:5000', repository: 'olm/ns/app', tag: 'v1' },
        sourceName: 'quay.io/ns/app:v1',
        targetName: 'mirror:5000/olm/ns/app:v1',
        contents,
      },
      { target: { repository: 'olm/ns/sig', digest }, targetName: `mirror:5000/olm/ns/sig@${digest}` },
      {
        source: { transport: 'oci', path: 'catalogs/index', digest },
        sourceName: 'oci:catalogs/index',
        isLast: true,
      },
    ]);
    expect(toTransfers(lock, { target }).map(({ isLast = false }) => isLast)).toEqual([false, false, true]);
  });

  it('opens what is elsewhere as it is told', () => {
    const elsewhere = () => Promise.reject(new Error('not opened here'));
    const lock = lockOf([lockedImage('a', contents), lockedImage('b', contents)]);
    const transfers = toTransfers(lock, {
      target,
      open: ({ repository }) => (repository === 'ns/b' ? elsewhere : undefined),
    });
    expect(transfers.map(({ source }) => source === elsewhere)).toEqual([false, true]);
  });

  it('names both images that have one target', () => {
    const lock = lockOf([
      lockedImage('a', contents, { repository: 'x/y/z' }),
      lockedImage('b', contents, { repository: 'x/y-z' }),
    ]);
    expect(toTransfers(lock, { target })).toHaveLength(2);
    expect(() => toTransfers(lock, { target: { ...target, maxNestedPaths: 3 } })).toThrow(
      'mirror:5000/olm/x/y-z:v1: same target for x/y/z:v1 and x/y-z:v1',
    );
  });

  it('refuses a name that no registry takes', () => {
    const lock = lockOf([lockedImage('a', contents, { repository: 'a'.repeat(240) })]);
    expect(() => toTransfers(lock, { target })).toThrow('longer than the 255 characters');
  });
});
