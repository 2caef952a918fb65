import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DirectoryCatalog } from '../../../../src/catalog/catalog.js';
import { collectFacts } from '../../../../src/catalog/facts.js';
import {
  type Closure,
  type DependencyMode,
  closeDependencies,
} from '../../../../src/mirror/selection/dependencies.js';
import type { DependencyCatalog } from '../../../../src/mirror/selection/growing-catalog.js';
import { readImageSetConfiguration } from '../../../../src/mirror/image-set/image-set-config.js';
import { selectOperators } from '../../../../src/mirror/selection/select-operators.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { directoryWith } from '../../../support/temporary.js';

/** What a bundle says of others; the keys are types without `olm.`. */
type Property = [type: string, value: unknown];
/** Bundles by version, oldest first, each replacing the one before it. */
type Channels = Record<string, string[]>;

interface SmallPackage {
  channels: Channels;
  /** Properties by version; those under `*` are every bundle's. */
  properties?: Record<string, Property[]>;
}

const needsPackage = (packageName: string, versionRange: string): Property => [
  'package.required',
  { packageName, versionRange },
];
const gvk = (kind: string): unknown => ({ group: 'acme.example', version: 'v1', kind });
const inPackage = (packageName: string, versionRange: string): unknown => ({
  package: { packageName, versionRange },
});
const constraints = (...all: unknown[]): unknown => ({ constraints: all });

function blobsOf(packages: Record<string, SmallPackage>): string {
  const blobs: unknown[] = [];
  for (const [name, { channels, properties = {} }] of Object.entries(packages)) {
    blobs.push({ schema: 'olm.package', name, defaultChannel: Object.keys(channels)[0] });
    const versions = new Set<string>();
    for (const [channel, list] of Object.entries(channels)) {
      const entries = list.map((version, at) => ({
        name: `${name}.v${version}`,
        ...(at > 0 && { replaces: `${name}.v${list[at - 1]}` }),
      }));
      blobs.push({ schema: 'olm.channel', name: channel, package: name, entries });
      for (const version of list) versions.add(version);
    }
    for (const version of versions) {
      const own = [...(properties['*'] ?? []), ...(properties[version] ?? [])];
      blobs.push({
        schema: 'olm.bundle',
        package: name,
        name: `${name}.v${version}`,
        image: `quay.io/acme/${name}:v${version}`,
        properties: [
          { type: 'olm.package', value: { packageName: name, version } },
          ...own.map(([type, value]) => ({ type: `olm.${type}`, value })),
        ],
      });
    }
  }
  return blobs.map((blob) => JSON.stringify(blob)).join('\n');
}

/** A catalog each, with what the configuration says of it. */
async function openCatalogs(...given: [Record<string, SmallPackage>, string][]) {
  const text = given.map(([, of], at) => `  - catalog: quay.io/acme/index${at}:v1\n    ${of}\n`).join('');
  const config = readImageSetConfiguration(
    `kind: ImageSetConfiguration\nmirror:\n  operators:\n${text}`,
    'set.yaml',
  );
  const catalogs: DependencyCatalog[] = [];
  for (const [at, [packages]] of given.entries()) {
    const catalog = new DirectoryCatalog(await directoryWith({ 'catalog.json': blobsOf(packages) }));
    const facts = await collectFacts(catalog);
    const operator = config.operators[at];
    if (operator === undefined) throw new Error('no operator');
    catalogs.push({ operator, catalog, facts, selection: selectOperators(facts, operator, 'set.yaml') });
  }
  return { config, catalogs };
}

interface Outcome extends Closure {
  /** Names of the bundles of each catalog, after it. */
  bundles: string[][];
}

async function close(
  mode: DependencyMode,
  ...given: [Record<string, SmallPackage>, string][]
): Promise<Outcome> {
  const { config, catalogs } = await openCatalogs(...given);
  const closure = await closeDependencies(config, catalogs, mode, {});
  for (const { facts } of closure.selections.values()) expect(validateCatalog(facts).problems).toEqual([]);
  const bundles = catalogs.map((one) =>
    (closure.selections.get(one) ?? one.selection).facts.bundles.map(({ name }) => name).sort(),
  );
  for (const { catalog } of catalogs) await catalog.close();
  return { ...closure, bundles };
}

