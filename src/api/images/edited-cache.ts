import type { ExtractedLayers } from '../../archive/layers.js';
import type { TarInput } from '../../archive/tar-writer.js';
import { toOpaqueMarker, toWhiteout } from '../../archive/whiteout.js';
import { type ListedFile, listFiles } from '../../bundle/image-files.js';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import type { CacheFile } from '../../catalog/content/opm-cache-names.js';
import { type IndexTree, type ValidIndex, findChangedParts } from '../../catalog/image/index-edit.js';
import { withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
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

/**
 * Returns the cache of an unpacked index if its files of unchanged packages can stay: it is in the JSON format, matches the
 * catalog in `root`, and all platforms have both in the same layers.
 */
export async function readCache(
  { packed, lowestLayer }: ExtractedLayers,
  { caches: [cache], directory }: ImageChanges,
  { bases, root }: { bases: readonly Image[]; root: string },
  { limits, signal }: Session,
): Promise<CacheFiles | undefined> {
  if (cache === undefined || packed.size === 0 || !haveSameLayers(bases, lowestLayer)) return undefined;
  const { files } = await listFiles(root, { label: directory, limits, signal });
  const own = [...packed].map(([name, part]) => ({ ...part, path: name.slice(cache.length + 1) }));
  const { readOpmCache } = await import('../../catalog/content/previous-cache.js');
  return readOpmCache(own, files, signal);
}

function haveSameLayers(bases: readonly Image[], lowest = 0): boolean {
  const [first, ...others] = bases.map(({ manifest }) => manifest.layers.map(({ digest }) => digest));
  const shared = (first ?? []).slice(lowest);
  return others.every((layers) => layers.slice(-shared.length).join() === shared.join());
}

/** Writes the cache of a changed index, and closes its catalog. */
export async function writeEditedCache(
  tree: IndexTree,
  { catalogFiles, previous, valid }: EditedContent,
  session: Session,
  file: string,
): Promise<EditedCache> {
  const { logger, signal } = session;
  const { writeOpmCache } = await import('../../catalog/content/opm-cache.js');
  const changed = previous && valid && (await findParts(tree, valid, session));
  const kept = previous && valid && changed && { ...valid, files: previous, changed };
  const files = await withOpen(valid?.catalog ?? new DirectoryCatalog(tree.root, tree.name), (catalog) =>
    writeOpmCache(catalog, { catalogFiles, file, previous: kept, logger, signal }),
  );
  return { files: new Map(files.map((item) => [item.path, item])), previous: kept && previous };
}

interface EditedContent {
  catalogFiles: readonly ListedFile[];
  /** Cache before the change. */
  previous: CacheFiles | undefined;
  /** The catalog after the change, if it was read. */
  valid: ValidIndex | undefined;
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
