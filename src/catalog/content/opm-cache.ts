import type { Catalog } from '../catalog.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { groupBy } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, setJsonKey } from '../../document/json.js';
import { JoinedFileWriter } from '../../files/file-parts.js';
import { createPartialCatalog } from '../partial-catalog.js';
import { encodeChannelPart } from './bundle-messages.js';
import { CatalogContent, type IndexedPackage } from './catalog-content.js';
import { bundleType } from './messages.js';
import { type CacheFile, requireFileNames, getBlobDirectory, listPlaces } from './opm-cache-names.js';
import { computeFnv } from './fnv.js';
import { hashChangedTrees, hashOpmTrees } from './opm-tree-hash.js';
import { type PreviousCache, selectKept } from './previous-cache.js';

interface OpmCacheOptions extends CancelOptions {
  /** Files of the catalog as they will be served, with mode 0644 in directories of mode 0755. */
  catalogFiles: readonly CacheFile[];
  /** Output file with all cache files; must not exist. The caller removes it. */
  file: string;
  logger?: Logger | undefined;
}

/**
 * Writes the cache for `opm serve --cache-dir`, reproducibly, in the JSON format that every opm with caches accepts.
 * Files must get mode 0644 and directories 0755, which the digest includes. One bundle is in memory at a time.
 *
 * Throws OpmateError INVALID with all faults of an invalid catalog and for names that are no file names; IO; and errors
 * of reading the catalog. (Source: pkg/cache of operator-registry.)
 */
export async function writeOpmCache(catalog: Catalog, options: OpmCacheOptions): Promise<CacheFile[]> {
  const { catalogFiles, signal } = options;
  return writeFiles(catalog, options, undefined, (files) =>
    hashOpmTrees([catalogFiles, listBelow(files)], signal),
  );
}

/**
 * Writes a cache like `writeOpmCache`, and takes files of unchanged blobs from that of an earlier state of the catalog.
 * Returns undefined if that does not match its catalog, which is read along with the new one.
 */
export async function updateOpmCache(
  catalog: Catalog,
  previous: PreviousCache,
  options: OpmCacheOptions,
): Promise<CacheFile[] | undefined> {
  const { catalogFiles, signal } = options;
  let isCurrent = false;
  const updated = await writeFiles(catalog, options, previous, async (files) => {
    const trees = [
      { before: previous.catalogFiles, after: catalogFiles },
      { before: listBelow([...previous.files.values()]), after: listBelow(files) },
    ];
    const { before, after } = await hashChangedTrees(trees, signal);
    isCurrent = before === previous.digest;
    return after;
  });
  return isCurrent ? updated : undefined;
}

/** Returns the files with paths as the digest has them. */
function listBelow(files: readonly CacheFile[]): CacheFile[] {
  return files.map((cached) => ({ ...cached, path: cached.path.slice('cache/'.length) }));
}

async function writeFiles(
  catalog: Catalog,
  { file, signal, logger }: OpmCacheOptions,
  previous: PreviousCache | undefined,
  computeDigest: (files: readonly CacheFile[]) => Promise<string>,
): Promise<CacheFile[]> {
  const kept = previous && selectKept(previous);
  const written = kept === undefined ? catalog : createPartialCatalog(catalog, kept.written);
  const content = await CatalogContent.read(written, undefined, { signal, logger, keepsFacts: false });
  const packages = kept?.packages ?? content.index.packages;
  let joined: JoinedFileWriter | undefined;
  try {
    const target = (joined = await JoinedFileWriter.create(file));
    const files: CacheFile[] = [];
    const write: Write = async (name, pieces) => {
      throwIfCancelled(signal);
      const offset = target.size;
      for (const piece of pieces) await target.write(piece);
      files.push({ path: name, file, offset, size: target.size - offset });
    };
    await write('cache/packages.json', encodePackageIndex(packages));
    files.push(...(kept?.files ?? []));
    requireFileNames(packages);
    await writeBundles(content, write);
    await writeCustomBlobs(content, write);
    await target.flush();
    await write('digest', [Buffer.from(await computeDigest(files))]);
    await target.flush();
    return files;
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(file, error);
  } finally {
    await joined?.close();
    await content.close();
  }
}

