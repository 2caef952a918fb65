import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { Catalog } from '../../catalog/catalog.js';
import { openFile, readFully } from '../../catalog/file-access.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, systemCode, systemReason } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { openRegularFile } from '../../files/read-file.js';
import type { CatalogIndex } from './catalog-content.js';
import { RecordFile, digestOf } from './record-file.js';

/**
 * Caches of encoded catalogs: one file for each content, `opmate-HASH.cache`. It begins with records, then comes
 * the index as JSON, then a footer of fixed size, so a file that was cut off has none. Nothing of it is believed
 * before its digest is right.
 */

const filePattern = /^opmate-([0-9a-f]{64})\.cache$/;
const temporaryPattern = /^\.opmate-[0-9a-f-]{36}\.tmp$/;
/** First bytes of the footer; another form of the file gets another number. */
const magic = Buffer.from('opmate-catalog/1');
const footerLength = magic.length + 16 + 44;
const maxIndexBytes = 1024 * 1024 * 1024;
/** Caches of other contents that are kept in a directory: a pod that goes back to the content before finds it. */
const keptOthers = 1;
/** A temporary file of a run that was killed. */
const orphanAgeMs = 24 * 60 * 60 * 1000;
const pieceBytes = 1024 * 1024;
const hashedAtOnce = 3;

/**
 * The hash of a catalog's content: of names and bytes of its files, in walk order. Undefined for a catalog that is
 * not made of files. Throws OpmateError IO.
 */
export async function hashCatalog(
  catalog: Catalog,
  { signal }: CancelOptions = {},
): Promise<string | undefined> {
  const files = await catalog.listFiles?.();
  if (files === undefined) return undefined;
  const hash = createHash('sha256');
  // One piece of memory a file under way, however many there are.
  const pieces = Array.from({ length: hashedAtOnce }, () => Buffer.allocUnsafeSlow(pieceBytes));
  const hashes = await mapConcurrent(
    files,
    hashedAtOnce,
    async (file) => {
      const piece = pieces.pop() as Buffer<ArrayBuffer>;
      try {
        return await hashFile(file, piece);
      } finally {
        pieces.push(piece);
      }
    },
    { signal },
  );
  // The lengths tell where a name ends, so that no two trees are hashed as the same text.
  for (const [index, { name }] of files.entries()) {
    hash.update(`${Buffer.byteLength(name)}:${name}:`).update(hashes[index] as string);
  }
  return hash.digest('hex');
}

/** One file is read while another is hashed. */
async function hashFile(
  { path: file, name }: { path: string; name: string },
  piece: Buffer,
): Promise<string> {
  const hash = createHash('sha256');
  const handle = await openFile(file, name);
  try {
    for (let size = 0; ; size += piece.length) {
      const got = await readFully(handle, piece, size, name);
      hash.update(piece.subarray(0, got));
      if (got < piece.length) return `${size + got}:${hash.digest('hex')}`;
    }
  } finally {
    await handle.close();
  }
}

/** A cache that was found whole. */
export interface OpenedCache {
  index: CatalogIndex;
  records: RecordFile;
}

/** Opens the cache of a content. Returns why there is none otherwise: absent, unreadable, damaged. */
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
  if (bytes === undefined || digestOf(bytes) !== footer.toString('latin1', magic.length + 16))
    return undefined;
  const { content, index } = JSON.parse(bytes.toString()) as { content: string; index: CatalogIndex };
  return content === hash ? index : undefined;
}

/** A cache that is being made; records are added to `records` and can be read from there. */
export class CacheWriter {
  readonly records: RecordFile;
  readonly #directory: string;
  readonly #temporary: string;

  private constructor(records: RecordFile, directory: string, temporary: string) {
    this.records = records;
    this.#directory = directory;
    this.#temporary = temporary;
  }

  /** Throws what the file system throws, e.g. for a directory that cannot be written to. */
  static async create(directory: string): Promise<CacheWriter> {
    await mkdir(directory, { recursive: true });
    const temporary = path.join(directory, `.opmate-${randomUUID()}.tmp`);
    const handle = await open(temporary, 'wx+', 0o600);
    return new CacheWriter(new RecordFile(handle, temporary), directory, temporary);
  }

  /**
   * Gives the finished file its name. `records` stays open, and is what is served. Throws what the file system
   * throws; the file is gone then.
   */
  async publish(hash: string, index: CatalogIndex, now: Date): Promise<void> {
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
      await rename(this.#temporary, path.join(this.#directory, `opmate-${hash}.cache`));
    } catch (error) {
      await this.discard();
      throw error;
    }
    await removeOld(this.#directory, hash, now).catch(() => undefined);
  }

  /** Takes the name away; `records` stays usable until it is closed. */
  async discard(): Promise<void> {
    await unlink(this.#temporary).catch(() => undefined);
  }
}

function withoutOrigins(index: CatalogIndex): CatalogIndex {
  return {
    packages: index.packages,
    bundles: index.bundles.map((bundle) => ({ ...bundle, origin: undefined })),
    custom: index.custom.map((blob) => ({ ...blob, origin: undefined })),
  };
}

/** Removes caches of contents of long ago, and what killed runs left. Only files with our names are touched. */
async function removeOld(directory: string, hash: string, now: Date): Promise<void> {
  const others: { file: string; time: number }[] = [];
  for (const name of await readdir(directory)) {
    const file = path.join(directory, name);
    const isCache = filePattern.exec(name);
    if (isCache?.[1] === hash || (isCache === null && !temporaryPattern.test(name))) continue;
    const { mtimeMs } = await stat(file);
    if (isCache !== null) others.push({ file, time: mtimeMs });
    else if (now.getTime() - mtimeMs > orphanAgeMs) await unlink(file);
  }
  others.sort((a, b) => b.time - a.time || compareBytes(a.file, b.file));
  for (const { file } of others.slice(keptOthers)) await unlink(file).catch(() => undefined);
}
