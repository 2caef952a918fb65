import { addToFacts, decodeMeta } from '../blob.js';
import type { Catalog, MetasOptions } from '../catalog.js';
import { readLocated } from '../locate.js';
import type { Meta } from '../meta.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, parseGoJson, quoteGo } from '../../document/go-json.js';
import { isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import {
  type ChannelEntry,
  type PackageBlob,
  propertyTypes,
  schemas,
} from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts } from '../../model/facts.js';
import { readGraph } from '../../graph/channel-graph.js';
import { validateInTurns } from '../../graph/validate.js';
import { encodeFacts, encodeManifests, getProvidedApis } from './bundle-messages.js';
import type { RecordFile, Slot } from './record-file.js';
import { addContext } from '../../core/diagnostics-error.js';
import type { ApiName } from '../../model/csv.js';

/** Maximum bytes of encoded facts and of recently sent messages in memory. */
const maxFactsBytes = 24 * 1024 * 1024;
const maxRecentBytes = 16 * 1024 * 1024;

/** Index of a catalog for queries, sorted by name; plain JSON for the cache. */
export interface CatalogIndex {
  packages: IndexedPackage[];
  bundles: IndexedBundle[];
  /** Blobs of custom schemas, in walk order. */
  custom: IndexedBlob[];
}

export interface IndexedPackage {
  name: string;
  defaultChannel: string;
  deprecation?: string | undefined;
  channels: IndexedChannel[];
}

export interface IndexedChannel {
  name: string;
  head: string;
  deprecation?: string | undefined;
  entries: ChannelEntry[];
}

export interface IndexedBundle {
  package: string;
  name: string;
  deprecation?: string | undefined;
  provided: ApiName[];
  /** A bundle without an image is listed with its manifests, which have no other source. */
  hasImage: boolean;
  /** Place of its blob; undefined for a bundle from a cache. */
  origin?: BlobOrigin | undefined;
  /** Parts of its message, once written. */
  facts?: Slot | undefined;
  manifests?: Slot | undefined;
}

export interface IndexedBlob {
  schema: string;
  package: string;
  origin?: BlobOrigin | undefined;
  text?: Slot | undefined;
}

/** The catalog or its cache has changed since it was opened. */
export class DamagedRecordError extends OpmateError {}

/**
 * Encoded bundles of a catalog: encoded with the first request or by `encodeAll`, and kept in a file. Without a file,
 * each request encodes.
 */
export class CatalogContent {
  readonly index: CatalogIndex;
  readonly #catalog: Catalog | undefined;
  #records: RecordFile | undefined;
  readonly #origins = new Map<string, BlobOrigin>();
  readonly #facts = new Map<IndexedBundle, Buffer>();
  #factsBytes = 0;
  readonly #maxFactsBytes: number;
  #isFull = false;
  /** Messages with manifests, least recently used first. */
  readonly #recent = new Map<string, Buffer>();
  #recentBytes = 0;
  readonly #pending = new Map<IndexedBundle, Promise<Buffer>>();
  #owner: { name: string; blob: Promise<PackageBlob> } | undefined;

  /** Without `catalog`, all parts must be in `records`. `keepsFacts` also keeps encoded facts in memory. */
  constructor(
    index: CatalogIndex,
    records: RecordFile | undefined,
    catalog?: Catalog,
    { keepsFacts = true }: { keepsFacts?: boolean | undefined } = {},
  ) {
    this.index = index;
    this.#maxFactsBytes = keepsFacts ? maxFactsBytes : 0;
    this.#records = records;
    this.#catalog = catalog;
  }

