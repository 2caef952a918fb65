import type { CancelOptions } from '../core/concurrency.js';
import { isEncodedAs } from '../document/go-json-match.js';
import { throwIfCancelled } from '../core/errors.js';
import type { JsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { type BundleBlob, propertyTypes } from '../model/declarative-config.js';
import {
  type CatalogFormat,
  blobRecord,
  encodeBlob,
  encodeRecord,
  jsonIndent,
  recordWithUnknownFields,
} from '../model/encode.js';
import { detach } from '../model/describe.js';
import { migrateBundle } from '../model/migrations.js';
import { type CatalogBlob, decodeMeta } from './blob.js';
import type { Catalog } from './catalog.js';
import { locate } from './locate.js';
import type { Meta } from './meta.js';
import { Spool, type SpoolSlot } from './spool.js';

/** How blobs are prepared for output. */
export interface AssemblyOptions {
  format: CatalogFormat;
  /** Migration level, as `resolveMigrationLevel` returns it; `none` leaves bundles as they are. */
  migrationLevel: string;
  /** Directory for text that does not fit in memory. */
  temporaryDirectory: string;
  /**
   * Blobs keep the fields that the format does not know, which `opm` drops. Such a blob's properties and related
   * images keep their order too.
   */
  keepUnknownFields?: boolean | undefined;
}

/** Order of the kinds of blobs within a package. */
const ranks = { package: 0, channel: 1, bundle: 2, other: 3, deprecations: 4 } as const;

/** Blobs that are read while the one before them is written: disk and processor work at the same time. */
const readAhead = 2;

interface Slot {
  package: string;
  rank: number;
  /** What blobs of the same rank are sorted by, and then which reference they came from. */
  key: string;
  position: number;
  /** Where the text comes from: made already, or to be made from the blob at its origin. */
  text: SpoolSlot | undefined;
  source:
    | { catalog: Catalog; meta: Omit<Meta, 'value' | 'text'>; isCanonical: boolean; joints?: number[] }
    | undefined;
}

/**
 * Collects blobs from any number of sources, then writes them in the order of `opm`: packages by name;
 * in each the package, channels by name, bundles by name, other schemas, deprecations; and blobs without a
 * package last. Blobs of a catalog on disk are read, checked and let go, and read again when they are
 * written, so memory holds one blob at a time and names; only short blobs at the start of a file wait as
 * text in a spool. Nothing is written before everything was read.
 * (Source: declcfg.WriteJSON and WriteYAML of operator-registry.)
 */
export class Assembly {
  readonly #options: AssemblyOptions;
  readonly #spool: Spool;
  readonly #slots: Slot[] = [];
  /** The file that was last found to be written in another form than the output. */
  #otherwiseWritten: string | undefined;

  constructor(options: AssemblyOptions) {
    this.#options = options;
    this.#spool = new Spool(options.temporaryDirectory);
  }

  /**
   * Adds a blob of a catalog that stays readable until `write` is done. `position` orders blobs that are
   * alike; those of one position keep the order in which they are added. Throws when the blob is not valid.
   */
  async add(catalog: Catalog, meta: Meta, position = 0): Promise<void> {
    try {
      await this.#add(catalog, meta, position);
    } catch (error) {
      throw await locate(catalog, meta.origin, error);
    }
  }

  async #add(catalog: Catalog, meta: Meta, position: number): Promise<void> {
    const decoded = decodeMeta(meta);
    const slot = findSlot(decoded, position);
    if (slot === undefined) return;
    // A migration can fail, and nothing may fail once writing has begun.
    const isMigrated = decoded.kind === 'bundle' && this.#options.migrationLevel !== 'none';
    if (isMigrated || isQuickerKept(meta)) {
      slot.text = await this.#spool.append(this.#encode(decoded, meta.value));
    } else {
      const { schema, package: packageName, name, origin } = meta;
      slot.source = {
        catalog,
        meta: { schema: detach(schema), package: detach(packageName), name: detach(name), origin },
        isCanonical: this.#isCanonical(decoded, meta),
      };
    }
    this.#slots.push(slot);
  }

  /**
   * Whether a blob is written already as it will be: then its bytes are copied, and it is not parsed again.
   * The first blob of a file that is not ends the search in that file, for tools write all or none so.
   */
  #isCanonical(decoded: CatalogBlob, { text, value, origin }: Meta): boolean {
    const { format } = this.#options;
    if (text === undefined || origin.syntax !== format || format !== 'json') return false;
    if (this.#otherwiseWritten === origin.file) return false;
    const ordered = decoded.kind === 'bundle' ? { ...decoded, blob: withOutputOrder(decoded.blob) } : decoded;
    const record = this.#findUnknownFields(decoded, value) ?? blobRecord(ordered);
    if (isEncodedAs(text, record, jsonIndent)) return true;
    this.#otherwiseWritten = origin.file;
    return false;
  }

  /** Adds a bundle that was rendered from its manifests. */
  async addBundle(blob: BundleBlob, position = 0): Promise<void> {
    await this.addText(blob, this.#encode({ kind: 'bundle', blob }), position);
  }

  /** Adds a blob that no catalog holds, as it is: neither migrated, nor with its properties in another order. */
  async addBlob(blob: CatalogBlob, position = 0): Promise<void> {
    const slot = findSlot(blob, position);
    if (slot === undefined) return;
    slot.text = await this.#spool.append(encodeBlob(blob, this.#options.format));
    this.#slots.push(slot);
  }

  /** Adds a bundle whose text in the format of this assembly was made elsewhere. */
  async addText(bundle: { package: string; name: string }, text: string, position = 0): Promise<void> {
    if (bundle.package === '') return;
    const slot: Slot = {
      package: bundle.package,
      rank: ranks.bundle,
      key: bundle.name,
      position,
      text: await this.#spool.append(text),
      source: undefined,
    };
    this.#slots.push(slot);
  }

  /** The names of all packages, in output order; the empty name stands for blobs without a package. */
  packages(): string[] {
    const names = [...new Set(this.#slots.map((slot) => slot.package))].sort(compareBytes);
    return names[0] === '' ? [...names.slice(1), ''] : names;
  }

  /** The output, in pieces of a blob each. */
  async *write(options: CancelOptions = {}): AsyncGenerator<Buffer | string, void, undefined> {
    for await (const { text } of this.writeByPackage(options)) yield text;
  }

  /** The output with the package that each piece belongs to. */
  async *writeByPackage(
    options: CancelOptions = {},
  ): AsyncGenerator<{ package: string; text: Buffer | string }, void, undefined> {
    const slots = mergeAdjacent(sortSlots(this.#slots));
    const ahead: Promise<JsonObject | Buffer>[] = [];
    const fetchNext = (index: number): void => {
      const slot = slots[index];
      if (slot === undefined) return;
      const fetched = this.#fetch(slot);
      // Whoever awaits it sees the failure; until then it is not an unhandled one.
      fetched.catch(() => undefined);
      ahead.push(fetched);
    };
    for (let index = 0; index < readAhead; index++) fetchNext(index);
    for (const [index, slot] of slots.entries()) {
      throwIfCancelled(options.signal);
      const fetched = (await ahead.shift()) as JsonObject | Buffer;
      fetchNext(index + readAhead);
      yield { package: slot.package, text: Buffer.isBuffer(fetched) ? fetched : this.#toText(slot, fetched) };
      if (slot.source?.isCanonical === true) yield { package: slot.package, text: '\n' };
    }
  }

  async close(): Promise<void> {
    await this.#spool.close();
  }

  /** The text of a slot, or the blob that it is to be made of. */
  async #fetch(slot: Slot): Promise<JsonObject | Buffer> {
    if (slot.text !== undefined) return this.#spool.read(slot.text);
    const { catalog, meta, isCanonical, joints = [] } = slot.source as NonNullable<Slot['source']>;
    if (!isCanonical) return catalog.read(meta.origin);
    const text = await catalog.readText(meta.origin);
    for (const joint of joints) text[joint] = lineFeed;
    return text;
  }

  #toText(slot: Slot, value: JsonObject): string {
    const { meta } = slot.source as NonNullable<Slot['source']>;
    return this.#encode(decodeMeta({ ...meta, value }), value);
  }

  #findUnknownFields({ kind }: CatalogBlob, value: JsonObject | undefined): JsonObject | undefined {
    if (!this.#options.keepUnknownFields || value === undefined) return undefined;
    return recordWithUnknownFields(kind, value);
  }

  /** `value` is what the item was decoded from, if it was. */
  #encode(item: CatalogBlob, value?: JsonObject): string {
    const record = this.#findUnknownFields(item, value);
    if (record !== undefined) return encodeRecord(record, this.#options.format);
    if (item.kind !== 'bundle') return encodeBlob(item, this.#options.format);
    const blob = migrateBundle(withOutputOrder(item.blob), this.#options.migrationLevel);
    return encodeBlob({ kind: 'bundle', blob }, this.#options.format);
  }
}

/** Length of blobs, in characters, for which opening their file again costs more than keeping their text. */
const maxKept = 4096;

/** Only the first blob of a file: in catalogs of many small files that is nearly all, in others next to none. */
function isQuickerKept({ text, origin }: Meta): boolean {
  return origin.offset === 0 && text !== undefined && text.length <= maxKept;
}

/** Where a blob goes; undefined for one of the format's own schemas without a package, which is dropped. */
function findSlot(item: CatalogBlob, position: number): Slot | undefined {
  const slot = (packageName: string, key: string): Slot => ({
    package: detach(packageName),
    rank: ranks[item.kind],
    key: detach(key),
    position,
    text: undefined,
    source: undefined,
  });
  switch (item.kind) {
    case 'package':
      return item.blob.name === '' ? undefined : slot(item.blob.name, '');
    case 'channel':
    case 'bundle':
      return item.blob.package === '' ? undefined : slot(item.blob.package, item.blob.name);
    case 'deprecations':
      return item.blob.package === '' ? undefined : slot(item.blob.package, '');
    case 'other':
      return slot(item.meta.package, item.meta.package === '' ? '' : item.meta.schema);
  }
}

/** Output order. Blobs that compare equal keep the order in which they were read. */
function sortSlots(slots: Slot[]): Slot[] {
  return [...slots].sort((a, b) => {
    if (a.package !== b.package) {
      if (a.package === '') return 1;
      if (b.package === '') return -1;
      return compareBytes(a.package, b.package);
    }
    return a.rank - b.rank || compareBytes(a.key, b.key) || a.position - b.position;
  });
}

/** Bytes that are read in one piece where blobs stand side by side in their file. */
const maxRun = 1024 * 1024;
const lineFeed = 0x0a;

/** Puts blobs together that can be copied and stand in output order in their file, one byte apart. */
function mergeAdjacent(slots: readonly Slot[]): Slot[] {
  const merged: Slot[] = [];
  for (const slot of slots) {
    const last = merged.at(-1);
    const run = last?.source;
    const next = slot.source;
    if (last === undefined || !run?.isCanonical || !next?.isCanonical || !follows(last, slot)) {
      merged.push(slot);
      continue;
    }
    const { origin } = run.meta;
    const end = next.meta.origin.offset + next.meta.origin.length;
    const source = {
      ...run,
      meta: { ...run.meta, origin: { ...origin, length: end - origin.offset } },
      // What parts two blobs is white space; in the output it is a line feed.
      joints: [...(run.joints ?? []), origin.length],
    };
    merged[merged.length - 1] = { ...last, source };
  }
  return merged;
}

function follows(run: Slot, slot: Slot): boolean {
  const before = run.source?.meta.origin;
  const after = slot.source?.meta.origin;
  return (
    before !== undefined &&
    after !== undefined &&
    run.package === slot.package &&
    run.source?.catalog === slot.source?.catalog &&
    before.file === after.file &&
    before.offset + before.length + 1 === after.offset &&
    before.length + after.length < maxRun
  );
}

const movedToEnd: ReadonlySet<string> = new Set([propertyTypes.bundleObject, propertyTypes.csvMetadata]);

/** Bundle objects and CSV metadata after all other properties, related images by image. */
function withOutputOrder(blob: BundleBlob): BundleBlob {
  const first = blob.properties.filter((property) => !movedToEnd.has(property.type));
  const last = blob.properties.filter((property) => movedToEnd.has(property.type));
  const relatedImages = [...blob.relatedImages].sort((a, b) => compareBytes(a.image, b.image));
  return { ...blob, properties: [...first, ...last], relatedImages };
}
