import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  SemverError,
  type Version,
  compareVersions,
  formatVersion,
  parseRange,
  parseRelease,
  parseTolerantVersion,
  parseVersion,
} from '../../../src/core/semver.js';

interface Vector {
  range?: string;
  version?: string;
  in?: boolean;
  parse?: string;
  v?: string;
  err?: string;
  tolerant?: string;
  tolerantErr?: string;
}

const vectors = readFileSync(new URL('../../../fixtures/vectors/semver.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector);

function outcome(work: () => string | boolean): { value: string | boolean } | { error: string } {
  try {
    return { value: work() };
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    return { error: error.message };
  }
}

const number = fc.oneof(fc.nat(20), fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }));
const word = fc.stringMatching(/^[0-9A-Za-z-]{0,4}[A-Za-z-][0-9A-Za-z-]{0,4}$/);
const versionText = fc
  .record({
    core: fc.tuple(number, number, number),
    pre: fc.array(fc.oneof(number.map(String), word), { maxLength: 3 }),
    build: fc.array(fc.stringMatching(/^[0-9A-Za-z-]{1,5}$/), { maxLength: 2 }),
  })
  .map(({ core, pre, build }) => {
    return (
      core.join('.') +
      (pre.length > 0 ? `-${pre.join('.')}` : '') +
      (build.length > 0 ? `+${build.join('.')}` : '')
    );
  });

describe('the answers of blang/semver', () => {
  it('are given for every range', () => {
    const ranges = vectors.filter((vector) => vector.range !== undefined);
    expect(ranges.length).toBe(400);
    for (const { range, version, in: contained, err } of ranges) {
      const actual = outcome(() => parseRange(range as string).contains(parseVersion(version as string)));
      expect({ range, version, ...actual }).toEqual({
        range,
        version,
        ...(err === undefined ? { value: contained } : { error: err }),
      });
    }
  });

  it('are given for every version', () => {
    const versions = vectors.filter((vector) => vector.parse !== undefined);
    expect(versions.length).toBe(30);
    for (const { parse, v, err, tolerant, tolerantErr } of versions) {
      expect(outcome(() => formatVersion(parseVersion(parse as string)))).toEqual(
        err === undefined ? { value: v } : { error: err },
      );
      expect(outcome(() => formatVersion(parseTolerantVersion(parse as string)))).toEqual(
        tolerantErr === undefined ? { value: tolerant } : { error: tolerantErr },
      );
    }
  });
});

