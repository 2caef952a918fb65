import { rm } from 'node:fs/promises';
import path from 'node:path';
import { sharedDirectories, listSharedDirectories } from '../../archive/shared-directories.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import { Assembly } from '../../catalog/assemble.js';
import type { Catalog } from '../../catalog/catalog.js';
import { checkPackagePath } from '../../catalog/directory-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { type FilePart, JoinedFileWriter } from '../../files/file-parts.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CatalogFacts } from '../../model/facts.js';
import { imageLabels, pathOfLabel } from '../../model/image-labels.js';
import { BuiltImages } from '../../oci/image/built-images.js';
import { type Image } from '../../oci/image/image.js';
import {
  type BuiltImage,
  buildImage,
  chooseBases,
  buildIndex,
  openBases,
  readWholeConfig,
} from '../../oci/image/image-builder.js';
import { isIndexType } from '../../oci/image/manifest.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Platform } from '../../oci/image/types.js';
import { KeptCatalog } from '../../catalog/selection/kept-catalog.js';
import { type ImageCommand, getCaches, serveCommand } from './serve-command.js';

/** A file that stands in `file`, from `offset` on if told, and is called `path` where it belongs. */
interface StoredFile extends FilePart {
  path: string;
}

export interface RebuildOptions extends CancelOptions {
  /** Where the layer is written until the image is pushed. */
  temporaryDirectory: string;
  /** Only these of the image's platforms; all of them for Linux when left out. */
  platforms?: readonly Platform[] | undefined;
  /** Images that `relatedImages` of the bundles must not name any more, by their text. */
  withoutImages?: ReadonlySet<string> | undefined;
  /** Makes no cache for an image that had one. */
  withoutCache?: boolean | undefined;
  logger?: Logger | undefined;
}

/** A catalog image that exists only here: its own parts are local, its base's layers where they were. */
export interface RebuiltCatalog {
  /** Of the image or index. */
  digest: string;
  /** Hands out the rebuilt image by its digest, and every blob of it. */
  repository: Repository;
  close(): Promise<void>;
}

/**
 * Makes the image of a catalog of which only `facts` are kept: the original image with one layer more, which takes
 * the old catalog and its caches away and puts the new one in their place. Depends on the original image and the
 * facts alone, to the digest: blobs are written as `opm` does, one file a package, wherever they stood before.
 * `base` is the original image, by digest; of several platforms each gets the same catalog. An index in a sqlite
 * database becomes a file-based catalog.
 *
 * Blobs keep what the catalog format does not know. Where the original has a cache, the new one has its own: pods take
 * it out of the image by its path. Of a catalog that can have none, which is told, the command no longer names a cache,
 * since `opm serve` refuses to start with one that does not fit. No layer of the base is read.
 *
 * Throws OpmateError: INVALID for an image without the label of a catalog, UNSUPPORTED for one whose catalog is all of
 * it, NOT_FOUND for a platform that it does not have, IO for what cannot be written; and what reading the catalog and
 * building on the image throw.
 */
