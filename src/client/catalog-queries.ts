import type { CancelOptions } from '../core/concurrency.js';
import type { ChannelEntry } from '../model/declarative-config.js';

/** A package in both APIs. */
export interface CatalogPackage {
  name: string;
  defaultChannel: string;
  /** Channels sorted by name. */
  channels: CatalogChannel[];
  /** Deprecation message of the package. */
  deprecation?: string;
}

interface CatalogChannel {
  name: string;
  /** Head bundle; empty for a channel without an only head. */
  head: string;
  /** Deprecation message of the channel. */
  deprecation?: string;
}

/** A bundle in a channel. Empty values are missing in the catalog. */
export interface CatalogEntry extends ChannelEntry {
  package: string;
  channel: string;
}

/** Identifies a bundle; the HTTP API needs no channel. */
export interface BundleKey {
  package: string;
  channel: string;
  name: string;
}

/**
 * Queries of a served catalog over either API. `Bundle` is the bundle of that API: an `olm.bundle` blob, or an
 * `api.Bundle` message.
 *
 * Calls throw OpmateError: NOT_FOUND for missing content, NETWORK for an unreachable or stalled server (after
 * retries), REGISTRY for other error responses, SYNTAX and INVALID for invalid responses, LIMIT for oversized ones,
 * and CANCELLED. A stream can be left at any time; one that has started is not restarted after a failure.
 */
export interface CatalogQueries<Bundle = unknown> {
  /** Lists package names, sorted. */
  listPackages(options?: CancelOptions): Promise<string[]>;
  getPackage(name: string, options?: CancelOptions): Promise<CatalogPackage>;
  /** Lists the upgrade graph of a package: the entries of all channels, sorted by channel and name. */
  listEntries(packageName: string, options?: CancelOptions): Promise<CatalogEntry[]>;
  getBundle(key: BundleKey, options?: CancelOptions): Promise<Bundle>;
  /** Yields all bundles. */
  bundles(options?: CancelOptions): AsyncIterable<Bundle>;
  /** Closes connections; running calls fail. */
  close(): void;
}