const only = (...names: string[]): string => `packages: [${names.map((name) => `{name: ${name}}`).join()}]`;

const bar = {
  channels: { stable: ['1.0.0', '1.1.0', '2.0.0'], beta: ['2.0.0', '2.1.0-rc.1'] },
  properties: { '*': [['gvk', gvk('Bar')]] as Property[] },
};
const fooThatNeeds = (...needs: Property[]): SmallPackage => ({
  channels: { stable: ['0.1.0', '0.2.0'] },
  properties: { '0.2.0': needs },
});

describe('mirror/dependencies', () => {
  it('adds the bundle nearest to the head of the default channel that is wanted', async () => {
    const packages = { foo: fooThatNeeds(needsPackage('bar', '>=1.0.0')), bar };
    const { added, unmet, bundles } = await close('add', [packages, only('foo')]);
    expect(bundles).toEqual([['bar.v2.0.0', 'foo.v0.2.0']]);
    expect(added).toEqual([
      'package "bar" 2.0.0 in stable from quay.io/acme/index0:v1: "foo.v0.2.0" needs package "bar" ">=1.0.0"',
    ]);
    expect(unmet).toEqual([]);
  });

  it.each([
    ['<2.0.0', 'bar.v1.1.0', 'stable'],
    ['>=1.0.0 <1.1.0 || 9.0.0', 'bar.v1.0.0', 'stable'],
    // A range looks at plain precedence, prereleases included; no version of the default channel will do.
    ['>2.0.0', 'bar.v2.1.0-rc.1', 'beta, now its default channel,'],
  ])('reads the range %s', async (range, bundle, channel) => {
    const packages = { foo: fooThatNeeds(needsPackage('bar', range)), bar };
    const { added, bundles } = await close('add', [packages, only('foo')]);
    expect(bundles).toEqual([[bundle, 'foo.v0.2.0']]);
    expect(added[0]).toContain(` in ${channel} from `);
  });

  it('reports without adding, and does nothing where nothing is wanted', async () => {
    const given: [Record<string, SmallPackage>, string] = [
      { foo: fooThatNeeds(needsPackage('bar', '>=1.0.0'), ['gvk.required', gvk('Baz')]), bar },
      only('foo'),
    ];
    const reported = await close('report', given);
    expect(reported.selections.size).toBe(0);
    expect(reported.added).toEqual([]);
    expect(reported.unmet).toEqual([
      '"foo.v0.2.0" needs package "bar" ">=1.0.0", which is not selected: quay.io/acme/index0:v1 has "bar.v2.0.0" in stable',
      '"foo.v0.2.0" needs API "Baz" of acme.example/v1, which no given catalog has',
    ]);
    expect(await close('none', given)).toMatchObject({ added: [], unmet: [], bundles: [['foo.v0.2.0']] });
  });

  it('says what versions there are where none will do', async () => {
    const packages = { foo: fooThatNeeds(needsPackage('bar', '>3.0.0')), bar };
    for (const mode of ['report', 'add'] as const) {
      const { unmet } = await close(mode, [packages, only('foo')]);
      expect(unmet).toEqual([
        '"foo.v0.2.0" needs package "bar" ">3.0.0", of which quay.io/acme/index0:v1 has 1.0.0 to 2.1.0-rc.1',
      ]);
    }
  });

  it('widens what is taken of a package that is selected already', async () => {
    const packages = {
      foo: fooThatNeeds(needsPackage('bar', '<1.1.0')),
      bar,
      other: { channels: { only: ['0.0.1'] }, properties: bar.properties },
    };
    const { added, bundles } = await close('add', [
      packages,
      'packages: [{name: foo}, {name: bar, channels: [{name: stable}]}]',
    ]);
    expect(bundles).toEqual([['bar.v1.0.0', 'bar.v1.1.0', 'bar.v2.0.0', 'foo.v0.2.0']]);
    expect(added).toEqual([
      'package "bar" 1.0.0 to 1.1.0 in stable from quay.io/acme/index0:v1: "foo.v0.2.0" needs package "bar" "<1.1.0"',
    ]);
  });

  it('finds who provides an API: selected packages first, then names in order', async () => {
    const provider = { channels: { only: ['0.0.1', '0.0.2'] }, properties: bar.properties };
    const packages = { foo: fooThatNeeds(['gvk.required', gvk('Bar')]), zed: provider, abc: provider };
    const byName = await close('add', [packages, only('foo')]);
    expect(byName.bundles).toEqual([['abc.v0.0.2', 'foo.v0.2.0']]);
    const older = { ...provider, properties: { '0.0.1': bar.properties['*'] } };
    const selected = await close('add', [{ ...packages, zed: older }, only('foo', 'zed')]);
    expect(selected.bundles).toEqual([['foo.v0.2.0', 'zed.v0.0.1', 'zed.v0.0.2']]);
    const met = await close('add', [packages, only('foo', 'zed')]);
    expect(met.added).toEqual([]);
  });

  it('looks at packages that are named before it chooses who provides an API', async () => {
    const provider = { channels: { only: ['0.0.1'] }, properties: bar.properties };
    const packages = {
      foo: fooThatNeeds(['gvk.required', gvk('Bar')], needsPackage('zed', '>=0.0.1')),
      ...{ abc: provider, zed: provider },
    };
    const { bundles, unmet } = await close('add', [packages, only('foo')]);
    expect(bundles).toEqual([['foo.v0.2.0', 'zed.v0.0.1']]);
    expect(unmet).toEqual([]);
  });

  it('follows needs of what it adds, with the chain of reasons, and ends where they go in a circle', async () => {
    const packages = {
      foo: fooThatNeeds(needsPackage('bar', '>=1.0.0')),
      bar: { channels: { stable: ['1.0.0'] }, properties: { '1.0.0': [needsPackage('baz', '>=0.1.0')] } },
      baz: {
        channels: { stable: ['0.1.0'] },
        properties: { '0.1.0': [needsPackage('foo', '<0.2.0'), needsPackage('bar', '1.0.0')] },
      },
    };
    const { added, unmet, bundles } = await close('add', [packages, only('foo')]);
    expect(bundles).toEqual([['bar.v1.0.0', 'baz.v0.1.0', 'foo.v0.1.0', 'foo.v0.2.0']]);
    const from = 'in stable from quay.io/acme/index0:v1';
    const chain = '"foo.v0.2.0" needs package "bar" ">=1.0.0"';
    expect(added).toEqual([
      `package "bar" 1.0.0 ${from}: ${chain}`,
      `package "baz" 0.1.0 ${from}: ${chain}, and "bar.v1.0.0" needs package "baz" ">=0.1.0"`,
      `package "foo" 0.1.0 ${from}: ${chain}, and "bar.v1.0.0" needs package "baz" ">=0.1.0", and "baz.v0.1.0" needs package "foo" "<0.2.0"`,
    ]);
    expect(unmet).toEqual([]);
  });

  it('shortens a long chain of reasons', async () => {
    const packages = Object.fromEntries(
      Array.from({ length: 12 }, (_, i) => {
        const needs = i < 11 ? [needsPackage(`p${i + 1}`, '1.0.0')] : [];
        return [`p${i}`, { channels: { only: ['1.0.0'] }, properties: { '1.0.0': needs } }];
      }),
    );
    const { added } = await close('add', [packages, only('p0')]);
    expect(added).toHaveLength(11);
    const why = (i: number): string => `"p${i}.v1.0.0" needs package "p${i + 1}" "1.0.0"`;
    expect(added.at(-1)).toContain(`: ${[why(0), '…', why(7), why(8), why(9), why(10)].join(', and ')}`);
  });

  it('looks in the same catalog first, then in the others in order', async () => {
    const foo = fooThatNeeds(needsPackage('bar', '>=1.0.0'));
    const [first, second] = [
      { bar, more: bar },
      { foo, bar },
    ];
    const own = await close('add', [first, only('more')], [second, only('foo')]);
    expect(own.bundles).toEqual([
      ['more.v2.0.0', 'more.v2.1.0-rc.1'],
      ['bar.v2.0.0', 'foo.v0.2.0'],
    ]);
    const other = await close('add', [first, only('more')], [{ foo }, only('foo')]);
    expect(other.bundles[0]).toContain('bar.v2.0.0');
    expect(other.added[0]).toContain('from quay.io/acme/index0:v1');
    // What any catalog has selected meets the need, and of a whole catalog that is everything.
    const whole = await close('add', [first, 'full: true'], [second, only('foo')]);
    expect(whole.added).toEqual([]);
    expect(whole.unmet).toEqual([]);
  });

  it('reports what bundles of a whole catalog need, several of them in one sentence', async () => {
    const foo = {
      channels: { stable: ['1.0.0', '1.0.1', '1.0.2', '1.0.3', '1.0.4'] },
      properties: { '*': [['gvk.required', gvk('Baz')]] as Property[] },
    };
    const { unmet } = await close('report', [{ foo }, 'full: true']);
    expect(unmet).toEqual([
      '"foo.v1.0.0", "foo.v1.0.1", "foo.v1.0.2" and 2 more need API "Baz" of acme.example/v1, which no given catalog has',
    ]);
  });

  describe('constraints', () => {
    const baz = { channels: { stable: ['1.0.0', '1.1.0'] } };
    const added = async (value: unknown): Promise<Outcome & { names: string[] }> => {
      const packages = { foo: fooThatNeeds(['constraint', value]), bar, baz };
      const outcome = await close('add', [packages, only('foo')]);
      return { ...outcome, names: (outcome.bundles[0] ?? []).filter((name) => !name.startsWith('foo')) };
    };

    it.each([
      ['package', inPackage('bar', '1.1.0'), ['bar.v1.1.0']],
      ['gvk', { failureMessage: 'Bar is needed', gvk: gvk('Bar') }, ['bar.v2.0.0']],
      [
        'all',
        { all: constraints(inPackage('baz', '>=1.0.0'), { gvk: gvk('Bar') }) },
        ['bar.v2.0.0', 'baz.v1.1.0'],
      ],
      [
        'all of one package',
        { all: constraints(inPackage('bar', '>=1.0.0'), inPackage('bar', '<2.0.0')) },
        ['bar.v1.1.0'],
      ],
      [
        'any, the first that is there',
        { any: constraints(inPackage('qux', '>=1.0.0'), inPackage('baz', '<1.1.0')) },
        ['baz.v1.0.0'],
      ],
      [
        'not, within all',
        { all: constraints({ gvk: gvk('Bar') }, { not: constraints(inPackage('bar', '>=2.0.0')) }) },
        ['bar.v1.1.0'],
      ],
      [
        'nested',
        {
          all: constraints(
            {
              any: constraints(inPackage('qux', '>=1.0.0'), {
                all: constraints(inPackage('bar', '<=1.1.0')),
              }),
            },
            { not: constraints({ any: constraints(inPackage('bar', '1.1.0')) }) },
          ),
        },
        ['bar.v1.0.0'],
      ],
      ['not, which needs nothing', { not: constraints(inPackage('bar', '>=1.0.0')) }, []],
    ])('%s', async (_what, value, names) => {
      const outcome = await added(value);
      expect(outcome.names).toEqual(names);
      expect(outcome.unmet).toEqual([]);
    });

    it.each([
      [{ cel: { rule: 'true' } }, 'what a rule in CEL says, which opmate does not understand'],
      [
        inPackage('bar', 'newest'),
        'what its olm.constraint does not say clearly (Could not get version from string: "newest"), which opmate does not understand',
      ],
      [
        { package: {}, gvk: {} },
        'what its olm.constraint does not say clearly (a constraint is of several kinds: package, gvk), which opmate does not understand',
      ],
      [
        { all: {} },
        'what its olm.constraint does not say clearly (a constraint has no list of constraints), which opmate does not understand',
      ],
      [
        { any: constraints(inPackage('qux', '1.0.0'), { gvk: gvk('Qux') }) },
        'one of package "qux" "1.0.0"; API "Qux" of acme.example/v1, of which nothing is selected',
      ],
      [
        { all: constraints(inPackage('bar', '2.0.0'), inPackage('bar', '<1.1.0')) },
        'package "bar" "2.0.0" that is also package "bar" "<1.1.0", of which quay.io/acme/index0:v1 has 1.0.0 to 2.1.0-rc.1',
      ],
    ])('tells what cannot be met: %j', async (value, text) => {
      expect((await added(value)).unmet).toEqual([`"foo.v0.2.0" needs ${text}`]);
    });

    it('takes another choice where one is not understood', async () => {
      const outcome = await added({ any: constraints({ cel: { rule: 'true' } }, { gvk: gvk('Bar') }) });
      expect(outcome.names).toEqual(['bar.v2.0.0']);
      expect(outcome.unmet).toEqual([]);
    });

    it('does not follow endless nesting', async () => {
      let value: unknown = inPackage('bar', '1.0.0');
      for (let depth = 0; depth < 100; depth++) value = { all: constraints(value) };
      expect((await added(value)).unmet[0]).toContain('nested too deeply');
    });
  });

  it('passes over channels of which nothing valid can be made, and says where nothing is left', async () => {
    // Two heads.
    const broken = { ...bar, channels: { stable: ['1.0.0', '1.1.0'] } };
    const packages = { foo: fooThatNeeds(['gvk.required', gvk('Bar')]), broken, whole: bar };
    const { config, catalogs } = await openCatalogs([packages, only('foo')]);
    const [one] = catalogs as [DependencyCatalog];
    const channel = one.facts.channels.find(({ package: name }) => name === 'broken');
    for (const entry of channel?.entries ?? []) entry.replaces = '';
    const { added } = await closeDependencies(config, catalogs, 'add', {});
    expect(added[0]).toContain('package "whole" 2.0.0 in stable');
    await one.catalog.close();
  });

  it('ends with a valid selection that needs nothing more than it says', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const version = fc.constantFrom('1.0.0', '1.1.0', '2.0.0-rc.1', '2.0.0');
    const named = fc
      .tuple(fc.constantFrom(...names), fc.constantFrom('>=', '<=', ''), version)
      .map(([name, operator, text]) => needsPackage(name, operator + text));
    const apis = fc
      .constantFrom('A', 'B', 'C')
      .chain((kind) => fc.constantFrom<Property>(['gvk', gvk(kind)], ['gvk.required', gvk(kind)]));
    const properties = fc.dictionary(version, fc.array(fc.oneof(named, apis), { maxLength: 3 }));
    const channel = fc.subarray(['1.0.0', '1.1.0', '2.0.0-rc.1', '2.0.0'], { minLength: 1 });
    const one: fc.Arbitrary<SmallPackage> = fc.record({
      channels: fc.record({ stable: channel, beta: channel }),
      properties,
    });
    const catalog = fc.record(Object.fromEntries(names.map((name) => [name, one])));
    let grown = 0;
    await fc.assert(
      fc.asyncProperty(catalog, catalog, async (first, second) => {
        const { config, catalogs } = await openCatalogs([first, only('a')], [second, only('b')]);
        const { selections, added, unmet } = await closeDependencies(config, catalogs, 'add', {});
        const after = catalogs.map((given) => ({
          ...given,
          selection: selections.get(given) ?? given.selection,
        }));
        for (const [i, { selection }] of after.entries()) {
          expect(validateCatalog(selection.facts).problems).toEqual([]);
          const before = catalogs[i]?.selection.facts.bundles.map(({ name }) => name);
          expect(selection.facts.bundles.map(({ name }) => name)).toEqual(
            expect.arrayContaining(before ?? []),
          );
        }
        const again = await closeDependencies(config, after, 'report', {});
        expect([...again.unmet].sort()).toEqual([...unmet].sort());
        if (added.length > 0) grown++;
        for (const { catalog: open } of catalogs) await open.close();
      }),
      { numRuns: 100, seed: 7 },
    );
    expect(grown).toBeGreaterThan(20);
  });

  it('can be cancelled', async () => {
    const { config, catalogs } = await openCatalogs([
      { foo: fooThatNeeds(needsPackage('bar', '1.0.0')), bar },
      only('foo'),
    ]);
    const signal = AbortSignal.abort();
    await expect(closeDependencies(config, catalogs, 'add', { signal })).rejects.toMatchObject({
      code: 'CANCELLED',
    });
  });
});
