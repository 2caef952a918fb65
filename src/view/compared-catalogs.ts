import { count } from '../core/printable.js';
import type { CatalogDiff, Change, ListChange } from '../catalog/diff/diff.js';
import { getOrAdd, pushTo } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { schemas } from '../model/declarative-config.js';
import type { ChannelFacts } from '../model/facts.js';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from './responses.js';

export type ComparedCatalogs = ReturnType<typeof diffByPackage>;

/** Returns the differences between two catalogs by package. `from` and `to` are the names of the catalogs. */
export function diffByPackage(
  from: string,
  to: string,
  { packages, channels, bundles, images, deprecations, others }: CatalogDiff,
  channelsBefore: readonly ChannelFacts[],
) {
  const byPackage = new Map<string, Difference[]>();
  const getPackage = (item: string | { package: string }): string =>
    typeof item === 'string' ? item : item.package;
  const addAll = <T extends string | { package: string }, C extends { package: string }>(
    kind: Difference['kind'],
    { added, removed, changed }: ListChange<T> & { changed: readonly C[] },
    getName: (item: T | C) => string,
    describe: (item: T) => string[],
    describeChanged: (item: C) => string[],
  ): void => {
    const add = (sign: Difference['sign'], item: T | C, details: string[]): void =>
      pushTo(byPackage, getPackage(item), { sign, kind, name: getName(item), details });
    for (const item of added) add('added', item, describe(item));
    for (const item of removed) add('removed', item, describe(item));
    for (const item of changed) add('changed', item, describeChanged(item));
  };
  addAll(
    'package',
    packages,
    getPackage,
    () => [],
    ({ defaultChannel, fields }) => [
      ...describeChange('default channel', defaultChannel),
      ...fields.map((field) => `${field} differs`),
    ],
  );
  addAll(
    'channel',
    channels,
    ({ channel }) => channel,
    ({ head, entries }) => [`${count(entries, 'entry')}${head === '' ? '' : `, head ${head}`}`],
    ({ head, entries, edges, properties }) => [
      ...describeChange('head', head),
      ...describeListChange('entry', entries),
      ...edges.flatMap(({ bundle, replaces, skips, skipRange }) => [
        ...describeChange(`${bundle} replaces`, replaces),
        ...describeListChange(`${bundle} skips`, skips),
        ...describeChange(`${bundle} skip range`, skipRange),
      ]),
      ...(properties ? ['properties differ'] : []),
    ],
  );
  addAll(
    'bundle',
    bundles,
    ({ bundle }) => bundle,
    ({ image }) => (image === '' ? [] : [image]),
    ({ version, image, relatedImages, properties }) => [
      ...describeChange('version', version),
      ...describeChange('image', image),
      ...describeListChange('related image', relatedImages),
      ...describeListChange('property', properties),
      ...(properties?.changed ?? []).map((type) => `property ${type} differs`),
    ],
  );
  addAll(
    'deprecation',
    deprecations,
    ({ schema, name }) => (schema === schemas.package ? 'the package' : name),
    ({ message }) => [message],
    ({ message }) => describeChange('message', message),
  );
  addAll(
    'other blob',
    others,
    ({ schema, name }) => [schema, name].filter((part) => part !== '').join(' '),
    () => [],
    () => [],
  );

  const olderChannels = new Map<string, Map<string, ChannelFacts>>();
  for (const channel of channelsBefore) {
    const ofPackage = getOrAdd(olderChannels, channel.package, () => new Map<string, ChannelFacts>());
    getOrAdd(ofPackage, channel.name, () => channel);
  }
  const bundleChanges = new Map<string, 'added' | 'changed'>();
  for (const sign of ['added', 'changed'] as const) {
    for (const item of bundles[sign]) bundleChanges.set(`${item.package}\0${item.bundle}`, sign);
  }
  const addedPackages = new Set(packages.added);
  const removedPackages = new Set(packages.removed);
  const getPackageChange = (name: string): 'added' | 'changed' | undefined => {
    if (addedPackages.has(name)) return 'added';
    return byPackage.has(name) ? 'changed' : undefined;
  };
  const sum = (
    kind: string,
    { added, removed, changed = [] }: ListChange<unknown> & { changed?: readonly unknown[] },
  ): CatalogComparison['sums'][number] => ({
    ...{ kind, added: added.length, removed: removed.length, changed: changed.length },
  });
  return {
    from,
    /** Returns the change of a package; undefined if it is the same in both. */
    getPackageChange,
    /** Returns the change of a bundle; undefined if it is the same in both. */
    getBundleChange: (packageName: string, bundle: string) => bundleChanges.get(`${packageName}\0${bundle}`),
    /** Returns the channels of a package in the older catalog; of duplicate names, the first. */
    getOlderChannels: (packageName: string) => [...(olderChannels.get(packageName)?.values() ?? [])],
    /** Returns the totals by kind and by package. */
    summarize: (): CatalogComparison => ({
      from,
      to,
      sums: [
        sum('packages', packages),
        sum('channels', channels),
        sum('bundles', bundles),
        sum('images', images),
        sum('deprecations', deprecations),
        sum('other blobs', others),
      ],
      packages: [...byPackage]
        .map(([name, differences]): ComparedPackage => {
          const count = (sign: Difference['sign']): number =>
            differences.filter((difference) => difference.sign === sign).length;
          const state = removedPackages.has(name) ? 'removed' : getPackageChange(name);
          return {
            ...{ package: name, state: state ?? 'changed' },
            ...{ added: count('added'), removed: count('removed'), changed: count('changed') },
          };
        })
        .sort((a, b) => compareBytes(a.package, b.package)),
    }),
    package: (name: string): PackageDifferences => ({
      package: name,
      differences: byPackage.get(name) ?? [],
    }),
  };
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
