import type { Catalog } from '../../catalog/catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, systemReason } from '../../core/errors.js';
import { pushTo } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import type { ChannelEntry } from '../../model/declarative-config.js';
import { encodeChannelPart, toDeprecation } from '../../catalog/content/bundle-messages.js';
import { type CacheWriter, createCache, openCache } from './catalog-cache.js';
import {
  CatalogContent,
  DamagedRecordError,
  type IndexedBlob,
  type IndexedBundle,
  type IndexedChannel,
  type IndexedPackage,
  getBundleKey,
} from '../../catalog/content/catalog-content.js';
import { findKnownHash, hashCatalog, hashWithState, keepState } from './catalog-hash.js';
import { type ChannelEntryMessage, formatApi, packageType } from '../../catalog/content/messages.js';
import { RecordFile } from '../../catalog/content/record-file.js';
import type { RegistryQueries } from './registry-queries.js';
import { type ApiName, getApiKey } from '../../model/csv.js';

export interface CatalogQueriesOptions extends CancelOptions {
  /** Directory for a nameless file of encoded bundles while there is no cache; may be missing. */
  temporaryDirectory: string;
  /** Directory of encoded catalogs for later starts; none by default. */
  cacheDirectory?: string | undefined;
  /** Fail without a matching cache instead of creating it; files are hashed even if their state is unchanged. */
  requireCache?: boolean | undefined;
  now: () => Date;
  logger?: Logger | undefined;
}

/** Queries of a file-based catalog, usable while bundles are still being encoded. */
export interface FileCatalogQueries extends RegistryQueries {
  /** Resolves when all bundles are encoded or `close` is called; never rejects. */
  readonly encoded: Promise<EncodeResult>;
}

interface EncodeResult {
  isCached: boolean;
  /** Reason for which there is no cache. */
  reason?: string;
}

/**
 * Opens a catalog for the registry API; `catalog` must stay open until the result is closed. A stale cache is created
 * again; one that cannot be written is logged. Throws OpmateError INVALID with all faults of an invalid catalog, and
 * errors of reading.
 */
export async function openCatalogQueries(
  catalog: Catalog,
  options: CatalogQueriesOptions,
): Promise<FileCatalogQueries> {
  const opened = new ContentOpener(catalog, options);
  return new ContentQueries(opened, await opened.open());
}

/** Opens content from the cache, or from the catalog, which then becomes the cache. */
class ContentOpener {
  readonly #catalog: Catalog;
  readonly #options: CatalogQueriesOptions;
  readonly #logger: Logger;
  readonly #stopping = new AbortController();
  #noCache = 'no cache';
  #encoded: Promise<EncodeResult> = Promise.resolve({ isCached: true });

  constructor(catalog: Catalog, options: CatalogQueriesOptions) {
    this.#catalog = catalog;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
  }

