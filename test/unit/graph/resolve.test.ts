import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseConstraint } from '../../../src/core/semver-range.js';
import { parseRange, parseVersion } from '../../../src/core/semver.js';
import { decodeBundle, decodeChannel, decodeDeprecations } from '../../../src/model/decode.js';
import { compareVersionReleases, parseBundleVersion } from '../../../src/graph/bundle-version.js';
import { type PackageContent, addToContent, emptyContent } from '../../../src/graph/resolve-content.js';
import { findReadableVersion } from '../../../src/graph/upgrade-graph.js';
import {
  type Resolution,
  type ResolveCatalog,
  type ResolveRequest,
  resolvePackage,
} from '../../../src/graph/resolve.js';

interface Entry {
  name: string;
  replaces?: string;
  skips?: string[];
  skipRange?: string;
}

interface Given {
  /** Versions by name; `VERSION/RELEASE` for one with a release. */
  bundles: Record<string, string>;
  channels?: Record<string, Entry[]>;
  deprecated?: string[];
  dependencies?: string[];
  priority?: number;
}

function contentOf({ bundles, channels, deprecated, dependencies = [] }: Given): PackageContent {
  const content = emptyContent();
  for (const [name, given] of Object.entries(bundles)) {
    const [version, release] = given.split('/');
    const value = { packageName: 'w', version: version as string, ...(release !== undefined && { release }) };
    const properties = [{ type: 'olm.package', value }, ...dependencies.map((type) => ({ type, value: {} }))];
    const blob = { schema: 'olm.bundle', package: 'w', name, image: `reg/${name}`, properties };
    addToContent(content, { kind: 'bundle', blob: decodeBundle(blob) });
  }
  const all = channels ?? { stable: Object.keys(bundles).map((name) => ({ name })) };
  for (const [name, entries] of Object.entries(all)) {
    const blob = decodeChannel({ schema: 'olm.channel', package: 'w', name, entries: entries as never });
    addToContent(content, { kind: 'channel', blob });
  }
  if (deprecated !== undefined) {
    const entries = deprecated.map((name) => ({
      reference: name === '' ? { schema: 'olm.package' } : { schema: 'olm.bundle', name },
      message: `${name} is old`,
    }));
    const blob = decodeDeprecations({ schema: 'olm.deprecations', package: 'w', entries });
    addToContent(content, { kind: 'deprecations', blob });
  }
  return content;
}

const anything: ResolveRequest = {
  packageName: 'w',
  versionRange: '',
  channels: [],
  policy: 'catalog-provided',
};

function catalogsOf(given: Record<string, Given>): ResolveCatalog[] {
  return Object.entries(given).map(([name, one]) => ({
    name,
    priority: one.priority ?? 0,
    content: contentOf(one),
  }));
}

function resolve(given: Record<string, Given>, request: Partial<ResolveRequest> = {}): Resolution {
  return resolvePackage({ ...anything, ...request }, catalogsOf(given));
}

const installed = (name: string, version: string) => ({ name, version: parseBundleVersion(version) });

