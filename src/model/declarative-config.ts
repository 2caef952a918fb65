import type { EncodableJson } from '../document/json.js';

/**
 * The blobs of a file-based catalog as typed records. Field order here is the order of JSON output; a
 * field that may be left out is optional or an empty list or string, and the writer in
 * `model/encode.ts` says which are left out when empty.
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

/** The icon of a package. */
export interface PackageIcon {
  /** Null where the input had none: written as JSON `null`. */
  base64data: string | null;
  mediatype: string;
}

/** An `olm.package` blob: an operator, and the channel that is used when none is chosen. */
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

/** An `olm.channel` blob: the bundles of a stream of releases, and what replaces what. */
export interface ChannelBlob {
  schema: typeof schemas.channel;
  name: string;
  package: string;
  /** Null where the input had none: written as JSON `null`. */
  entries: ChannelEntry[] | null;
  properties: Property[];
}

/** An image that a bundle needs when it runs; `name` may be empty. */
export interface RelatedImage {
  name: string;
  image: string;
}

/** An `olm.bundle` blob: one version of an operator. */
export interface BundleBlob {
  schema: typeof schemas.bundle;
  name: string;
  package: string;
  /** Pull specification; empty for a bundle that is not in a registry. */
  image: string;
  properties: Property[];
  relatedImages: RelatedImage[];
}

/** What is deprecated, by schema and, but for packages, name; and why. */
export interface DeprecationEntry {
  reference: { schema: string; name: string };
  message: string;
}

/**
 * An `olm.deprecations` blob: what of a package is deprecated.
 * `entries` is null where the input had none.
 */
export interface DeprecationsBlob {
  schema: typeof schemas.deprecations;
  package: string;
  entries: DeprecationEntry[] | null;
}
