import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBytes } from '../../../../src/core/order.js';
import { OpmateError } from '../../../../src/core/errors.js';
import { leaveOut } from '../../../../src/catalog/selection/leave-out.js';
import type { CatalogSelection } from '../../../../src/catalog/selection/selection.js';
import type { ChannelEntry } from '../../../../src/model/declarative-config.js';
import type { BundleFacts, CatalogFacts } from '../../../../src/model/facts.js';
import { readGraph } from '../../../../src/graph/channel-graph.js';
import { validateCatalog } from '../../../../src/graph/validate.js';

type Channels = Record<string, Record<string, string[]>>;

/** Packages with channels of entries `version replaces skips…`, the first channel of each the default. */
function factsOf(packages: Channels): CatalogFacts {
  const facts: CatalogFacts = { packages: [], channels: [], bundles: [], deprecations: [] };
  for (const [name, channels] of Object.entries(packages)) {
    facts.packages.push({ name, defaultChannel: Object.keys(channels)[0] as string });
    const bundles = new Map<string, BundleFacts>();
    for (const [channel, texts] of Object.entries(channels)) {
      const entries = texts.map((text): ChannelEntry => {
        const [version = '', replaces = '-', ...skips] = text.split(' ');
        const named = (one: string): string => (one === '-' ? '' : `${name}.v${one}`);
        bundles.set(named(version), bundleOf(name, version));
        return { name: named(version), replaces: named(replaces), skips: skips.map(named), skipRange: '' };
      });
      facts.channels.push({ package: name, name: channel, entries });
    }
    facts.bundles.push(...bundles.values());
  }
  return facts;
}

function bundleOf(packageName: string, version: string): BundleFacts {
  return {
    package: packageName,
    name: `${packageName}.v${version}`,
    image: `quay.io/acme/${packageName}:v${version}`,
    objectCount: 0,
    packageProperties: [{ packageName, version, release: '', index: 0 }],
    propertyFaults: [],
    imageFaults: [],
  };
}

function selectionOf(facts: CatalogFacts): CatalogSelection {
  const packages = facts.packages.map(({ name, defaultChannel }) => ({
    name,
    defaultChannel,
    channels: facts.channels
      .filter((channel) => channel.package === name)
      .map((channel) => ({
        name: channel.name,
        head: readGraph(channel.entries).heads[0] ?? '',
        entries: channel.entries.length,
      })),
    bundles: facts.bundles.filter((bundle) => bundle.package === name).length,
  }));
  packages.sort((a, b) => compareBytes(a.name, b.name));
  return { isWhole: true, facts, packages, kept: [], warnings: ['as before'], changes: [] };
}

/** Leaves out what is written `package/version`. */
function without(selection: CatalogSelection, ...bundles: string[]) {
  const names = bundles.map((text) => text.replace(/^(.*)\/(.*)$/, '$1/$1.v$2'));
  return leaveOut(selection, new Set(names), 'quay.io/acme/index:v1');
}

const packages: Channels = {
  widget: {
    stable: ['1.0.0', '1.1.0 1.0.0', '2.0.0 1.1.0'],
    beta: ['1.1.0', '2.1.0 1.1.0'],
    alpha: ['2.1.0'],
    old: ['1.0.0'],
  },
  gadget: { stable: ['1.0.0', '1.0.1 1.0.0'] },
};

