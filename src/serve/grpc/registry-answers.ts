/**
 * What the gRPC registry API answers, wherever the catalog comes from. Packages and bundles are handed out as the bytes
 * of their messages, so that they are encoded once; everything else is small and handed out as values.
 */

/** `api.ChannelEntry` */
export interface ChannelEntryAnswer {
  packageName: string;
  channelName: string;
  bundleName: string;
  replaces: string;
}

/** `api.GroupVersionKind` of a request; the plural never matters. */
export interface ApiName {
  group: string;
  version: string;
  kind: string;
}

/**
 * Answers to the calls of `api.Registry`. Whatever is not found is thrown as OpmateError NOT_FOUND with the whole
 * text of upstream's status as its message; the server gives it the code UNKNOWN, as upstream does. Where upstream's
 * order is random, sorted.
 */
export interface RegistryAnswers {
  /** Package names. */
  listPackages(): string[];
  /** `api.Package` */
  getPackage(name: string): Uint8Array;
  /** `api.Bundle`, as in the calls that follow. */
  getBundle(packageName: string, channelName: string, csvName: string): Promise<Uint8Array>;
  getBundleForChannel(packageName: string, channelName: string): Promise<Uint8Array>;
  getBundleThatReplaces(csvName: string, packageName: string, channelName: string): Promise<Uint8Array>;
  getDefaultBundleThatProvides(api: ApiName): Promise<Uint8Array>;
  getChannelEntriesThatReplace(csvName: string): ChannelEntryAnswer[];
  getChannelEntriesThatProvide(api: ApiName): ChannelEntryAnswer[];
  getLatestChannelEntriesThatProvide(api: ApiName): ChannelEntryAnswer[];
  /** One message a bundle and channel. */
  listBundles(): AsyncIterable<Uint8Array>;
  /**
   * Blobs of a schema that is not one of OLM's, of one package or of none; undefined where the catalog has no blobs,
   * as a sqlite index has none.
   */
  listCustomSchemas?(schema: string, packageName: string): AsyncIterable<Record<string, unknown>>;
  close(): Promise<void>;
}
