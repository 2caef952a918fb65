import type { CancelOptions } from '../core/concurrency.js';

/** A package as both APIs tell it. */
export interface CatalogPackage {
  name: string;
  defaultChannel: string;
  /** Sorted by name. */
  channels: CatalogChannel[];
  /** Why the package is deprecated, where it is. */
  deprecation?: string;
}

export interface CatalogChannel {
  name: string;
  /** The bundle at the head; empty for a channel without an only head. */
  head: string;
  /** Why the channel is deprecated, where it is. */
  deprecation?: string;
}

/** A bundle's place in a channel. Empty where the catalog has no value. */
export interface CatalogEntry {
  package: string;
  channel: string;
  name: string;
  replaces: string;
  skips: string[];
  skipRange: string;
}

/** Which bundle; the HTTP API knows a bundle without its channel. */
export interface BundleKey {
  package: string;
  channel: string;
  name: string;
}

/**
 * What can be asked of a catalog that is served, whichever API it is asked over. `Bundle` is what that API has of a
 * bundle: an `olm.bundle` blob, or an `api.Bundle` message.
 *
 * Calls throw OpmateError: NOT_FOUND for what the catalog does not have, NETWORK for a server that cannot be reached
 * or stalls (after retries), REGISTRY for any other refusal, SYNTAX and INVALID for answers that are not what they
 * should be, LIMIT for those that are too large, and CANCELLED. A stream can be left at any time; one that has begun
 * is not begun anew after a fault.
 */
export interface CatalogQueries<Bundle = unknown> {
  /** Names, sorted. */
  listPackages(options?: CancelOptions): Promise<string[]>;
  getPackage(name: string, options?: CancelOptions): Promise<CatalogPackage>;
  /** The upgrade graph of a package: the entries of all of its channels, sorted by channel and name. */
  listEntries(packageName: string, options?: CancelOptions): Promise<CatalogEntry[]>;
  getBundle(key: BundleKey, options?: CancelOptions): Promise<Bundle>;
  /** All bundles, one at a time. */
  bundles(options?: CancelOptions): AsyncIterable<Bundle>;
  /** Closes connections; calls under way fail. */
  close(): void;
}
