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
  return createSqliteQueries(await openServedIndex(file, session, options));
}

/** Returns queries of an index, with the messages of `opm registry serve`. */
function createSqliteQueries(index: ServedIndex): RegistryQueries {
  return {
    listPackages: () => index.packageNames(),
    getPackage(name) {
      const storedPackage = index.findPackage(name);
      if (storedPackage === undefined || storedPackage.channels.length === 0)
        throw notFound(`package ${name} not found`);
      return packageType.encode({
        name,
        channels: storedPackage.channels
          .map((channel) => ({ name: channel.name, csvName: channel.head }))
          .sort((a, b) => compareBytes(a.name, b.name)),
        defaultChannelName: storedPackage.defaultChannel,
      });
    },
    async getBundle(packageName, channelName, csvName) {
      const bundle = index.findBundle(packageName, channelName, csvName);
      if (bundle === undefined) throw notFound(`no entry found for ${packageName} ${channelName} ${csvName}`);
      return encodeBundle(bundle, packageName, channelName);
    },
    async getBundleForChannel(packageName, channelName) {
      const head = index.findHead(packageName, channelName);
      if (head === undefined) throw notFound(`no entry found for ${packageName} ${channelName}`);
      return bundleType.encode({ csvName: head.name, csvJson: head.csv });
    },
    async getBundleThatReplaces(csvName, packageName, channelName) {
      const bundle = index.findReplacement(csvName, packageName, channelName);
      if (bundle === undefined) throw notFound(`no entry found for ${packageName} ${channelName}`);
      return encodeBundle(bundle, packageName, channelName);
    },
    async getDefaultBundleThatProvides(api) {
      for (const entry of findNearestToHeads(providers(api))) {
        if (index.findPackage(entry.package)?.defaultChannel !== entry.channel) continue;
        const bundle = index.findBundle(entry.package, entry.channel, entry.bundle);
        if (bundle !== undefined) return encodeBundle(bundle, entry.package, entry.channel);
      }
      throw notFound(`no entry found that provides ${api.group} ${api.version} ${api.kind}`);
    },
    getChannelEntriesThatReplace(csvName) {
      const entries = index.listReplacements(csvName);
      if (entries.length === 0) throw notFound(`no channel entries found that replace ${csvName}`);
      return entries.map(toEntryMessage);
    },
    getChannelEntriesThatProvide(api) {
      const sorted = requireProviders(api).sort(compareEntries);
      return sorted
        .filter(
          (entry, index) => index === 0 || compareEntries(entry, sorted[index - 1] as ServedEntry) !== 0,
        )
        .map(toEntryMessage);
    },
    getLatestChannelEntriesThatProvide: (api) =>
      findNearestToHeads(requireProviders(api)).map(toEntryMessage),
    async *listBundles() {
      for (const { bundle, package: packageName, places } of index.listBundles()) {
        const common = encodeBundle(bundle, packageName, '');
        for (const { channel, replaces, skips } of places) {
          const own = bundleType.encode({ channelName: channel, replaces, skips });
          yield Buffer.concat([common, own]);
        }
      }
    },
    close: index.close,
  };

  function providers({ group, version, kind }: ApiName) {
    return index.listProviders(group, version, kind);
  }

  function requireProviders(api: ApiName) {
    const entries = providers(api);
    if (entries.length > 0) return entries;
    throw notFound(`no channel entries found that provide ${api.group} ${api.version} ${api.kind}`);
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
