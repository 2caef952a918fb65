import type { Diagnostic } from '../core/diagnostic.js';
import type { ChannelEntry, DeprecationEntry } from './declarative-config.js';

/**
 * What validation, listing and drawing need to know of a catalog: names, edges, versions and the faults
 * that can be seen in one blob alone. About a kilobyte a bundle, so a catalog of any size fits, while its
 * manifests stay on disk.
 */
export interface CatalogFacts {
  /** Each list in the order in which the blobs were read. */
  packages: PackageFacts[];
  channels: ChannelFacts[];
  bundles: BundleFacts[];
  deprecations: DeprecationsFacts[];
  /** How many blobs of other schemas there are; none where it is left out. */
  otherCount?: number;
}

/** Returns the facts of a catalog without blobs. */
export function emptyFacts(): CatalogFacts {
  return { packages: [], channels: [], bundles: [], deprecations: [] };
}

/** Returns the facts of several parts of a catalog, in their order. */
export function joinFacts(parts: readonly CatalogFacts[]): CatalogFacts {
  return {
    packages: parts.flatMap(({ packages }) => packages),
    channels: parts.flatMap(({ channels }) => channels),
    bundles: parts.flatMap(({ bundles }) => bundles),
    deprecations: parts.flatMap(({ deprecations }) => deprecations),
    otherCount: parts.reduce((sum, { otherCount = 0 }) => sum + otherCount, 0),
  };
}

/** Where a blob was read. The model only passes it on; the reader can find the line of a path in it. */
export interface BlobOrigin {
  /** The file as the user would name it. */
  file: string;
  /** Byte offset of the blob's first byte in the file. */
  offset: number;
  /** Length in bytes. */
  length: number;
  /** How the blob is written there. */
  syntax: 'json' | 'yaml';
}

/** What is kept of an `olm.package` blob. */
export interface PackageFacts {
  name: string;
  defaultChannel: string;
  origin?: BlobOrigin | undefined;
}

/** What is kept of an `olm.channel` blob. */
export interface ChannelFacts {
  package: string;
  name: string;
  entries: ChannelEntry[];
  origin?: BlobOrigin | undefined;
}

/** What is kept of an `olm.bundle` blob. */
export interface BundleFacts {
  package: string;
  name: string;
  image: string;
  /** Number of `olm.bundle.object` properties. */
  objectCount: number;
  /** Its `olm.package` properties and their indexes, in order. Valid bundles have exactly one. */
  packageProperties: { packageName: string; version: string; release: string; index: number }[];
  /** What is wrong with single properties, in property order, in the words of the reference implementation. */
  propertyFaults: Diagnostic[];
  /** Pull specifications that do not parse: `image`, then related images in order. */
  imageFaults: Diagnostic[];
  origin?: BlobOrigin | undefined;
}

/** What is kept of an `olm.deprecations` blob. */
export interface DeprecationsFacts {
  package: string;
  entries: DeprecationEntry[];
  origin?: BlobOrigin | undefined;
}
