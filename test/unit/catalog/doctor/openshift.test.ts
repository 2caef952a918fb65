import { describe, expect, it } from 'vitest';
import { isOfName, readVersionedName } from '../../../../src/catalog/doctor/channel-names.js';
import {
  allowedOpenShift,
  isInVersions,
  getKubernetesMinor,
  parseOpenShiftVersion,
} from '../../../../src/catalog/doctor/openshift.js';
import { parseVersion } from '../../../../src/core/semver.js';

describe('catalog/doctor/openshift', () => {
  it.each([
    ['v4.12', 4.18, true],
    ['v4.12', 4.11, false],
    ['=v4.12', 4.12, true],
    ['=v4.12', 4.13, false],
    ['v4.12-v4.15', 4.15, true],
    ['v4.12-v4.15', 4.16, false],
    ['v4.5,v4.6', 4.18, true],
    ['4.12', 4.12, true],
    ['v4.15-v4.12', 4.13, undefined],
    ['>=4.16', 4.18, undefined],
    ['=v4.12-v4.13', 4.12, undefined],
    ['', 4.12, undefined],
  ])('reads the label %j for %d', (label, version, expected) => {
    expect(isInVersions(label, parseOpenShiftVersion(String(version)))).toBe(expected);
  });

  it.each([
    [{}, {}],
    [{ openShiftVersions: 'v4.12-v4.15' }, { min: 12, max: 15 }],
    [{ openShiftVersions: '=v4.14' }, { min: 14, max: 14 }],
    [
      { openShiftVersions: 'v4.12', maxOpenShift: { major: 4, minor: 16 } },
      { min: 12, max: 16 },
    ],
    [{ minKube: parseVersion('1.26.0') }, { min: 13 }],
    [{ minKube: parseVersion('1.16.0') }, {}],
    [{ openShiftVersions: 'v4.18', maxOpenShift: { major: 4, minor: 16 } }, undefined],
  ])('finds the first and last version that %j allows', (limits, expected) => {
    const none = { maxOpenShift: undefined, minKube: undefined, openShiftVersions: undefined };
    expect(allowedOpenShift({ ...none, ...limits })).toEqual(expected);
  });

  it('refuses what is no version', () => {
    expect(parseOpenShiftVersion('v4.10.3')).toEqual({ major: 4, minor: 10 });
    for (const text of ['', '4', 'latest', '4.x', '4.18 or so', '99999.1']) {
      expect(() => parseOpenShiftVersion(text)).toThrow('invalid OpenShift version');
    }
  });

  it('knows the Kubernetes of a version', () => {
    expect([getKubernetesMinor({ major: 4, minor: 18 }), getKubernetesMinor({ major: 5, minor: 0 })]).toEqual(
      [31, undefined],
    );
  });
});

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