/** Writes a file of the cache. */
type Write = (name: string, pieces: Iterable<Buffer>) => Promise<void>;

/** Encodes the package index of opm, without descriptions and icons, which no reply has. */
function* encodePackageIndex(packages: readonly IndexedPackage[]): Generator<Buffer> {
  let separator = '{';
  for (const { name, defaultChannel, channels, deprecation } of packages) {
    const byName: JsonObject = {};
    for (const channel of channels) {
      const bundles: JsonObject = {};
      for (const { name: bundle, replaces, skips } of channel.entries) {
        const entry = { package: name, channel: channel.name, name: bundle, replaces, skips: [...skips] };
        setJsonKey(bundles, bundle, entry);
      }
      setJsonKey(byName, channel.name, {
        Name: channel.name,
        Head: channel.head,
        Bundles: bundles,
        ...getDeprecation(channel.deprecation),
      });
    }
    const text = encodeGoJson({
      name,
      description: '',
      icon: null,
      defaultChannel,
      Channels: byName,
      ...getDeprecation(deprecation),
    });
    yield Buffer.from(`${separator}${encodeGoJson(name)}:${text}`);
    separator = ',';
  }
  yield Buffer.from(packages.length === 0 ? '{}' : '}');
}

function getDeprecation(message: string | undefined): JsonObject {
  return message === undefined ? {} : { deprecation: { message } };
}

async function writeBundles(content: CatalogContent, write: Write): Promise<void> {
  const { packages, bundles } = content.index;
  const owned = groupBy(bundles, (bundle) => bundle.package);
  for (const owner of packages) {
    const placesByName = groupBy(listPlaces(owner), ({ entry }) => entry.name);
    for (const bundle of owned.get(owner.name) ?? []) {
      const places = placesByName.get(bundle.name) ?? [];
      placesByName.delete(bundle.name);
      if (places.length === 0) continue;
      const common = encodeFields(await content.encodeMessage(bundle));
      for (const { channelName, entry, name } of places) {
        const part = encodeChannelPart({
          channelName,
          entry,
          withUpgrades: true,
          deprecation: bundle.deprecation,
        });
        await write(`cache/${name}`, joinFields(common, encodeFields(part)));
      }
    }
    for (const name of placesByName.keys())
      throw new OpmateError('INTERNAL', `package ${quoteGo(owner.name)}, bundle ${quoteGo(name)} is missing`);
  }
}

/** Encodes the present fields of a partial bundle message, each as `"name":VALUE`. */
function encodeFields(part: Buffer): Map<string, Buffer> {
  const fields = Object.entries(bundleType.decodePresent(part) as JsonObject);
  return new Map(fields.map(([name, value]) => [name, Buffer.from(`"${name}":${encodeGoJson(value)}`)]));
}

const [opening, comma, closing] = ['{', ',', '}'].map((text) => Buffer.from(text)) as [
  Buffer,
  Buffer,
  Buffer,
];

/** Yields an object with the fields of both, which are disjoint, in message order. */
function* joinFields(
  common: ReadonlyMap<string, Buffer>,
  own: ReadonlyMap<string, Buffer>,
): Generator<Buffer> {
  let separator = opening;
  for (const name of bundleType.fieldNames) {
    const field = common.get(name) ?? own.get(name);
    if (field === undefined) continue;
    yield separator;
    yield field;
    separator = comma;
  }
  yield closing;
}

async function writeCustomBlobs(content: CatalogContent, write: Write): Promise<void> {
  const written = new Set<string>();
  for (const blob of content.index.custom) {
    const directory = getBlobDirectory(blob);
    const text = Buffer.from(encodeGoJson((await content.readCustomBlob(blob)) as JsonObject));
    const name = `${directory}/${computeFnv(text)}.json`;
    // Equal blobs share a file, as with opm.
    if (written.has(name)) continue;
    written.add(name);
    await write(name, [text]);
  }
}
