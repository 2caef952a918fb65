import { describe, expect, it } from 'vitest';
import type {
  BundleBlob,
  ChannelBlob,
  ChannelEntry,
  Property,
} from '../../../src/model/declarative-config.js';
import { compareVersionReleases } from '../../../src/graph/bundle-version.js';
import { substituteInChannels, readVersionRelease } from '../../../src/graph/template-substitutes.js';

function bundle(properties: Property[]): BundleBlob {
  return { schema: 'olm.bundle', name: 'w.v1', package: 'w', image: 'r/w:1', properties, relatedImages: [] };
}

const packageProperty = (version: string, release?: string): Property => ({
  type: 'olm.package',
  value: { packageName: 'w', version, ...(release !== undefined && { release }) },
});

const annotated = JSON.stringify({ metadata: { annotations: { 'olm.substitutesFor': 'w.v0' } }, spec: {} });
const annotations: Property = {
  type: 'olm.csv.metadata',
  value: { annotations: { 'olm.substitutesFor': 'w.v0' } },
};

describe('graph/template-substitutes versionReleaseOf', () => {
  it.each([
    ['the release of the property', bundle([packageProperty('1.0.0', 'alpha.1')]), undefined, ['alpha', 1]],
    ['build metadata where a CSV is annotated', bundle([packageProperty('1.0.0+2')]), annotated, [2]],
    [
      'build metadata where CSV metadata is annotated',
      bundle([packageProperty('1.0.0+2'), annotations]),
      undefined,
      [2],
    ],
    [
      'no release of a bundle that substitutes nothing',
      bundle([packageProperty('1.0.0+2')]),
      '{"spec":{}}',
      [],
    ],
    ['no release without build metadata', bundle([packageProperty('1.0.0')]), annotated, []],
  ])('takes %s', (_what, blob, csvText, expected) => {
    expect(readVersionRelease(blob, csvText).release).toEqual(expected);
  });

  it.each([
    [[], 'no "olm.package" property found for bundle "w.v1"'],
    [
      [packageProperty('1.0.0'), packageProperty('1.0.0')],
      'must be exactly one property of type "olm.package"',
    ],
    [
      [packageProperty('1.0')],
      'invalid semver version "1.0" in "olm.package" property for bundle "w.v1": No Major.Minor.Patch elements found',
    ],
    [
      [packageProperty('1.0.0', '01')],
      'invalid release "01" in "olm.package" property for bundle "w.v1": invalid release "01": segment 0: Numeric PreRelease version must not contain leading zeroes "01"',
    ],
  ])('refuses what has no version and release (%#)', (properties, message) => {
    expect(() => readVersionRelease(bundle(properties))).toThrow(message);
  });
});

describe('graph/template-substitutes compareVersionReleases', () => {
  it('orders by version, then by release, of which none is the lowest', () => {
    const ascending = [
      ['1.0.0'],
      ['1.0.0', '2'],
      ['1.0.0', '10'],
      ['1.0.0', '10.1'],
      ['1.0.0', 'a'],
      ['1.0.1'],
    ];
    const read = ascending.map(([version = '', release]) =>
      readVersionRelease(bundle([packageProperty(version, release)])),
    );
    for (const [i, a] of read.entries()) {
      for (const [j, b] of read.entries()) expect(compareVersionReleases(a, b)).toBe(Math.sign(i - j));
    }
  });
});

describe('graph/template-substitutes substituteInChannels', () => {
  const entry = (name: string, more: Partial<ChannelEntry> = {}): ChannelEntry => ({
    name,
    replaces: '',
    skips: [],
    skipRange: '',
    ...more,
  });
  const channel = (name: string, entries: ChannelEntry[] | null): ChannelBlob => ({
    schema: 'olm.channel',
    name,
    package: 'w',
    entries,
    properties: [],
  });

  it('moves the edges of the base, and those that lead to it, in every channel', () => {
    const channels = [
      channel('a', [
        entry('v1'),
        entry('v2', { replaces: 'v1', skips: ['v0'], skipRange: '<2.0.0' }),
        entry('v3', { replaces: 'v2' }),
        entry('v4', { replaces: 'v3', skips: ['v2', 'v1'] }),
      ]),
      channel('b', [entry('v3', { skips: ['v2'] })]),
      channel('c', null),
    ];
    substituteInChannels(channels, 'v2', 'v2-r1');
    expect(channels.map(({ entries }) => entries)).toEqual([
      [
        entry('v1'),
        entry('v2'),
        entry('v3', { replaces: 'v2-r1', skips: ['v2'] }),
        entry('v4', { replaces: 'v3', skips: ['v1', 'v2-r1'] }),
        entry('v2-r1', { replaces: 'v1', skips: ['v0', 'v2'], skipRange: '<2.0.0' }),
      ],
      [entry('v3', { skips: ['v2-r1'] })],
      null,
    ]);
  });
});
