import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { FilePartReader } from '../../files/file-parts.js';
import type { BlobOrigin, CatalogFacts } from '../../model/facts.js';
import { type IndexedPackage, indexPackages } from './catalog-content.js';
import { type CacheFile, getBlobDirectory, listPlaces } from './opm-cache-names.js';
import { hashOpmTrees } from './opm-tree-hash.js';

/** A blob of another schema than those of packages. */
export interface OtherBlob {
  schema: string;
  /** Empty if not set. */
  package: string;
  origin: BlobOrigin;
}

/** Packages of changed blobs, and cache directories of those of other schemas. */
export interface ChangedParts {
  packages: ReadonlySet<string>;
  directories: ReadonlySet<string>;
}

/** Files of a cache, and what has changed in its catalog since. */
export interface PreviousCache {
  /** Files by path, from `readOpmCache`. */
  files: ReadonlyMap<string, CacheFile>;
  changed: ChangedParts;
  /** Facts and other blobs of the catalog after the change, which is valid. */
  facts: CatalogFacts;
  others: readonly OtherBlob[];
}

/** Returns the files that a cache takes over, the places of all blobs for which files are written, and all packages. */
export function selectKept({ files, changed, facts, others }: PreviousCache): {
  files: CacheFile[];
  written: BlobOrigin[];
  packages: IndexedPackage[];
} {
  const kept: CacheFile[] = [];
  const packages = indexPackages(facts, []);
  const rewritten = new Set(changed.packages);
  for (const owner of packages) {
    if (rewritten.has(owner.name)) continue;
    const own = listPlaces(owner).map(({ name }) => files.get(`cache/${name}`));
    if (own.includes(undefined)) rewritten.add(owner.name);
    else kept.push(...(own as CacheFile[]));
  }
  const directories = new Set<string>();
  const written: BlobOrigin[] = [];
  for (const blob of others) {
    const directory = getBlobDirectory(blob);
    if (changed.directories.has(directory)) written.push(blob.origin);
    else directories.add(directory);
  }
  for (const [name, file] of files) if (directories.has(path.posix.dirname(name))) kept.push(file);
  const owned = [...facts.channels, ...facts.bundles, ...facts.deprecations];
  for (const { name, origin } of facts.packages)
    if (rewritten.has(name) && origin !== undefined) written.push(origin);
  for (const { package: owner, origin } of owned)
    if (rewritten.has(owner) && origin !== undefined) written.push(origin);
  return { files: kept, written, packages };
}

/** Maximum size of a file `digest`, which has 16 characters. */
const maxDigestBytes = 64;

/**
 * Returns the files of a cache by path if it is in the JSON format and matches its catalog; undefined for another format or
 * catalog. Paths are relative to the directory of the cache. Throws errors of reading.
 */
export async function readOpmCache(
  cacheFiles: readonly CacheFile[],
  catalogFiles: readonly CacheFile[],
  signal?: AbortSignal,
): Promise<ReadonlyMap<string, CacheFile> | undefined> {
  const files = new Map(cacheFiles.map((file) => [file.path, file]));
  const digest = files.get('digest');
  files.delete('digest');
  if (digest === undefined || digest.size > maxDigestBytes || !files.has('cache/packages.json'))
    return undefined;
  const below = [...files.values()].map((file) => ({ ...file, path: file.path.slice('cache/'.length) }));
  if ([...files.keys()].some((name) => !name.startsWith('cache/'))) return undefined;
  const text = await withOpen(new FilePartReader(), async (reader) => {
    const pieces: Buffer[] = [];
    for await (const piece of reader.read(digest)) pieces.push(piece);
    return Buffer.concat(pieces).toString('latin1');
  });
  return text === (await hashOpmTrees([catalogFiles, below], signal)) ? files : undefined;
}
