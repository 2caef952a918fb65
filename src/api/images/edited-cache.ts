import { link } from 'node:fs/promises';
import path from 'node:path';
import type { ExtractedLayers } from '../../archive/layers.js';
import type { TarInput } from '../../archive/tar-writer.js';
import { toOpaqueMarker, toWhiteout } from '../../archive/whiteout.js';
import { type ListedFile, listFiles } from '../../bundle/image-files.js';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import type { CacheFile } from '../../catalog/content/opm-cache-names.js';
import type { StoredCache } from '../../catalog/content/previous-cache.js';
import {
  type IndexTree,
  type ValidIndex,
  findChangedParts,
  isReplaced,
} from '../../catalog/image/index-edit.js';
import { mapConcurrent, withOpen } from '../../core/concurrency.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { makeDirectory } from '../../files/make-directory.js';
import type { ImageChanges } from '../../mirror/selection/rebuilt-catalog.js';
import type { Image } from '../../oci/image/image.js';
import type { Session } from '../../source/session.js';

/** Files of a cache by path. */
type CacheFiles = ReadonlyMap<string, CacheFile>;

/** Cache of a changed index. */
export interface EditedCache {
  files: CacheFiles;
  /** Cache before the change, of which the image keeps the same files; undefined if it is replaced. */
  previous: CacheFiles | undefined;
}

/**
 * Returns the paths in an image that a cache in the JSON format has, and one that only another format has; none if images
 * differ or have several caches.
 */
export function listCacheRoots(places: readonly ImageChanges[]): string[] {
  const [cache, ...others] = places[0]?.caches ?? [];
  if (cache === undefined || others.length > 0 || new Set(places.map(getChangesKey)).size > 1) return [];
  return [`${cache}/digest`, `${cache}/cache`, `${cache}/pogreb.v1/digest`];
}

/** Returns a text that is equal for images with the catalog and caches in the same directories. */
export function getChangesKey({ directory, caches }: ImageChanges): string {
  return JSON.stringify([directory, caches]);
}

/** Cache of an index before a change. */
interface UneditedCache extends StoredCache {
  /** Files of the catalog before the change. */
  catalogFiles: readonly ListedFile[];
}

/**
 * Returns the cache of an unpacked index if its files of unchanged packages can stay where it matches the catalog in `root`:
 * it is in the JSON format, and all platforms have both in the same layers. Files of the catalog are linked into
 * `directory`, since they are read after the change.
 */
export async function readCache(
  { packed, lowestLayer }: ExtractedLayers,
  { caches: [cache], directory: label }: ImageChanges,
  { bases, root, directory }: { bases: readonly Image[]; root: string; directory: string },
  { limits, logger, signal }: Session,
): Promise<UneditedCache | undefined> {
  if (cache === undefined || packed.size === 0 || !haveSameLayers(bases, lowestLayer)) return undefined;
  const own = [...packed].map(([name, part]) => ({ ...part, path: name.slice(cache.length + 1) }));
  const { openOpmCache } = await import('../../catalog/content/previous-cache.js');
  const stored = await openOpmCache(own);
  if (stored === undefined) return undefined;
  const { files } = await listFiles(root, { label, limits, signal });
  try {
    return { ...stored, catalogFiles: await linkFiles(files, directory) };
  } catch (error) {
    logger.log('debug', `the cache is built whole: cannot link files of the catalog: ${getMessage(error)}`);
    return undefined;
  }
}

async function linkFiles(files: readonly ListedFile[], directory: string): Promise<ListedFile[]> {
  await makeDirectory(directory);
  return mapConcurrent(files, 16, async (listed, position) => {
    const file = path.join(directory, String(position));
    await link(listed.file, file);
    return { ...listed, file };
  });
}

function haveSameLayers(bases: readonly Image[], lowest = 0): boolean {
  const [first, ...others] = bases.map(({ manifest }) => manifest.layers.map(({ digest }) => digest));
  const shared = (first ?? []).slice(lowest);
  return others.every((layers) => layers.slice(-shared.length).join() === shared.join());
}

interface EditedContent {
  catalogFiles: readonly ListedFile[];
  /** Cache before the change. */
  previous: UneditedCache | undefined;
  /** The catalog after the change, if it was read. */
  valid: ValidIndex | undefined;
}

/** Writes the cache of a changed index into files of a directory, and closes its catalog. */
export async function writeEditedCache(
  tree: IndexTree,
  { catalogFiles, previous, valid }: EditedContent,
  session: Session,
  directory: string,
): Promise<EditedCache> {
  const { logger, signal } = session;
  const { writeOpmCache, updateOpmCache } = await import('../../catalog/content/opm-cache.js');
  return withOpen(valid?.catalog ?? new DirectoryCatalog(tree.root, tree.name), async (catalog) => {
    const changed = previous && valid && (await findParts(tree, valid, session));
    const options = { catalogFiles, logger, signal };
    if (previous && valid && changed) {
      const before = {
        ...valid,
        ...previous,
        catalogFiles: listBefore(tree, previous, catalogFiles),
        changed,
      };
      const file = path.join(directory, 'updated-cache');
      const files = await updateOpmCache(catalog, before, { ...options, file });
      if (files !== undefined) return { files: byPath(files), previous: previous.files };
    }
    if (valid !== undefined) {
      const reason = 'the previous one has another format or is not of its catalog';
      logger.log('info', `${tree.name}: whole cache written in the JSON format: ${reason}`);
    }
    const files = await writeOpmCache(catalog, { ...options, file: path.join(directory, 'cache') });
    return { files: byPath(files), previous: undefined };
  });
}

const byPath = (files: readonly CacheFile[]): CacheFiles => new Map(files.map((file) => [file.path, file]));

/** Returns the files of the catalog before a change; unchanged ones are those after it. */
function listBefore(
  tree: IndexTree,
  { catalogFiles }: UneditedCache,
  changed: readonly ListedFile[],
): ListedFile[] {
  const current = new Map(changed.map((file) => [file.path, file]));
  return catalogFiles.map((file) => (isReplaced(tree, file.path) ? file : (current.get(file.path) ?? file)));
}

/** Returns what has changed; undefined if a removed file is not readable. */
async function findParts(tree: IndexTree, valid: ValidIndex, session: Session) {
  try {
    return await findChangedParts(tree, valid, session);
  } catch (error) {
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return undefined;
    throw error;
  }
}

/** Returns the entries of a layer that make a cache out of that below it. */
export function listCacheEntries(place: string, { files, previous }: EditedCache): TarInput[] {
  const entries: TarInput[] = previous === undefined ? [{ path: toOpaqueMarker(place) }] : [];
  for (const { path: name, file, offset, size } of files.values())
    if (previous?.get(name)?.file !== file)
      entries.push({ path: `${place}/${name}`, content: { file, offset, size } });
  // A directory without files goes too: the digest of a cache includes directories.
  const directories = new Set([...files.keys()].flatMap(listParents));
  const gone = new Set<string>();
  for (const name of previous?.keys() ?? []) {
    if (files.has(name)) continue;
    gone.add(listParents(name).find((parent) => !directories.has(parent)) ?? name);
  }
  for (const name of gone) entries.push({ path: toWhiteout(`${place}/${name}`) });
  return entries;
}

/** Returns the directories of a file, outermost first. */
function listParents(name: string): string[] {
  const parts = name.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}
