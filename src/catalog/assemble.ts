import type { CancelOptions } from '../core/concurrency.js';
import { isEncodedAs } from '../document/go-json-match.js';
import { throwIfCancelled } from '../core/errors.js';
import { groupBy } from '../core/groups.js';
import type { JsonObject } from '../document/json.js';
import { compareBytes, sortLikeGo } from '../core/order.js';
import { type BundleBlob, propertyTypes } from '../model/declarative-config.js';
import {
  type CatalogFormat,
  toRecord,
  encodeBlob,
  encodeRecord,
  jsonIndent,
  recordWithUnknownFields,
} from '../model/encode.js';
import { detach } from '../model/describe.js';
import { migrateBundle } from '../model/migrations.js';
import { type DecodedBlob, decodeMeta } from './blob.js';
import type { Catalog } from './catalog.js';
import { locate } from './locate.js';
import type { Meta } from './meta.js';
import { Spool, type SpoolSlot } from './spool.js';

/** Preparation of blobs for output. */
export interface AssemblyOptions {
  format: CatalogFormat;
  /** Migration level as returned by `resolveMigrationLevel`; `none` leaves bundles unchanged. */
  migrationLevel: string;
  /** Directory for text that does not fit in memory. */
  temporaryDirectory: string;
  /**
   * Keep unknown fields of blobs, which `opm` drops, and the order of the properties and related images of such
   * blobs.
   */
  keepUnknownFields?: boolean | undefined;
}

/** Order of blob kinds within a package. */
const ranks = { package: 0, channel: 1, bundle: 2, other: 3, deprecations: 4 } as const;

/** Blobs read ahead, so that disk and processor work at the same time. */
const readAhead = 2;

interface Slot {
  package: string;
  rank: number;
  /** Sort key of blobs with the same rank, followed by the position of their reference. */
  key: string;
  position: number;
  /** Source of the text: finished text, or the origin of a blob. */
  text: SpoolSlot | undefined;
  source:
    | { catalog: Catalog; meta: Omit<Meta, 'value' | 'text'>; isCanonical: boolean; joints?: number[] }
    | undefined;
}

/**
 * Collects blobs from any number of sources, then writes them in the order of `opm`: packages by name; in each the
 * package, channels by name, bundles by name, other schemas, deprecations; and last blobs without a package. Blobs of
 * a catalog on disk are read and checked, and read again when written, so that memory holds one blob at a time, and
 * names; only short blobs at the start of a file wait as text in a spool. Nothing is written before everything was
 * read. (Source: declcfg.WriteJSON and WriteYAML of operator-registry.)
 */
export class Assembly {
  readonly #options: AssemblyOptions;
  readonly #spool: Spool;
  readonly #slots: Slot[] = [];
  /** Last file found to differ from the output format. */
  #otherwiseWritten: string | undefined;

  constructor(options: AssemblyOptions) {
    this.#options = options;
    this.#spool = new Spool(options.temporaryDirectory);
  }

  /**
   * Adds a blob of a catalog that stays readable until `write` is done. `position` orders otherwise equal blobs;
   * those of one position keep the order of addition. Throws for an invalid blob.
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
    // A migration may fail, and nothing may fail after writing has begun.
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
   * Reports whether a blob is stored exactly as in the output: then its bytes are copied without parsing. The first
   * other blob of a file ends the search there, as tools write all blobs alike.
   */
  #isCanonical(decoded: DecodedBlob, { text, value, origin }: Meta): boolean {
    const { format } = this.#options;
    if (text === undefined || origin.syntax !== format || format !== 'json') return false;
    if (this.#otherwiseWritten === origin.file) return false;
    const ordered = decoded.kind === 'bundle' ? { ...decoded, blob: withOutputOrder(decoded.blob) } : decoded;
    const record = this.#findUnknownFields(decoded, value) ?? toRecord(ordered);
    if (isEncodedAs(text, record, jsonIndent)) return true;
    this.#otherwiseWritten = origin.file;
    return false;
  }

