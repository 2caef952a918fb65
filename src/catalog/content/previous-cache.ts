import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { FilePartReader } from '../../files/file-parts.js';
import type { BlobOrigin, CatalogFacts } from '../../model/facts.js';
import { type IndexedPackage, indexPackages } from './catalog-content.js';
import { type CacheFile, getBlobDirectory, listPlaces } from './opm-cache-names.js';

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

/** A cache in the JSON format. */
export interface StoredCache {
  /** Files by path, without the digest. */
  files: ReadonlyMap<string, CacheFile>;
  /** Hash of its catalog and files, as stored. */
  digest: string;
}

/** A cache, and what has changed in its catalog since. */
export interface PreviousCache extends StoredCache {
  /** Files of its catalog; unchanged ones are the same parts as after the change. */
  catalogFiles: readonly CacheFile[];
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
 * Returns a cache from its files, with paths relative to its directory; undefined for a cache in another format. Whether it
 * matches its catalog is seen by its digest. Throws errors of reading.
 */
export async function openOpmCache(cacheFiles: readonly CacheFile[]): Promise<StoredCache | undefined> {
  const files = new Map(cacheFiles.map((file) => [file.path, file]));
  const digest = files.get('digest');
  files.delete('digest');
  if (digest === undefined || digest.size > maxDigestBytes || !files.has('cache/packages.json'))
    return undefined;
  if ([...files.keys()].some((name) => !name.startsWith('cache/'))) return undefined;
  return withOpen(new FilePartReader(), async (reader) => {
    const pieces: Buffer[] = [];
    for await (const piece of reader.read(digest)) pieces.push(piece);
    return { files, digest: Buffer.concat(pieces).toString('latin1') };
  });
}
