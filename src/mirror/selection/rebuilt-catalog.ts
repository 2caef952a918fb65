import { rm } from 'node:fs/promises';
import path from 'node:path';
import { sharedDirectories, listSharedDirectories } from '../../archive/shared-directories.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import { toOpaqueMarker, toWhiteout } from '../../archive/whiteout.js';
import { Assembly } from '../../catalog/assemble.js';
import type { Catalog } from '../../catalog/catalog.js';
import { checkPackagePath } from '../../catalog/directory-writer.js';
import { type CancelOptions, keepOpen } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import type { Reference } from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { type FilePart, JoinedFileWriter } from '../../files/file-parts.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CatalogFacts } from '../../model/facts.js';
import { imageLabels, getLabelPath } from '../../model/image-labels.js';
import { holdBuiltImages } from '../../oci/image/built-images.js';
import { type Image } from '../../oci/image/image.js';
import {
  type BuiltImage,
  buildImage,
  chooseBases,
  createImageIndex,
  openBases,
  readWholeConfig,
} from '../../oci/image/image-builder.js';
import { openReference, withCatalogCache } from '../../oci/image/open.js';
import { isIndexType } from '../../oci/image/manifest.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Platform } from '../../oci/image/types.js';
import type { SourceSession } from '../../source/session.js';
import { createKeptCatalog } from '../../catalog/selection/kept-catalog.js';
import { type ImageCommand, getCaches, serveCommand } from './serve-command.js';

/** A file of the catalog, stored as a part of another file. */
interface StoredFile extends FilePart {
  path: string;
}

/** Options of rebuilding a catalog. */
interface RebuildOptions extends CancelOptions {
  /** Directory of the layer until the image is closed. */
  temporaryDirectory: string;
  /** Platforms to keep; default all for Linux. */
  platforms?: readonly Platform[] | undefined;
  /** References to remove from `relatedImages` of bundles. */
  withoutImages?: ReadonlySet<string> | undefined;
  /** Writes no cache for an image that had one. */
  withoutCache?: boolean | undefined;
  logger?: Logger | undefined;
}

/** A rebuilt catalog image; layers of its base are read from there. */
export interface RebuiltCatalog {
  /** Of the image or index. */
  digest: string;
  /** Contains the rebuilt image with all blobs. */
  repository: Repository;
  close(): Promise<void>;
}

/**
 * Builds the image of a filtered catalog: the original image `base` with a layer that replaces catalog and caches. The
 * digest depends on `base` and `facts` only: blobs are written as by `opm`, one file per package, with unknown fields.
 * All platforms get the same catalog; a sqlite index becomes a file-based catalog. No layer of the base is read.
 *
 * A cache of the original is replaced by a new one at its path, from which pods extract it. If that fails, the command
 * no longer names a cache, since `opm serve` refuses to start with a stale one.
 *
 * Throws OpmateError: INVALID for an image without catalog label, UNSUPPORTED for a catalog that is the whole image,
 * NOT_FOUND for a missing platform, IO, and errors of reading the catalog and building the image.
 */