  async open(): Promise<CatalogContent> {
    const { cacheDirectory, requireCache, now, signal } = this.#options;
    if (cacheDirectory === undefined) return this.#read();
    if (!requireCache) {
      const known = await findKnownHash(this.#catalog, cacheDirectory, { signal });
      const match = known === undefined ? undefined : await openCache(cacheDirectory, known);
      if (match !== undefined && 'index' in match) return new CatalogContent(match.index, match.records);
    }
    const hashed = await hashWithState(this.#catalog, { now, signal });
    if (hashed !== undefined) {
      const match = await openCache(cacheDirectory, hashed.hash);
      if ('index' in match) {
        await keepState(cacheDirectory, hashed);
        return new CatalogContent(match.index, match.records);
      }
      if (requireCache) {
        throw new OpmateError(
          'INVALID',
          `integrity check failed: cache ${cacheDirectory}: ${match.missing}`,
          {
            hint: 'create it with api.buildServeCache, or remove options.requireCache to create it now',
          },
        );
      }
      this.#logger.log('info', 'building the cache', { directory: cacheDirectory, reason: match.missing });
    }
    return this.#read(hashed?.hash);
  }

  /** Reads the catalog; encoding continues after the return. */
  async #read(hash?: string): Promise<CatalogContent> {
    const { signal } = this.#options;
    const writer = hash === undefined ? undefined : await this.#createWriter();
    const records = writer?.records ?? (await this.#createTemporary());
    let content: CatalogContent;
    try {
      content = await CatalogContent.read(this.#catalog, records, { signal, logger: this.#logger });
    } catch (error) {
      await writer?.discard();
      await records?.close();
      throw error;
    }
    this.#encoded = this.#encode(content, writer, hash);
    return content;
  }

  /** Reads the catalog again in place of damaged content, and creates the cache again. */
  async replace(damage: DamagedRecordError): Promise<CatalogContent> {
    this.#logger.log('warn', `${damage.message}; reading the catalog again`);
    return this.#read(await hashCatalog(this.#catalog, { signal: this.#options.signal }));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#encoded;
  }

  async #encode(
    content: CatalogContent,
    writer: CacheWriter | undefined,
    hash: string | undefined,
  ): Promise<EncodeResult> {
    const { signal } = this.#stopping;
    try {
      const isWhole = await content.encodeAll({ signal });
      if (writer === undefined || hash === undefined) return { isCached: false, reason: this.#noCache };
      if (!isWhole) throw new OpmateError('IO', 'the disk is full or failing');
      // The encoded catalog must be the hashed one.
      const hashed = await hashWithState(this.#catalog, { now: this.#options.now, signal });
      if (hashed?.hash !== hash) throw new OpmateError('IO', 'the catalog has changed since');
      await writer.publish(hash, content.index);
      await keepState(this.#options.cacheDirectory as string, hashed);
      return { isCached: true };
    } catch (error) {
      await writer?.discard();
      const reason = systemReason(error);
      if (signal.aborted) return { isCached: false, reason: 'stopped' };
      const problem = writer === undefined ? 'cannot encode bundles' : 'cache not kept';
      this.#logger.log('warn', `${problem}: ${reason}`);
      return { isCached: false, reason };
    }
  }

  async #createWriter(): Promise<CacheWriter | undefined> {
    const directory = this.#options.cacheDirectory as string;
    try {
      return await createCache(directory);
    } catch (error) {
      const reason = systemReason(error);
      this.#logger.log('warn', `cache ${directory} cannot be written: ${reason}`);
      this.#noCache = `it cannot be written: ${reason}`;
      return undefined;
    }
  }

  async #createTemporary(): Promise<RecordFile | undefined> {
    const { temporaryDirectory } = this.#options;
    try {
      return await RecordFile.unnamed(temporaryDirectory);
    } catch (error) {
      const reason = `${temporaryDirectory} cannot be written: ${systemReason(error)}`;
      this.#logger.log('info', `${reason}; bundles are encoded on each request`);
      return undefined;
    }
  }

  getEncoded() {
    return this.#encoded;
  }
}

interface Placed {
  package: IndexedPackage;
  channel: IndexedChannel;
  entry: ChannelEntry;
}

/** Lookup tables of a content. */
class Lookup {
  readonly content: CatalogContent;
  readonly packages = new Map<string, PackageLookup>();
  readonly bundles = new Map<string, IndexedBundle>();
  /** All channel entries, by package, channel and name. */
  readonly places: Placed[] = [];
  #replacing: Map<string, ChannelEntryMessage[]> | undefined;
  #providing: Map<string, Placed[]> | undefined;

  constructor(content: CatalogContent) {
    this.content = content;
    for (const bundle of content.index.bundles)
      this.bundles.set(getBundleKey(bundle.package, bundle.name), bundle);
    for (const indexed of content.index.packages) {
      const channels = new Map<string, ChannelLookup>();
      for (const channel of indexed.channels) {
        const entries = new Map(channel.entries.map((entry) => [entry.name, entry]));
        channels.set(channel.name, { indexed: channel, entries });
        for (const entry of channel.entries) this.places.push({ package: indexed, channel, entry });
      }
      this.packages.set(indexed.name, { indexed, channels });
    }
  }

  findBundle({ package: owner, entry }: Placed): IndexedBundle {
    const bundle = this.bundles.get(getBundleKey(owner.name, entry.name));
    if (bundle === undefined) throw new OpmateError('INTERNAL', `bundle ${quoteGo(entry.name)} is missing`);
    return bundle;
  }

  /** Entries by the names that they replace or skip; by the empty name where they replace nothing, as upstream. */
  get replacing(): Map<string, ChannelEntryMessage[]> {
    if (this.#replacing !== undefined) return this.#replacing;
    const replacing = new Map<string, ChannelEntryMessage[]>();
    for (const place of this.places) {
      const { replaces, skips } = place.entry;
      for (const name of [replaces, ...skips.filter((skip) => skip !== replaces)]) {
        pushTo(replacing, name, toEntryMessage(place, replaces));
      }
    }
    return (this.#replacing = replacing);
  }

  /** Entries by the APIs that their bundles provide. */
  get providing(): Map<string, Placed[]> {
    if (this.#providing !== undefined) return this.#providing;
    const providing = new Map<string, Placed[]>();
    for (const place of this.places) {
      for (const key of new Set(this.findBundle(place).provided.map(getApiKey)))
        pushTo(providing, key, place);
    }
    return (this.#providing = providing);
  }
}

interface PackageLookup {
  indexed: IndexedPackage;
  channels: Map<string, ChannelLookup>;
  /** `api.Package`, encoded with the first request. */
  message?: Uint8Array;
}

interface ChannelLookup {
  indexed: IndexedChannel;
  entries: Map<string, ChannelEntry>;
}

class ContentQueries implements FileCatalogQueries {
  readonly #opened: ContentOpener;
  #lookup: Lookup;
  #rereading: Promise<void> | undefined;

  constructor(opened: ContentOpener, content: CatalogContent) {
    this.#opened = opened;
    this.#lookup = new Lookup(content);
  }

  get encoded(): Promise<EncodeResult> {
    return this.#opened.getEncoded();
  }

  listPackages(): string[] {
    return this.#lookup.content.index.packages.map(({ name }) => name);
  }

  getPackage(name: string): Uint8Array {
    const owner = this.#package(name);
    owner.message ??= packageType.encode({
      name,
      channels: owner.indexed.channels.map(({ name: channel, head, deprecation }) => ({
        name: channel,
        csvName: head,
        deprecation: toDeprecation(deprecation),
      })),
      defaultChannelName: owner.indexed.defaultChannel,
      deprecation: toDeprecation(owner.indexed.deprecation),
    });
    return owner.message;
  }

  async getBundle(packageName: string, channelName: string, csvName: string): Promise<Uint8Array> {
    const owner = this.#package(packageName);
    const channel = this.#channel(owner, packageName, channelName);
    const entry = channel.entries.get(csvName);
    if (entry === undefined) {
      throw notFound(`${formatChannel(packageName, channelName)}, bundle ${quoteGo(csvName)} not found`);
    }
    return this.#encode({ package: owner.indexed, channel: channel.indexed, entry }, 'single');
  }

  async getBundleForChannel(packageName: string, channelName: string): Promise<Uint8Array> {
    const { indexed } = this.#channel(this.#package(packageName), packageName, channelName);
    return this.getBundle(packageName, channelName, indexed.head);
  }

  async getBundleThatReplaces(
    csvName: string,
    packageName: string,
    channelName: string,
  ): Promise<Uint8Array> {
    const owner = this.#lookup.packages.get(packageName);
    if (owner === undefined) throw notFound(`package ${packageName} not found`);
    const { indexed: channel } = this.#channel(owner, packageName, channelName);
    const entry = channel.entries.find(
      ({ replaces, skips }) => replaces === csvName || skips.includes(csvName),
    );
    if (entry === undefined) {
      throw notFound(`no entry found for package ${quoteGo(packageName)}, channel ${quoteGo(channelName)}`);
    }
    return this.#encode({ package: owner.indexed, channel, entry }, 'single');
  }

  getChannelEntriesThatReplace(csvName: string): ChannelEntryMessage[] {
    const matches = this.#lookup.replacing.get(csvName);
    if (matches === undefined) throw notFound(`no channel entries found that replace ${csvName}`);
    return matches;
  }

  getChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[] {
    return this.#providers(api, ({ entry }) => entry.skips.filter((skip) => skip !== entry.replaces));
  }

  getLatestChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[] {
    return this.#latestProviders(api);
  }

  async getDefaultBundleThatProvides(api: ApiName): Promise<Uint8Array> {
    const channelEntry = this.#latestProviders(api).find(
      ({ packageName, channelName }) =>
        this.#lookup.packages.get(packageName)?.indexed.defaultChannel === channelName,
    );
    if (channelEntry === undefined) throw notFound(`no entry found that provides ${formatApi(api)}`);
    return this.getBundle(channelEntry.packageName, channelEntry.channelName, channelEntry.bundleName);
  }

  async *listBundles(): AsyncGenerator<Uint8Array> {
    const places = [...this.#lookup.places].sort(
      (a, b) =>
        compareBytes(a.channel.name, b.channel.name) ||
        compareBytes(a.package.name, b.package.name) ||
        compareBytes(a.entry.name, b.entry.name),
    );
    for (const place of places) yield await this.#encode(place, 'listed');
  }

  async *listCustomSchemas(schema: string, packageName: string): AsyncGenerator<Record<string, unknown>> {
    const isWanted = (blob: IndexedBlob): boolean => blob.schema === schema && blob.package === packageName;
    for (let position = 0; position < this.#lookup.content.index.custom.length; position++) {
      const { content } = this.#lookup;
      const blob = content.index.custom[position] as IndexedBlob;
      if (!isWanted(blob)) continue;
      try {
        yield await content.readCustomBlob(blob);
      } catch (error) {
        if (!(error instanceof DamagedRecordError)) throw error;
        await this.#readAgain(content, error);
        yield await this.#lookup.content.readCustomBlob(
          this.#lookup.content.index.custom[position] as IndexedBlob,
        );
      }
    }
  }

  async close(): Promise<void> {
    await this.#opened.stop();
    await this.#rereading?.catch(() => undefined);
    await this.#lookup.content.close();
  }

  #package(name: string): PackageLookup {
    const lookup = this.#lookup.packages.get(name);
    if (lookup === undefined) throw notFound(`package ${quoteGo(name)} not found`);
    return lookup;
  }

  #channel(
    owner: { channels: Map<string, ChannelLookup> },
    packageName: string,
    channelName: string,
  ): ChannelLookup {
    const lookup = owner.channels.get(channelName);
    if (lookup === undefined) throw notFound(`${formatChannel(packageName, channelName)} not found`);
    return lookup;
  }

  #latestProviders(api: ApiName): ChannelEntryMessage[] {
    return this.#providers(
      api,
      ({ channel, entry }) => {
        const inChannel = new Set(channel.entries.map(({ name }) => name));
        return entry.skips.filter((skip) => skip !== entry.replaces && inChannel.has(skip));
      },
      ({ channel, entry }) => channel.head === entry.name,
    );
  }

  /** Returns an entry for the bundle that a provider replaces, and one for each of its listed skips. */
  #providers(
    api: ApiName,
    listSkips: (place: Placed) => string[],
    isListed: (place: Placed) => boolean = () => true,
  ): ChannelEntryMessage[] {
    const places = (this.#lookup.providing.get(getApiKey(api)) ?? []).filter(isListed);
    if (places.length === 0) {
      throw notFound(`no channel entries found that provide ${formatApi(api)}`);
    }
    return places.flatMap((place) =>
      [place.entry.replaces, ...listSkips(place)].map((name) => toEntryMessage(place, name)),
    );
  }

  /** Encodes a bundle in a channel. Reads the catalog again where the kept record is damaged. */
  async #encode(place: Placed, form: 'single' | 'listed'): Promise<Uint8Array> {
    const lookup = this.#lookup;
    try {
      return await this.#assemble(lookup, place, form);
    } catch (error) {
      if (!(error instanceof DamagedRecordError)) throw error;
      await this.#readAgain(lookup.content, error);
      return this.#assemble(this.#lookup, place, form);
    }
  }

