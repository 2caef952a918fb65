import type { EncodableJson } from '../core/json.js';

/**
 * The blobs of a file-based catalog as typed records. Field order here is the order of JSON output; a
 * field that may be left out is optional or an empty list or string, and the writer in
 * `catalog/write.ts` says which are left out when empty.
 */

/** Schemas that the catalog format itself defines. */
export const schemas = {
  package: 'olm.package',
  channel: 'olm.channel',
  bundle: 'olm.bundle',
  deprecations: 'olm.deprecations',
} as const;

/** Property types that opmate looks into; every other type is carried along untouched. */
export const propertyTypes = {
  package: 'olm.package',
  packageRequired: 'olm.package.required',
  gvk: 'olm.gvk',
  gvkRequired: 'olm.gvk.required',
  bundleObject: 'olm.bundle.object',
  csvMetadata: 'olm.csv.metadata',
  channel: 'olm.channel',
  constraint: 'olm.constraint',
} as const;

/** A typed fact about a bundle, channel or package. `value` is `null` where the input had none. */
export interface Property {
  type: string;
  value: EncodableJson;
  /** True where the input had no `value` at all, which is a fault of its own in validation. */
  valueMissing?: true;
}

export interface PackageIcon {
  /** Null where the input had none: written as JSON `null`. */
  base64data: string | null;
  mediatype: string;
}

export interface PackageBlob {
  schema: typeof schemas.package;
  name: string;
  defaultChannel: string;
  icon?: PackageIcon;
  description: string;
  properties: Property[];
}

/** One bundle's place in a channel. Empty strings and lists mean "not given". */
export interface ChannelEntry {
  name: string;
  replaces: string;
  skips: string[];
  skipRange: string;
}

export interface ChannelBlob {
  schema: typeof schemas.channel;
  name: string;
  package: string;
  /** Null where the input had none: written as JSON `null`. */
  entries: ChannelEntry[] | null;
  properties: Property[];
}

export interface RelatedImage {
  name: string;
  image: string;
}

export interface BundleBlob {
  schema: typeof schemas.bundle;
  name: string;
  package: string;
  /** Pull specification; empty for a bundle that is not in a registry. */
  image: string;
  properties: Property[];
  relatedImages: RelatedImage[];
}

export interface DeprecationEntry {
  reference: { schema: string; name: string };
  message: string;
}

export interface DeprecationsBlob {
  schema: typeof schemas.deprecations;
  package: string;
  entries: DeprecationEntry[] | null;
}
