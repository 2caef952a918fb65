import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { lstatIfPresent, readdirIfPresent } from '../../files/file-status.js';
import type { Catalog } from '../../catalog/catalog.js';
import { computeDigest, digestPieces, isDigest, parseDigest } from '../../core/digest.js';
import { OpmateError, systemCode, systemReason, throwIfCancelled } from '../../core/errors.js';
import { silentLogger } from '../../core/log.js';
import { readRegion } from '../../files/file-region.js';
import { makeDirectory, syncDirectory } from '../../files/make-directory.js';
import { removeWhole, replaceDirectory } from '../../files/move-whole.js';
import { openNamelessFile } from '../../files/nameless-file.js';
import { openRegularFile, readRegularFile } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { stagingName, sweepLeftovers } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { type ContentFile, DiskFile, MemoryFile } from './content-file.js';
import { type ContentIndex, createIndexBuilder, parseContentIndex } from './content-index.js';
import { LineWriter, PlaceError, throwPlaceError } from './line-writer.js';
import { type ContentLocation, type StoreOptions, StoredContent } from './stored-content.js';

const contentName = 'catalog.jsonl';
const indexName = 'index.json';
const keysName = 'keys';
/** Age at which unreferenced files belong to no running process. */
const staleMs = 60 * 60 * 1000;
/** Maximum size of an index, that of about ten million blobs. */
const maxIndexBytes = 512 * 1024 * 1024;
const maxKeyFileBytes = 1024;

/**
 * Stores a catalog completely or not at all; intact content that the directory already has is used instead, with its date.
 * An unusable directory is logged as a warning. Throws errors of reading the catalog.
 */
export async function storeContent(
  catalog: Pick<Catalog, 'metas'>,
  options: StoreOptions,
): Promise<StoredContent> {
  const { key, directory, logger = silentLogger } = options;
  if (key === undefined || directory === undefined) return storeSomewhere(catalog, options);
  const keyFile = path.join(directory, keysName, parseDigest(computeDigest(key)).hex);
  const known = await readKeyFile(keyFile);
  const stored = known === undefined ? undefined : await openContent(known, options);
  if (stored !== undefined) return stored;
  const content = await storeSomewhere(catalog, options);
  try {
    // The next process finds content in the directory only.
    await lstat(getPlace(directory, content.hash));
    await makeDirectory(path.dirname(keyFile));
    await replaceFile(keyFile, `${content.hash}\n`, { mode: 0o644 });
  } catch (error) {
    logger.log('debug', `${directory}: not written: ${systemReason(error)}`);
  }
  return content;
}

function getPlace(directory: string, hash: string): string {
  return path.join(directory, parseDigest(hash).hex);
}

/** Stores in the first working place: the directory, a nameless file, memory. */
async function storeSomewhere(
  catalog: Pick<Catalog, 'metas'>,
  options: StoreOptions,
): Promise<StoredContent> {
  const { directory, temporaryDirectory, logger = silentLogger } = options;
  const places: [string | undefined, (place: string) => Promise<Staging>][] = [
    [directory, (place) => stageInDirectory(place, options.now())],
    [
      temporaryDirectory,
      async (place) => ({ file: new DiskFile(await openNamelessFile(place), contentName) }),
    ],
  ];
  for (const [place, stage] of places) {
    if (place === undefined) continue;
    try {
      return await storeIn(await stage(place).catch(throwPlaceError), catalog, options);
    } catch (error) {
      if (!(error instanceof PlaceError)) throw error;
      logger.log('warn', `${place}: cannot store the catalog: ${error.message}`);
    }
  }
  return storeIn({ file: new MemoryFile() }, catalog, options);
}

/** Place of content until its hash is known. */
interface Staging {
  file: ContentFile;
  /** Removes named files. */
  discard?(): Promise<void>;
  /** Moves the content to its hash in the directory; the file stays open. */
  publish?(hash: string, index: string): Promise<void>;
}

async function storeIn(
  staging: Staging,
  catalog: Pick<Catalog, 'metas'>,
  options: StoreOptions,
): Promise<StoredContent> {
  const { file } = staging;
  const { logger = silentLogger } = options;
  try {
    const { index, hash } = await writeLines(catalog, file, options);
    const existing = await openContent(hash, options);
    if (existing !== undefined) {
      await file.close();
      return existing;
    }
    const state = { hash, storedAt: options.now() };
    try {
      await staging.publish?.(hash, index.encode(state));
    } catch (error) {
      // Still open, so it can be served; the next process stores it again.
      logger.log('warn', `${options.directory ?? ''}: cannot store ${hash}: ${systemReason(error)}`);
    }
    return new StoredContent(file, index, state, options.directory ?? options.temporaryDirectory);
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  } finally {
    await staging.discard?.();
  }
}