export async function rebuildCatalog(
  catalog: Catalog,
  facts: CatalogFacts,
  base: { repository: Repository; digest: string },
  options: RebuildOptions,
): Promise<RebuiltCatalog> {
  const { temporaryDirectory, logger = silentLogger, signal } = options;
  const bases = await openChosenBases(base, options);
  const places = bases.images.map((image) => placeOf(image, logger));
  const { path: directory, remove: close } = await makeTemporaryDirectory(temporaryDirectory);
  try {
    const kept = new KeptCatalog(catalog, facts, options.withoutImages);
    const files = await writeCatalogFiles(kept, path.join(directory, 'catalog'), options);
    const cached = options.withoutCache ? undefined : places.find(({ caches }) => caches.length > 0);
    const cache =
      cached && (await writeCacheFiles(kept, files, { ...options, directory, name: cached.name }));
    const layers = new Map<string, LayerFile>();
    const images: BuiltImage[] = [];
    for (const [position, image] of bases.images.entries()) {
      const place = places[position] as CatalogPlace;
      const key = JSON.stringify([place.directory, place.removed, place.caches]);
      let layer = layers.get(key);
      if (layer === undefined) {
        layer = await writeLayer(
          path.join(directory, `layer-${layers.size}`),
          layerEntries(place, files, cache),
          {
            signal,
          },
        );
        layers.set(key, layer);
      }
      images.push(await buildOn(image, place, layer, { hasCache: cache !== undefined, signal }));
    }
    for (const name of ['catalog', 'cache']) await rm(path.join(directory, name), { force: true });
    const index = bases.isIndex ? buildIndex(images) : undefined;
    const root = index?.descriptor ?? (images[0] as BuiltImage).descriptor;
    return {
      digest: root.digest,
      repository: new BuiltImages(base.repository.name, images, index),
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
  // Only an index within the index would ask for the platform of this machine.
  const hostPlatform = { os: 'linux', architecture: 'amd64' };
  const images = await openBases(repository, digest, { hostPlatform, signal: options.signal });
  const isIndex = isIndexType((await repository.getManifest(digest, options)).descriptor.mediaType);
  const { platforms } = options;
  if (!isIndex || platforms === undefined) return { images, isIndex };
  return { images: chooseBases(images, platforms, `${repository.name}@${digest}`), isIndex };
}

/** What becomes of the files and the configuration of an image; paths are relative to its root. */
interface CatalogPlace {
  /** Of the image. */
  name: string;
  /** Where the catalog is to be. */
  directory: string;
  /** What is taken away, in byte order. */
  removed: string[];
  /** Those of `removed` that a cache may be put into. */
  caches: string[];
  labels: Record<string, string | undefined>;
  command: ImageCommand;
  /** The command where the caches are written. */
  cachedCommand: ImageCommand;
}

const usualCache = '/tmp/cache';

function placeOf(image: Image, logger: Logger): CatalogPlace {
  const { labels, name, config } = image;
  const configs = labels[imageLabels.configs];
  const database = labels[imageLabels.database];
  if (configs === undefined && database === undefined) {
    throw new OpmateError('INVALID', `no catalog, its image has no label ${imageLabels.configs}`, {
      subject: name,
    });
  }
  const label = configs ?? '/configs';
  const directory = pathOfLabel(name, imageLabels.configs, label);
  if (directory === '') {
    throw new OpmateError('UNSUPPORTED', 'its catalog is the whole image, so a part of it cannot be taken', {
      subject: name,
      hint: `set the label ${imageLabels.configs} to a directory such as /configs`,
    });
  }
  const removed: string[] = [];
  if (database !== undefined) {
    const file = pathOfLabel(name, imageLabels.database, database);
    if (file !== '') removed.push(file);
    const problem = 'becomes a file-based catalog, which the opm in it must know how to serve';
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
    // Not a cache alone, whatever the command calls it.
    if (cache !== '' && !isWithin(program, cache)) removed.push(cache);
  }
  const unique = [...new Set(removed)].filter(
    (text) => !isWithin(text, directory) && !isWithin(directory, text),
  );
  const outermost = unique.filter((text) => !unique.some((other) => other !== text && isWithin(text, other)));
  // The mode of the catalog's directory is part of what a cache is checked by, and a shared one has another.
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

/** Hides what lower layers have in the directory that it stands in. Unlike a whiteout of the directory itself, it may
 * be in one layer with what is put there: some tools would take that away too, or let the old files shine through. */
const opaqueMarker = '.wh..wh..opq';
const whiteoutPrefix = '.wh.';

function layerEntries(
  { directory, removed, caches }: CatalogPlace,
  files: readonly StoredFile[],
  cache: readonly StoredFile[] | undefined,
): TarInput[] {
  const entries: TarInput[] = [{ path: `${directory}/${opaqueMarker}` }, ...entriesIn(directory, files)];
  for (const place of removed) {
    const isFilled = cache !== undefined && caches.includes(place);
    const isEmptied = isFilled || sharedDirectories.has(place);
    if (isFilled) entries.push(...entriesIn(place, cache));
    const slash = place.lastIndexOf('/') + 1;
    const whiteout = place.slice(0, slash) + whiteoutPrefix + place.slice(slash);
    entries.push({ path: isEmptied ? `${place}/${opaqueMarker}` : whiteout });
  }
  return [...entries, ...listSharedDirectories(entries)];
}

function entriesIn(directory: string, files: readonly StoredFile[]): TarInput[] {
  return files.map(({ path: name, ...content }) => ({ path: `${directory}/${name}`, content }));
}

/** The files of the cache; undefined where there is to be none. */
async function writeCacheFiles(
  catalog: Catalog,
  catalogFiles: readonly StoredFile[],
  options: RebuildOptions & { directory: string; name: string },
): Promise<StoredFile[] | undefined> {
  const { directory, name, logger = silentLogger, signal } = options;
  // Loaded for catalogs that have a cache only.
  const { writeOpmCache } = await import('../../serve/grpc/opm-cache.js');
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

/** Writes the files of the catalog one after the other into one, so that each has its size before it is packed. */
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
  place: CatalogPlace,
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
