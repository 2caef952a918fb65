import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpmateError } from '../../../../src/core/errors.js';
import { readImageSetConfiguration } from '../../../../src/mirror/image-set/image-set-config.js';
import { type CatalogSelection } from '../../../../src/catalog/selection/selection.js';
import type { ChannelBundles } from '../../../../src/catalog/selection/catalog-filter.js';
import { selectOperators } from '../../../../src/mirror/selection/select-operators.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';
import type { BundleFacts, CatalogFacts, ChannelFacts } from '../../../../src/model/facts.js';
import { validateCatalog } from '../../../../src/graph/validate.js';
import { messagesThrown } from '../../../support/diagnostics.js';

/** An entry as `version replaces skips…`, versions standing for names. */
function entryOf(packageName: string, text: string): ChannelEntry {
  const [version, replaces = '-', ...skips] = text.split(' ');
  const named = (one: string): string => (one === '-' ? '' : `${packageName}.v${one}`);
  return {
    name: named(version as string),
    replaces: named(replaces),
    skips: skips.map(named),
    skipRange: '',
  };
}

/** A catalog of packages with channels, the first of which is the default. */
function catalogOf(packages: Record<string, Record<string, string[]>>): CatalogFacts {
  const facts: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  for (const [name, channels] of Object.entries(packages)) {
    facts.packages.push({ name, defaultChannel: Object.keys(channels)[0] as string });
    const bundles = new Map<string, BundleFacts>();
    for (const [channel, texts] of Object.entries(channels)) {
      const entries = texts.map((text) => entryOf(name, text));
      facts.channels.push({ package: name, name: channel, entries });
      for (const entry of entries) bundles.set(entry.name, bundleOf(name, entry.name));
    }
    facts.bundles.push(...bundles.values());
  }
  return facts;
}

function bundleOf(packageName: string, name: string): BundleFacts {
  const version = name.slice(packageName.length + 2);
  return {
    package: packageName,
    name,
    image: `quay.io/acme/${packageName}:v1`,
    objectCount: 0,
    packageProperties: [{ packageName, version, release: '', index: 0 }],
    propertyFaults: [],
    imageFaults: [],
  };
}

function select(facts: CatalogFacts, below = '', also?: ChannelBundles): CatalogSelection {
  const head = 'kind: ImageSetConfiguration\nmirror:\n  operators:\n  - catalog: quay.io/acme/index:v1\n';
  const config = readImageSetConfiguration(`${head}${below}`, 'set.yaml');
  const [operator] = config.operators;
  if (operator === undefined) throw new Error('no operator');
  return selectOperators(facts, operator, 'set.yaml', also);
}

/** What is left, as `channel: versions` a channel. */
function leftOf({ facts }: CatalogSelection): string[] {
  return facts.channels.map((channel: ChannelFacts) => {
    const versions = channel.entries.map((entry) => entry.name.slice(channel.package.length + 2));
    return `${channel.package}/${channel.name}: ${versions.join(' ')}`;
  });
}

const faultsOf = (facts: CatalogFacts, below: string): string[] =>
  messagesThrown(() => select(facts, below), { hints: true });

/** One package with these keys. */
const widget = (text: string): string =>
  `    packages:\n    - name: widget\n${text.replace(/^/gm, '      ')}\n`;

const versions = (min: string | undefined, max: string | undefined): string =>
  [min && `minVersion: ${min}`, max && `maxVersion: ${max}`].filter(Boolean).join('\n');

const beta = ['0.1.0', '0.1.1', '0.1.2', '0.2.0 0.1.0 0.1.1 0.1.2', '0.3.0 0.2.0', '0.3.1 0.2.0 0.3.0'];
const two = catalogOf({
  widget: { stable: ['1.0.0', '1.1.0 1.0.0', '2.0.0 1.1.0'], beta },
  gadget: { alpha: ['1.0.0', '1.0.1 1.0.0'] },
});

