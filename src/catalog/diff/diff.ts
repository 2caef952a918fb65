import { throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson } from '../../document/go-json.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import {
  type BundleBlob,
  type ChannelEntry,
  propertyTypes,
  schemas,
} from '../../model/declarative-config.js';
import { decodePackage } from '../../model/decode.js';
import type { BundleFacts, ChannelFacts, DeprecationsFacts } from '../../model/facts.js';
import { findHead } from '../../graph/channel-graph.js';
import type { MetasOptions } from '../catalog.js';
import { type CatalogSnapshot, getImages, isOwnSchema, readBundleBlob, readSorted } from './snapshot.js';

/** A value before and after. */
export interface Change<T = string> {
  from: T;
  to: T;
}

/** Items in only one of two lists. */
export interface ListChange<T = string> {
  added: T[];
  removed: T[];
}

/** Differences from the first catalog to the second; lists are sorted by name. */
export interface CatalogDiff {
  packages: ListChange & { changed: PackageChange[] };
  channels: ListChange<ChannelState> & { changed: ChannelChange[] };
  bundles: ListChange<BundleState> & { changed: BundleChange[] };
  /** Images of bundles and their related images. */
  images: ListChange;
  deprecations: ListChange<Deprecation> & { changed: DeprecationChange[] };
  /** Blobs of other schemas. */
  others: ListChange<OtherBlob> & { changed: OtherBlob[] };
}

export interface PackageChange {
  package: string;
  defaultChannel?: Change;
  /** Other changed fields: `description`, `icon`, `properties`. */
  fields: string[];
}

interface ChannelState {
  package: string;
  channel: string;
  /** Empty without an only head. */
  head: string;
  entries: number;
}

export interface ChannelChange {
  package: string;
  channel: string;
  head?: Change;
  /** Added and removed bundles. */
  entries: ListChange;
  /** Changed edges of bundles in both. */
  edges: EdgeChange[];
  /** Properties of the channel changed. */
  properties: boolean;
}

export interface EdgeChange {
  bundle: string;
  replaces?: Change;
  skips?: ListChange;
  skipRange?: Change;
}

interface BundleState {
  package: string;
  bundle: string;
  version: string;
  image: string;
}

export interface BundleChange {
  package: string;
  bundle: string;
  version?: Change;
  image?: Change;
  relatedImages?: ListChange;
  /** Types of added, removed and changed properties. */
  properties?: ListChange & { changed: string[] };
}

export interface Deprecation {
  package: string;
  schema: string;
  /** Empty for a package. */
  name: string;
  message: string;
}

type DeprecationChange = Omit<Deprecation, 'message'> & { message: Change };

export interface OtherBlob {
  package: string;
  schema: string;
  name: string;
}

/**
 * Compares two catalogs, ignoring their form: files, order of blobs and keys, JSON or YAML. Blobs whose text differs
 * are read again. Throws OpmateError IO if a catalog changes meanwhile.
 */
export async function diffCatalogs(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  options: Pick<MetasOptions, 'signal'> = {},
): Promise<CatalogDiff> {
  const differing = differingBlobs(before, after);
  const packages = await diffPackages(before, after, differing, options);
  const channels = await diffChannels(before, after, differing, options);
  const bundles = await diffBundles(before, after, differing, options);
  return {
    packages,
    channels,
    bundles,
    images: listChange(before.images, after.images),
    deprecations: diffDeprecations(before.facts.deprecations, after.facts.deprecations),
    others: await diffOthers(before, after, options),
  };
}

/** Reports whether two catalogs have no differences. */
export function isSameCatalog(diff: CatalogDiff): boolean {
  return Object.values(diff).every((part: ListChange<unknown> & { changed?: unknown[] }) =>
    [part.added, part.removed, part.changed ?? []].every((list) => list.length === 0),
  );
}

/** Returns the keys of blobs in both whose text differs. */
function differingBlobs(before: CatalogSnapshot, after: CatalogSnapshot): Set<string> {
  const keys = new Set<string>();
  for (const [key, { hash }] of after.blobs) {
    const other = before.blobs.get(key);
    if (other !== undefined && other.hash !== hash) keys.add(key);
  }
  return keys;
}

function toKey(packageName: string, schema: string, name: string): string {
  return `${packageName}\0${schema}\0${name}`;
}