  /** Adds a bundle rendered from its manifests. */
  async addBundle(blob: BundleBlob, position = 0): Promise<void> {
    await this.addText(blob, this.#encode({ kind: 'bundle', blob }), position);
  }

  /** Adds a blob that is in no catalog unchanged: without migration, with its properties in order. */
  async addBlob(blob: DecodedBlob, position = 0): Promise<void> {
    const slot = findSlot(blob, position);
    if (slot === undefined) return;
    slot.text = await this.#spool.append(encodeBlob(blob, this.#options.format));
    this.#slots.push(slot);
  }

  /** Adds a bundle as text in the format of this assembly. */
  async addText(
    bundle: { package: string; name: string },
    text: string | Buffer,
    position = 0,
  ): Promise<void> {
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

  /** Returns the names of all packages in output order; the empty name stands for blobs without a package. */
  packages(): string[] {
    const names = [...new Set(this.#slots.map((slot) => slot.package))].sort(compareBytes);
    return names[0] === '' ? [...names.slice(1), ''] : names;
  }

  /** Yields the output, one piece per blob. */
  async *write(options: CancelOptions = {}): AsyncGenerator<Buffer | string, void, undefined> {
    for await (const { text } of this.writeByPackage(options)) yield text;
  }

  /** Yields the output with the package of each piece. */
  async *writeByPackage(
    options: CancelOptions = {},
  ): AsyncGenerator<{ package: string; text: Buffer | string }, void, undefined> {
    const slots = mergeAdjacent(sortSlots(this.#slots));
    const ahead: Promise<JsonObject | Buffer>[] = [];
    const fetchNext = (index: number): void => {
      const slot = slots[index];
      if (slot === undefined) return;
      const fetched = this.#fetch(slot);
      // The consumer receives the failure; until then it must not count as unhandled.
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

  /** Returns the text of a slot, or the blob to encode. */
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

  #findUnknownFields({ kind }: DecodedBlob, value: JsonObject | undefined): JsonObject | undefined {
    if (!this.#options.keepUnknownFields || value === undefined) return undefined;
    return recordWithUnknownFields(kind, value);
  }

  /** Encodes an item; `value` is the JSON that it was decoded from, if any. */
  #encode(item: DecodedBlob, value?: JsonObject): string {
    const record = this.#findUnknownFields(item, value);
    if (record !== undefined) return encodeRecord(record, this.#options.format);
    if (item.kind !== 'bundle') return encodeBlob(item, this.#options.format);
    const blob = migrateBundle(withOutputOrder(item.blob), this.#options.migrationLevel);
    return encodeBlob({ kind: 'bundle', blob }, this.#options.format);
  }
}

/** Maximum length in characters of a blob that is cheaper to keep as text than to read again. */
const maxKept = 4096;

/** Keeps the first blob of a file only: nearly all blobs in catalogs of many small files, hardly any in others. */
function isQuickerKept({ text, origin }: Meta): boolean {
  return origin.offset === 0 && text !== undefined && text.length <= maxKept;
}

/**
 * Returns the place of a blob in the output; undefined for a blob of a catalog schema without a package, which is
 * dropped.
 */
function findSlot(item: DecodedBlob, position: number): Slot | undefined {
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

/**
 * Sorts in output order. Equal channels and bundles of a package have the order of Go's `sort.Slice`, other equal blobs
 * that of reading. (Source: operator-registry, declcfg/write.go.)
 */
function sortSlots(slots: readonly Slot[]): Slot[] {
  const ordered = [...slots].sort((a, b) => {
    if (a.package !== b.package) {
      if (a.package === '') return 1;
      if (b.package === '') return -1;
      return compareBytes(a.package, b.package);
    }
    return a.rank - b.rank || a.position - b.position;
  });
  const groups = groupBy(ordered, (slot) => `${slot.rank} ${slot.package}`);
  return [...groups.values()].flatMap((group) => {
    const compare = (a: Slot, b: Slot): number => compareBytes(a.key, b.key);
    const isOther = group[0]?.rank === ranks.other;
    return isOther ? group.sort(compare) : sortLikeGo(group, compare);
  });
}

/** Maximum bytes read at once for adjacent blobs. */
const maxRun = 1024 * 1024;
const lineFeed = 0x0a;

/** Merges blobs that can be copied and are adjacent in their file, one byte apart, in output order. */
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
      // White space between two blobs becomes a line feed.
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

/** Moves bundle objects and CSV metadata behind other properties, and sorts related images by image. */
function withOutputOrder(blob: BundleBlob): BundleBlob {
  const first = blob.properties.filter((property) => !movedToEnd.has(property.type));
  const last = blob.properties.filter((property) => movedToEnd.has(property.type));
  const relatedImages = sortLikeGo(blob.relatedImages, (a, b) => compareBytes(a.image, b.image));
  return { ...blob, properties: [...first, ...last], relatedImages };
}
