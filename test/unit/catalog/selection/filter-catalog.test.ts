import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CatalogFilter, emptyFilter } from '../../../../src/catalog/selection/catalog-filter.js';
import { parseDay, monthsBefore } from '../../../../src/catalog/selection/creation-days.js';
import { applyFilter } from '../../../../src/catalog/selection/filter-catalog.js';
import { parseRange } from '../../../../src/core/semver.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';
import type { CatalogFacts } from '../../../../src/model/facts.js';
import { describeGraphFault, readGraph } from '../../../../src/graph/channel-graph.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { entriesOf, randomChannels, reaching } from './channels.js';

/** A catalog of packages, each with channels of entries; names of bundles are versions without their last zero. */
function catalogOf(packages: Record<string, Record<string, readonly ChannelEntry[]>>): CatalogFacts {
  const facts: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  for (const [name, channels] of Object.entries(packages)) {
    facts.packages.push({ name, defaultChannel: Object.keys(channels)[0] ?? '' });
    const bundles = new Set<string>();
    for (const [channel, entries] of Object.entries(channels)) {
      facts.channels.push({ package: name, name: channel, entries: [...entries] });
      for (const entry of entries) bundles.add(entry.name);
    }
    for (const bundle of bundles) {
      facts.bundles.push({
        package: name,
        name: bundle,
        image: 'registry.test/image:v1',
        objectCount: 0,
        packageProperties: [{ packageName: name, version: `${bundle}.0`, release: '', index: 0 }],
        propertyFaults: [],
        imageFaults: [],
      });
    }
  }
  return facts;
}

const chain = entriesOf(['1.0', '1.1 1.0', '1.2 1.1', '1.3 1.2']);
const two = catalogOf({
  gadget: { stable: chain },
  widget: { stable: chain, old: entriesOf(['1.0', '1.1 1.0']) },
});

function filter(facts: CatalogFacts, request: Partial<CatalogFilter>, days: Record<string, string> = {}) {
  const filtered = applyFilter(
    facts,
    { ...emptyFilter(), ...request },
    { catalog: 'the catalog', dayOf: (of, bundle) => days[`${of}/${bundle}`] },
  );
  const left = Object.fromEntries(
    filtered.facts.channels.map((one) => [
      `${one.package}/${one.name}`,
      one.entries.map(({ name }) => name).join(' '),
    ]),
  );
  return { ...filtered, left };
}

const where = { subject: '--flag' };
const everywhere = { package: undefined, channel: undefined, where };
const named = (name: string) => ({ name, where });
const ranged = (text: string) => ({ versions: { text, range: parseRange(text) } });