async function diffPackages(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  differing: ReadonlySet<string>,
  { signal }: Pick<MetasOptions, 'signal'>,
): Promise<CatalogDiff['packages']> {
  const [old, now] = [before, after].map(({ facts }) => firstBy(facts.packages, ({ name }) => name)) as [
    Map<string, CatalogSnapshot['facts']['packages'][number]>,
    Map<string, CatalogSnapshot['facts']['packages'][number]>,
  ];
  const changed: PackageChange[] = [];
  for (const name of sortedByBytes(now.keys())) {
    throwIfCancelled(signal);
    const [a, b] = [old.get(name), now.get(name)];
    if (a?.origin === undefined || b?.origin === undefined) continue;
    if (!differing.has(toKey(name, schemas.package, name))) continue;
    const [was, is] = [
      decodePackage(await readSorted(before.catalog, a.origin)),
      decodePackage(await readSorted(after.catalog, b.origin)),
    ];
    const fields = (['description', 'icon', 'properties'] as const).filter(
      (field) => encodeGoJson(toJson(was[field])) !== encodeGoJson(toJson(is[field])),
    );
    const defaultChannel = findChange(was.defaultChannel, is.defaultChannel);
    if (fields.length > 0 || defaultChannel !== undefined) {
      changed.push({ package: name, ...(defaultChannel && { defaultChannel }), fields });
    }
  }
  return { ...listChange(old.keys(), now.keys()), changed };
}

/** Returns the JSON of a typed blob, which may omit fields. */
function toJson(value: unknown): never {
  return (value ?? null) as never;
}

async function diffChannels(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  differing: ReadonlySet<string>,
  { signal }: Pick<MetasOptions, 'signal'>,
): Promise<CatalogDiff['channels']> {
  const getName = (channel: ChannelFacts): string => `${channel.package}\0${channel.name}`;
  const old = firstBy(before.facts.channels, getName);
  const now = firstBy(after.facts.channels, getName);
  const getState = (channelFacts: ChannelFacts): ChannelState => ({
    package: channelFacts.package,
    channel: channelFacts.name,
    head: findHead(channelFacts.entries),
    entries: channelFacts.entries.length,
  });
  const { added, removed } = listChange(old.keys(), now.keys());
  const changed: ChannelChange[] = [];
  for (const key of sortedByBytes(now.keys())) {
    throwIfCancelled(signal);
    const [a, b] = [old.get(key), now.get(key)];
    if (a?.origin === undefined || b?.origin === undefined) continue;
    if (!differing.has(toKey(b.package, schemas.channel, b.name))) continue;
    const [was, is] = [
      await readSorted(before.catalog, a.origin),
      await readSorted(after.catalog, b.origin),
    ].map((blob) => encodeGoJson(blob['properties'] ?? []));
    const change = diffChannel(a, b, was !== is);
    if (change !== undefined) changed.push(change);
  }
  return {
    added: added.map((key) => getState(now.get(key) as ChannelFacts)),
    removed: removed.map((key) => getState(old.get(key) as ChannelFacts)),
    changed,
  };
}

function diffChannel(a: ChannelFacts, b: ChannelFacts, properties: boolean): ChannelChange | undefined {
  const [old, now] = [firstBy(a.entries, ({ name }) => name), firstBy(b.entries, ({ name }) => name)];
  const entries = listChange(old.keys(), now.keys());
  const edges = sortedByBytes(now.keys()).flatMap((name) => {
    const was = old.get(name);
    return was === undefined ? [] : (diffEdges(was, now.get(name) as ChannelEntry) ?? []);
  });
  const head = findChange(findHead(a.entries), findHead(b.entries));
  const isSame = entries.added.length === 0 && entries.removed.length === 0 && edges.length === 0;
  if (isSame && !properties) return undefined;
  return { package: b.package, channel: b.name, ...(head && { head }), entries, edges, properties };
}

function diffEdges(was: ChannelEntry, is: ChannelEntry): EdgeChange | undefined {
  const replaces = findChange(was.replaces, is.replaces);
  const skipRange = findChange(was.skipRange, is.skipRange);
  const skips = changedList(was.skips, is.skips);
  if (replaces === undefined && skipRange === undefined && skips === undefined) return undefined;
  return {
    bundle: is.name,
    ...(replaces && { replaces }),
    ...(skips && { skips }),
    ...(skipRange && { skipRange }),
  };
}

async function diffBundles(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  differing: ReadonlySet<string>,
  { signal }: Pick<MetasOptions, 'signal'>,
): Promise<CatalogDiff['bundles']> {
  const getName = (bundle: BundleFacts): string => `${bundle.package}\0${bundle.name}`;
  const old = firstBy(before.facts.bundles, getName);
  const now = firstBy(after.facts.bundles, getName);
  const { added, removed } = listChange(old.keys(), now.keys());
  const changed: BundleChange[] = [];
  for (const key of sortedByBytes(now.keys())) {
    throwIfCancelled(signal);
    const [a, b] = [old.get(key), now.get(key)];
    if (a === undefined || b === undefined) continue;
    if (!differing.has(toKey(b.package, schemas.bundle, b.name))) continue;
    const was = await readBundleBlob(before.catalog, a);
    const is = await readBundleBlob(after.catalog, b);
    const change = was && is && diffBundle(was, is, findChange(describeVersion(a), describeVersion(b)));
    if (change !== undefined) changed.push(change);
  }
  return {
    added: added.map((key) => bundleState(now.get(key) as BundleFacts)),
    removed: removed.map((key) => bundleState(old.get(key) as BundleFacts)),
    changed,
  };
}

