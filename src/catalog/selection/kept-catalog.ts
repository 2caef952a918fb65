import type { Catalog, MetasOptions } from '../catalog.js';
import type { Meta } from '../meta.js';
import { readBlobsAt } from '../partial-catalog.js';
import { OpmateError } from '../../core/errors.js';
import { findField, findFieldKeys } from '../../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../../document/json.js';
import { getList } from '../../document/json-fields.js';
import { type ChannelEntry, type DeprecationEntry, schemas } from '../../model/declarative-config.js';
import { decodeBundle, decodeChannel, decodeDeprecations, decodePackage } from '../../model/decode.js';
import { detach } from '../../model/describe.js';
import type {
  BlobOrigin,
  BundleFacts,
  CatalogFacts,
  ChannelFacts,
  DeprecationsFacts,
  PackageFacts,
} from '../../model/facts.js';

type Edit = (value: JsonObject) => JsonObject;

/**
 * Returns a catalog reduced to `facts`: omits blobs of other packages, channels and bundles, and other schemas with their
 * package. Changes what facts change: default channels, channel entries, deprecations. Keeps the first of duplicate
 * blobs.
 */
export function createKeptCatalog(
  catalog: Catalog,
  facts: CatalogFacts,
  withoutImages: ReadonlySet<string> = new Set(),
  others?: readonly BlobOrigin[],
): Catalog {
  return new KeptCatalog(catalog, facts, withoutImages, others);
}

/** A catalog whose blobs are those of facts. */
class KeptCatalog implements Catalog {
  readonly #catalog: Catalog;
  readonly #withoutImages: ReadonlySet<string>;
  readonly #others: readonly BlobOrigin[] | undefined;
  readonly #edits = new Map<BlobOrigin, Edit>();
  readonly #packages: Map<string, PackageFacts>;
  readonly #channels: Map<string, ChannelFacts>;
  readonly #bundles: Map<string, BundleFacts>;
  readonly #deprecations: Map<string, DeprecationsFacts>;
  readonly name: string;