export async function rebuildCatalog(
  catalog: Catalog,
  facts: CatalogFacts,
  base: { repository: Repository; digest: string },
  options: RebuildOptions,
): Promise<RebuiltCatalog> {
  const { temporaryDirectory, logger = silentLogger, signal } = options;
  const bases = await openChosenBases(base, options);
  const places = bases.images.map((image) => locateCatalog(image, logger));
  const { path: directory, remove: close } = await makeTemporaryDirectory(temporaryDirectory);
  try {
    const kept = createKeptCatalog(catalog, facts, options.withoutImages);
    const files = await writeCatalogFiles(kept, path.join(directory, 'catalog'), options);
    const cached = options.withoutCache ? undefined : places.find(({ caches }) => caches.length > 0);
    const cache =
      cached && (await writeCacheFiles(kept, files, { ...options, directory, name: cached.name }));
    const layers = new Map<string, LayerFile>();
    const images: BuiltImage[] = [];
    for (const [position, image] of bases.images.entries()) {
      const place = places[position] as ImageChanges;
      const key = JSON.stringify([place.directory, place.removed, place.caches]);
      const file = path.join(directory, `layer-${layers.size}`);
      const layer =
        layers.get(key) ?? (await writeLayer(file, listLayerEntries(place, files, cache), { signal }));
      layers.set(key, layer);
      images.push(await buildOn(image, place, layer, { hasCache: cache !== undefined, signal }));
    }
    for (const name of ['catalog', 'cache']) await rm(path.join(directory, name), { force: true });
    const index = bases.isIndex ? createImageIndex(images) : undefined;
    const root = index?.descriptor ?? (images[0] as BuiltImage).descriptor;
    return {
      digest: root.digest,
      repository: holdBuiltImages(base.repository.name, images, index),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function openChosenBases(
  { repository, digest }: { repository: Repository; digest: string },
  options: RebuildOptions,
): Promise<{ images: Image[]; isIndex: boolean }> {
  // The host platform applies only to an index within the index.
  const hostPlatform = { os: 'linux', architecture: 'amd64' };
  const images = await openBases(repository, digest, { hostPlatform, signal: options.signal });
  const isIndex = isIndexType((await repository.getManifest(digest, options)).descriptor.mediaType);
  const { platforms } = options;
  if (!isIndex || platforms === undefined) return { images, isIndex };
  return { images: chooseBases(images, platforms, `${repository.name}@${digest}`), isIndex };
}

/** Changes to an image; paths are relative to its root. */
export interface ImageChanges {
  /** Name of the image. */
  name: string;
  /** Directory of the new catalog. */
  directory: string;
  /** Removed files and directories, in byte order. */
  removed: string[];
  /** Paths of `removed` for a new cache. */
  caches: string[];
  labels: Record<string, string | undefined>;
  command: ImageCommand;
  /** Command of an image with a new cache. */
  cachedCommand: ImageCommand;
}

const usualCache = '/tmp/cache';

export function locateCatalog(image: Image, logger: Logger): ImageChanges {
  const { labels, name, config } = image;
  const configs = labels[imageLabels.configs];
  const database = labels[imageLabels.database];
  if (configs === undefined && database === undefined) {
    const problem = `no catalog, its image has no label ${imageLabels.configs}`;
    throw new OpmateError('INVALID', problem, { subject: name });
  }
  const label = configs ?? '/configs';
  const directory = getLabelPath(name, imageLabels.configs, label);
  if (directory === '') {
    throw new OpmateError('UNSUPPORTED', 'its catalog is the whole image, so a part of it cannot be taken', {
      subject: name,
      hint: `set the label ${imageLabels.configs} to a directory such as /configs`,
    });
  }
  const removed: string[] = [];
  if (database !== undefined) {
    const file = getLabelPath(name, imageLabels.database, database);
    if (file !== '') removed.push(file);
    const problem = 'becomes a file-based catalog, which the opm in the image must support';
    logger.log('warn', `${name}: its database ${quoteGo(database)} ${problem}`);
  }
  const { Entrypoint, Cmd, WorkingDir } = config.config ?? {};
  const command = { entrypoint: Entrypoint ?? undefined, cmd: Cmd ?? undefined };
  const named = getCaches(command, WorkingDir).map(relative);
  const caches = [...named];
  if (config.history?.some((entry) => entry.created_by?.includes(usualCache)))
    caches.push(relative(usualCache));
  const program = relative(command.entrypoint?.[0] ?? command.cmd?.[0] ?? '');
  for (const cache of caches) {
    // A directory with the program is not only a cache.
    if (cache !== '' && !isWithin(program, cache)) removed.push(cache);
  }
  const unique = [...new Set(removed)].filter(
    (text) => !isWithin(text, directory) && !isWithin(directory, text),
  );
  const outermost = unique.filter((text) => !unique.some((other) => other !== text && isWithin(text, other)));
  // A cache includes the mode of the catalog's directory, which differs for a shared one.
  const places = sharedDirectories.has(directory) ? [] : outermost.filter((text) => caches.includes(text));
  const keepsCache = named.length > 0 && named.every((text) => places.includes(text));
  return {
    name,
    directory,
    removed: outermost.sort(),
    caches: places.sort(),
    labels: { [imageLabels.configs]: label, [imageLabels.database]: undefined },
    command: serveCommand(command, `/${directory}`),
    cachedCommand: serveCommand(command, `/${directory}`, { keepsCache }),
  };
}

function relative(place: string): string {
  return path.posix.resolve('/', place).slice(1);
}

function isWithin(place: string, directory: string): boolean {
  return place === directory || place.startsWith(`${directory}/`);
}

function listLayerEntries(
  { directory, removed, caches }: ImageChanges,
  files: readonly StoredFile[],
  cache: readonly StoredFile[] | undefined,
): TarInput[] {
  const entries: TarInput[] = [{ path: toOpaqueMarker(directory) }, ...toEntries(directory, files)];
  for (const place of removed) {
    const isFilled = cache !== undefined && caches.includes(place);
    const isEmptied = isFilled || sharedDirectories.has(place);
    if (isFilled) entries.push(...toEntries(place, cache));
    entries.push({ path: isEmptied ? toOpaqueMarker(place) : toWhiteout(place) });
  }
  return [...entries, ...listSharedDirectories(entries)];
}

function toEntries(directory: string, files: readonly StoredFile[]): TarInput[] {
  return files.map(({ path: name, ...content }) => ({ path: `${directory}/${name}`, content }));
}

/** Returns the files of the cache; undefined, with a warning, if it cannot be written. */
async function writeCacheFiles(
  catalog: Catalog,
  catalogFiles: readonly StoredFile[],
  options: RebuildOptions & { directory: string; name: string },
): Promise<StoredFile[] | undefined> {
  const { directory, name, logger = silentLogger, signal } = options;
  // Loaded on demand.
  const { writeOpmCache } = await import('../../catalog/content/opm-cache.js');
  try {
    return await writeOpmCache(catalog, {
      catalogFiles,
      file: path.join(directory, 'cache'),
      logger,
      signal,
    });
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'INVALID') throw error;
    logger.log(
      'warn',
      `${name}: the rebuilt catalog has no cache, and pods cannot take it out: ${error.message}`,
    );
    return undefined;
  }
}

/** Writes the files of the catalog into one file, so their sizes are known before packing. */
async function writeCatalogFiles(
  catalog: Catalog,
  target: string,
  options: RebuildOptions,
): Promise<StoredFile[]> {
  const { signal, logger } = options;
  const assembly = new Assembly({
    format: 'json',
    migrationLevel: 'none',
    temporaryDirectory: path.dirname(target),
    keepUnknownFields: true,
  });
  let joined: JoinedFileWriter | undefined;
  try {
    for await (const meta of catalog.metas({ signal, logger })) {
      throwIfCancelled(signal);
      await assembly.add(catalog, meta);
    }
    for (const name of assembly.packages()) checkPackagePath(name);
    joined = await JoinedFileWriter.create(target);
    const files: StoredFile[] = [];
    let current: { package: string; file: StoredFile } | undefined;
    for await (const piece of assembly.writeByPackage({ signal })) {
      if (current?.package !== piece.package) {
        const name = path.posix.join(piece.package, 'catalog.json');
        const file = { path: name, file: target, offset: joined.size, size: 0 };
        files.push(file);
        current = { package: piece.package, file };
      }
      const bytes = typeof piece.text === 'string' ? Buffer.from(piece.text) : piece.text;
      await joined.write(bytes);
      current.file.size += bytes.length;
    }
    await joined.flush();
    return files;
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(target, error);
  } finally {
    await joined?.close();
    await assembly.close();
  }
}

async function buildOn(
  base: Image,
  place: ImageChanges,
  layer: LayerFile,
  { hasCache, ...options }: CancelOptions & { hasCache: boolean },
): Promise<BuiltImage> {
  const command = hasCache ? place.cachedCommand : place.command;
  return buildImage({
    base,
    baseConfig: await readWholeConfig(base, options),
    platform: base.platform,
    layers: [layer],
    labels: place.labels,
    entrypoint: command.entrypoint,
    cmd: command.cmd,
  });
}

/** A catalog with its source image and the content to keep. */
export interface RebuildSource {
  catalog: Catalog;
  facts: CatalogFacts;
  /** By digest. */
  reference: Reference;
  digest: string;
}

/** Changes to a catalog besides its content. */
export type RebuildChanges = Pick<RebuildOptions, 'platforms' | 'withoutImages'>;

/** Rebuilds a catalog on its source image, which stays open until the rebuilt catalog is closed. */
export async function rebuildFrom(
  { catalog, facts, reference, digest }: RebuildSource,
  session: SourceSession,
  changes: RebuildChanges,
): Promise<RebuiltCatalog> {
  const { temporaryDirectory, logger, signal } = session;
  return keepOpen(openReference(reference, session), async (base) => {
    const repository = await withCatalogCache(base.repository, session);
    const options = { ...changes, temporaryDirectory, logger, signal };
    const rebuilt = await rebuildCatalog(catalog, facts, { repository, digest }, options);
    return {
      ...rebuilt,
      close: async () => {
        await rebuilt.close();
        await base.close();
      },
    };
  });
}
