import { encodeGoJson, sortKeysDeep } from '../document/go-json.js';
import {
  type EncodableJson,
  type JsonObject,
  type JsonValue,
  isJsonObject,
  setJsonKey,
} from '../document/json.js';
import { sortedByBytes } from '../core/order.js';
import { encodeYaml } from '../document/yaml.js';
import type {
  BundleBlob,
  ChannelBlob,
  DeprecationsBlob,
  PackageBlob,
  Property,
} from './declarative-config.js';
import { type StructShape, blobShapes } from './decode.js';

/** A blob to write: typed if of the format's own schemas, otherwise as read. */
export type EncodableBlob =
  | { kind: 'package'; blob: PackageBlob }
  | { kind: 'channel'; blob: ChannelBlob }
  | { kind: 'bundle'; blob: BundleBlob }
  | { kind: 'deprecations'; blob: DeprecationsBlob }
  | { kind: 'other'; meta: { value: JsonObject } };

/** Spaces of indentation in JSON catalogs. */
export const jsonIndent = 4;

/** Format of written catalogs. */
export type CatalogFormat = 'json' | 'yaml';

/**
 * Returns the text of a blob as `opm` writes it: JSON with four spaces of indentation and a final line break, or a YAML
 * document with its `---` line.
 */
export function encodeBlob(blob: EncodableBlob, format: CatalogFormat): string {
  return encodeRecord(toRecord(blob), format);
}

/** Returns the text of a record with fields in output order. */
export function encodeRecord(record: EncodableJson, format: CatalogFormat): string {
  if (format === 'yaml') return `---\n${encodeYaml(record)}`;
  return `${encodeGoJson(record, { indent: jsonIndent })}\n`;
}

/** Returns the fields of a blob in output order, without optional empty ones. */
export function toRecord(item: EncodableBlob): EncodableJson {
  switch (item.kind) {
    case 'package': {
      const { blob } = item;
      return {
        schema: blob.schema,
        name: blob.name,
        defaultChannel: blob.defaultChannel,
        ...(blob.icon && { icon: { base64data: blob.icon.base64data, mediatype: blob.icon.mediatype } }),
        ...(blob.description !== '' && { description: blob.description }),
        ...withProperties(blob.properties),
      };
    }
    case 'channel': {
      const { blob } = item;
      return {
        schema: blob.schema,
        name: blob.name,
        package: blob.package,
        entries:
          blob.entries?.map((entry) => ({
            name: entry.name,
            ...(entry.replaces !== '' && { replaces: entry.replaces }),
            ...(entry.skips.length > 0 && { skips: entry.skips }),
            ...(entry.skipRange !== '' && { skipRange: entry.skipRange }),
          })) ?? null,
        ...withProperties(blob.properties),
      };
    }
    case 'bundle':
      return bundleRecord(item.blob);
    case 'deprecations': {
      const { blob } = item;
      return {
        schema: blob.schema,
        package: blob.package,
        entries:
          blob.entries?.map(({ reference, message }) => ({
            reference: { schema: reference.schema, ...(reference.name !== '' && { name: reference.name }) },
            message,
          })) ?? null,
      };
    }
    case 'other':
      return sortKeysDeep(item.meta.value);
  }
}

function bundleRecord(blob: BundleBlob): EncodableJson {
  return {
    schema: blob.schema,
    ...(blob.name !== '' && { name: blob.name }),
    ...(blob.package !== '' && { package: blob.package }),
    image: blob.image,
    ...withProperties(blob.properties),
    ...(blob.relatedImages.length > 0 && {
      relatedImages: blob.relatedImages.map(({ name, image }) => ({ name, image })),
    }),
  };
}

function withProperties(properties: Property[]): { properties?: EncodableJson[] } {
  if (properties.length === 0) return {};
  return { properties: properties.map(({ type, value }) => ({ type, value })) };
}

/**
 * Returns the record of a blob with unknown fields, including known names in another case, after the known fields in
 * byte order. Undefined without unknown fields: `blobRecord` is complete then.
 */
export function recordWithUnknownFields(
  kind: EncodableBlob['kind'],
  value: JsonObject,
): JsonObject | undefined {
  if (kind === 'other' || !hasUnknownFields(value, blobShapes[kind])) return undefined;
  return inOrder(value, blobShapes[kind]) as JsonObject;
}

function hasUnknownFields(value: JsonValue | undefined, shape: StructShape): boolean {
  if (Array.isArray(value)) return value.some((item) => hasUnknownFields(item, shape));
  if (!isJsonObject(value)) return false;
  return Object.keys(value).some((key) => {
    const field = shape.fields.get(key);
    return field === undefined || (field.inner !== undefined && hasUnknownFields(value[key], field.inner));
  });
}

function inOrder(value: JsonValue, shape: StructShape): JsonValue {
  if (Array.isArray(value)) return value.map((item) => inOrder(item, shape));
  if (!isJsonObject(value)) return value;
  const result: JsonObject = {};
  const known = [...shape.fields.keys()].filter((key) => Object.hasOwn(value, key));
  const unknown = Object.keys(value).filter((key) => !shape.fields.has(key));
  for (const key of [...known, ...sortedByBytes(unknown)]) {
    const item = value[key] as JsonValue;
    const inner = shape.fields.get(key)?.inner;
    setJsonKey(result, key, inner === undefined ? sortKeysDeep(item) : inOrder(item, inner));
  }
  return result;
}
