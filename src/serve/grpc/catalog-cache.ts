import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, systemCode, systemReason } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingName, sweepLeftovers } from '../../files/staging.js';
import { openRegularFile } from '../../files/read-file.js';
import type { CatalogIndex } from '../../catalog/content/catalog-content.js';
import { getStateOwner } from './catalog-hash.js';
import { RecordFile, computeChecksum } from '../../catalog/content/record-file.js';

/**
 * Cache of an encoded catalog, `opmate-HASH.cache`: records, the index as JSON, and a footer of fixed size, which a
 * truncated file lacks. Every part has a digest.
 */

const filePattern = /^opmate-([0-9a-f]{64})\.cache$/;
/** First bytes of the footer, with the version of the format. */
const magic = Buffer.from('opmate-catalog/1');
const footerLength = magic.length + 16 + 44;
const maxIndexBytes = 1024 * 1024 * 1024;
/** Caches of earlier contents to keep, for a pod that is rolled back. */
const keptOthers = 1;

interface OpenedCache {
  index: CatalogIndex;
  records: RecordFile;
}

/** Opens the cache of a content. Returns the reason where it is absent, unreadable or damaged. */
export async function openCache(directory: string, hash: string): Promise<OpenedCache | { missing: string }> {
  const file = path.join(directory, `opmate-${hash}.cache`);
  let handle: FileHandle;
  try {
    handle = await openRegularFile(file);
  } catch (error) {
    if (error instanceof OpmateError) return { missing: 'damaged' };
    const isAbsent = ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    return {
      missing: isAbsent ? 'no cache for this content' : `unreadable: ${systemReason(error)}`,
    };
  }
  try {
    const { size } = await handle.stat();
    const records = new RecordFile(handle, file, size);
    const index = await readIndex(records, hash);
    if (index !== undefined) return { index, records };
  } catch {
    // Damaged, as below.
  }
  await handle.close();
  return { missing: 'damaged' };
}

async function readIndex(records: RecordFile, hash: string): Promise<CatalogIndex | undefined> {
  const footer = await records.readAt(records.size - footerLength, footerLength);
  if (footer === undefined || !footer.subarray(0, magic.length).equals(magic)) return undefined;
  const offset = Number(footer.readBigUInt64LE(magic.length));
  const length = Number(footer.readBigUInt64LE(magic.length + 8));
  if (length > maxIndexBytes || offset + length !== records.size - footerLength) return undefined;
  const bytes = await records.readAt(offset, length);
  if (bytes === undefined || computeChecksum(bytes) !== footer.toString('latin1', magic.length + 16))
    return undefined;
  const { content, index } = JSON.parse(bytes.toString()) as { content: string; index: CatalogIndex };
  return content === hash ? index : undefined;
}

/** A cache being written; records are appended to `records` and readable from there. */
export type CacheWriter = Awaited<ReturnType<typeof createCache>>;

/** Throws the error of the file system, for instance for a read-only directory. */
export async function createCache(directory: string) {
  await makeDirectory(directory);
  await sweepLeftovers(directory);
  const staging = path.join(directory, stagingName());
  const records = new RecordFile(await open(staging, 'wx+', 0o600), staging);

  /** Removes the name; `records` stays usable until it is closed. */
  async function discard(): Promise<void> {
    await rm(staging, { force: true }).catch(() => undefined);
  }

  /** Moves the finished file to its name; `records` stays open. Throws the error of the file system after removing the file. */
  async function publish(hash: string, index: CatalogIndex): Promise<void> {
    try {
      const body = Buffer.from(JSON.stringify({ content: hash, index: withoutOrigins(index) }));
      const { offset, length, digest } = await records.append(body);
      const numbers = Buffer.alloc(16);
      numbers.writeBigUInt64LE(BigInt(offset), 0);
      numbers.writeBigUInt64LE(BigInt(length), 8);
      await records.append(Buffer.concat([magic, numbers, Buffer.from(digest, 'latin1')]));
      // The file may become an image layer, which another user reads.
      await records.makeReadable();
      await records.sync();
      await moveWhole(staging, path.join(directory, `opmate-${hash}.cache`));
    } catch (error) {
      await discard();
      throw error;
    }
    await removeStale(directory, hash).catch(() => undefined);
  }

  return { records, publish, discard };
}

function withoutOrigins(index: CatalogIndex): CatalogIndex {
  return {
    packages: index.packages,
    bundles: index.bundles.map((bundle) => ({ ...bundle, origin: undefined })),
    custom: index.custom.map((blob) => ({ ...blob, origin: undefined })),
  };
}

/** Removes older caches, and states without a cache. */
async function removeStale(directory: string, hash: string): Promise<void> {
  const names = await readdir(directory);
  const others: { hash: string; time: number }[] = [];
  for (const name of names) {
    const [, other] = filePattern.exec(name) ?? [];
    if (other === undefined || other === hash) continue;
    others.push({ hash: other, time: (await stat(path.join(directory, name))).mtimeMs });
  }
  others.sort((a, b) => b.time - a.time || compareBytes(a.hash, b.hash));
  const kept = new Set([hash, ...others.slice(0, keptOthers).map((other) => other.hash)]);
  const removed = names.filter((name) => {
    const owner = filePattern.exec(name)?.[1] ?? getStateOwner(name);
    return owner !== undefined && !kept.has(owner);
  });
  for (const name of removed) await rm(path.join(directory, name), { force: true }).catch(() => undefined);
}
