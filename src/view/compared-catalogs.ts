import type { CatalogDiff, Change, ListChange } from '../catalog/diff/diff.js';
import { getOrAdd, pushTo } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import type { ChannelFacts } from '../model/facts.js';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from './responses.js';

/** Differences between two catalogs by package. */
export class ComparedCatalogs {
  readonly from: string;
  readonly #to: string;
  readonly #diff: CatalogDiff;
  readonly #packages = new Map<string, Difference[]>();
  /** Channels of the older catalog by package and name. */
  readonly #olderChannels = new Map<string, Map<string, ChannelFacts>>();
  /** By package and bundle. */
  readonly #bundles = new Map<string, 'added' | 'changed'>();

  constructor(from: string, to: string, diff: CatalogDiff, olderChannels: readonly ChannelFacts[]) {
    this.from = from;
    this.#to = to;
    this.#diff = diff;
    for (const channel of olderChannels) {
      const channels = getOrAdd(this.#olderChannels, channel.package, () => new Map<string, ChannelFacts>());
      getOrAdd(channels, channel.name, () => channel);
    }
    this.#addPackages();
    this.#addChannels();
    this.#addBundles();
    this.#addDeprecations();
    this.#addOthers();
  }

  /** Returns the change of a package; undefined if it is the same in both. */
  getPackageChange(name: string): 'added' | 'changed' | undefined {
    if (this.#diff.packages.added.includes(name)) return 'added';
    return this.#packages.has(name) ? 'changed' : undefined;
  }

  /** Returns the change of a bundle; undefined if it is the same in both. */
  getBundleChange(packageName: string, bundle: string): 'added' | 'changed' | undefined {
    return this.#bundles.get(`${packageName}\0${bundle}`);
  }

  /** Returns the channels of a package in the older catalog. */
  getOlderChannels(packageName: string): { name: string; entries: ChannelEntry[] }[] {
    const channels = this.#olderChannels.get(packageName)?.values() ?? [];
    return [...channels].map(({ name, entries }) => ({ name, entries }));
  }

  /** Returns the totals by kind and by package. */
  summarize(): CatalogComparison {
    const { packages, channels, bundles, images, deprecations, others } = this.#diff;
    const sum = (
      kind: string,
      { added, removed, changed = [] }: ListChange<unknown> & { changed?: readonly unknown[] },
    ): CatalogComparison['sums'][number] => ({
      ...{ kind, added: added.length, removed: removed.length, changed: changed.length },
    });
    return {
      from: this.from,
      to: this.#to,
      sums: [
        sum('packages', packages),
        sum('channels', channels),
        sum('bundles', bundles),
        sum('images', images),
        sum('deprecations', deprecations),
        sum('other blobs', others),
      ],
      packages: [...this.#packages]
        .map(([name, differences]): ComparedPackage => {
          const count = (sign: Difference['sign']): number =>
            differences.filter((difference) => difference.sign === sign).length;
          const state = packages.removed.includes(name) ? 'removed' : this.getPackageChange(name);
          return {
            ...{ package: name, state: state ?? 'changed' },
            ...{ added: count('added'), removed: count('removed'), changed: count('changed') },
          };
        })
        .sort((a, b) => compareBytes(a.package, b.package)),
    };
  }

  package(name: string): PackageDifferences {
    return { package: name, differences: this.#packages.get(name) ?? [] };
  }

  #addListed<T>(
    kind: Difference['kind'],
    { added, removed }: ListChange<T>,
    describe: (item: T) => { package: string; name: string; details: string[] },
  ): void {
    for (const [sign, list] of [
      ['added', added],
      ['removed', removed],
    ] as const) {
      for (const item of list) {
        const { package: packageName, name, details } = describe(item);
        pushTo(this.#packages, packageName, { sign, kind, name, details });
      }
    }
  }

  #addPackages(): void {
    const { packages } = this.#diff;
    this.#addListed('package', packages, (name) => ({ package: name, name, details: [] }));
    for (const { package: name, defaultChannel, fields } of packages.changed) {
      const details = [
        ...describeChange('default channel', defaultChannel),
        ...fields.map((field) => `${field} differs`),
      ];
      pushTo(this.#packages, name, { sign: 'changed', kind: 'package', name, details });
    }
  }

  #addChannels(): void {
    const { channels } = this.#diff;
    this.#addListed('channel', channels, ({ package: packageName, channel, head, entries }) => ({
      package: packageName,
      name: channel,
      details: [`${entries} ${entries === 1 ? 'entry' : 'entries'}${head === '' ? '' : `, head ${head}`}`],
    }));
    for (const { package: packageName, channel, head, entries, edges, properties } of channels.changed) {
      const details = [
        ...describeChange('head', head),
        ...describeListChange('entry', entries),
        ...edges.flatMap(({ bundle, replaces, skips, skipRange }) => [
          ...describeChange(`${bundle} replaces`, replaces),
          ...describeListChange(`${bundle} skips`, skips),
          ...describeChange(`${bundle} skip range`, skipRange),
        ]),
        ...(properties ? ['properties differ'] : []),
      ];
      pushTo(this.#packages, packageName, { sign: 'changed', kind: 'channel', name: channel, details });
    }
  }

  #addBundles(): void {
    const { bundles } = this.#diff;
    this.#addListed('bundle', bundles, ({ package: packageName, bundle, image }) => ({
      package: packageName,
      name: bundle,
      details: image === '' ? [] : [image],
    }));
    for (const { package: packageName, bundle } of bundles.added) {
      this.#bundles.set(`${packageName}\0${bundle}`, 'added');
    }
    for (const change of bundles.changed) {
      const { package: packageName, bundle, version, image, relatedImages, properties } = change;
      this.#bundles.set(`${packageName}\0${bundle}`, 'changed');
      const details = [
        ...describeChange('version', version),
        ...describeChange('image', image),
        ...describeListChange('related image', relatedImages),
        ...describeListChange('property', properties),
        ...(properties?.changed ?? []).map((type) => `property ${type} differs`),
      ];
      pushTo(this.#packages, packageName, { sign: 'changed', kind: 'bundle', name: bundle, details });
    }
  }

  #addDeprecations(): void {
    const { deprecations } = this.#diff;
    const getName = ({ schema, name }: { schema: string; name: string }): string =>
      schema === schemas.package ? 'the package' : name;
    this.#addListed('deprecation', deprecations, (deprecation) => ({
      package: deprecation.package,
      name: getName(deprecation),
      details: [deprecation.message],
    }));
    for (const change of deprecations.changed) {
      const details = describeChange('message', change.message);
      pushTo(this.#packages, change.package, {
        sign: 'changed',
        kind: 'deprecation',
        name: getName(change),
        details,
      });
    }
  }

  #addOthers(): void {
    const { others } = this.#diff;
    const describe = ({ package: packageName, schema, name }: (typeof others.changed)[number]) => ({
      package: packageName,
      name: [schema, name].filter((part) => part !== '').join(' '),
      details: [],
    });
    this.#addListed('other blob', others, describe);
    for (const blob of others.changed) {
      const { package: packageName, name } = describe(blob);
      pushTo(this.#packages, packageName, { sign: 'changed', kind: 'other blob', name, details: [] });
    }
  }
}

function describeChange(noun: string, change: Change | undefined): string[] {
  if (change === undefined) return [];
  return [`${noun}: ${change.from || 'none'} → ${change.to || 'none'}`];
}

function describeListChange(noun: string, change: ListChange | undefined): string[] {
  if (change === undefined) return [];
  return [
    ...change.added.map((name) => `${noun} added: ${name}`),
    ...change.removed.map((name) => `${noun} removed: ${name}`),
  ];
}
