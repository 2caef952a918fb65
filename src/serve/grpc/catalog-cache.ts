import { type FileHandle, open, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, systemCode, systemReason } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { stagingName, sweepLeftovers } from '../../files/staging.js';
import { openRegularFile } from '../../files/read-file.js';
import type { CatalogIndex } from './catalog-content.js';
import { getStateOwner } from './catalog-hash.js';
import { RecordFile, computeDigest } from './record-file.js';

/**
 * Caches of encoded catalogs: one file for each content, `opmate-HASH.cache`. It begins with records, then comes
 * the index as JSON, then a footer of fixed size, so a file that was cut off has none. Nothing of it is believed
 * before its digest is right.
 */

const filePattern = /^opmate-([0-9a-f]{64})\.cache$/;
/** First bytes of the footer; another form of the file gets another number. */
const magic = Buffer.from('opmate-catalog/1');
const footerLength = magic.length + 16 + 44;
const maxIndexBytes = 1024 * 1024 * 1024;
/** Caches of other contents that are kept in a directory: a pod that goes back to the content before finds it. */
const keptOthers = 1;

/** A cache that was found whole. */
interface OpenedCache {
  index: CatalogIndex;
  records: RecordFile;
}

/** Opens the cache of a content. Returns why it is missing otherwise: absent, unreadable, damaged. */
export async function openCache(directory: string, hash: string): Promise<OpenedCache | { missing: string }> {
  const file = path.join(directory, `opmate-${hash}.cache`);
  let handle: FileHandle;
  try {
    handle = await openRegularFile(file);
  } catch (error) {
    if (error instanceof OpmateError) return { missing: 'it is damaged' };
    const isAbsent = ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
    return {
      missing: isAbsent ? 'it has none of this content' : `it cannot be read: ${systemReason(error)}`,
    };
  }
  try {
    const { size } = await handle.stat();
    const records = new RecordFile(handle, file, size);
    const index = await readIndex(records, hash);
    if (index !== undefined) return { index, records };
  } catch {
    // Told below.
  }
  await handle.close();
  return { missing: 'it is damaged' };
}

async function readIndex(records: RecordFile, hash: string): Promise<CatalogIndex | undefined> {
  const footer = await records.readAt(records.size - footerLength, footerLength);
  if (footer === undefined || !footer.subarray(0, magic.length).equals(magic)) return undefined;
  const offset = Number(footer.readBigUInt64LE(magic.length));
  const length = Number(footer.readBigUInt64LE(magic.length + 8));
  if (length > maxIndexBytes || offset + length !== records.size - footerLength) return undefined;
  const bytes = await records.readAt(offset, length);
  if (bytes === undefined || computeDigest(bytes) !== footer.toString('latin1', magic.length + 16))
    return undefined;
  const { content, index } = JSON.parse(bytes.toString()) as { content: string; index: CatalogIndex };
  return content === hash ? index : undefined;
}

/** A cache that is being made; records are added to `records` and can be read from there. */
export class CacheWriter {
  readonly records: RecordFile;
  readonly #directory: string;
  readonly #staging: string;

  private constructor(records: RecordFile, directory: string, staging: string) {
    this.records = records;
    this.#directory = directory;
    this.#staging = staging;
  }

  /** Throws what the file system throws, e.g. for a directory that cannot be written to. */
  static async create(directory: string): Promise<CacheWriter> {
    await makeDirectory(directory);
    await sweepLeftovers(directory);
    const staging = path.join(directory, stagingName());
    const handle = await open(staging, 'wx+', 0o600);
    return new CacheWriter(new RecordFile(handle, staging), directory, staging);
  }

  /**
   * Gives the finished file its name. `records` stays open, and is what is served. Throws what the file system
   * throws; the file is gone then.
   */
  async publish(hash: string, index: CatalogIndex): Promise<void> {
    const { records } = this;
    try {
      const body = Buffer.from(JSON.stringify({ content: hash, index: withoutOrigins(index) }));
      const { offset, length, digest } = await records.append(body);
      const numbers = Buffer.alloc(16);
      numbers.writeBigUInt64LE(BigInt(offset), 0);
      numbers.writeBigUInt64LE(BigInt(length), 8);
      await records.append(Buffer.concat([magic, numbers, Buffer.from(digest, 'latin1')]));
      // Whoever runs the image that this file is a layer of can read it.
      await records.makeReadable();
      await records.sync();
      await moveWhole(this.#staging, path.join(this.#directory, `opmate-${hash}.cache`));
    } catch (error) {
      await this.discard();
      throw error;
    }
    await removeOld(this.#directory, hash).catch(() => undefined);
  }

  /** Takes the name away; `records` stays usable until it is closed. */
  async discard(): Promise<void> {
    await rm(this.#staging, { force: true }).catch(() => undefined);
  }
}

function withoutOrigins(index: CatalogIndex): CatalogIndex {
  return {
    packages: index.packages,
    bundles: index.bundles.map((bundle) => ({ ...bundle, origin: undefined })),
    custom: index.custom.map((blob) => ({ ...blob, origin: undefined })),
  };
}

/** Removes caches of contents of long ago, and the states of catalogs that have no cache. */
async function removeOld(directory: string, hash: string): Promise<void> {
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
