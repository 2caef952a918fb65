import type { ArchiveLimits } from '../archive/limits.js';
import type { BundleFiles } from '../bundle/read.js';
import type { Catalog } from '../catalog/catalog.js';
import type { CancelOptions } from '../core/concurrency.js';
import type { Logger } from '../core/log.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { Platform } from '../oci/image/types.js';
import type { BlobCache } from '../oci/registry/blob-cache.js';
import type { Connection, ConnectionOptions } from '../oci/registry/connection.js';

/** What differs in a connection of one place. */
export type ConnectionChanges = Partial<
  Pick<ConnectionOptions, 'authFile' | 'skipTlsVerify' | 'caFile' | 'useHttp'>
>;

/** What reading a place needs from the outside. */
export interface SourceOptions extends CancelOptions, LinkOptions {
  /** How registries and other servers are reached; called when the first one is needed. */
  connect: () => Connection | Promise<Connection>;
  /** A connection as `connect` returns it, but for these changes; the caller closes it. */
  connectAnew: (changes: ConnectionChanges) => Promise<Connection>;
  /** How servers other than registries are talked to. */
  network?: NetworkOptions | undefined;
  /** For programs that are started: paths, proxies and agents are taken from it, nothing else. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Where images and archives are unpacked while they are read. */
  temporaryDirectory: string;
  now: () => Date;
  /** Platform to take from an image index; the host's where it is left out. */
  platform?: Platform | undefined;
  hostPlatform: Platform;
  cache?: BlobCache | undefined;
  limits?: ArchiveLimits | undefined;
  logger?: Logger | undefined;
}

export interface NetworkOptions {
  /** Allows plain HTTP to every host; to this machine it is always allowed. */
  allowHttp?: boolean;
  skipTlsVerify?: boolean;
  caFile?: string;
}

/** A source after it was recognized and opened. `close` removes what was unpacked for it. */
export type Source = CatalogSource | BundleSource;

export interface CatalogSource {
  kind: 'catalog';
  catalog: Catalog;
  close(): Promise<void>;
}

export interface BundleSource {
  kind: 'bundle';
  /** Pull specification, as the user gave it; empty for a bundle that was not read from a registry. */
  image: string;
  files: BundleFiles;
  close(): Promise<void>;
}

/** Which sources a command takes; others are refused before anything of them is read. */
export interface AllowedSources {
  bundles: boolean;
  catalogs: boolean;
}

export const allSources: AllowedSources = { bundles: true, catalogs: true };
export const catalogsOnly: AllowedSources = { bundles: false, catalogs: true };
