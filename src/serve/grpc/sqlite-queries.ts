import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import type { ReadOptions, ReadSession } from '../../sqlite/schema/edit.js';
import {
  type ProvidingEntry,
  type ServedBundle,
  type ServedEntry,
  type ServedIndex,
  compareEntries,
  openServedIndex,
} from '../../sqlite/read/served-index.js';
import { type ChannelEntryMessage, bundleType, packageType } from '../../catalog/content/messages.js';
import type { RegistryQueries } from './registry-queries.js';
import type { ApiName } from '../../model/csv.js';

/** Opens a database file, read-only, for the registry API; one of an older schema is copied. Throws as `openServedIndex`. */
export async function openSqliteQueries(
  file: string,
  session: ReadSession,
  options?: ReadOptions,
): Promise<RegistryQueries> {
  return new SqliteQueries(await openServedIndex(file, session, options));
}

/** Queries of an index, with the messages of `opm registry serve`. */
class SqliteQueries implements RegistryQueries {
  readonly #index: ServedIndex;

  constructor(index: ServedIndex) {
    this.#index = index;
  }

  close(): Promise<void> {
    return this.#index.close();
  }

  #providers({ group, version, kind }: ApiName): ProvidingEntry[] {
    return this.#index.listProviders(group, version, kind);
  }

  #requireProviders(api: ApiName): ProvidingEntry[] {
    const entries = this.#providers(api);
    if (entries.length > 0) return entries;
    throw notFound(`no channel entries found that provide ${api.group} ${api.version} ${api.kind}`);
  }

  listPackages(): string[] {
    return this.#index.packageNames();
  }

  getPackage(name: string): Uint8Array {
    const storedPackage = this.#index.findPackage(name);
    if (storedPackage === undefined || storedPackage.channels.length === 0)
      throw notFound(`package ${name} not found`);
    return packageType.encode({
      name,
      channels: storedPackage.channels
        .map((channel) => ({ name: channel.name, csvName: channel.head }))
        .sort((a, b) => compareBytes(a.name, b.name)),
      defaultChannelName: storedPackage.defaultChannel,
    });
  }

  async getBundle(packageName: string, channelName: string, csvName: string): Promise<Uint8Array> {
    const bundle = this.#index.findBundle(packageName, channelName, csvName);
    if (bundle === undefined) throw notFound(`no entry found for ${packageName} ${channelName} ${csvName}`);
    return encodeBundle(bundle, packageName, channelName);
  }

  async getBundleForChannel(packageName: string, channelName: string): Promise<Uint8Array> {
    const head = this.#index.findHead(packageName, channelName);
    if (head === undefined) throw notFound(`no entry found for ${packageName} ${channelName}`);
    return bundleType.encode({ csvName: head.name, csvJson: head.csv });
  }

  async getBundleThatReplaces(
    csvName: string,
    packageName: string,
    channelName: string,
  ): Promise<Uint8Array> {
    const bundle = this.#index.findReplacement(csvName, packageName, channelName);
    if (bundle === undefined) throw notFound(`no entry found for ${packageName} ${channelName}`);
    return encodeBundle(bundle, packageName, channelName);
  }

  async getDefaultBundleThatProvides(api: ApiName): Promise<Uint8Array> {
    for (const entry of findNearestToHeads(this.#providers(api))) {
      if (this.#index.findPackage(entry.package)?.defaultChannel !== entry.channel) continue;
      const bundle = this.#index.findBundle(entry.package, entry.channel, entry.bundle);
      if (bundle !== undefined) return encodeBundle(bundle, entry.package, entry.channel);
    }
    throw notFound(`no entry found that provides ${api.group} ${api.version} ${api.kind}`);
  }

  getChannelEntriesThatReplace(csvName: string): ChannelEntryMessage[] {
    const entries = this.#index.listReplacements(csvName);
    if (entries.length === 0) throw notFound(`no channel entries found that replace ${csvName}`);
    return entries.map(toEntryMessage);
  }

  getChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[] {
    const sorted = this.#requireProviders(api).sort(compareEntries);
    return sorted
      .filter((entry, index) => index === 0 || compareEntries(entry, sorted[index - 1] as ServedEntry) !== 0)
      .map(toEntryMessage);
  }

  getLatestChannelEntriesThatProvide(api: ApiName): ChannelEntryMessage[] {
    return findNearestToHeads(this.#requireProviders(api)).map(toEntryMessage);
  }

  async *listBundles(): AsyncGenerator<Buffer> {
    for (const { bundle, package: packageName, places } of this.#index.listBundles()) {
      const common = encodeBundle(bundle, packageName, '');
      for (const { channel, replaces, skips } of places) {
        const own = bundleType.encode({ channelName: channel, replaces, skips });
        yield Buffer.concat([common, own]);
      }
    }
  }
}

function notFound(message: string): OpmateError {
  return new OpmateError('NOT_FOUND', message);
}

function toEntryMessage({
  package: packageName,
  channel,
  bundle,
  replaces,
}: ServedEntry): ChannelEntryMessage {
  return { packageName, channelName: channel, bundleName: bundle, replaces };
}

/** Returns the entry nearest to the head of each channel, the first stored of several; sorted. */
function findNearestToHeads(entries: readonly ProvidingEntry[]): ProvidingEntry[] {
  const nearest = new Map<string, ProvidingEntry>();
  for (const entry of entries) {
    const key = `${entry.package}\0${entry.channel}`;
    const known = nearest.get(key);
    if (known === undefined || entry.depth < known.depth) nearest.set(key, entry);
  }
  return [...nearest.values()].sort(compareEntries);
}

function encodeBundle(bundle: ServedBundle, packageName: string, channelName: string): Buffer {
  const { name, image, version, skipRange, csv, objects } = bundle;
  const { providedApis, requiredApis, dependencies, properties } = bundle;
  return bundleType.encode({
    csvName: name,
    packageName,
    channelName,
    csvJson: csv,
    object: objects,
    bundlePath: image,
    providedApis,
    requiredApis,
    version,
    skipRange,
    dependencies,
    properties,
  });
}
