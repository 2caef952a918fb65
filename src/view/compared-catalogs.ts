import type { CatalogDiff, Change, ListChange } from '../catalog/diff/diff.js';
import { compareBytes } from '../core/order.js';
import { type ChannelEntry, schemas } from '../model/declarative-config.js';
import type { ChannelFacts } from '../model/facts.js';
import type { CatalogComparison, ComparedPackage, PackageDifferences, Difference } from './answers.js';

/** What differs between two catalogs, by package. */
export class ComparedCatalogs {
  readonly from: string;
  readonly #to: string;
  readonly #diff: CatalogDiff;
  readonly #packages = new Map<string, Difference[]>();
  /** Channels of the other catalog by package, each name once. */
  readonly #before = new Map<string, Map<string, ChannelFacts>>();
  /** By package and bundle. */
  readonly #bundles = new Map<string, 'added' | 'changed'>();

  /** `channels` are those of the other catalog. */
  constructor(from: string, to: string, diff: CatalogDiff, channels: readonly ChannelFacts[]) {
    this.from = from;
    for (const channel of channels) {
      const ofPackage = this.#before.get(channel.package) ?? new Map<string, ChannelFacts>();
      if (!ofPackage.has(channel.name)) ofPackage.set(channel.name, channel);
      this.#before.set(channel.package, ofPackage);
    }
    this.#to = to;
    this.#diff = diff;
    this.#addPackages();
    this.#addChannels();
    this.#addBundles();
    this.#addDeprecations();
    this.#addOthers();
  }

  /** How a package differs; undefined where it does not. */
  changeOfPackage(name: string): 'added' | 'changed' | undefined {
    if (this.#diff.packages.added.includes(name)) return 'added';
    return this.#packages.has(name) ? 'changed' : undefined;
  }

  /** How a bundle differs; undefined where it does not. */
  changeOfBundle(packageName: string, bundle: string): 'added' | 'changed' | undefined {
    return this.#bundles.get(`${packageName}\0${bundle}`);
  }

  /** Channels that a package has in the other catalog; none where it is not there. */
  channelsBefore(packageName: string): { name: string; entries: ChannelEntry[] }[] {
    const channels = this.#before.get(packageName)?.values() ?? [];
    return [...channels].map(({ name, entries }) => ({ name, entries }));
  }

  sums(): CatalogComparison {
    const { packages, channels, bundles, images, deprecations, others } = this.#diff;
    const sum = (
      kind: string,
      { added, removed }: ListChange<unknown>,
      changed: readonly unknown[] = [],
    ): CatalogComparison['sums'][number] => ({
      kind,
      added: added.length,
      removed: removed.length,
      changed: changed.length,
    });
    return {
      from: this.from,
      to: this.#to,
      sums: [
        sum('packages', packages, packages.changed),
        sum('channels', channels, channels.changed),
        sum('bundles', bundles, bundles.changed),
        sum('images', images),
        sum('deprecations', deprecations, deprecations.changed),
        sum('other blobs', others, others.changed),
      ],
      packages: [...this.#packages]
        .map(([name, differences]): ComparedPackage => {
          const count = (sign: Difference['sign']): number =>
            differences.filter((difference) => difference.sign === sign).length;
          return {
            package: name,
            state: packages.added.includes(name)
              ? 'added'
              : packages.removed.includes(name)
                ? 'removed'
                : 'changed',
            added: count('added'),
            removed: count('removed'),
            changed: count('changed'),
          };
        })
        .sort((a, b) => compareBytes(a.package, b.package)),
    };
  }

  /** Every difference of a package; none where it does not differ. */
  package(name: string): PackageDifferences {
    return { package: name, differences: this.#packages.get(name) ?? [] };
  }

  #add(packageName: string, difference: Difference): void {
    const list = this.#packages.get(packageName);
    if (list === undefined) this.#packages.set(packageName, [difference]);
    else list.push(difference);
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
        this.#add(packageName, { sign, kind, name, details });
      }
    }
  }

  #addPackages(): void {
    const { packages } = this.#diff;
    this.#addListed('package', packages, (name) => ({ package: name, name, details: [] }));
    for (const { package: name, defaultChannel, fields } of packages.changed) {
      const details = [
        ...changeTexts('default channel', defaultChannel),
        ...fields.map((field) => `${field} differs`),
      ];
      this.#add(name, { sign: 'changed', kind: 'package', name, details });
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
        ...changeTexts('head', head),
        ...listTexts('entry', entries),
        ...edges.flatMap(({ bundle, replaces, skips, skipRange }) => [
          ...changeTexts(`${bundle} replaces`, replaces),
          ...listTexts(`${bundle} skips`, skips),
          ...changeTexts(`${bundle} skip range`, skipRange),
        ]),
        ...(properties ? ['properties differ'] : []),
      ];
      this.#add(packageName, { sign: 'changed', kind: 'channel', name: channel, details });
    }
  }

  #addBundles(): void {
    const { bundles } = this.#diff;
    this.#addListed('bundle', bundles, ({ package: packageName, bundle, image }) => ({
      package: packageName,
      name: bundle,
      details: image === '' ? [] : [image],
    }));
    for (const bundleState of bundles.added)
      this.#bundles.set(`${bundleState.package}\0${bundleState.bundle}`, 'added');
    for (const change of bundles.changed) {
      const { package: packageName, bundle, version, image, relatedImages, properties } = change;
      this.#bundles.set(`${packageName}\0${bundle}`, 'changed');
      const details = [
        ...changeTexts('version', version),
        ...changeTexts('image', image),
        ...listTexts('related image', relatedImages),
        ...listTexts('property', properties),
        ...(properties?.changed ?? []).map((type) => `property ${type} differs`),
      ];
      this.#add(packageName, { sign: 'changed', kind: 'bundle', name: bundle, details });
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
      const details = changeTexts('message', change.message);
      this.#add(change.package, { sign: 'changed', kind: 'deprecation', name: getName(change), details });
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
      this.#add(packageName, { sign: 'changed', kind: 'other blob', name, details: [] });
    }
  }
}

function changeTexts(noun: string, change: Change | undefined): string[] {
  if (change === undefined) return [];
  return [`${noun}: ${change.from || 'none'} → ${change.to || 'none'}`];
}

function listTexts(noun: string, change: ListChange | undefined): string[] {
  if (change === undefined) return [];
  return [
    ...change.added.map((name) => `${noun} added: ${name}`),
    ...change.removed.map((name) => `${noun} removed: ${name}`),
  ];
}
