import { inContext } from '../core/diagnostics-error.js';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, UsageError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import type { JsonObject } from '../document/json.js';
import { compareBytes, sortedByBytes } from '../core/order.js';
import { requestTypes, decodeStruct } from '../catalog/content/messages.js';
import type { BundleKey, CatalogQueries, CatalogEntry, CatalogPackage } from './catalog-queries.js';
import { type ClientOptions, checkAuthorities, maxCollectedBytes } from './client-options.js';
import type { GrpcChannel } from './grpc-connection.js';
import {
  type RegistryBundle,
  type RegistryEntry,
  decodeBundleMessage,
  decodeEntryMessage,
  decodePackageMessage,
  decodePackageName,
} from './grpc-messages.js';
import { sortEntries } from './http-catalog-client.js';
import type { ApiName } from '../model/csv.js';

export interface GrpcClientOptions extends ClientOptions {
  /** Use TLS; default: if `ca` is set. */
  tls?: boolean | undefined;
  /** Maximum bytes of a message; default: 64 MiB. */
  maxMessageBytes?: number | undefined;
}

const defaultMaxMessageBytes = 64 * 1024 * 1024;

/** A client of the gRPC registry API, `api.Registry`, of opmate and opm. */
export class GrpcCatalogClient implements CatalogQueries<RegistryBundle> {
  readonly #address: string;
  readonly #options: GrpcClientOptions;
  #connection: Promise<GrpcChannel> | undefined;
  #isClosed = false;

  constructor(address: string, options: GrpcClientOptions = {}) {
    const port = /^(?:\[[\da-fA-F:.]+\]|[\w.-]+):(\d{1,5})$/.exec(address)?.[1];
    if (port === undefined || Number(port) > 65_535) {
      throw new UsageError(`${quoteGo(address)}: invalid server address`, {
        hint: 'use HOST:PORT, e.g. catalog.example:50051',
      });
    }
    checkAuthorities(options.ca);
    this.#address = address;
    this.#options = options;
  }

  async listPackages(options: CancelOptions = {}): Promise<string[]> {
    return sortedByBytes(
      await this.#collect('ListPackages', requestTypes.listPackages.encode({}), decodePackageName, options),
    );
  }

  async getPackage(name: string, options: CancelOptions = {}): Promise<CatalogPackage> {
    const request = requestTypes.getPackage.encode({ name });
    const response = await this.#call('GetPackage', request, decodePackageMessage, options);
    return { ...response, channels: response.channels.sort((a, b) => compareBytes(a.name, b.name)) };
  }

  /** Lists entries by reading all bundles, as the API has no such call. */
  async listEntries(packageName: string, options: CancelOptions = {}): Promise<CatalogEntry[]> {
    const entries: CatalogEntry[] = [];
    for await (const bundle of this.bundles(options)) {
      if (bundle.packageName !== packageName) continue;
      const { csvName: name, channelName: channel, replaces, skips, skipRange } = bundle;
      entries.push({ package: packageName, channel, name, replaces, skips, skipRange });
    }
    if (entries.length > 0) return sortEntries(entries);
    throw new OpmateError('NOT_FOUND', `package ${quoteGo(packageName)} not found`, {
      subject: this.#address,
    });
  }

  /**
   * Returns a bundle with manifests, but without `replaces` and `skips`, which servers omit here; `bundles` has them.
   */
  getBundle(key: BundleKey, options: CancelOptions = {}): Promise<RegistryBundle> {
    const names = { pkgName: key.package, channelName: key.channel, csvName: key.name };
    return this.#call('GetBundle', requestTypes.getBundle.encode(names), decodeBundleMessage, options);
  }

  /** Returns the head bundle of a channel. */
  getBundleForChannel(
    packageName: string,
    channelName: string,
    options: CancelOptions = {},
  ): Promise<RegistryBundle> {
    const request = requestTypes.getBundleInChannel.encode({ pkgName: packageName, channelName });
    return this.#call('GetBundleForChannel', request, decodeBundleMessage, options);
  }

  /** Returns the bundle that replaces another in a channel. */
  getBundleThatReplaces(key: BundleKey, options: CancelOptions = {}): Promise<RegistryBundle> {
    const names = { csvName: key.name, pkgName: key.package, channelName: key.channel };
    const request = requestTypes.getReplacement.encode(names);
    return this.#call('GetBundleThatReplaces', request, decodeBundleMessage, options);
  }