describe('mirror/leave-out', () => {
  it('leaves a selection alone that has none of the bundles', () => {
    const selection = selectionOf(factsOf(packages));
    expect(without(selection, 'widget/9.9.9', 'other/1.0.0')).toEqual({ selection, changes: [] });
    expect(without(selection).selection).toBe(selection);
  });

  it('repairs every channel of a bundle, and reports the changes', () => {
    const before = selectionOf(factsOf(packages));
    before.kept.push(
      { package: 'widget', channel: 'stable', bundle: 'widget.v1.1.0', reason: 'stands between' },
      { package: 'widget', channel: 'stable', bundle: 'widget.v1.0.0', reason: 'stands below' },
    );
    const { selection, changes } = without(before, 'widget/1.1.0');
    expect(changes).toEqual([
      'package "widget", channel "stable": "widget.v2.0.0" replaces "widget.v1.0.0" in place of "widget.v1.1.0"',
      'package "widget", channel "beta": "widget.v2.1.0" no longer replaces "widget.v1.1.0"',
    ]);
    expect(selection.isWhole).toBe(false);
    expect(selection.warnings).toEqual(['as before']);
    expect(selection.kept.map(({ bundle }) => bundle)).toEqual(['widget.v1.0.0']);
    expect(selection.packages).toEqual([
      before.packages[0],
      {
        name: 'widget',
        defaultChannel: 'stable',
        channels: [
          { name: 'stable', head: 'widget.v2.0.0', entries: 2 },
          { name: 'beta', head: 'widget.v2.1.0', entries: 1 },
          { name: 'alpha', head: 'widget.v2.1.0', entries: 1 },
          { name: 'old', head: 'widget.v1.0.0', entries: 1 },
        ],
        bundles: 3,
      },
    ]);
    // What is not concerned stays the same object, in its place.
    expect(selection.facts.channels.at(-1)).toBe(before.facts.channels.at(-1));
    expect(before.facts.bundles).toHaveLength(6);
  });

  it('drops channels, and finds the package another default', () => {
    const before = selectionOf(factsOf(packages));
    const { selection, changes } = without(before, 'widget/1.0.0', 'widget/1.1.0', 'widget/2.0.0');
    expect(changes).toEqual([
      'package "widget", channel "beta": "widget.v2.1.0" no longer replaces "widget.v1.1.0"',
      'package "widget": default channel is now "alpha"; "stable" is omitted',
      'package "widget": channel "stable" has dropped bundles only; omitted',
      'package "widget": channel "old" has dropped bundles only; omitted',
    ]);
    expect(selection.facts.packages[0]).toEqual({ name: 'widget', defaultChannel: 'alpha' });
    expect(selection.facts.channels.map(({ name }) => name)).toEqual(['beta', 'alpha', 'stable']);
  });

  it('prefers the channel with the newest head, then its name', () => {
    const facts = factsOf({
      widget: { first: ['9.0.0'], b: ['1.0.0', '1.2.0 1.0.0'], c: ['1.10.0'], a: ['1.10.0'] },
    });
    const { facts: left } = without(selectionOf(facts), 'widget/9.0.0').selection;
    expect(left.packages[0]?.defaultChannel).toBe('a');
  });

  it('drops a package of which nothing is left, and refuses to drop all', () => {
    const before = selectionOf(factsOf(packages));
    const gadgets = ['gadget/1.0.0', 'gadget/1.0.1'];
    const { selection, changes } = without(before, ...gadgets);
    expect(changes).toEqual([
      'package "gadget": omitted, as it has no matching content (channel "stable" has dropped bundles only)',
    ]);
    expect(selection.packages.map(({ name }) => name)).toEqual(['widget']);
    expect(selection.facts.channels.every((channel) => channel.package === 'widget')).toBe(true);
    const all = before.facts.bundles.map(({ package: of, name }) => `${of}/${name.slice(of.length + 2)}`);
    expect(() => without(before, ...all)).toThrow(
      'quay.io/acme/index:v1: no content remains without the omitted bundles',
    );
  });

  it('drops what deprecations say of what is gone', () => {
    const facts = factsOf(packages);
    const entryOf = (schema: string, name = '') => ({ reference: { schema, name }, message: 'old' });
    facts.deprecations.push({
      package: 'widget',
      entries: [
        entryOf('olm.package'),
        entryOf('olm.channel', 'old'),
        entryOf('olm.channel', 'beta'),
        entryOf('olm.bundle', 'widget.v1.0.0'),
        entryOf('olm.bundle', 'widget.v1.1.0'),
      ],
    });
    facts.deprecations.push({ package: 'gadget', entries: [entryOf('olm.bundle', 'gadget.v1.0.0')] });
    const { facts: left } = without(selectionOf(facts), 'widget/1.0.0', 'gadget/1.0.0').selection;
    expect(left.deprecations).toHaveLength(1);
    expect(left.deprecations[0]?.entries.map(({ reference }) => reference.name)).toEqual([
      '',
      'beta',
      'widget.v1.1.0',
    ]);
  });

  it('refuses a catalog that is at fault already', () => {
    const facts = factsOf(packages);
    facts.channels.push({ package: 'widget', name: 'empty', entries: [] });
    try {
      without(selectionOf(facts), 'gadget/1.0.0');
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'INVALID' });
      expect((error as OpmateError).message).toContain(
        'quay.io/acme/index:v1: package "widget" channel "empty"',
      );
    }
  });

  it('leaves a valid catalog, whatever is omitted', () => {
    const facts = factsOf(packages);
    const names = facts.bundles.map(({ package: of, name }) => `${of}/${name}`);
    fc.assert(
      fc.property(fc.subarray(names, { maxLength: names.length - 1 }), (left) => {
        const { selection } = leaveOut(selectionOf(facts), new Set(left), 'catalog');
        expect(validateCatalog(selection.facts).problems).toEqual([]);
        const { packages: of, bundles, channels } = selection.facts;
        expect(bundles).toHaveLength(names.length - left.length);
        expect(selection.packages).toEqual(selectionOf(selection.facts).packages);
        expect(channels.every(({ entries }) => readGraph(entries).heads.length === 1)).toBe(true);
        expect(of.length).toBeGreaterThan(0);
      }),
      { numRuns: 128 },
    );
  });
});