  /**
   * Reads a catalog, which must stay open; `records` is closed with the content. Throws OpmateError INVALID with all
   * faults of an invalid catalog, and errors of reading.
   */
  static async read(
    catalog: Catalog,
    records: RecordFile | undefined,
    options: MetasOptions & { keepsFacts?: boolean | undefined } = {},
  ): Promise<CatalogContent> {
    const index: CatalogIndex = { packages: [], bundles: [], custom: [] };
    const content = new CatalogContent(index, records, catalog, options);
    const facts = emptyFacts();
    const faults: OpmateError[] = [];
    const onFault = (fault: OpmateError): void => void faults.push(fault);
    await readLocated(catalog, { ...options, onFault }, (meta) => content.#add(meta, facts));
    const [first] = faults;
    if (first !== undefined) {
      throw faults.length === 1 ? first : addContext(first, { cause: new AggregateError(faults) });
    }
    const report = await validateInTurns(facts, options);
    if (!report.passed) {
      throw new OpmateError('INVALID', report.message ?? 'invalid index', {
        hint: 'run api.validate to list every problem',
      });
    }
    index.packages = indexPackages(facts, index.bundles);
    return content;
  }

  async #add(meta: Meta, facts: CatalogFacts): Promise<void> {
    const { origin } = meta;
    const decoded = decodeMeta(meta);
    const described = addToFacts(facts, decoded, origin);
    switch (decoded.kind) {
      case 'package':
        this.#origins.set(decoded.blob.name, origin);
        break;
      case 'bundle': {
        const { blob } = decoded;
        // Validation reports its faults.
        if (described === undefined || described.propertyFaults.length > 0) break;
        const count = blob.properties.filter(({ type }) => type === propertyTypes.csvMetadata).length;
        if (count > 1) {
          throw new OpmateError(
            'INVALID',
            `package ${quoteGo(blob.package)}, bundle ${quoteGo(blob.name)}: ` +
              `expected at most 1 property of type ${quoteGo(propertyTypes.csvMetadata)}, got ${count}`,
            { hint: 'keep one of the properties', file: origin.file },
          );
        }
        const bundle: IndexedBundle = {
          package: described.package,
          name: described.name,
          provided: getProvidedApis(blob).map(({ group, version, kind }) => ({
            group: detach(group),
            version: detach(version),
            kind: detach(kind),
          })),
          hasImage: described.image !== '',
          origin,
        };
        this.index.bundles.push(bundle);
        const bytes = encodeFacts(blob);
        this.#keepFacts(bundle, bytes);
        bundle.facts = await this.#append(bytes);
        break;
      }
      case 'channel':
      case 'deprecations':
        break;
      case 'other': {
        const blob: IndexedBlob = {
          schema: detach(meta.schema),
          package: detach(meta.package),
          origin,
        };
        this.index.custom.push(blob);
        if (this.#records !== undefined)
          blob.text = await this.#append(Buffer.from(encodeGoJson(meta.value)));
        break;
      }
    }
  }

  /** Returns the fields of a bundle from its blob, without manifests. Throws DamagedRecordError. */
  async readFacts(bundle: IndexedBundle): Promise<Buffer> {
    const kept = this.#facts.get(bundle) ?? (await this.#read(bundle.facts));
    if (kept !== undefined) {
      this.#keepFacts(bundle, kept);
      return kept;
    }
    return encodeFacts(await this.#readBlob(bundle));
  }

  /**
   * Returns the message of a bundle in a channel, whose fields are `part`. Recent messages with manifests are cached by
   * `part`. Throws DamagedRecordError.
   */
  async getMessage(bundle: IndexedBundle, part: Buffer, withManifests: boolean): Promise<Buffer> {
    if (!withManifests) return Buffer.concat([await this.readFacts(bundle), part]);
    const key = `${getBundleKey(bundle.package, bundle.name)}\0${part.toString('latin1')}`;
    const recent = this.#recent.get(key);
    if (recent !== undefined) {
      this.#recent.delete(key);
      this.#recent.set(key, recent);
      return recent;
    }
    const facts = await this.readFacts(bundle);
    const message =
      (await this.#readBetween(facts, bundle.manifests, part)) ??
      Buffer.concat([facts, await this.#loadManifests(bundle), part]);
    this.#remember(key, message);
    return message;
  }

  /** Encodes a bundle without the fields of a channel, uncached. */
  async encodeMessage(bundle: IndexedBundle): Promise<Buffer> {
    const blob = await this.#readBlob(bundle);
    const manifests = await encodeManifests(blob, () => this.#readPackage(bundle.package));
    return Buffer.concat([encodeFacts(blob), manifests]);
  }

  /** Reads a record between other bytes without copying it: large buffers dominate the time. */
  async #readBetween(before: Buffer, slot: Slot | undefined, after: Buffer): Promise<Buffer | undefined> {
    if (slot === undefined || this.#records === undefined) return undefined;
    const bytes = Buffer.allocUnsafeSlow(before.length + slot.length + after.length);
    const end = before.length + slot.length;
    if (!(await this.#records.readInto(slot, bytes.subarray(before.length, end)))) return undefined;
    before.copy(bytes);
    after.copy(bytes, end);
    return bytes;
  }

  /** Shares the result among simultaneous callers. */
  #loadManifests(bundle: IndexedBundle): Promise<Buffer> {
    let pending = this.#pending.get(bundle);
    if (pending === undefined) {
      pending = this.#readManifests(bundle).finally(() => this.#pending.delete(bundle));
      this.#pending.set(bundle, pending);
    }
    return pending;
  }

  async #readManifests(bundle: IndexedBundle): Promise<Buffer> {
    const kept = await this.#read(bundle.manifests);
    if (kept !== undefined) return kept;
    const blob = await this.#readBlob(bundle);
    const bytes = await encodeManifests(blob, () => this.#readPackage(bundle.package));
    bundle.manifests ??= await this.#append(bytes);
    return bytes;
  }

  /** Reads a blob of a custom schema. Throws DamagedRecordError. */
  async readCustomBlob(blob: IndexedBlob): Promise<Record<string, unknown>> {
    const text = await this.#read(blob.text);
    const value = text === undefined ? await this.#readOrigin(blob.origin) : parseGoJson(text.toString());
    if (isJsonObject(value)) return value;
    throw new DamagedRecordError('INTERNAL', 'cache: expected a blob to be an object');
  }

  /** Encodes all remaining bundles. Returns whether all of them are in the file. */
  async encodeAll({ signal }: CancelOptions): Promise<boolean> {
    for (const bundle of this.index.bundles) {
      throwIfCancelled(signal);
      if (this.#records === undefined || this.#isFull) return false;
      if (bundle.manifests === undefined) await this.#loadManifests(bundle);
      // Requests come first.
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { bundles, custom } = this.index;
    return (
      bundles.every(({ facts, manifests }) => facts !== undefined && manifests !== undefined) &&
      custom.every(({ text }) => text !== undefined)
    );
  }

  async close(): Promise<void> {
    const records = this.#records;
    this.#records = undefined;
    await records?.close();
  }

  /** Writes a record if there is a file; after a failure, none any more. */
  async #append(bytes: Buffer): Promise<Slot | undefined> {
    if (this.#isFull) return undefined;
    try {
      return await this.#records?.append(bytes);
    } catch {
      // A full disk: written records stay readable, further ones are encoded per request.
      this.#isFull = true;
      return undefined;
    }
  }

  async #read(slot: Slot | undefined): Promise<Buffer | undefined> {
    if (slot === undefined) return undefined;
    const bytes = await this.#records?.read(slot);
    if (bytes === undefined && this.#catalog === undefined) {
      throw new DamagedRecordError('IO', 'cache: damaged bundle');
    }
    return bytes;
  }

  async #readBlob(bundle: IndexedBundle) {
    const value = await this.#readOrigin(bundle.origin);
    const { package: packageName, name, origin } = bundle;
    const decoded = decodeMeta({
      schema: schemas.bundle,
      package: packageName,
      name,
      value,
      origin: origin as BlobOrigin,
    });
    if (decoded.kind === 'bundle') return decoded.blob;
    throw new DamagedRecordError('INTERNAL', `bundle ${quoteGo(name)} is not a bundle`);
  }

  async #readOrigin(origin: BlobOrigin | undefined) {
    if (origin === undefined || this.#catalog === undefined) {
      throw new DamagedRecordError('IO', 'cache: missing blob');
    }
    return this.#catalog.read(origin);
  }

  /** Reads the package of a bundle; keeps the last one, as bundles of a package are mostly read together. */
  #readPackage(name: string): Promise<PackageBlob> {
    if (this.#owner?.name === name) return this.#owner.blob;
    const read = async (): Promise<PackageBlob> => {
      const origin = this.#origins.get(name) as BlobOrigin;
      const value = await this.#readOrigin(origin);
      const decoded = decodeMeta({ schema: schemas.package, package: '', name, value, origin });
      if (decoded.kind === 'package') return decoded.blob;
      throw new DamagedRecordError('INTERNAL', `package ${quoteGo(name)} is not a package`);
    };
    this.#owner = { name, blob: read() };
    this.#owner.blob.catch(() => (this.#owner = undefined));
    return this.#owner.blob;
  }

  #keepFacts(bundle: IndexedBundle, bytes: Buffer): void {
    if (this.#facts.has(bundle) || this.#factsBytes + bytes.length > this.#maxFactsBytes) return;
    this.#factsBytes += bytes.length;
    this.#facts.set(bundle, compact(bytes));
  }

  #remember(key: string, message: Buffer): void {
    if (this.#recent.has(key) || message.length > maxRecentBytes / 4) return;
    this.#recent.set(key, message);
    this.#recentBytes += message.length;
    for (const [oldest, { length }] of this.#recent) {
      if (this.#recentBytes <= maxRecentBytes) break;
      this.#recent.delete(oldest);
      this.#recentBytes -= length;
    }
  }
}

/** Copies a slice of the pool, which would keep the whole pool alive. */
function compact(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength <= bytes.length + 64) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(copy);
  return copy;
}

/** Returns the packages of a valid catalog, sorted by name, and sets deprecations of `bundles`, which may be a part of it. */
export function indexPackages(facts: CatalogFacts, bundles: readonly IndexedBundle[]): IndexedPackage[] {
  const packages = new Map<string, IndexedPackage>();
  for (const { name, defaultChannel } of facts.packages) {
    packages.set(name, { name, defaultChannel, channels: [] });
  }
  for (const { package: owner, name, entries } of facts.channels) {
    const [head = ''] = readGraph(entries).heads;
    const sorted = [...entries].sort((a, b) => compareBytes(a.name, b.name));
    packages.get(owner)?.channels.push({ name, head, entries: sorted });
  }
  const byKey = new Map(bundles.map((bundle) => [getBundleKey(bundle.package, bundle.name), bundle]));
  for (const { package: owner, entries } of facts.deprecations) {
    const indexedPackage = packages.get(owner);
    for (const { reference, message } of entries) {
      const target =
        reference.schema === schemas.package
          ? indexedPackage
          : reference.schema === schemas.channel
            ? indexedPackage?.channels.find(({ name }) => name === reference.name)
            : byKey.get(getBundleKey(owner, reference.name));
      if (target !== undefined) target.deprecation ??= message;
    }
  }
  const sorted = [...packages.values()].sort((a, b) => compareBytes(a.name, b.name));
  for (const { channels } of sorted) channels.sort((a, b) => compareBytes(a.name, b.name));
  return sorted;
}

/** Returns the key of a bundle among those of all packages. */
export function getBundleKey(packageName: string, name: string): string {
  return `${packageName}\0${name}`;
}