/** Writes each blob as a line, and indexes it. */
async function writeLines(
  catalog: Pick<Catalog, 'metas'>,
  file: ContentFile,
  { signal, logger }: StoreOptions,
): Promise<{ index: ContentIndex; hash: string }> {
  const index = createIndexBuilder();
  const writer = new LineWriter(file);
  for await (const meta of catalog.metas({ signal, logger })) {
    throwIfCancelled(signal);
    index.add(meta, await writer.append(meta.value));
  }
  const hash = await writer.finish();
  return { index: index.finish(), hash };
}

async function stageInDirectory(directory: string, now: Date): Promise<Staging> {
  await makeDirectory(directory);
  await sweepLeftovers(directory, now, { maxAgeMs: staleMs });
  const staging = path.join(directory, stagingName());
  const discard = () => rm(staging, { recursive: true, force: true }).catch(() => undefined);
  try {
    await makeDirectory(staging);
    const handle = await open(path.join(staging, contentName), 'wx+', 0o644);
    const file = new DiskFile(handle, path.join(directory, contentName));
    const publish = async (hash: string, index: string): Promise<void> => {
      await handle.datasync();
      await writeNewFile(path.join(staging, indexName), index, { mode: 0o644 });
      await syncDirectory(staging);
      // Existing content is damaged: intact content would have been used.
      await replaceDirectory(staging, getPlace(directory, hash));
      await syncDirectory(directory);
    };
    return { file, discard, publish };
  } catch (error) {
    await discard();
    throw error;
  }
}

/**
 * Opens stored content after checking all of it; undefined if missing or damaged, which is logged as a warning.
 */
export async function openContent(
  hash: string,
  { directory, logger = silentLogger }: ContentLocation,
): Promise<StoredContent | undefined> {
  if (directory === undefined || !isDigest(hash)) return undefined;
  const place = getPlace(directory, hash);
  const file = path.join(place, contentName);
  let handle: FileHandle | undefined;
  try {
    const bytes = await readRegularFile(path.join(place, indexName), maxIndexBytes, { noFollow: true });
    const { index, state } = parseContentIndex(String(bytes));
    handle = await openRegularFile(file, { noFollow: true });
    const { size } = await handle.stat();
    if (state.hash !== hash) throw new OpmateError('DIGEST', `index: expected ${hash}, got ${state.hash}`);
    if (index.size !== size) throw new OpmateError('DIGEST', `expected ${index.size} bytes, got ${size}`);
    const actual = await digestPieces(readRegion(handle, 0, size, contentName));
    if (actual !== hash) throw new OpmateError('DIGEST', 'digest mismatch');
    return new StoredContent(new DiskFile(handle, file), index, state, directory);
  } catch (error) {
    await handle?.close();
    const isAbsent = ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    if (!isAbsent) logger.log('warn', `${place}: not used: ${systemReason(error)}`);
    return undefined;
  }
}

/** Reads the hash of a key; undefined if unknown. */
async function readKeyFile(file: string): Promise<string | undefined> {
  const bytes = await readRegularFile(file, maxKeyFileBytes, { noFollow: true }).catch(() => undefined);
  const hash = bytes?.toString().trim();
  return hash !== undefined && isDigest(hash) ? hash : undefined;
}

/**
 * Removes contents that are not in `keep` and older than an hour, their keys, and leftovers of killed processes. Open
 * contents stay readable, also in other processes.
 */
export async function pruneContents(directory: string, keep: ReadonlySet<string>, now: Date): Promise<void> {
  await sweepLeftovers(directory, now, { maxAgeMs: staleMs });
  const kept = new Set([...keep].map((hash) => parseDigest(hash).hex));
  for (const name of await readdir(directory)) {
    if (kept.has(name) || !/^[0-9a-f]{64}$/.test(name)) continue;
    const place = path.join(directory, name);
    const stats = await lstatIfPresent(place);
    if (stats === undefined || now.getTime() - stats.mtimeMs < staleMs) continue;
    await rm(place, { recursive: true, force: true });
  }
  await pruneKeys(directory);
}

/** Removes content of any age, and its keys. Open contents stay readable. */
export async function removeContent(directory: string, hash: string): Promise<void> {
  await removeWhole(getPlace(directory, hash));
  await pruneKeys(directory);
}

/** Removes keys without content. */
async function pruneKeys(directory: string): Promise<void> {
  const keys = path.join(directory, keysName);
  for (const name of await readdirIfPresent(keys)) {
    const file = path.join(keys, name);
    const hash = await readKeyFile(file);
    const content = hash === undefined ? undefined : await lstatIfPresent(getPlace(directory, hash));
    if (content === undefined) await rm(file, { force: true });
  }
}