function describeVersion({ packageProperties: [property] }: BundleFacts): string {
  if (property === undefined) return '';
  return property.release === '' ? property.version : `${property.version} (release ${property.release})`;
}

function bundleState(facts: BundleFacts): BundleState {
  return { package: facts.package, bundle: facts.name, version: describeVersion(facts), image: facts.image };
}

function diffBundle(was: BundleBlob, is: BundleBlob, version: Change | undefined): BundleChange | undefined {
  const image = findChange(was.image, is.image);
  const relatedImages = changedList(getImages({ ...was, image: '' }), getImages({ ...is, image: '' }));
  const [old, now] = [getProperties(was), getProperties(is)];
  const types = listChange(old.keys(), now.keys());
  const changed = sortedByBytes(now.keys()).filter(
    (type) => old.has(type) && old.get(type) !== now.get(type),
  );
  const isSame = types.added.length === 0 && types.removed.length === 0 && changed.length === 0;
  if (isSame && image === undefined && relatedImages === undefined) return undefined;
  return {
    package: is.package,
    bundle: is.name,
    ...(version && { version }),
    ...(image && { image }),
    ...(relatedImages && { relatedImages }),
    ...(!isSame && { properties: { ...types, changed } }),
  };
}

/** Returns the values of properties by type, sorted; bundle objects keep their order. */
function getProperties({ properties }: BundleBlob): Map<string, string> {
  const values = new Map<string, string[]>();
  for (const { type, value } of properties) {
    const list = values.get(type) ?? [];
    list.push(encodeGoJson(value));
    values.set(type, list);
  }
  const joined = [...values].map(([type, list]): [string, string] => [
    type,
    (type === propertyTypes.bundleObject ? list : sortedByBytes(list)).join('\n'),
  ]);
  return new Map(joined);
}

function diffDeprecations(
  before: readonly DeprecationsFacts[],
  after: readonly DeprecationsFacts[],
): CatalogDiff['deprecations'] {
  const [old, now] = [before, after].map(
    (blobs) =>
      new Map(
        blobs.flatMap((blob) =>
          blob.entries.map(({ reference: { schema, name }, message }): [string, Deprecation] => [
            toKey(blob.package, schema, name),
            { package: blob.package, schema, name, message },
          ]),
        ),
      ),
  ) as [Map<string, Deprecation>, Map<string, Deprecation>];
  const { added, removed } = listChange(old.keys(), now.keys());
  const changed = sortedByBytes(now.keys()).flatMap((key): DeprecationChange[] => {
    const is = now.get(key) as Deprecation;
    const message = findChange(old.get(key)?.message ?? is.message, is.message);
    return message === undefined ? [] : [{ ...is, message }];
  });
  return {
    added: added.map((key) => now.get(key) as Deprecation),
    removed: removed.map((key) => old.get(key) as Deprecation),
    changed,
  };
}

async function diffOthers(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  { signal }: Pick<MetasOptions, 'signal'>,
): Promise<CatalogDiff['others']> {
  const [old, now] = [before, after].map(
    ({ blobs }) => new Map([...blobs].filter(([, { schema }]) => !isOwnSchema(schema))),
  ) as [CatalogSnapshot['blobs'], CatalogSnapshot['blobs']];
  const named = ({ package: packageName, schema, name }: OtherBlob): OtherBlob => ({
    package: packageName,
    schema,
    name,
  });
  const { added, removed } = listChange(old.keys(), now.keys());
  const changed: OtherBlob[] = [];
  for (const key of sortedByBytes(now.keys())) {
    throwIfCancelled(signal);
    const [a, b] = [old.get(key), now.get(key)];
    if (a === undefined || b === undefined || a.hash === b.hash) continue;
    const texts = [await readSorted(before.catalog, a.origin), await readSorted(after.catalog, b.origin)];
    if (encodeGoJson(texts[0] ?? null) !== encodeGoJson(texts[1] ?? null)) changed.push(named(b));
  }
  return {
    added: added.map((key) => named(now.get(key) as OtherBlob)),
    removed: removed.map((key) => named(old.get(key) as OtherBlob)),
    changed,
  };
}

/** Returns items by key, the first of duplicates. */
function firstBy<T>(list: readonly T[], keyOfOne: (item: T) => string): Map<string, T> {
  const items = new Map<string, T>();
  for (const item of list) {
    const key = keyOfOne(item);
    if (!items.has(key)) items.set(key, item);
  }
  return items;
}

function findChange(from: string, to: string): Change | undefined {
  return from === to ? undefined : { from, to };
}

function listChange(before: Iterable<string>, after: Iterable<string>): ListChange {
  const [old, now] = [new Set(before), new Set(after)];
  return {
    added: [...now].filter((name) => !old.has(name)).sort(compareBytes),
    removed: [...old].filter((name) => !now.has(name)).sort(compareBytes),
  };
}

function changedList(before: Iterable<string>, after: Iterable<string>): ListChange | undefined {
  const change = listChange(before, after);
  return change.added.length === 0 && change.removed.length === 0 ? undefined : change;
}