  constructor(
    catalog: Catalog,
    facts: CatalogFacts,
    withoutImages: ReadonlySet<string>,
    others: readonly BlobOrigin[] | undefined,
  ) {
    this.#catalog = catalog;
    this.#withoutImages = withoutImages;
    this.#others = others;
    this.#packages = new Map(facts.packages.map((packageFacts) => [packageFacts.name, packageFacts]));
    this.#channels = new Map(facts.channels.map((channel) => [toKey(channel), channel]));
    this.#bundles = new Map(facts.bundles.map((bundle) => [toKey(bundle), bundle]));
    this.#deprecations = new Map(
      facts.deprecations.map((deprecations) => [deprecations.package, deprecations]),
    );
    this.name = catalog.name;
  }

  #readKept(options: MetasOptions): AsyncGenerator<Meta, void, undefined> {
    const lists = [this.#packages, this.#channels, this.#bundles, this.#deprecations];
    const known = lists.flatMap((list) => [...list.values()].map(({ origin }) => origin));
    const origins = [...known, ...(this.#others ?? [])].filter((origin) => origin !== undefined);
    return readBlobsAt(this.#catalog, origins, options);
  }

  /** Returns the change of a blob; undefined for an omitted one. */
  #findEdit(meta: Meta, seen: Set<string>): Edit | 'none' | undefined {
    const { schema, value } = meta;
    switch (schema) {
      case schemas.package: {
        const { name, defaultChannel } = decodePackage(value);
        const facts = this.#packages.get(name);
        if (facts === undefined || isRepeated(seen, schema, { name })) return undefined;
        if (facts.defaultChannel === defaultChannel) return 'none';
        return (blob) => withField(blob, 'defaultChannel', facts.defaultChannel);
      }
      case schemas.channel: {
        const blob = decodeChannel(value);
        const facts = this.#channels.get(toKey(blob));
        if (facts === undefined || isRepeated(seen, schema, blob)) return undefined;
        const before = blob.entries ?? [];
        const isSame = before.length === facts.entries.length && before.every(isSameAs(facts.entries));
        return isSame ? 'none' : (channel) => withEntries(channel, facts.entries);
      }
      case schemas.bundle: {
        const blob = decodeBundle(value);
        if (!this.#bundles.has(toKey(blob)) || isRepeated(seen, schema, blob)) return undefined;
        if (!blob.relatedImages.some(({ image }) => this.#withoutImages.has(image))) return 'none';
        return (bundle) => withoutRelated(bundle, this.#withoutImages);
      }
      case schemas.deprecations: {
        const blob = decodeDeprecations(value);
        const facts = this.#deprecations.get(blob.package);
        if (facts === undefined || isRepeated(seen, schema, { name: blob.package })) return undefined;
        const kept = new Set(facts.entries.map(formatDeprecationReference));
        if ((blob.entries ?? []).every((entry) => kept.has(formatDeprecationReference(entry)))) return 'none';
        return (deprecations) => withDeprecations(deprecations, kept);
      }
      default:
        return meta.package === '' || this.#packages.has(meta.package) ? 'none' : undefined;
    }
  }

  async *metas(options: MetasOptions = {}): AsyncGenerator<Meta, void, undefined> {
    const seen = new Set<string>();
    for await (const meta of this.#others === undefined
      ? this.#catalog.metas(options)
      : this.#readKept(options)) {
      const edit = this.#findEdit(meta, seen);
      if (edit === undefined) continue;
      if (edit === 'none') {
        yield meta;
        continue;
      }
      this.#edits.set(meta.origin, edit);
      yield { ...meta, value: edit(meta.value), text: undefined };
    }
    const wanted = [
      ...[...this.#packages.keys()].map((name) => keyIn(schemas.package, { name })),
      ...[...this.#channels.values()].map((channelFacts) => keyIn(schemas.channel, channelFacts)),
      ...[...this.#bundles.values()].map((bundleFacts) => keyIn(schemas.bundle, bundleFacts)),
    ];
    const lost = wanted.find((key) => !seen.has(key));
    if (lost === undefined) return;
    throw new OpmateError('IO', `${lost} no longer exists`, {
      subject: this.#catalog.name,
      hint: 'run the command again when no other process writes to the catalog',
    });
  }

  async read(origin: BlobOrigin): Promise<JsonObject> {
    const value = await this.#catalog.read(origin);
    return this.#edits.get(origin)?.(value) ?? value;
  }

  /** Returns the original text of a blob: a changed one has no text before it is written. */
  readText(origin: BlobOrigin): Promise<Buffer> {
    return this.#catalog.readText(origin);
  }

  lineOf(origin: BlobOrigin, path?: readonly (string | number)[]): Promise<number | undefined> {
    return this.#catalog.lineOf(origin, path);
  }

  async close(): Promise<void> {
    this.#edits.clear();
  }
}

/** Reports whether a blob of this name was already read. */
function isRepeated(seen: Set<string>, schema: string, item: { package?: string; name: string }): boolean {
  const key = keyIn(schema, item);
  if (seen.has(key)) return true;
  // The key is a view into the text of a whole file.
  seen.add(detach(key));
  return false;
}

function keyIn(schema: string, item: { package?: string; name: string }): string {
  return `${schema} ${item.package === undefined ? '' : `${item.package}/`}${item.name}`;
}

function toKey(item: { package: string; name: string }): string {
  return `${item.package}/${item.name}`;
}

function isSameAs(others: readonly ChannelEntry[]): (entry: ChannelEntry, position: number) => boolean {
  return (entry, position) => {
    const other = others[position];
    return other !== undefined && isSameEntry(entry, other);
  };
}

function isSameEntry(a: ChannelEntry, b: ChannelEntry): boolean {
  return (
    a.name === b.name &&
    a.replaces === b.replaces &&
    a.skipRange === b.skipRange &&
    a.skips.length === b.skips.length &&
    a.skips.every((skip, index) => skip === b.skips[index])
  );
}

export function formatDeprecationReference({ reference: { schema, name } }: DeprecationEntry): string {
  return `${schema}/${name}`;
}

/** Returns the object with a field set or removed; readers match field names in any case. */
export function withField(object: JsonObject, field: string, value: JsonValue | undefined): JsonObject {
  const result: JsonObject = {};
  const keys = findFieldKeys(object, field);
  let isSet = value === undefined;
  for (const [key, item] of Object.entries(object)) {
    if (!keys.includes(key)) setJsonKey(result, key, item);
    else if (!isSet) {
      result[field] = value as JsonValue;
      isSet = true;
    }
  }
  if (!isSet) result[field] = value as JsonValue;
  return result;
}

/** Returns the list at a field as decoding reads it; empty for anything else. */
export function listAt(object: JsonObject, field: string): JsonValue[] {
  return getList(findField(object, field));
}

/** Returns the channel with these entries; existing ones keep their other fields. */
export function withEntries(channel: JsonObject, entries: readonly ChannelEntry[]): JsonObject {
  const before = new Map<string, { entry: ChannelEntry; value: JsonValue }>();
  const values = listAt(channel, 'entries');
  for (const [index, entry] of (decodeChannel(channel).entries ?? []).entries()) {
    if (!before.has(entry.name)) before.set(entry.name, { entry, value: values[index] ?? null });
  }
  const list = entries.map((wanted): JsonValue => {
    const known = before.get(wanted.name);
    if (known !== undefined && isSameEntry(known.entry, wanted)) return known.value;
    let value: JsonObject = isJsonObject(known?.value) ? known.value : {};
    const { name, replaces, skips, skipRange } = wanted;
    value = withField(value, 'name', name);
    value = withField(value, 'replaces', replaces === '' ? undefined : replaces);
    value = withField(value, 'skips', skips.length === 0 ? undefined : [...skips]);
    return withField(value, 'skipRange', skipRange === '' ? undefined : skipRange);
  });
  return withField(channel, 'entries', list);
}

function withoutRelated(bundle: JsonObject, dropped: ReadonlySet<string>): JsonObject {
  const { relatedImages } = decodeBundle(bundle);
  const list = listAt(bundle, 'relatedImages').filter(
    (_, index) => !dropped.has(relatedImages[index]?.image ?? ''),
  );
  return withField(bundle, 'relatedImages', list.length === 0 ? undefined : list);
}

export function withDeprecations(deprecations: JsonObject, kept: ReadonlySet<string>): JsonObject {
  const entries = decodeDeprecations(deprecations).entries ?? [];
  const list = listAt(deprecations, 'entries').filter((_, index) => {
    const entry = entries[index];
    return entry !== undefined && kept.has(formatDeprecationReference(entry));
  });
  return withField(deprecations, 'entries', list);
}