describe('catalog/selection/filter-catalog', () => {
  it('keeps everything, packages or channels whole', () => {
    expect(filter(two, {}).left).toEqual({
      'gadget/stable': '1.0 1.1 1.2 1.3',
      'widget/stable': '1.0 1.1 1.2 1.3',
      'widget/old': '1.0 1.1',
    });
    expect(filter(two, { packages: [named('gadget')] }).left).toEqual({ 'gadget/stable': '1.0 1.1 1.2 1.3' });
    const old = filter(two, {
      channels: [{ package: 'widget', ...named('old') }],
      packages: [named('widget')],
    });
    expect(old.left).toEqual({ 'widget/old': '1.0 1.1' });
    expect(old.facts.bundles.map(({ name }) => name)).toEqual(['1.0', '1.1']);
    expect(old.changes).toEqual(['package "widget": default channel is now "old"; "stable" is omitted']);
  });

  it('explains what else it keeps, and omits that if only requested bundles are selected', () => {
    const request = {
      packages: [named('gadget')],
      criteria: [{ ...everywhere, criteria: ranged('=1.0.0 || =1.2.0') }],
    };
    const kept = filter(two, request);
    expect(kept.left).toEqual({ 'gadget/stable': '1.0 1.1 1.2' });
    expect(kept.kept).toEqual([
      {
        package: 'gadget',
        channel: 'stable',
        bundle: '1.1',
        reason: 'is on the upgrade path from "1.0" to the head "1.2"',
      },
    ]);
    const exact = filter(two, { ...request, keep: 'nothing' });
    expect(exact.left).toEqual({ 'gadget/stable': '1.0 1.2' });
    expect(exact.facts.channels[0]?.entries[1]).toEqual({
      name: '1.2',
      replaces: '1.0',
      skips: ['1.1'],
      skipRange: '',
    });
    expect(exact.changes).toContain(
      'package "gadget", channel "stable": "1.2" replaces "1.0" in place of "1.1"',
    );
  });

  it('lets the narrowest scope say, and counts what other criteria leave', () => {
    const criteria = [
      { ...everywhere, package: 'widget', channel: 'old', criteria: { latest: 2 } },
      { ...everywhere, criteria: { latest: 1, ...ranged('<1.3.0') } },
    ];
    expect(filter(two, { criteria }).left).toEqual({
      'gadget/stable': '1.2',
      'widget/stable': '1.2',
      'widget/old': '1.0 1.1',
    });
  });

  it('keeps what an installed bundle can come to', () => {
    const from = (reachableFrom: string) =>
      filter(two, { criteria: [{ ...everywhere, criteria: { reachableFrom } }] });
    expect(from('1.2.0').left).toEqual({ 'gadget/stable': '1.2 1.3', 'widget/stable': '1.2 1.3' });
    expect(from('1.2.0').warnings).toEqual([
      'package "widget": channel "old" has no bundle reachable from 1.2.0 (the nearest are 1.0.0 and 1.1.0); omitted',
    ]);
    // It is not in the catalog any more, but entries still name it.
    const gone = catalogOf({ widget: { stable: entriesOf(['1.1 widget.v1.0.0', '1.2 1.1']) } });
    const criteria = [{ ...everywhere, criteria: { reachableFrom: '1.0.0' } }];
    expect(filter(gone, { criteria }).left).toEqual({ 'widget/stable': '1.1 1.2' });
  });

  it('keeps what was created since a day', () => {
    const days = { 'gadget/1.2': '2024-05-01', 'gadget/1.1': '2023-05-01', 'gadget/1.0': '2022-01-01' };
    const request = {
      packages: [named('gadget')],
      criteria: [{ ...everywhere, criteria: { createdSince: '2024-05-01' } }],
    };
    const kept = filter(two, request, days);
    expect(kept.left).toEqual({ 'gadget/stable': '1.2 1.3' });
    expect(kept.warnings).toEqual(['package "gadget": included bundles without a creation date: "1.3"']);
    expect(filter(two, { ...request, undated: 'drop' }, days).left).toEqual({ 'gadget/stable': '1.2' });
  });

  it('drops first, and leads past what it drops', () => {
    const facts: CatalogFacts = {
      ...two,
      deprecations: [
        {
          package: 'widget',
          entries: [
            { reference: { schema: 'olm.bundle', name: '1.2' }, message: 'broken' },
            { reference: { schema: 'olm.channel', name: 'old' }, message: 'old' },
          ],
        },
        { package: 'gadget', entries: [{ reference: { schema: 'olm.package', name: '' }, message: 'gone' }] },
      ],
    };
    const latest = [{ ...everywhere, criteria: { latest: 2 } }];
    const dropped = filter(facts, { dropDeprecated: true, criteria: latest });
    expect(dropped.left).toEqual({ 'widget/stable': '1.1 1.3' });
    expect(dropped.facts.channels[0]?.entries[1]).toMatchObject({ replaces: '1.1', skips: ['1.2'] });
    expect(dropped.facts.deprecations).toEqual([]);
    expect(dropped.warnings).toEqual([
      'package "gadget": omitted, as it has no matching content (the package is deprecated)',
    ]);
    const oldOnly = {
      packages: [named('widget')],
      channels: [{ package: 'widget', ...named('old') }],
      dropDeprecated: true,
    };
    expect(() => filter(facts, oldOnly)).toThrow(
      expect.objectContaining({ hint: 'channel "old" is deprecated' }),
    );
    const none: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
    expect(() => filter(none, { dropDeprecated: true })).toThrow(/: has no package$/);
    const kept = filter(facts, { packages: [named('widget')], criteria: latest });
    expect(kept.facts.deprecations[0]?.entries.map(({ reference }) => reference.name)).toEqual([
      '1.2',
      'old',
    ]);
    const both = filter(two, {
      dropPackages: [named('gadget')],
      dropChannels: [{ package: 'widget', ...named('stable') }],
      dropBundles: [{ package: undefined, ...named('1.0') }],
    });
    expect(both.left).toEqual({ 'widget/old': '1.1' });
  });

  it('takes the default channel that is given', () => {
    const defaultChannels = [{ package: 'widget', ...named('old') }];
    expect(filter(two, { defaultChannels }).facts.packages[1]?.defaultChannel).toBe('old');
    const criteria = [{ ...everywhere, criteria: ranged('>=1.2.0') }];
    expect(() => filter(two, { defaultChannels, criteria })).toThrow(
      '--flag: package "widget" in the catalog: channel "old" has no matching content, so it cannot be the default channel',
    );
  });

  it.each<[string, Partial<CatalogFilter>, string, string]>([
    [
      'a package',
      { packages: [named('gadgt')] },
      'package "gadgt" not found in the catalog',
      'did you mean "gadget"?',
    ],
    [
      'a channel',
      { channels: [{ package: 'widget', ...named('stabel') }] },
      'channel "stabel" not found in package "widget" of the catalog',
      'did you mean "stable"?',
    ],
    [
      'a bundle',
      { dropBundles: [{ package: 'widget', ...named('1.9') }] },
      'bundle "1.9" not found in package "widget" of the catalog',
      'use a known bundle: "1.0", "1.1", "1.2", "1.3"',
    ],
    [
      'a version',
      { criteria: [{ ...everywhere, package: 'widget', criteria: { minVersion: '2.0.0' } }] },
      'package "widget" in the catalog has no matching content',
      'channel "stable" has no bundle from version 2.0.0 (the nearest are 1.2.0 and 1.3.0); channel "old" has no bundle from version 2.0.0 (the nearest are 1.0.0 and 1.1.0)',
    ],
    [
      'a version of a channel',
      { criteria: [{ ...everywhere, package: 'widget', channel: 'old', criteria: ranged('>1.5.0') }] },
      'package "widget" in the catalog: channel "old" has no bundle in range >1.5.0',
      'the nearest are 1.0.0 and 1.1.0',
    ],
  ])('refuses %s that is not there', (_, request, message, hint) => {
    let error: unknown;
    try {
      filter(two, request);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code: 'NOT_FOUND', message: `--flag: ${message}`, hint });
  });

  it('refuses a filter that selects nothing', () => {
    const criteria = [{ ...everywhere, criteria: { minVersion: '2.0.0' } }];
    expect(() => filter(two, { criteria })).toThrow('the catalog: the filter selects nothing');
  });

  const criteria = fc.record(
    {
      latest: fc.integer({ min: 1, max: 4 }),
      minVersion: fc.integer({ min: 0, max: 9 }).map((minor) => `1.${minor}.0`),
      versions: fc.integer({ min: 0, max: 9 }).map((minor) => ranged(`!=1.${minor}.0`).versions),
      reachableFrom: fc.integer({ min: 0, max: 9 }).map((minor) => `1.${minor}.0`),
    },
    { requiredKeys: [] },
  );

  it.each(randomChannels)(
    'makes a valid catalog of %s valid channels, in which no way is lost',
    (_, arbitrary) => {
      let looked = 0;
      const property = fc.property(
        arbitrary,
        criteria,
        fc.record({ exact: fc.boolean(), drop: fc.nat({ max: 14 }) }),
        (entries, chosen, { exact, drop }) => {
          const graph = readGraph(entries);
          fc.pre(describeGraphFault(graph) === undefined);
          const facts = catalogOf({ widget: { stable: entries } });
          fc.pre(validateCatalog(facts).passed);
          const isThere = entries.some(({ name }) => name === `1.${drop}`);
          const dropBundles = isThere ? [{ package: undefined, ...named(`1.${drop}`) }] : [];
          const keep: CatalogFilter['keep'] = exact ? 'nothing' : 'needed';
          const request = { criteria: [{ ...everywhere, criteria: chosen }], keep, dropBundles };
          let filtered;
          try {
            filtered = filter(facts, request);
          } catch (error) {
            // Nothing is in it: that is said, too.
            expect(error).toMatchObject({ code: 'NOT_FOUND' });
            return;
          }
          looked++;
          expect(validateCatalog(filtered.facts).problems).toEqual([]);
          const left = filtered.facts.channels[0]?.entries ?? [];
          const explained = new Set(filtered.kept.map(({ bundle }) => bundle));
          const { minVersion, versions, latest, reachableFrom } = chosen;
          const minor = (name: string): number => Number(name.split('.')[1]);
          const least = minVersion === undefined ? 0 : minor(minVersion);
          const isWanted = (name: string): boolean =>
            minor(name) >= least && versions?.text !== `!=${name}.0` && (!isThere || minor(name) !== drop);
          const wanted = entries.map(({ name }) => name).filter(isWanted);
          const asked = left.map(({ name }) => name).filter((name) => !explained.has(name));
          expect(asked.filter((name) => !isWanted(name))).toEqual([]);
          if (latest !== undefined && reachableFrom === undefined) {
            expect(asked).toHaveLength(Math.min(latest, wanted.length));
          } else if (reachableFrom === undefined) expect(asked).toEqual(wanted);
          if (exact) expect(explained.size).toBe(0);
          const had = reaching(entries, graph.heads[0] as string);
          const has = reaching(left, readGraph(left).heads[0] as string);
          for (const { name } of left) if (had.has(name)) expect(has).toContain(name);
        },
      );
      fc.assert(property, { numRuns: 1000, maxSkipsPerRun: 1000 });
      expect(looked).toBeGreaterThan(60);
    },
  );
});

describe('catalog/selection/creation-days', () => {
  it.each([
    ['2024-01-31T12:00:00Z', '2024-01-31'],
    ['2020-10-12 00:00:00', '2020-10-12'],
    ['2022/3/1', '2022-03-01'],
    ['2023-02-30', undefined],
    ['Thu Jan 2 2020', undefined],
    ['', undefined],
  ])('reads %j as %s', (text, day) => {
    expect(parseDay(text)).toBe(day);
  });

  it('counts months back, to the end of a shorter one', () => {
    expect(monthsBefore(new Date('2024-03-31T23:00:00Z'), 1)).toBe('2024-02-29');
    expect(monthsBefore(new Date('2024-03-15T00:00:00Z'), 15)).toBe('2022-12-15');
  });
});
