import { encodeGoJson, sortKeysDeep } from '../core/go-json.js';
import type { EncodableJson, JsonObject } from '../core/json.js';
import { encodeYaml } from '../core/yaml.js';
import type {
  BundleBlob,
  ChannelBlob,
  DeprecationsBlob,
  PackageBlob,
  Property,
} from './declarative-config.js';

/** A blob to be written: one of the format's own, typed, or any other as it came. */
export type EncodableBlob =
  | { kind: 'package'; blob: PackageBlob }
  | { kind: 'channel'; blob: ChannelBlob }
  | { kind: 'bundle'; blob: BundleBlob }
  | { kind: 'deprecations'; blob: DeprecationsBlob }
  | { kind: 'other'; meta: { value: JsonObject } };

/** Spaces of indentation in JSON catalogs. */
export const jsonIndent = 4;

/** How catalogs are written. */
export type CatalogFormat = 'json' | 'yaml';

/**
 * The text of one blob as `opm` writes it: JSON with four spaces of indent and a line break at the end, or
 * a YAML document with its `---` line.
 */
export function encodeBlob(blob: EncodableBlob, format: CatalogFormat): string {
  const value = blobRecord(blob);
  return format === 'json' ? `${encodeGoJson(value, { indent: jsonIndent })}\n` : `---\n${encodeYaml(value)}`;
}

/** A blob's fields in output order, without those that are left out when empty. */
export function blobRecord(item: EncodableBlob): EncodableJson {
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
