import { describe, expect, it } from 'vitest';
import {
  evaluateVersionsLabel,
  findUnsupportedVersions,
  readVersionsLabel,
} from '../../../src/core/openshift-limits.js';
import { formatOpenShift } from '../../../src/core/openshift-version.js';
import { parseVersion } from '../../../src/core/semver.js';
import { parseSupportedVersions } from '../../../src/repo/supported-versions.js';

const included = (label: string, supported = '4.12..5.0'): string[] =>
  parseSupportedVersions(supported).filter(
    (version) => evaluateVersionsLabel(readVersionsLabel(label), version).isIncluded,
  );

describe('label of OpenShift versions', () => {
  it.each([
    ['v4.20', ['4.20', '4.21', '4.22', '5.0']],
    ['=v4.14', ['4.14']],
    ['v4.12-v4.13', ['4.12', '4.13']],
    ['v4.22-v5.0', ['4.22', '5.0']],
    ['=v4.12|>=v4.22', ['4.12', '4.22', '5.0']],
    ['v4.5,v4.21', included('v4.5')],
    ['v4.9|=v4.12', []],
    ['>=v4.12', []],
    ['four', []],
    ['', []],
  ])('selects the indexes of %j', (label, versions) => {
    expect(included(label)).toEqual(versions);
  });

  it('gives the reason for an index', () => {
    expect(evaluateVersionsLabel(readVersionsLabel('v4.12-v4.14'), '4.15').reason).toBe('above v4.12-v4.14');
    expect(evaluateVersionsLabel(readVersionsLabel('v4.12,'), '4.15').reason).toContain('is not a version');
  });

  it.each([
    ['v4.9', '1.25.0', ['4.9', '4.10', '4.11']],
    ['v4.12', '1.25.0', []],
    ['=v4.11|>=v4.13', '1.25.3', ['4.11']],
    ['v4.21-v5.1', '1.36.0', ['4.21', '4.22']],
    ['v5.0', '1.37.0', ['4.23', '5.0']],
    ['v4.12-v4.9', '1.25.0', []],
  ])('finds the versions that %j selects below Kubernetes %s', (label, minKube, versions) => {
    const found = findUnsupportedVersions(readVersionsLabel(label), parseVersion(minKube));
    expect(found.map(formatOpenShift)).toEqual(versions);
  });

  it.each(['4.20..4.12', '4.1..4.99999999', '5.0..6.0', '4.24..5.0', '4.12..4.13..4.14'])(
    'refuses the range %j',
    (range) => {
      expect(() => parseSupportedVersions(range)).toThrow('invalid OpenShift versions');
    },
  );
});