describe('graph/resolve', () => {
  it.each<[string, Given, Partial<ResolveRequest>, string | undefined]>([
    ['the highest version', { bundles: { a: '1.0.0', b: '1.10.0', c: '1.9.0' } }, {}, 'b'],
    ['a prerelease below its release', { bundles: { a: '1.0.0-rc.1', b: '1.0.0' } }, {}, 'b'],
    [
      'the highest release in build metadata',
      { bundles: { a: '1.0.0+9', b: '1.0.0+10', c: '1.0.0' } },
      {},
      'b',
    ],
    ['the highest release of its own', { bundles: { a: '1.0.0/2', b: '1.0.0/10', c: '1.0.0' } }, {}, 'b'],
    [
      'an empty release over build metadata',
      { bundles: { a: '1.0.0+9/', b: '1.0.0+1', c: '1.0.0' } },
      {},
      'b',
    ],
    ['of equals the first name', { bundles: { b: '1.0.0+01', a: '1.0.0' } }, {}, 'a'],
    ['what is not deprecated', { bundles: { a: '1.0.0', b: '2.0.0' }, deprecated: ['b'] }, {}, 'a'],
    ['what is deprecated, if need be', { bundles: { a: '1.0.0' }, deprecated: ['a', ''] }, {}, 'a'],
    ['a version in range', { bundles: { a: '1.0.0', b: '2.0.0' } }, { versionRange: '1.x' }, 'a'],
    ['no prerelease unasked', { bundles: { a: '1.0.0', b: '1.1.0-rc' } }, { versionRange: '>=1' }, 'a'],
    ['nothing where nothing is in range', { bundles: { a: '1.0.0' } }, { versionRange: '2' }, undefined],
    ['nothing without a package', { bundles: {} }, {}, undefined],
    [
      'only from the channels asked for',
      { bundles: { a: '1.0.0', b: '2.0.0' }, channels: { x: [{ name: 'a' }], y: [{ name: 'b' }] } },
      { channels: ['x', 'z'] },
      'a',
    ],
    [
      'edges of the channels asked for only',
      {
        bundles: { a: '1.0.0', b: '2.0.0' },
        channels: { x: [{ name: 'b' }], y: [{ name: 'b', replaces: 'a' }] },
      },
      { channels: ['x'], installed: installed('a', '1.0.0') },
      undefined,
    ],
    [
      'a direct successor, not the head',
      {
        bundles: { a: '1.0.0', b: '2.0.0', c: '3.0.0' },
        channels: { x: [{ name: 'a' }, { name: 'b', replaces: 'a' }, { name: 'c', replaces: 'b' }] },
      },
      { installed: installed('a', '1.0.0') },
      'b',
    ],
    [
      'what skips it',
      {
        bundles: { a: '1.0.0', b: '2.0.0' },
        channels: { x: [{ name: 'a' }, { name: 'b', skips: ['q', 'a'] }] },
      },
      { installed: installed('a', '1.0.0') },
      'b',
    ],
    [
      'what skips its range, as OLM v0 reads ranges',
      {
        bundles: { b: '2.0.0', c: '3.0.0' },
        channels: {
          x: [
            { name: 'b', skipRange: '>=1.0.0-0 <2.0.0' },
            { name: 'c', skipRange: '^1' },
          ],
        },
      },
      { installed: installed('gone', '1.0.0-beta') },
      'b',
    ],
    [
      'what is installed, where nothing follows',
      { bundles: { a: '1.0.0', b: '2.0.0' } },
      { installed: installed('a', '1.0.0') },
      'a',
    ],
    [
      'not another release of what is installed',
      { bundles: { a: '1.0.0+1', b: '1.0.0+2' } },
      { installed: installed('a', '1.0.0+1') },
      'a',
    ],
    [
      'anything, where the user answers for it',
      { bundles: { a: '1.0.0', b: '2.0.0' } },
      { installed: installed('a', '1.0.0'), policy: 'self-certified' },
      'b',
    ],
  ])('chooses %s', (_what, given, request, wanted) => {
    const { outcome, chosen } = resolve({ main: given }, request);
    expect([outcome, chosen?.name]).toEqual([wanted === undefined ? 'none' : 'resolved', wanted]);
  });

  it('shows the releases of equal versions', () => {
    const { chosen, catalogs } = resolve({
      main: { bundles: { a: '1.0.0/2', b: '1.0.0/10.x', c: '1.0.0' } },
    });
    expect([chosen?.version, chosen?.release]).toEqual(['1.0.0', '10.x']);
    expect(catalogs[0]?.candidates.map(({ name, release, reasons }) => [name, release, ...reasons])).toEqual([
      ['b', '10.x'],
      ['a', '2', 'lower release than b'],
      ['c', undefined, 'lower release than b'],
    ]);
  });

  it('takes the catalog of highest priority, but what is not deprecated before it', () => {
    const old: Given = { bundles: { a: '9.0.0' }, deprecated: ['a'], priority: 10 };
    const low: Given = { bundles: { b: '1.0.0' }, priority: -1 };
    const high: Given = { bundles: { c: '0.5.0' }, priority: 1 };
    const { chosen, catalogs } = resolve({ old, low, high });
    expect([chosen?.name, chosen?.catalog]).toEqual(['c', 'high']);
    expect(catalogs.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['high', 'chosen'],
      ['low', 'lower priority than that of high'],
      ['old', 'its best match is deprecated, unlike that of high, low'],
    ]);
  });

  it.each(['==1.0.0', '!1.0.0', '1.0.0 - '])(
    'refuses the range %j of catalogs, as OLM v1 does',
    (versionRange) => {
      const given = { main: { bundles: { a: '1.0.0' } } };
      expect(() => resolve(given, { versionRange })).toThrow('improper constraint');
    },
  );

  it('does not choose between catalogs of one priority', () => {
    const given = { bundles: { a: '1.0.0' } };
    const { outcome, reason, chosen } = resolve(
      { y: given, x: given, z: { bundles: {} } },
      { versionRange: '1' },
    );
    expect([outcome, chosen]).toEqual(['ambiguous', undefined]);
    expect(reason).toBe(
      'found bundles for package "w" matching version "1" in multiple catalogs with the same priority [x y]',
    );
  });

  it('does not take the next one where OLM v1 cannot install the best', () => {
    const given = { bundles: { a: '1.0.0' }, dependencies: ['olm.gvk.required', 'olm.constraint'] };
    expect(resolve({ main: given })).toMatchObject({
      outcome: 'unsupported',
      chosen: { name: 'a' },
      reason: expect.stringContaining('property "olm.gvk.required", "olm.constraint"') as string,
    });
    expect(resolve({ main: { bundles: { a: 'one' } } })).toMatchObject({ outcome: 'unsupported' });
    expect(resolve({ main: { bundles: { a: 'one', b: '0.0.1' } } }).chosen?.name).toBe('b');
  });

  it('reports deprecations of the chosen catalog', () => {
    const main: Given = { bundles: { a: '1.0.0' }, deprecated: ['a', ''], priority: 1 };
    const other: Given = { bundles: { a: '1.0.0' }, deprecated: ['a'] };
    expect(resolve({ main, other }).deprecations).toEqual([
      { kind: 'package', name: 'w', message: ' is old' },
      { kind: 'bundle', name: 'a', message: 'a is old' },
    ]);
  });

  it('names the upgrades that there are where none is in range', () => {
    const entries = ['a', 'b', 'c', 'd', 'e'].map((name) => ({ name, replaces: name === 'a' ? '' : 'a' }));
    const bundles = { a: '1.1.0', b: '1.1.5', c: '1.1.7', d: '1.3.0', e: '2.0.0' };
    const { outcome, successors } = resolve(
      { main: { bundles, channels: { x: entries, y: entries }, deprecated: ['c'] } },
      { installed: installed('a', '1.1.0'), versionRange: '5' },
    );
    expect(outcome).toBe('none');
    expect(successors.map(({ stream, name }) => [stream, name])).toEqual([
      ['z', 'b'],
      ['y', 'd'],
      ['x', 'e'],
    ]);
    expect(successors[0]?.channels).toEqual(['x', 'y']);
  });

  const version = fc
    .tuple(
      fc.nat(3),
      fc.nat(3),
      fc.nat(2),
      fc.constantFrom('', '', '', '-rc.1', '-0', '+1', '+2', '+01', 'x', '/1'),
    )
    .map(([major, minor, patch, end]) => `${major}.${minor}.${patch}${end}`);
  const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', '__proto__', 'constructor');
  const entry = fc.record({
    name,
    replaces: fc.oneof(name, fc.constant('')),
    skips: fc.array(name, { maxLength: 2 }),
    skipRange: fc.constantFrom('', '', '>=1.0.0 <2.0.0', '<2.1.0', '~1', 'nonsense'),
  });
  const given: fc.Arbitrary<Given> = fc.record({
    bundles: fc
      .array(fc.tuple(name, version), { maxLength: 6 })
      .map((pairs) => Object.fromEntries(pairs.filter(([key]) => key !== '__proto__'))),
    channels: fc
      .array(fc.tuple(fc.constantFrom('x', 'y', 'z'), fc.array(entry, { maxLength: 6 })), { maxLength: 3 })
      .map((pairs) => Object.fromEntries(pairs)),
    deprecated: fc.array(name, { maxLength: 3 }),
    dependencies: fc.constantFrom([], [], [], ['olm.constraint']),
    priority: fc.nat(1),
  });
  const request: fc.Arbitrary<ResolveRequest> = fc.record({
    packageName: fc.constant('w'),
    versionRange: fc.constantFrom('', '', '1.x', '>=1, <3', '^2', '>=0.0.0-0', '1 - 2 || 3.0.0'),
    channels: fc.constantFrom([], [], ['x'], ['y', 'z'], ['none']),
    installed: fc.oneof(
      fc.constant(undefined),
      fc
        .tuple(name, fc.constantFrom('1.0.0', '1.2.0', '2.0.0-rc.1', '1.0.0+1'))
        .map((pair) => installed(...pair)),
    ),
    policy: fc.constantFrom('catalog-provided', 'self-certified'),
  });

  it('chooses what passes every filter, and nothing better is there', () => {
    fc.assert(
      fc.property(request, fc.record({ p: given, q: given, r: given }), (asked, all) => {
        const { outcome, chosen, catalogs } = resolvePackage(asked, catalogsOf(all));
        const matches = catalogs.flatMap((catalog) =>
          catalog.candidates.filter(({ isMatch }) => isMatch).map((one) => ({ ...one, catalog })),
        );
        if (outcome === 'none') expect(matches).toEqual([]);
        if (chosen === undefined) return;
        const source = all[chosen.catalog as 'p'];
        const channels = Object.entries(source.channels ?? {}).filter(
          ([channel]) => asked.channels.length === 0 || asked.channels.includes(channel),
        );
        const entries = channels.flatMap(([, list]) => list).filter((one) => one.name === chosen.name);
        if (asked.channels.length > 0) expect(entries).not.toEqual([]);
        if (asked.versionRange !== '') {
          const range = parseConstraint(asked.versionRange);
          expect(range.contains(parseVersion(chosen.version))).toBe(true);
        }
        const before = asked.installed;
        if (before !== undefined && asked.policy === 'catalog-provided') {
          const isSame = compareVersionReleases(chosenVersion(source, chosen.name), before.version) === 0;
          const follows = entries.some(
            ({ replaces, skips = [], skipRange = '' }) =>
              replaces === before.name || skips.includes(before.name) || isIn(skipRange, before.version.text),
          );
          expect(isSame || follows).toBe(true);
        }
        for (const other of matches) {
          if (chosen.deprecation !== undefined) expect(other.deprecation).toBeDefined();
          else if (other.deprecation !== undefined) continue;
          expect(other.catalog.priority).toBeLessThanOrEqual(source.priority as number);
          if (other.catalog.name !== chosen.catalog || outcome === 'unsupported') continue;
          const theirs = findReadableVersion(
            contentOf(source).bundles.find((one) => one.name === other.name),
          );
          if (theirs === undefined) continue;
          expect(compareVersionReleases(theirs, chosenVersion(source, chosen.name))).toBeLessThanOrEqual(0);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('answers the same whatever order catalogs, bundles and channels come in', () => {
    const shuffled = <T>(list: readonly T[]) => fc.shuffledSubarray([...list], { minLength: list.length });
    fc.assert(
      fc.property(
        request,
        fc.record({ p: given, q: given }).chain((all) => {
          const catalogs = catalogsOf(all);
          const others = catalogs.map(({ content, ...rest }) =>
            fc
              .record({ bundles: shuffled(content.bundles), channels: shuffled(content.channels) })
              .map((order) => ({ ...rest, content: { ...content, ...order } })),
          );
          return fc.tuple(fc.constant(catalogs), fc.tuple(...others).chain(shuffled));
        }),
        (asked, [catalogs, others]) => {
          expect(resolvePackage(asked, others)).toEqual(resolvePackage(asked, catalogs));
        },
      ),
      { numRuns: 300 },
    );
  });
});

function chosenVersion(source: Given, name: string) {
  const found = findReadableVersion(contentOf(source).bundles.find((bundle) => bundle.name === name));
  return found ?? parseBundleVersion('0.0.0');
}

function isIn(skipRange: string, version: string): boolean {
  try {
    return skipRange !== '' && parseRange(skipRange).contains(parseVersion(version));
  } catch {
    return false;
  }
}