describe('mirror/select-operators', () => {
  it('takes the head of every channel where nothing is said', () => {
    const selection = select(two);
    expect(leftOf(selection)).toEqual(['widget/stable: 2.0.0', 'widget/beta: 0.3.1', 'gadget/alpha: 1.0.1']);
    expect(selection.isWhole).toBe(false);
    expect(selection.packages.map(({ name, bundles }) => [name, bundles])).toEqual([
      ['gadget', 1],
      ['widget', 2],
    ]);
    // Entries stay as they are.
    expect(selection.facts.channels[0]?.entries[0]?.replaces).toBe('widget.v1.1.0');
  });

  it('takes the catalog as it is where full is all that is said', () => {
    const selection = select(two, '    full: true\n');
    expect(selection.isWhole).toBe(true);
    expect(selection.facts).toBe(two);
  });

  it('takes packages whole, or channels of them', () => {
    expect(leftOf(select(two, `    full: true\n${widget('channels: [{name: stable}]')}`))).toEqual([
      'widget/stable: 1.0.0 1.1.0 2.0.0',
    ]);
    const moved = select(two, widget('defaultChannel: beta\nchannels: [{name: beta}]'));
    expect(leftOf(moved)).toEqual(['widget/beta: 0.3.1']);
    expect(moved.facts.packages).toEqual([{ name: 'widget', defaultChannel: 'beta' }]);
  });

  it.each([
    ['0.2.0', '0.3.1', 'widget/beta: 0.2.0 0.3.0 0.3.1'],
    ['0.3.1', '0.3.1', 'widget/beta: 0.3.1'],
    ['0.1.1', '0.1.1', 'widget/beta: 0.1.1'],
    ['0.1.0', '0.2.0', 'widget/beta: 0.1.0 0.1.1 0.1.2 0.2.0'],
    ['0.1.1', undefined, 'widget/beta: 0.1.1 0.1.2 0.2.0 0.3.0 0.3.1'],
    [undefined, '0.1.0', 'widget/beta: 0.1.0'],
  ])('takes versions from %s to %s', (min, max, left) => {
    const channels = `channels:\n- name: beta\n${versions(min, max).replace(/^/gm, '  ')}`;
    expect(leftOf(select(two, widget(`defaultChannel: beta\n${channels}`)))).toEqual([left]);
  });

  it('says why it keeps what is not in range', () => {
    const skipping = select(
      two,
      widget(`defaultChannel: beta\nchannels:\n- name: beta\n  maxVersion: 0.1.2`),
    );
    expect(leftOf(skipping)).toEqual(['widget/beta: 0.1.0 0.1.1 0.1.2 0.2.0']);
    expect(skipping.kept).toEqual([
      {
        package: 'widget',
        channel: 'beta',
        bundle: 'widget.v0.2.0',
        reason: 'skips "widget.v0.1.1", "widget.v0.1.2"',
      },
    ]);
    const odd = catalogOf({ widget: { stable: ['1.0.0', '9.0.0 1.0.0', '1.1.0 9.0.0', '2.0.0 1.1.0'] } });
    expect(select(odd, widget(versions('1.0.0', '1.1.0'))).kept).toEqual([
      {
        package: 'widget',
        channel: 'stable',
        bundle: 'widget.v9.0.0',
        reason: 'is on the upgrade chain between "widget.v1.1.0" and "widget.v1.0.0"',
      },
    ]);
  });

  it('keeps more of a channel where cutting it would strand an entry', () => {
    // 2.0.0 is reached through the skip of 6.0.0 only, as 5.0.0 skips what leads to it.
    const entries = ['2.0.0', '3.0.0 2.0.0', '4.0.0 3.0.0', '5.0.0 4.0.0 3.0.0', '6.0.0 5.0.0 2.0.0'];
    const facts = catalogOf({ widget: { stable: entries } });
    expect(validateCatalog(facts).passed).toBe(true);
    const selection = select(facts, widget(versions('2.0.0', '5.0.0')));
    expect(leftOf(selection)).toEqual(['widget/stable: 2.0.0 3.0.0 4.0.0 5.0.0 6.0.0']);
    expect(selection.kept).toEqual([
      {
        package: 'widget',
        channel: 'stable',
        bundle: 'widget.v6.0.0',
        reason: 'is required to update "widget.v2.0.0"',
      },
    ]);
  });

  it('takes prereleases where they are asked for', () => {
    const facts = catalogOf({ widget: { stable: ['1.0.0', '1.1.0-rc.1 1.0.0', '1.1.0 1.1.0-rc.1'] } });
    const take = (min: string, max: string): string[] => leftOf(select(facts, widget(versions(min, max))));
    expect(take('1.0.0', '1.0.9')).toEqual(['widget/stable: 1.0.0']);
    expect(take('1.0.0', '1.1.0-rc.1')).toEqual(['widget/stable: 1.0.0 1.1.0-rc.1']);
    expect(take('1.1.0-rc.1', '1.1.0')).toEqual(['widget/stable: 1.1.0-rc.1 1.1.0']);
  });

  it('takes all builds of a version, so that the newest and the head are among them', () => {
    const facts = catalogOf({
      widget: { stable: ['0.9.0', '1.0.0 0.9.0', '1.0.0+1 1.0.0', '1.1.0 1.0.0+1', '1.1.0+2 1.1.0'] },
    });
    const from = select(facts, '    packages: [{name: widget, minVersion: 1.0.0}]');
    expect(from.packages[0]?.channels[0]?.head).toBe('widget.v1.1.0+2');
    expect(from.facts.bundles).toHaveLength(4);
    const to = select(facts, '    packages: [{name: widget, minVersion: 0.9.0, maxVersion: 1.0.0}]');
    expect(to.packages[0]?.channels[0]?.head).toBe('widget.v1.0.0+1');
  });

  it('looks at the numbers alone in a package that writes its builds as prereleases', () => {
    const builds = [
      '4.13.0-2023',
      '4.14.0-2023 4.13.0-2023',
      '4.14.0-2024 4.14.0-2023',
      '4.15.0-2024 4.14.0-2024',
    ];
    const facts = catalogOf({ widget: { stable: builds } });
    const take = (min?: string, max?: string): string[] => leftOf(select(facts, widget(versions(min, max))));
    expect(take('4.14.0')).toEqual(['widget/stable: 4.14.0-2023 4.14.0-2024 4.15.0-2024']);
    expect(take(undefined, '4.14.0')).toEqual(['widget/stable: 4.13.0-2023 4.14.0-2023 4.14.0-2024']);
  });

  it('leaves out channels that have no version in range, and says so', () => {
    const selection = select(two, widget(versions('1.1.0', undefined)));
    expect(leftOf(selection)).toEqual(['widget/stable: 1.1.0 2.0.0']);
    expect(selection.warnings).toEqual([
      'package "widget": channel "beta" has no bundle from version 1.1.0 (the nearest are 0.3.0 and 0.3.1); omitted',
    ]);
  });

  it('tells everything that is not there at once, with the nearest names', () => {
    const text = [
      '    packages:',
      '    - name: widgt',
      '    - name: gadget',
      '      channels:',
      '      - name: alpah',
      '      - name: alpha',
      '        minVersion: 3.0.0',
      '    - name: widget',
      '      minVersion: 7.0.0',
    ];
    expect(faultsOf(two, text.join('\n'))).toEqual([
      'set.yaml:6:7: package "widgt" not found in quay.io/acme/index:v1 (did you mean "widget"?)',
      'set.yaml:9:9: channel "alpah" not found in package "gadget" of quay.io/acme/index:v1 (did you mean "alpha"?)',
      'set.yaml:10:9: package "gadget" in quay.io/acme/index:v1: channel "alpha" has no bundle from version 3.0.0 ' +
        '(the nearest are 1.0.0 and 1.0.1)',
      'set.yaml:12:7: package "widget" in quay.io/acme/index:v1 has no matching content (channel "stable" has no bundle ' +
        'from version 7.0.0 (the nearest are 1.1.0 and 2.0.0); channel "beta" has no bundle from version 7.0.0 ' +
        '(the nearest are 0.3.0 and 0.3.1))',
    ]);
  });

  it.each([
    [
      'channels: [{name: beta}]',
      'set.yaml:6:7: package "widget" in quay.io/acme/index:v1: its default channel "stable" is not ' +
        'selected (add it, or set defaultChannel to one of "beta")',
    ],
    [
      'defaultChannel: stabel',
      'set.yaml:6:7: channel "stabel" not found in package "widget" of quay.io/acme/index:v1 ' +
        '(did you mean "stable"?)',
    ],
    [
      'maxVersion: 0.2.0',
      'set.yaml:6:7: package "widget" in quay.io/acme/index:v1: channel "stable" has no bundle up to version 0.2.0 ' +
        '(set defaultChannel to one of "beta", or choose other versions: it is the default channel)',
    ],
    [
      'minVersion: 1.0.1\nmaxVersion: 1.0.1',
      'set.yaml:6:7: package "widget" in quay.io/acme/index:v1 has no matching content (channel "stable" has no bundle ' +
        'with version 1.0.1 (the nearest are 1.0.0 and 1.1.0); channel "beta" has no bundle with version 1.0.1 ' +
        '(the nearest are 0.3.0 and 0.3.1))',
    ],
  ])('refuses %s', (text, fault) => {
    expect(faultsOf(two, widget(text))).toEqual([fault]);
  });

  it('refuses a catalog of which nothing valid can be made', () => {
    const heads = catalogOf({ widget: { stable: ['1.0.0', '2.0.0'] } });
    expect(faultsOf(heads, '')).toEqual([
      'set.yaml:4:5: package "widget" in quay.io/acme/index:v1: channel "stable": multiple channel heads found in ' +
        'graph: widget.v1.0.0, widget.v2.0.0 (fix the problems that api.validate lists)',
    ]);
    const unlisted = { ...two, bundles: two.bundles.filter(({ name }) => name !== 'gadget.v1.0.1') };
    expect(faultsOf(unlisted, '').join()).toMatch(
      /^quay.io\/acme\/index:v1: .*"gadget.v1.0.1" has no olm.bundle blob/,
    );
  });

  it('drops deprecations of what it leaves out', () => {
    const entryFor = (schema: string, name: string) => ({ reference: { schema, name }, message: 'old' });
    const entries = [
      entryFor('olm.package', ''),
      entryFor('olm.channel', 'beta'),
      entryFor('olm.channel', 'stable'),
      entryFor('olm.bundle', 'widget.v1.0.0'),
      entryFor('olm.bundle', 'widget.v2.0.0'),
    ];
    const facts = { ...two, deprecations: [{ package: 'widget', entries }] };
    expect(select(facts, widget('channels: [{name: stable}]')).facts.deprecations).toEqual([
      { package: 'widget', entries: [entries[0], entries[2], entries[4]] },
    ]);
  });

  const alsoOf = (name: string, channels: Record<string, string[]>): ChannelBundles =>
    new Map([[name, new Map(Object.entries(channels).map(([channel, names]) => [channel, new Set(names)]))]]);

  it('takes bundles besides what is asked for, as far along the chain as they reach', () => {
    const stable = widget('channels: [{name: stable}]');
    const older = select(two, stable, alsoOf('widget', { stable: ['widget.v1.0.0'] }));
    expect(leftOf(older)).toEqual(['widget/stable: 1.0.0 1.1.0 2.0.0']);
    expect(older.kept.map(({ bundle }) => bundle)).toEqual(['widget.v1.1.0']);
    // What is there already changes nothing.
    expect(select(two, stable, alsoOf('widget', { stable: ['widget.v2.0.0'] }))).toEqual(select(two, stable));
    const skipped = alsoOf('widget', { beta: ['widget.v0.1.1', 'widget.v9.9.9'] });
    expect(leftOf(select(two, stable, skipped))).toEqual(['widget/stable: 2.0.0', 'widget/beta: 0.1.1']);
  });

  it('takes packages that are not asked for with these bundles alone', () => {
    const stable = widget('channels: [{name: stable}]');
    const more = select(two, stable, alsoOf('gadget', { alpha: ['gadget.v1.0.0'] }));
    expect(leftOf(more)).toEqual(['widget/stable: 2.0.0', 'gadget/alpha: 1.0.0']);
    const gadgets = '    full: true\n    packages: [{name: gadget}]\n';
    const other = select(two, gadgets, alsoOf('widget', { beta: ['widget.v0.3.0'] }));
    expect(leftOf(other)).toEqual(['gadget/alpha: 1.0.0 1.0.1', 'widget/beta: 0.3.0']);
    expect(other.packages.find(({ name }) => name === 'widget')?.defaultChannel).toBe('beta');
    expect(validateCatalog(other.facts).problems).toEqual([]);
  });

  it('always leaves a valid catalog of a valid one', () => {
    const version = fc
      .tuple(fc.nat(2), fc.nat(3), fc.constantFrom('', '', '-rc.1', '-2023'))
      .map(([a, b, pre]) => {
        return `1.${a}.${b}${pre}`;
      });
    const names = fc.uniqueArray(version, { minLength: 1, maxLength: 9 });
    const graph = names.chain((all) =>
      fc
        .tuple(
          ...all.map((_one, at) =>
            fc.record({
              replaces: fc.option(fc.nat(Math.max(0, at - 1)), { nil: undefined }),
              skips: fc.uniqueArray(fc.nat(Math.max(0, at - 1)), { maxLength: 3 }),
            }),
          ),
        )
        .map((edges) =>
          all.map((one, at) => {
            const edge = edges[at];
            const before = (index: number): string => all[index] as string;
            const replaces = at === 0 || edge?.replaces === undefined ? '-' : before(edge.replaces);
            const skips = at === 0 ? [] : (edge?.skips ?? []).map(before);
            return [one, replaces, ...skips].join(' ');
          }),
        ),
    );
    const bounds = fc.tuple(fc.option(version, { nil: undefined }), fc.option(version, { nil: undefined }));
    let valid = 0;
    fc.assert(
      fc.property(graph, bounds, (entries, [min, max]) => {
        const facts = catalogOf({ widget: { stable: entries } });
        if (!validateCatalog(facts).passed) return;
        let selection: CatalogSelection;
        try {
          selection = select(facts, widget(versions(min, max) || 'channels: []'));
        } catch (error) {
          // Nothing in range, or the least above the most; never a result that is not valid.
          expect((error as OpmateError).message).toMatch(/has no matching content|is greater/);
          return;
        }
        valid++;
        expect(validateCatalog(selection.facts).problems).toEqual([]);
        const explained = new Set(selection.kept.map(({ bundle }) => bundle));
        expect(selection.facts.bundles.length).toBeGreaterThan(explained.size - 1);
        const before = selection.facts.bundles.map(({ name }) => name);
        for (const { name } of facts.bundles) {
          const more = select(
            facts,
            widget(versions(min, max) || 'channels: []'),
            alsoOf('widget', { stable: [name] }),
          );
          expect(validateCatalog(more.facts).problems).toEqual([]);
          const names = more.facts.bundles.map((bundle) => bundle.name);
          expect(names).toEqual(expect.arrayContaining([...before, name]));
        }
      }),
      { numRuns: 2000, seed: 5 },
    );
    expect(valid).toBeGreaterThan(200);
  });
});