  async #assemble(lookup: Lookup, place: Placed, form: 'single' | 'listed'): Promise<Uint8Array> {
    const { content } = lookup;
    const bundle = lookup.findBundle(place);
    const part = encodeChannelPart({
      channelName: place.channel.name,
      entry: place.entry,
      withUpgrades: form === 'listed',
      deprecation: bundle.deprecation,
    });
    return content.getMessage(bundle, part, form === 'single' || !bundle.hasImage);
  }

  #readAgain(damaged: CatalogContent, error: DamagedRecordError): Promise<void> {
    if (this.#lookup.content !== damaged) return Promise.resolve();
    this.#rereading ??= this.#opened
      .replace(error)
      .then(async (content) => {
        this.#lookup = new Lookup(content);
        await damaged.close();
      })
      .finally(() => (this.#rereading = undefined));
    return this.#rereading;
  }
}

function toEntryMessage(place: Placed, replaces: string): ChannelEntryMessage {
  return {
    packageName: place.package.name,
    channelName: place.channel.name,
    bundleName: place.entry.name,
    replaces,
  };
}

function formatChannel(packageName: string, channelName: string): string {
  return `package ${quoteGo(packageName)}, channel ${quoteGo(channelName)}`;
}

function notFound(message: string): OpmateError {
  return new OpmateError('NOT_FOUND', message);
}
