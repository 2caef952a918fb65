import { describe, expect, it } from 'vitest';
import { isOfName, readVersionedName } from '../../../../src/catalog/doctor/examine-package.js';
import { parseVersion } from '../../../../src/core/semver.js';

describe('catalog/doctor/channel-names', () => {
  it.each([
    ['stable-4.18', 'stable-', 4, 18],
    ['v1.2', '', 1, 2],
    ['v1', '', 1, undefined],
    ['release-2.x', 'release-', 2, undefined],
    ['stable-v1.0.3', 'stable-', 1, 0],
  ])('reads the version of %s', (name, prefix, major, minor) => {
    expect(readVersionedName(name)).toMatchObject({ prefix, major, minor });
  });

  it.each(['stable', 'v1alpha1', 'x86', 'alpha-', '1.2.3.4.5'])('finds none in %s', (name) => {
    const found = readVersionedName(name);
    expect(found === undefined || found.prefix !== '').toBe(true);
  });

  it('compares only the parts in the name', () => {
    const name = readVersionedName('v1');
    expect(name && [isOfName(name, parseVersion('1.9.0')), isOfName(name, parseVersion('2.0.0'))]).toEqual([
      true,
      false,
    ]);
  });
});
