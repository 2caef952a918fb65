import { describe, expect, it } from 'vitest';
import {
  type OpenShiftVersion,
  blocksNextOpenShift,
  compareOpenShift,
  compareOpenShiftNames,
  formatOpenShift,
  getKubernetesMinor,
  isAboveKubernetes,
  listOpenShiftChoices,
  nextOpenShift,
  normalizeOpenShift,
  parseMaxOpenShift,
  parseOpenShiftVersion,
  stepOpenShift,
} from '../../../src/core/openshift-version.js';
import { allowedOpenShift, isInVersions } from '../../../src/core/openshift-limits.js';
import { parseVersion } from '../../../src/core/semver.js';

const names = [
  ...['4.14', '4.15', '4.16', '4.17', '4.18', '4.19', '4.20', '4.21', '4.22', '4.23'],
  ...['5.0', '5.1'],
];
const parse = parseOpenShiftVersion;
const format = (version: OpenShiftVersion | undefined): string | undefined =>
  version && formatOpenShift(version);

describe('core/openshift-version', () => {
  it.each([
    ['4.14', 27, '4.14', '4.15'],
    ['4.15', 28, '4.15', '4.16'],
    ['4.16', 29, '4.16', '4.17'],
    ['4.17', 30, '4.17', '4.18'],
    ['4.18', 31, '4.18', '4.19'],
    ['4.19', 32, '4.19', '4.20'],
    ['4.20', 33, '4.20', '4.21'],
    ['4.21', 34, '4.21', '4.22'],
    ['4.22', 35, '4.22', '4.23'],
    ['4.23', 36, '5.0', '5.1'],
    ['5.0', 36, '5.0', '5.1'],
    ['5.1', 37, '5.1', '5.2'],
  ])('knows Kubernetes, name and next version of %s', (name, kubernetes, normalized, next) => {
    const version = parse(name);
    expect(getKubernetesMinor(version)).toBe(kubernetes);
    expect(formatOpenShift(normalizeOpenShift(version))).toBe(normalized);
    expect(formatOpenShift(nextOpenShift(version))).toBe(next);
    expect(isAboveKubernetes(parseVersion(`1.${kubernetes}.9`), kubernetes)).toBe(false);
    expect(isAboveKubernetes(parseVersion(`1.${kubernetes + 1}.0`), kubernetes)).toBe(true);
  });

  it('orders versions, 4.23 equal to 5.0 for compatibility only', () => {
    for (const [i, a] of names.entries()) {
      for (const [k, b] of names.entries()) {
        const isSameRelease = i !== k && [a, b].sort().join() === '4.23,5.0';
        expect(Math.sign(compareOpenShiftNames(parse(a), parse(b)))).toBe(Math.sign(i - k));
        expect(Math.sign(compareOpenShift(parse(a), parse(b)))).toBe(isSameRelease ? 0 : Math.sign(i - k));
      }
    }
  });

  it('knows no Kubernetes of other versions', () => {
    for (const name of ['3.11', '4.2', '6.0']) expect(getKubernetesMinor(parse(name))).toBeUndefined();
  });

  it.each([
    ['4.20', '4.22', ['4.21', '4.22']],
    ['4.22', '4.23', ['4.23']],
    ['4.21', '5.1', ['4.22', '5.0', '5.1']],
    ['4.22', '5.0', ['5.0']],
    ['4.23', '5.0', ['5.0']],
    ['4.23', '5.1', ['5.1']],
    ['5.0', '5.2', ['5.1', '5.2']],
    ['5.0', '5.0', []],
    ['5.1', '4.22', []],
    ['5.1', '6.0', []],
    ['4.24', '5.1', []],
  ])('steps from %s to %s', (from, to, expected) => {
    const steps: string[] = [];
    for (let place = stepOpenShift(parse(from), parse(to)); place; place = stepOpenShift(place, parse(to)))
      steps.push(formatOpenShift(place));
    expect(steps).toEqual(expected);
  });

  it.each([
    ['v4.12', '4.18', true],
    ['v4.12', '4.11', false],
    ['v4.12', '5.1', true],
    ['=v4.12', '4.12', true],
    ['=v4.12', '4.13', false],
    ['v4.12-v4.15', '4.15', true],
    ['v4.12-v4.15', '4.16', false],
    ['v4.12-v4.22', '5.0', false],
    ['v4.12-v4.23', '5.0', true],
    ['v5.0', '4.22', false],
    ['v5.0', '4.23', true],
    ['=v5.0', '5.0', true],
    ['=v5.0', '4.23', true],
    ['=v5.0', '5.1', false],
    ['v4.21-v5.1', '4.22', true],
    ['v4.21-v5.1', '5.1', true],
    ['v4.21-v5.1', '5.2', false],
    ['v4.5,v4.6', '4.18', true],
    ['4.12', '4.12', true],
    ['v4.15-v4.12', '4.13', undefined],
    ['v5.0-v4.22', '5.0', undefined],
    ['=v4.12|>=v4.16', '4.18', true],
    ['=v4.12|>=v4.16', '4.13', false],
    ['v4.12,=v4.13', '4.13', undefined],
    ['>=4.16', '4.18', undefined],
    ['=v4.12-v4.13', '4.12', undefined],
    ['', '4.12', undefined],
  ])('reads the label %j for %s', (label, version, expected) => {
    expect(isInVersions(label, parse(version))).toBe(expected);
  });

  it.each([
    [{}, {}],
    [{ openShiftVersions: 'v4.12-v4.15' }, { min: '4.12', max: '4.15' }],
    [{ openShiftVersions: '=v4.14' }, { min: '4.14', max: '4.14' }],
    [{ openShiftVersions: 'v5.0' }, { min: '4.23' }],
    [{ openShiftVersions: '=v5.0' }, { min: '4.23', max: '5.0' }],
    [{ openShiftVersions: 'v4.21-v5.1' }, { min: '4.21', max: '5.1' }],
    [{ maxOpenShift: parse('5.0') }, { max: '5.0' }],
    [{ maxOpenShift: parse('4.23') }, { max: '5.0' }],
    [
      { openShiftVersions: 'v4.12', maxOpenShift: parse('4.16') },
      { min: '4.12', max: '4.16' },
    ],
    [{ minKube: parseVersion('1.26.0') }, { min: '4.13' }],
    [{ minKube: parseVersion('1.36.0') }, { min: '4.23' }],
    [{ minKube: parseVersion('1.37.0') }, { min: '5.1' }],
    [{ minKube: parseVersion('1.16.0') }, {}],
    [{ openShiftVersions: 'v4.18', maxOpenShift: parse('4.16') }, undefined],
  ])('finds the first and last version that %j allows', (limits, expected) => {
    const none = { maxOpenShift: undefined, minKube: undefined, openShiftVersions: undefined };
    expect(allowedOpenShift({ ...none, ...limits })).toEqual(expected);
  });

  it('offers all versions between limits, and the next one, across major versions', () => {
    expect(listOpenShiftChoices([])).toEqual([]);
    expect(listOpenShiftChoices(['4.21', '4.22'])).toEqual(['4.23', '4.22', '4.21']);
    expect(listOpenShiftChoices(['5.0', '4.22'])).toEqual(['5.1', '5.0', '4.23', '4.22']);
  });

  it.each([
    ['"4.22"', '4.22'],
    ['4.20', '4.20'],
    ['4.2', '4.2'],
    ['"v4.22.0"', '4.22'],
    ['" 4.022 "', '4.22'],
    ['"5"', '5.0'],
    ['422', '422.0'],
    ['""4.22""', '4.22'],
  ])('reads the maximum %s', (text, expected) => {
    expect(format(parseMaxOpenShift([text]))).toBe(expected);
  });

  it.each([
    [['""'], 'value cannot be "" (an empty string)'],
    [['null'], 'failed to parse "null" as semver: Invalid character(s) found in major number "0null"'],
    [
      ['"4\\u002e22"'],
      'failed to parse "4\\u002e22" as semver: Invalid character(s) found in major number "4\\\\u002e22"',
    ],
    [
      ['"4.22.3"'],
      'property olm.maxOpenShiftVersion must specify only <major>.<minor> version, got invalid value 4.22.3',
    ],
    [['"4.22"', '"4.22"'], 'defining more than one "olm.maxOpenShiftVersion" property is not allowed'],
  ])('refuses the maximum %j as OLM does', (texts, message) => {
    expect(() => parseMaxOpenShift(texts)).toThrow(message);
  });

  it.each([
    ['4.22', '4.22', true],
    ['4.23', '4.22', false],
    ['5.0', '4.22', false],
    ['5.0', '4.23', true],
    ['4.24', '5.0', true],
    ['5.1', '4.23', false],
    ['4.23', '4.24', false],
    ['4.24', '4.24', true],
    ['4.24', '4.22', false],
  ])('says whether the maximum %s blocks upgrades of %s', (maximum, cluster, expected) => {
    expect(blocksNextOpenShift(parse(maximum), parse(cluster))).toBe(expected);
  });

  it('refuses what is no version', () => {
    expect(parseOpenShiftVersion('v4.10.3')).toEqual({ major: 4, minor: 10 });
    for (const text of ['', '4', 'latest', '4.x', '4.18 or so', '99999.1']) {
      expect(() => parseOpenShiftVersion(text)).toThrow('invalid OpenShift version');
    }
  });
});