  /** Returns the head bundle of a default channel that provides an API. */
  getDefaultBundleThatProvides(api: ApiName, options: CancelOptions = {}): Promise<RegistryBundle> {
    const request = requestTypes.getDefaultProvider.encode(withoutPlural(api));
    return this.#call('GetDefaultBundleThatProvides', request, decodeBundleMessage, options);
  }

  /** Returns the entries, in any package, that replace a bundle. */
  getEntriesThatReplace(bundleName: string, options: CancelOptions = {}): Promise<RegistryEntry[]> {
    const request = requestTypes.getAllReplacements.encode({ csvName: bundleName });
    return this.#collect('GetChannelEntriesThatReplace', request, decodeEntryMessage, options);
  }

  /** Returns the entries that provide an API. */
  getEntriesThatProvide(api: ApiName, options: CancelOptions = {}): Promise<RegistryEntry[]> {
    const request = requestTypes.getAllProviders.encode(withoutPlural(api));
    return this.#collect('GetChannelEntriesThatProvide', request, decodeEntryMessage, options);
  }

  /** Returns the channel heads that provide an API. */
  getLatestEntriesThatProvide(api: ApiName, options: CancelOptions = {}): Promise<RegistryEntry[]> {
    const request = requestTypes.getLatestProviders.encode(withoutPlural(api));
    return this.#collect('GetLatestChannelEntriesThatProvide', request, decodeEntryMessage, options);
  }

  /** Yields a message for each channel of a bundle; servers omit manifests of bundles with an image. */
  bundles(options: CancelOptions = {}): AsyncGenerator<RegistryBundle, void, undefined> {
    return this.#stream(
      'api.Registry/ListBundles',
      requestTypes.listBundles.encode({}),
      decodeBundleMessage,
      options,
      {},
    );
  }

  /**
   * Yields blobs of a custom schema, of one package or of all if empty. Only file-based catalogs have them, and only
   * newer servers the call: OpmateError UNSUPPORTED with others.
   */
  customBlobs(
    query: { schema: string; package?: string | undefined },
    options: CancelOptions = {},
  ): AsyncGenerator<JsonObject, void, undefined> {
    const path = 'api.ExperimentalRegistry/ExperimentalListPackageCustomSchemas';
    const metadata = { 'x-acknowledge-experimental': 'true' };
    const request = requestTypes.listCustomSchemas.encode({
      schema: query.schema,
      packageName: query.package,
    });
    return this.#stream(path, request, decodeStruct, options, { metadata });
  }

  close(): void {
    this.#isClosed = true;
    void this.#connection?.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }

  async #connect(): Promise<GrpcChannel> {
    if (this.#isClosed) throw new UsageError('the client is closed', { subject: this.#address });
    const { tls, ca, maxMessageBytes = defaultMaxMessageBytes } = this.#options;
    this.#connection ??= import('./grpc-connection.js').then(({ GrpcChannel }) => {
      const options = { ...this.#options, tls: tls ?? ca !== undefined, maxMessageBytes };
      return new GrpcChannel(this.#address, options);
    });
    return this.#connection;
  }

  async #call<T>(
    method: string,
    request: Buffer,
    decode: (bytes: Buffer) => T,
    { signal }: CancelOptions,
  ): Promise<T> {
    const connection = await this.#connect();
    const path = `/api.Registry/${method}`;
    return this.#decode(await connection.call({ path, request, signal }), decode);
  }

  async #collect<T>(
    method: string,
    request: Buffer,
    decode: (bytes: Buffer) => T,
    options: CancelOptions,
  ): Promise<T[]> {
    const items: T[] = [];
    const limit = { maxBytes: maxCollectedBytes };
    for await (const item of this.#stream(`api.Registry/${method}`, request, decode, options, limit)) {
      items.push(item);
    }
    return items;
  }

  async *#stream<T>(
    path: string,
    request: Buffer,
    decode: (bytes: Buffer) => T,
    { signal }: CancelOptions,
    more: { metadata?: Record<string, string>; maxBytes?: number },
  ): AsyncGenerator<T, void, undefined> {
    const connection = await this.#connect();
    const call = { path: `/${path}`, request, signal, ...more };
    for await (const message of connection.stream(call)) yield this.#decode(message, decode);
  }

  #decode<T>(bytes: Buffer, decode: (bytes: Buffer) => T): T {
    return inContext({ subject: this.#address }, () => decode(bytes));
  }
}

function withoutPlural({ group, version, kind }: ApiName): ApiName {
  return { group, version, kind };
}
