import { createReadStream } from 'node:fs';
import { type FileHandle, open, rm } from 'node:fs/promises';
import path from 'node:path';
import { sharedDirectories, sharedDirectoriesOf } from '../../archive/shared-directories.js';
import { type LayerFile, type TarInput, writeLayer } from '../../archive/tar-writer.js';
import { Assembly } from '../../catalog/assemble.js';
import type { Catalog } from '../../catalog/catalog.js';
import { checkPackagePath } from '../../catalog/directory-writer.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import type { CatalogFacts } from '../../model/facts.js';
import { imageLabels, pathOfLabel } from '../../model/image-labels.js';
import { BuiltImages } from '../../oci/image/built-images.js';
import { type Image } from '../../oci/image/image.js';
import {
  type BuiltImage,
  buildImage,
  chooseBases,
  indexOf,
  openBases,
  readWholeConfig,
} from '../../oci/image/image-builder.js';
import { isIndexType } from '../../oci/image/manifest.js';
import type { Repository } from '../../oci/registry/repository.js';
import type { Platform } from '../../oci/image/types.js';
import { KeptCatalog } from '../../catalog/selection/kept-catalog.js';
import { type ImageCommand, cachesOf, serveCommand } from './serve-command.js';

export interface RebuildOptions extends CancelOptions {
  /** Where the layer is written until the image is pushed. */
  temporaryDirectory: string;
  /** Only these of the image's platforms; all of them for Linux when left out. */
  platforms?: readonly Platform[] | undefined;
  /** Images that `relatedImages` of the bundles must not name any more, by their text. */
  withoutImages?: ReadonlySet<string> | undefined;
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
 * Blobs keep what the catalog format does not know. The command no longer names a cache, since `opm serve` refuses to
 * start with one that does not fit. No layer of the base is read.
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
    const layers = new Map<string, LayerFile>();
    const images: BuiltImage[] = [];
    for (const [at, image] of bases.images.entries()) {
      const place = places[at] as CatalogPlace;
      const key = JSON.stringify([place.directory, place.removed]);
      let layer = layers.get(key);
      if (layer === undefined) {
        layer = await writeLayer(path.join(directory, `layer-${layers.size}`), layerEntries(place, files), {
          signal,
        });
        layers.set(key, layer);
      }
      images.push(await buildOn(image, place, layer, options));
    }
    await rm(path.join(directory, 'catalog'), { force: true });
    const index = bases.isIndex ? indexOf(images) : undefined;
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
  /** Where the catalog is to be. */
  directory: string;
  /** What is taken away, in byte order. */
  removed: { path: string; isEmptied: boolean }[];
  labels: Record<string, string | undefined>;
  command: ImageCommand;
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
      hint: `the label ${imageLabels.configs} must name a directory, such as /configs`,
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
  const caches = cachesOf(command, WorkingDir);
  if (config.history?.some((entry) => entry.created_by?.includes(usualCache))) caches.push(usualCache);
  const program = relative(command.entrypoint?.[0] ?? command.cmd?.[0] ?? '');
  for (const cache of caches.map(relative)) {
    // Not a cache alone, whatever the command calls it.
    if (cache !== '' && !isWithin(program, cache)) removed.push(cache);
  }
  const unique = [...new Set(removed)].filter(
    (one) => !isWithin(one, directory) && !isWithin(directory, one),
  );
  const outermost = unique.filter((one) => !unique.some((other) => other !== one && isWithin(one, other)));
  return {
    directory,
    removed: outermost.sort().map((one) => ({ path: one, isEmptied: sharedDirectories.has(one) })),
    labels: { [imageLabels.configs]: label, [imageLabels.database]: undefined },
    command: serveCommand(command, `/${directory}`),
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

/** A file of the new catalog: a piece of the file in which all of them are written. */
interface CatalogFile {
  /** Relative to the catalog. */
  path: string;
  source: string;
  offset: number;
  size: number;
}

function layerEntries({ directory, removed }: CatalogPlace, files: readonly CatalogFile[]): TarInput[] {
  const entries: TarInput[] = [
    { path: `${directory}/${opaqueMarker}` },
    ...files.map(({ path: file, source, offset, size }) => ({
      path: `${directory}/${file}`,
      content: { size, open: () => openPiece(source, offset, size) },
    })),
  ];
  for (const { path: place, isEmptied } of removed) {
    const slash = place.lastIndexOf('/') + 1;
    const whiteout = place.slice(0, slash) + whiteoutPrefix + place.slice(slash);
    entries.push({ path: isEmptied ? `${place}/${opaqueMarker}` : whiteout });
  }
  return [...entries, ...sharedDirectoriesOf(entries)];
}

function openPiece(file: string, offset: number, size: number) {
  return createReadStream(file, { start: offset, end: offset + size - 1, highWaterMark: 256 * 1024 });
}

/** Writes the files of the catalog one after the other into one, so that each has its size before it is packed. */
async function writeCatalogFiles(
  catalog: Catalog,
  target: string,
  options: RebuildOptions,
): Promise<CatalogFile[]> {
  const { signal, logger } = options;
  const assembly = new Assembly({
    format: 'json',
    migrationLevel: 'none',
    temporaryDirectory: path.dirname(target),
    keepUnknownFields: true,
  });
  let handle: FileHandle | undefined;
  try {
    for await (const meta of catalog.metas({ signal, logger })) {
      throwIfCancelled(signal);
      await assembly.add(catalog, meta);
    }
    for (const name of assembly.packages()) checkPackagePath(name);
    handle = await open(target, 'wx', 0o600);
    const files: CatalogFile[] = [];
    let end = 0;
    let current: { package: string; file: CatalogFile } | undefined;
    for await (const piece of assembly.writeByPackage({ signal })) {
      if (current?.package !== piece.package) {
        const name = path.posix.join(piece.package, 'catalog.json');
        const file = { path: name, source: target, offset: end, size: 0 };
        files.push(file);
        current = { package: piece.package, file };
      }
      const bytes = typeof piece.text === 'string' ? Buffer.from(piece.text) : piece.text;
      await handle.writeFile(bytes);
      current.file.size += bytes.length;
      end += bytes.length;
    }
    return files;
  } catch (error) {
    throw error instanceof OpmateError ? error : fileError(target, error);
  } finally {
    await handle?.close();
    await assembly.close();
  }
}

async function buildOn(
  base: Image,
  { labels, command }: CatalogPlace,
  layer: LayerFile,
  options: CancelOptions,
): Promise<BuiltImage> {
  return buildImage({
    base,
    baseConfig: await readWholeConfig(base, options),
    platform: base.platform,
    layers: [layer],
    labels,
    entrypoint: command.entrypoint,
    cmd: command.cmd,
  });
}
