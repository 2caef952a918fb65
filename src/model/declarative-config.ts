import type { EncodableJson } from '../document/json.js';

/** Typed blobs of a file-based catalog, with fields in output order. `model/encode.ts` omits some fields if empty. */

/** Schemas of the catalog format. */
export const schemas = {
  package: 'olm.package',
  channel: 'olm.channel',
  bundle: 'olm.bundle',
  deprecations: 'olm.deprecations',
} as const;

/** Property types that opmate interprets; others stay unchanged. */
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

/** A property of a bundle, channel or package. */
export interface Property {
  type: string;
  /** Null if missing. */
  value: EncodableJson;
  /** The input had no `value`, which validation reports. */
  valueMissing?: true;
}

/** The icon of a package. */
export interface PackageIcon {
  /** Null if missing, and written as JSON `null`. */
  base64data: string | null;
  mediatype: string;
}

/** An `olm.package` blob. */
export interface PackageBlob {
  schema: typeof schemas.package;
  name: string;
  defaultChannel: string;
  icon?: PackageIcon;
  description: string;
  properties: Property[];
}

/** A bundle in a channel. Missing values are empty. */
export interface ChannelEntry {
  name: string;
  replaces: string;
  skips: string[];
  skipRange: string;
}

/** An `olm.channel` blob. */
export interface ChannelBlob {
  schema: typeof schemas.channel;
  name: string;
  package: string;
  /** Null if missing, and written as JSON `null`. */
  entries: ChannelEntry[] | null;
  properties: Property[];
}

/** An image that a bundle requires at run time; `name` may be empty. */
export interface RelatedImage {
  name: string;
  image: string;
}

/** An `olm.bundle` blob. */
export interface BundleBlob {
  schema: typeof schemas.bundle;
  name: string;
  package: string;
  /** Pull specification; empty for a bundle outside of registries. */
  image: string;
  properties: Property[];
  relatedImages: RelatedImage[];
}

/** A deprecated package, channel or bundle; the name of a package is empty. */
export interface DeprecationEntry {
  reference: { schema: string; name: string };
  message: string;
}

/** An `olm.deprecations` blob. */
export interface DeprecationsBlob {
  schema: typeof schemas.deprecations;
  package: string;
  /** Null if missing. */
  entries: DeprecationEntry[] | null;
}
