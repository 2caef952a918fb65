import { count } from '../core/printable.js';
import type {
  BundleChange,
  CatalogDiff,
  Change,
  ChannelChange,
  ListChange,
  PackageChange,
} from '../catalog/diff/diff.js';
import { getOrAdd, pushTo } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { schemas } from '../model/declarative-config.js';
import type { ChannelFacts } from '../model/facts.js';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from './responses.js';

/** The differences between two catalogs by package. `from` and `to` are the names of the catalogs. */
export class ComparedCatalogs {
  readonly from: string;
  readonly #to: string;
  readonly #sums: CatalogComparison['sums'];
  readonly #byPackage = new Map<string, Difference[]>();
  readonly #olderChannels = new Map<string, Map<string, ChannelFacts>>();
  readonly #bundleChanges = new Map<string, 'added' | 'changed'>();
  readonly #addedPackages: ReadonlySet<string>;
  readonly #removedPackages: ReadonlySet<string>;

  constructor(from: string, to: string, diff: CatalogDiff, channelsBefore: readonly ChannelFacts[]) {
    this.from = from;
    this.#to = to;
    this.#sums = [
      sum('packages', diff.packages),
      sum('channels', diff.channels),
      sum('bundles', diff.bundles),
      sum('images', diff.images),
      sum('deprecations', diff.deprecations),
      sum('other blobs', diff.others),
    ];
    this.#addedPackages = new Set(diff.packages.added);
    this.#removedPackages = new Set(diff.packages.removed);
    for (const channel of channelsBefore) {
      const ofPackage = getOrAdd(this.#olderChannels, channel.package, () => new Map<string, ChannelFacts>());
      getOrAdd(ofPackage, channel.name, () => channel);
    }
    for (const sign of ['added', 'changed'] as const) {
      for (const item of diff.bundles[sign]) {
        this.#bundleChanges.set(`${item.package}\0${item.bundle}`, sign);
      }
    }
    this.#describeDiff(diff);
  }

  /** Describes what differs, kind by kind. */
  #describeDiff({ packages, channels, bundles, deprecations, others }: CatalogDiff): void {
    this.#addAll('package', packages, getPackage, () => [], describePackageChange);
    const describeChannel = ({ head, entries }: { head: string; entries: number }): string[] => [
      `${count(entries, 'entry')}${head === '' ? '' : `, head ${head}`}`,
    ];
    this.#addAll('channel', channels, ({ channel }) => channel, describeChannel, describeChannelChange);
    const describeBundle = ({ image }: { image: string }): string[] => (image === '' ? [] : [image]);
    this.#addAll('bundle', bundles, ({ bundle }) => bundle, describeBundle, describeBundleChange);
    this.#addAll(
      'deprecation',
      deprecations,
      ({ schema, name }) => (schema === schemas.package ? 'the package' : name),
      ({ message }) => [message],
      ({ message }) => describeChange('message', message),
    );
    this.#addAll(
      'other blob',
      others,
      ({ schema, name }) => [schema, name].filter((part) => part !== '').join(' '),
      () => [],
      () => [],
    );
  }

  #addAll<T extends string | { package: string }, C extends { package: string }>(
    kind: Difference['kind'],
    { added, removed, changed }: ListChange<T> & { changed: readonly C[] },
    getName: (item: T | C) => string,
    describe: (item: T) => string[],
    describeChanged: (item: C) => string[],
  ): void {
    const add = (sign: Difference['sign'], item: T | C, details: string[]): void =>
      pushTo(this.#byPackage, getPackage(item), { sign, kind, name: getName(item), details });
    for (const item of added) add('added', item, describe(item));
    for (const item of removed) add('removed', item, describe(item));
    for (const item of changed) add('changed', item, describeChanged(item));
  }

  /** Returns the change of a package; undefined if it is the same in both. */
  getPackageChange(name: string): 'added' | 'changed' | undefined {
    if (this.#addedPackages.has(name)) return 'added';
    return this.#byPackage.has(name) ? 'changed' : undefined;
  }

  /** Returns the change of a bundle; undefined if it is the same in both. */
  getBundleChange(packageName: string, bundle: string): 'added' | 'changed' | undefined {
    return this.#bundleChanges.get(`${packageName}\0${bundle}`);
  }

  /** Returns the channels of a package in the older catalog; of duplicate names, the first. */
  getOlderChannels(packageName: string): ChannelFacts[] {
    return [...(this.#olderChannels.get(packageName)?.values() ?? [])];
  }

  /** Returns the totals by kind and by package. */
  summarize(): CatalogComparison {
    return {
      from: this.from,
      to: this.#to,
      sums: this.#sums,
      packages: [...this.#byPackage]
        .map(([name, differences]): ComparedPackage => {
          const count = (sign: Difference['sign']): number =>
            differences.filter((difference) => difference.sign === sign).length;
          const state = this.#removedPackages.has(name) ? 'removed' : this.getPackageChange(name);
          return {
            package: name,
            state: state ?? 'changed',
            added: count('added'),
            removed: count('removed'),
            changed: count('changed'),
          };
        })
        .sort((a, b) => compareBytes(a.package, b.package)),
    };
  }

  package(name: string): PackageDifferences {
    return {
      package: name,
      differences: this.#byPackage.get(name) ?? [],
    };
  }
}

function getPackage(item: string | { package: string }): string {
  return typeof item === 'string' ? item : item.package;
}

function sum(
  kind: string,
  { added, removed, changed = [] }: ListChange<unknown> & { changed?: readonly unknown[] },
): CatalogComparison['sums'][number] {
  return { kind, added: added.length, removed: removed.length, changed: changed.length };
}

function describePackageChange({ defaultChannel, fields }: PackageChange): string[] {
  return [...describeChange('default channel', defaultChannel), ...fields.map((field) => `${field} differs`)];
}

function describeChannelChange({ head, entries, edges, properties }: ChannelChange): string[] {
  return [
    ...describeChange('head', head),
    ...describeListChange('entry', entries),
    ...edges.flatMap(({ bundle, replaces, skips, skipRange }) => [
      ...describeChange(`${bundle} replaces`, replaces),
      ...describeListChange(`${bundle} skips`, skips),
      ...describeChange(`${bundle} skip range`, skipRange),
    ]),
    ...(properties ? ['properties differ'] : []),
  ];
}

function describeBundleChange({ version, image, relatedImages, properties }: BundleChange): string[] {
  return [
    ...describeChange('version', version),
    ...describeChange('image', image),
    ...describeListChange('related image', relatedImages),
    ...describeListChange('property', properties),
    ...(properties?.changed ?? []).map((type) => `property ${type} differs`),
  ];
}

function describeChange(noun: string, change: Change | undefined): string[] {
  return change === undefined ? [] : [`${noun}: ${change.from || 'none'} → ${change.to || 'none'}`];
}

function describeListChange(noun: string, change: ListChange | undefined): string[] {
  return [
    ...(change?.added ?? []).map((name) => `${noun} added: ${name}`),
    ...(change?.removed ?? []).map((name) => `${noun} removed: ${name}`),
  ];
}
