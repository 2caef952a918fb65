import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatVersion, parseVersion } from '../../../src/core/semver.js';
import type { BundleBlob, ChannelEntry } from '../../../src/model/declarative-config.js';
import { describeBundle, describeChannel, describePackage } from '../../../src/model/describe.js';
import {
  type Archetype,
  type SemverChannelOptions,
  type SemverMember,
  archetypes,
  buildSemverChannels,
  findVersionConflicts,
} from '../../../src/graph/template-semver.js';
import { validateCatalog } from '../../../src/graph/validate.js';

function members(archetype: Archetype, ...versions: string[]): SemverMember[] {
  return versions.map((version) => ({ archetype, name: `w.v${version}`, version: parseVersion(version) }));
}

function build(list: SemverMember[], options: Partial<SemverChannelOptions> = {}) {
  return buildSemverChannels('w', list, { major: false, minor: true, preference: 'minor', ...options });
}

/** An entry in short: `name <replaced -skipped …`. */
function short({ name, replaces, skips }: ChannelEntry): string {
  const parts = [
    name,
    ...(replaces === '' ? [] : [`<${replaces}`]),
    ...skips.map((skipped) => `-${skipped}`),
  ];
  return parts.join(' ').replaceAll('w.v', '');
}

function drawn(list: SemverMember[], options?: Partial<SemverChannelOptions>): Record<string, string[]> {
  const { channels } = build(list, options);
  return Object.fromEntries(channels.map(({ name, entries }) => [name, (entries ?? []).map(short)]));
}

describe('graph/template-semver buildSemverChannels', () => {
  it('gives edges to the highest patch of each minor version, across minor channels', () => {
    expect(drawn(members('stable', '1.1.0', '1.0.1', '1.0.0', '1.2.0', '1.1.1'))).toEqual({
      'stable-v1.0': ['1.0.0', '1.0.1 -1.0.0'],
      'stable-v1.1': ['1.1.0', '1.1.1 <1.0.1 -1.0.0 -1.1.0'],
      'stable-v1.2': ['1.2.0 <1.1.1 -1.0.0 -1.0.1 -1.1.0'],
    });
  });

  it('has one chain in a major channel, and none across major versions or archetypes', () => {
    const list = [...members('fast', '1.0.0', '1.1.0', '2.0.0'), ...members('stable', '1.0.0')];
    expect(drawn(list, { major: true, minor: false, preference: 'major' })).toEqual({
      'fast-v1': ['1.0.0', '1.1.0 <1.0.0'],
      'fast-v2': ['2.0.0'],
      'stable-v1': ['1.0.0'],
    });
  });

  it('orders by version, not by text, and puts prereleases before their release', () => {
    expect(drawn(members('fast', '0.10.0', '0.9.0', '0.10.0-rc.1'))).toEqual({
      'fast-v0.10': ['0.10.0-rc.1', '0.10.0 <0.9.0 -0.10.0-rc.1'],
      'fast-v0.9': ['0.9.0'],
    });
  });

  it.each([
    [
      'the most stable archetype',
      [...members('fast', '9.0.0'), ...members('stable', '1.0.0')],
      {},
      'stable-v1.0',
    ],
    ['the highest first version', members('stable', '1.0.0', '1.1.0'), {}, 'stable-v1.1'],
    [
      'the newest minor channel even where major ones are preferred',
      members('stable', '1.0.0', '1.1.0'),
      { major: true, preference: 'major' } as const,
      'stable-v1.1',
    ],
    [
      'the preferred kind where versions are equal',
      members('stable', '1.1.0'),
      { major: true, preference: 'major' } as const,
      'stable-v1',
    ],
    [
      'a channel of prereleases of 0.0.0 where there is no other',
      members('candidate', '0.0.0-a'),
      {},
      'candidate-v0.0',
    ],
  ])('takes %s for the default channel', (_what, list, options, expected) => {
    expect(build(list, options).defaultChannel).toBe(expected);
  });

  it('makes a valid catalog of any versions', () => {
    const version = fc
      .tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 3 }), fc.integer({ min: 0, max: 3 }))
      .map((numbers) => numbers.join('.'));
    const lists = fc.tuple(...archetypes.map(() => fc.uniqueArray(version, { maxLength: 8 })));
    const flags = fc.constantFrom([true, false], [false, true], [true, true]);
    fc.assert(
      fc.property(lists, flags, (given, [major = false, minor = false]) => {
        const list = archetypes.flatMap((archetype, index) => members(archetype, ...(given[index] ?? [])));
        fc.pre(list.length > 0);
        const options = { major, minor, preference: minor ? 'minor' : 'major' } as const;
        const { channels, defaultChannel } = build(list, options);
        const names = new Map(list.map(({ name, version: one }) => [name, formatVersion(one)]));
        const bundles = [...names].map(([name, one]) => describeBundle(bundleOf(name, one)));
        const pack = {
          schema: 'olm.package',
          name: 'w',
          defaultChannel,
          description: '',
          properties: [],
        } as const;
        const facts = {
          packages: [describePackage({ ...pack, properties: [] })],
          channels: channels.map((channel) => describeChannel(channel)),
          bundles,
          deprecations: [],
        };
        expect(validateCatalog(facts).message).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });
});

function bundleOf(name: string, version: string): BundleBlob {
  const property = { type: 'olm.package', value: { packageName: 'w', version } };
  return {
    schema: 'olm.bundle',
    name,
    package: 'w',
    image: 'r/w:1',
    properties: [property],
    relatedImages: [],
  };
}

describe('graph/template-semver findVersionConflicts', () => {
  it('finds every version that differs from another in build metadata only, within an archetype', () => {
    const list = [...members('fast', '1.0.0+a', '1.0.0', '1.0.0+b'), ...members('stable', '1.0.0')];
    expect(findVersionConflicts(list).map(({ message }) => message)).toEqual([
      'bundle version "1.0.0" cannot be compared to "1.0.0"',
      'bundle version "1.0.0+b" cannot be compared to "1.0.0"',
    ]);
  });
});

describe('graph/template-semver: what is made of it', () => {
  it('is never warned of, whatever the versions', () => {
    const part = fc.integer({ min: 0, max: 3 });
    const version = fc.tuple(part, part, part).map((numbers) => numbers.join('.'));
    fc.assert(
      fc.property(fc.uniqueArray(version, { minLength: 1, maxLength: 12 }), fc.boolean(), (list, minor) => {
        const { channels, defaultChannel } = build(members('stable', ...list), { major: true, minor });
        const bundles = list.map((one): BundleBlob => {
          const value = { packageName: 'w', version: one };
          return {
            schema: 'olm.bundle',
            name: `w.v${one}`,
            package: 'w',
            image: 'quay.io/w/w:v1',
            properties: [{ type: 'olm.package', value }],
            relatedImages: [],
          };
        });
        const { passed, warnings } = validateCatalog({
          packages: [
            describePackage({
              schema: 'olm.package',
              name: 'w',
              defaultChannel,
              description: '',
              properties: [],
            }),
          ],
          channels: channels.map((channel) => describeChannel(channel)),
          bundles: bundles.map((bundle) => describeBundle(bundle)),
          deprecations: [],
        });
        expect(minor || passed).toBe(true);
        expect(warnings).toEqual([]);
      }),
    );
  });
});