describe('parseVersion', () => {
  it.each([
    ['18446744073709551616.0.0', 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
    [
      '0.0.99999999999999999999999',
      'strconv.ParseUint: parsing "99999999999999999999999": value out of range',
    ],
    ['1.0.0-18446744073709551616', 'strconv.ParseUint: parsing "18446744073709551616": value out of range'],
    ['.1.0', 'strconv.ParseUint: parsing "": invalid syntax'],
    ['1.01.0', 'Minor number must not contain leading zeroes "01"'],
    ['1.0.00', 'Patch number must not contain leading zeroes "00"'],
    ['1.x.0', 'Invalid character(s) found in minor number "x"'],
    ['1.0.0-a..b', 'Prerelease is empty'],
    ['1.0.0+a_b', 'Invalid character(s) found in build meta data "a_b"'],
    ['1.0.0+a+b', 'Invalid character(s) found in build meta data "a+b"'],
    ['1.0.0-a_b', 'Invalid character(s) found in prerelease "a_b"'],
  ])('refuses %s', (text, message) => {
    expect(outcome(() => formatVersion(parseVersion(text)))).toEqual({ error: message });
  });

  it('reads back what formatVersion writes', () => {
    fc.assert(
      fc.property(versionText, (text) => {
        expect(formatVersion(parseVersion(text))).toBe(text);
        expect(formatVersion(parseTolerantVersion(`v${text} `))).toBe(text);
      }),
    );
  });

  it('throws nothing but SemverError', () => {
    const text = fc.string({ unit: fc.constantFrom(...'0129.x-+va |<>=!é~ '), maxLength: 12 });
    fc.assert(
      fc.property(text, (candidate) => {
        outcome(() => formatVersion(parseVersion(candidate)));
        outcome(() => formatVersion(parseTolerantVersion(candidate)));
        outcome(() => parseRange(candidate).contains(parseVersion('1.0.0')));
        outcome(() => parseRelease(candidate).length > 0);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('parseTolerantVersion', () => {
  it.each([
    ['v1.2', '1.2.0'],
    [' 001.002.003-rc1 ', '1.2.3-rc1'],
    ['00.0.0', '0.0.0'],
    ['1.2.0-1.4', '1.2.0-1.4'],
  ])('reads %j', (text, formatted) => {
    expect(formatVersion(parseTolerantVersion(text))).toBe(formatted);
  });

  it('refuses a short version with a prerelease', () => {
    const message = 'Short version cannot contain PreRelease/Build meta data';
    expect(outcome(() => formatVersion(parseTolerantVersion('1.2-rc1')))).toEqual({ error: message });
  });
});

describe('compareVersions', () => {
  it('follows precedence', () => {
    const ascending = [
      '0.9.9',
      '1.0.0-0',
      '1.0.0-9',
      '1.0.0-10',
      '1.0.0-18446744073709551615',
      '1.0.0-A',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-rc-1',
      '1.0.0',
      '1.0.1',
      '1.2.0',
      '1.10.0',
      '9007199254740991.0.0',
      '9007199254740992.0.0',
      '9007199254740993.0.0',
      '18446744073709551615.0.0',
    ].map(parseVersion);
    for (const [i, a] of ascending.entries()) {
      for (const [j, b] of ascending.entries()) expect(compareVersions(a, b)).toBe(Math.sign(i - j));
    }
  });

  it('ignores build metadata', () => {
    expect(compareVersions(parseVersion('1.0.0+a'), parseVersion('1.0.0+b'))).toBe(0);
  });

  it('is an order', () => {
    const version = versionText.map(parseVersion);
    fc.assert(
      fc.property(version, version, version, (a: Version, b: Version, c: Version) => {
        expect(compareVersions(a, b)).toBe(0 - compareVersions(b, a));
        if (compareVersions(a, b) <= 0 && compareVersions(b, c) <= 0) {
          expect(compareVersions(a, c)).toBeLessThanOrEqual(0);
        }
      }),
    );
  });
});

describe('parseRange', () => {
  it.each([
    ['>=1.0.0 <2.0.0 || >=3.0.0', ['1.0.0', '2.0.0-rc1', '3.0.0'], ['2.0.0', '2.9.9', '3.0.0-rc1']],
    ['>= 1.0.0', ['1.0.0'], ['0.9.0']],
    ['1.2.x', ['1.2.0', '1.2.9', '1.3.0-rc1'], ['1.3.0', '1.2.0-rc1']],
    ['>1.x', ['2.0.0'], ['1.9.9']],
    ['<=1.x', ['1.9.9'], ['2.0.0']],
    ['1.x.x', ['1.0.5'], ['1.1.0']],
    ['!=1.x', [], ['0.9.0', '1.5.0', '2.0.0']],
    ['1.0.0 - 2.0.0', [], ['1.0.0', '1.5.0', '2.0.0']],
    ['>18446744073709551614.0.0', ['18446744073709551615.0.0'], ['18446744073709551614.0.0']],
  ])('reads %s', (range, inside, outside) => {
    const { contains } = parseRange(range);
    for (const version of inside) expect([version, contains(parseVersion(version))]).toEqual([version, true]);
    for (const version of outside)
      expect([version, contains(parseVersion(version))]).toEqual([version, false]);
  });

  it.each([
    ['>=v1.0.0', 'Could not parse Range ">=v1.0.0": Could not parse comparator ">=v" in ">=v1.0.0"'],
    ['', "Last element in range is '||'"],
    ['1.0.0 ||', "Last element in range is '||'"],
    ['|| 1.0.0', "First element in range is '||'"],
    ['1.0.0-xyz', 'Could not get version from string: "<"'],
    ['9223372036854775808.x', 'Could not get version from string: "<"'],
    ['é', 'Could not get version from string: "é"'],
  ])('refuses %j', (range, message) => {
    expect(outcome(() => parseRange(range).contains(parseVersion('1.0.0')))).toEqual({ error: message });
  });
});

describe('parseRelease', () => {
  it.each([
    [
      '123456789012345678901',
      'invalid release "123456789012345678901": exceeds maximum length of 20 characters',
    ],
    [
      '1.01',
      'invalid release "1.01": segment 1: Numeric PreRelease version must not contain leading zeroes "01"',
    ],
    [
      'a_b..1',
      'invalid release "a_b..1": segment 0: Invalid character(s) found in prerelease "a_b"\nsegment 1: Prerelease is empty',
    ],
  ])('refuses %s', (text, message) => {
    expect(outcome(() => parseRelease(text).length > 0)).toEqual({ error: message });
  });
});
