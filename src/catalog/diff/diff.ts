import { throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { firstBy, pushTo } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import {
  type BundleBlob,
  type ChannelEntry,
  propertyTypes,
  schemas,
} from '../../model/declarative-config.js';
import { decodeBundle, decodePackage } from '../../model/decode.js';
import type { BundleFacts, ChannelFacts, DeprecationsFacts } from '../../model/facts.js';
import { findHead } from '../../graph/channel-graph.js';
import type { MetasOptions } from '../catalog.js';
import { type CatalogSnapshot, getBundleImages, isOwnSchema, readSorted, toBlobKey } from './snapshot.js';

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
  deprecations: ListChange<DeprecationState> & { changed: DeprecationChange[] };
  /** Blobs of other schemas. */
  others: ListChange<BlobKey> & { changed: BlobKey[] };
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

export interface DeprecationState {
  package: string;
  schema: string;
  /** Empty for a package. */
  name: string;
  message: string;
}

type DeprecationChange = Omit<DeprecationState, 'message'> & { message: Change };

export interface BlobKey {
  package: string;
  schema: string;
  name: string;
}

/**
 * Compares two catalogs, ignoring their form: files, order of blobs and keys, JSON or YAML. Blobs whose text differs
 * are read again. Throws OpmateError IO if a catalog changes meanwhile.
 */
export async function diffSnapshots(
  before: CatalogSnapshot,
  after: CatalogSnapshot,
  { signal }: Pick<MetasOptions, 'signal'> = {},
): Promise<CatalogDiff> {
  return new SnapshotDiff(before, after, signal).run();
}

/** Compares two states of a catalog, kind by kind. */
class SnapshotDiff {
  readonly #before: CatalogSnapshot;
  readonly #after: CatalogSnapshot;
  readonly #signal: AbortSignal | undefined;

  constructor(before: CatalogSnapshot, after: CatalogSnapshot, signal: AbortSignal | undefined) {
    this.#before = before;
    this.#after = after;
    this.#signal = signal;
  }

  async run(): Promise<CatalogDiff> {
    return {
      packages: await this.#diffPackages(),
      channels: await this.#diffChannels(),
      bundles: await this.#diffBundles(),
      images: listChange(this.#before.images, this.#after.images),
      deprecations: await this.#diffDeprecations(),
      others: await this.#diffOthers(),
    };
  }

  #diffPackages(): Promise<CatalogDiff['packages']> {
    return this.#diffParts(
      ({ facts }) => firstBy(facts.packages, ({ name }) => name),
      ({ name }) => name,
      async (_, { name }) => {
        const key = toBlobKey({ schema: schemas.package, package: name, name });
        return diffPackage(name, await this.#readDifferent(key));
      },
    );
  }

  #diffChannels(): Promise<CatalogDiff['channels']> {
    return this.#diffParts(
      ({ facts }) => firstBy(facts.channels, toQualifiedName),
      ({ package: of, name, entries }): ChannelState => ({
        package: of,
        channel: name,
        head: findHead(entries),
        entries: entries.length,
      }),
      async (was, is) => {
        const blobs = await this.#readDifferent(toBlobKey({ ...is, schema: schemas.channel }));
        const properties = blobs?.map((blob) => encodeGoJson(blob['properties'] ?? []));
        return properties && diffChannel(was, is, properties[0] !== properties[1]);
      },
    );
  }

  #diffBundles(): Promise<CatalogDiff['bundles']> {
    return this.#diffParts(
      ({ facts }) => firstBy(facts.bundles, toQualifiedName),
      (facts): BundleState => ({
        package: facts.package,
        bundle: facts.name,
        version: describeVersion(facts),
        image: facts.image,
      }),
      async (was, is) => {
        const blobs = await this.#readDifferent(toBlobKey({ ...is, schema: schemas.bundle }));
        const version = findChange(describeVersion(was), describeVersion(is));
        return blobs && diffBundle(decodeBundle(blobs[0]), decodeBundle(blobs[1]), version);
      },
    );
  }

  #diffDeprecations(): Promise<CatalogDiff['deprecations']> {
    return this.#diffParts(
      ({ facts }) => new Map(facts.deprecations.flatMap(listDeprecations)),
      (deprecation) => deprecation,
      (was, is) => {
        const message = findChange(was.message, is.message);
        return message && { ...is, message };
      },
    );
  }

  #diffOthers(): Promise<CatalogDiff['others']> {
    return this.#diffParts(
      ({ blobs }) => new Map([...blobs].filter(([, { schema }]) => !isOwnSchema(schema))),
      toOtherBlob,
      async (_, is, key) => {
        const [old, now] = (await this.#readDifferent(key))?.map((blob) => encodeGoJson(blob)) ?? [];
        return old === now ? undefined : toOtherBlob(is);
      },
    );
  }

  /** Compares the parts that `select` returns by key; `findDifference` returns undefined for equal ones. */
  async #diffParts<T, S, C>(
    select: (snapshot: CatalogSnapshot) => ReadonlyMap<string, T>,
    toState: (part: T) => S,
    findDifference: (was: T, is: T, key: string) => C | undefined | Promise<C | undefined>,
  ): Promise<ListChange<S> & { changed: C[] }> {
    const [old, now] = [select(this.#before), select(this.#after)];
    const { added, removed } = listChange(old.keys(), now.keys());
    const changed: C[] = [];
    for (const key of sortedByBytes(now.keys())) {
      throwIfCancelled(this.#signal);
      const [was, is] = [old.get(key), now.get(key)];
      const change = was && is && (await findDifference(was, is, key));
      if (change !== undefined) changed.push(change);
    }
    return {
      added: added.map((key) => toState(now.get(key) as T)),
      removed: removed.map((key) => toState(old.get(key) as T)),
      changed,
    };
  }

  /** Returns both forms of a blob, keys sorted; undefined if their text is the same. */
  async #readDifferent(key: string): Promise<[JsonObject, JsonObject] | undefined> {
    const [was, is] = [this.#before.blobs.get(key), this.#after.blobs.get(key)];
    if (was === undefined || is === undefined || was.hash === is.hash) return undefined;
    return [
      await readSorted(this.#before.catalog, was.origin),
      await readSorted(this.#after.catalog, is.origin),
    ];
  }
}

/** Reports whether two catalogs have no differences. */
export function isSameCatalog(diff: CatalogDiff): boolean {
  return Object.values(diff).every((part: ListChange<unknown> & { changed?: unknown[] }) =>
    [part.added, part.removed, part.changed ?? []].every((list) => list.length === 0),
  );
}

function toQualifiedName(item: { package: string; name: string }): string {
  return `${item.package}\0${item.name}`;
}

function diffPackage(name: string, blobs: [JsonObject, JsonObject] | undefined): PackageChange | undefined {
  if (blobs === undefined) return undefined;
  const [was, is] = [decodePackage(blobs[0]), decodePackage(blobs[1])];
  const fields = (['description', 'icon', 'properties'] as const).filter(
    (field) => encodeGoJson(toJson(was[field])) !== encodeGoJson(toJson(is[field])),
  );
  const defaultChannel = findChange(was.defaultChannel, is.defaultChannel);
  if (fields.length === 0 && defaultChannel === undefined) return undefined;
  return { package: name, ...(defaultChannel && { defaultChannel }), fields };
}

/** Returns the JSON of a typed blob, which may omit fields. */
function toJson(value: unknown): never {
  return (value ?? null) as never;
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

function describeVersion({ packageProperties: [property] }: BundleFacts): string {
  if (property === undefined) return '';
  return property.release === '' ? property.version : `${property.version} (release ${property.release})`;
}

function diffBundle(was: BundleBlob, is: BundleBlob, version: Change | undefined): BundleChange | undefined {
  const image = findChange(was.image, is.image);
  const relatedImages = changedList(
    getBundleImages({ ...was, image: '' }),
    getBundleImages({ ...is, image: '' }),
  );
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
  for (const { type, value } of properties) pushTo(values, type, encodeGoJson(value));
  const joined = [...values].map(([type, list]): [string, string] => [
    type,
    (type === propertyTypes.bundleObject ? list : sortedByBytes(list)).join('\n'),
  ]);
  return new Map(joined);
}

function listDeprecations({ package: of, entries }: DeprecationsFacts): [string, DeprecationState][] {
  return entries.map(({ reference: { schema, name }, message }) => [
    toBlobKey({ package: of, schema, name }),
    { package: of, schema, name, message },
  ]);
}

function toOtherBlob({ package: of, schema, name }: BlobKey): BlobKey {
  return { package: of, schema, name };
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
