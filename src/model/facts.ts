import type { Diagnostic } from '../core/diagnostic.js';
import type { ChannelEntry, DeprecationEntry } from './declarative-config.js';

/**
 * Facts for validation, listing and drawing of a catalog: names, edges, versions and faults of single blobs, in the
 * order of blobs. About a kilobyte per bundle, so that catalogs of any size fit in memory.
 */
export interface CatalogFacts {
  packages: PackageFacts[];
  channels: ChannelFacts[];
  bundles: BundleFacts[];
  deprecations: DeprecationsFacts[];
  /** Other schemas, with the first blob of each; none by default. */
  otherSchemas?: Map<string, OtherBlob>;
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
    otherSchemas: new Map(parts.flatMap(({ otherSchemas = [] }) => [...otherSchemas]).reverse()),
  };
}

/** Place of a blob, by which its catalog finds the line of a path. */
export interface BlobOrigin {
  /** File as the user names it. */
  file: string;
  /** Offset in bytes. */
  offset: number;
  /** Length in bytes. */
  length: number;
  syntax: 'json' | 'yaml';
}

/** Facts of a blob of another schema. */
interface OtherBlob {
  /** Empty if not set. */
  package: string;
  origin?: BlobOrigin | undefined;
}

/** Facts of an `olm.package` blob. */
export interface PackageFacts {
  name: string;
  defaultChannel: string;
  origin?: BlobOrigin | undefined;
}

/** Facts of an `olm.channel` blob. */
export interface ChannelFacts {
  package: string;
  name: string;
  entries: ChannelEntry[];
  origin?: BlobOrigin | undefined;
}

/** Facts of an `olm.bundle` blob. */
export interface BundleFacts {
  package: string;
  name: string;
  image: string;
  /** Number of `olm.bundle.object` properties. */
  objectCount: number;
  /** Its `olm.package` properties and their indexes, in order. Valid bundles have exactly one. */
  packageProperties: { packageName: string; version: string; release: string; index: number }[];
  /** Faults of single properties, in order, in the words of opm. */
  propertyFaults: Diagnostic[];
  /** Faults of pull specifications: `image`, then related images in order. */
  imageFaults: Diagnostic[];
  origin?: BlobOrigin | undefined;
}

/** Facts of an `olm.deprecations` blob. */
export interface DeprecationsFacts {
  package: string;
  entries: DeprecationEntry[];
  origin?: BlobOrigin | undefined;
}
