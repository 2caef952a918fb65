import type { ChannelEntryMessage } from '../../catalog/content/messages.js';
import type { ApiName } from '../../model/csv.js';

/**
 * Queries of `api.Registry`. Packages and bundles are returned encoded, as they are encoded once only. Throws OpmateError
 * NOT_FOUND with the message of upstream's status; the server sends the code UNKNOWN, as upstream does. Sorted where the
 * order of upstream is random.
 */
export interface RegistryQueries {
  /** Package names. */
  listPackages(): string[];
  /** `api.Package` */
  getPackage(name: string): Uint8Array;
  /** `api.Bundle`, as in the next methods. */
  getBundle(packageName: string, channelName: string, csvName: string): Promise<Uint8Array>;
  getBundleForChannel(packageName: string, channelName: string): Promise<Uint8Array>;
  getBundleThatReplaces(csvName: string, packageName: string, channelName: string): Promise<Uint8Array>;
  getDefaultBundleThatProvides(api: ApiName): Promise<Uint8Array>;
  getChannelEntriesThatReplace(csvName: string): ChannelEntryMessage[];
  getChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[];
  getLatestChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[];
  /** One message per bundle and channel. */
  listBundles(): AsyncIterable<Uint8Array>;
  /** Blobs of a custom schema, of one package or of none; undefined for a catalog without blobs, a sqlite index. */
  listCustomSchemas?(schema: string, packageName: string): AsyncIterable<Record<string, unknown>>;
  close(): Promise<void>;
}
