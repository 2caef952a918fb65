import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import path from 'node:path';
import { readFully } from '../../catalog/file-access.js';

/** Where a record stands in its file, and the digest that it must have. */
export interface Slot {
  offset: number;
  length: number;
  /** SHA-256, base64 */
  digest: string;
}

/** A file of records that are written one after the other and read in any order. */
export class RecordFile {
  readonly #handle: FileHandle;
  readonly #name: string;
  #size: number;

  constructor(handle: FileHandle, name: string, size = 0) {
    this.#handle = handle;
    this.#name = name;
    this.#size = size;
  }

  /** A file without a name, so that nothing of it can be left behind. Throws what the file system throws. */
  static async unnamed(directory: string): Promise<RecordFile> {
    const file = path.join(directory, `opmate-bundles-${randomUUID()}`);
    const handle = await open(file, 'wx+', 0o600);
    await unlink(file);
    return new RecordFile(handle, directory);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a record. Throws what the file system throws, e.g. for a full disk. */
  async append(bytes: Uint8Array): Promise<Slot> {
    const slot = { offset: this.#size, length: bytes.length, digest: digestOf(bytes) };
    // Taken at once: several records may be on their way.
    this.#size += bytes.length;
    for (let done = 0; done < bytes.length;) {
      done += (await this.#handle.write(bytes, done, bytes.length - done, slot.offset + done)).bytesWritten;
    }
    return slot;
  }

  /** A record as it was written; undefined where it is damaged or cannot be read. */
  async read(slot: Slot): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafeSlow(slot.length);
    return (await this.readInto(slot, bytes)) ? bytes : undefined;
  }

  /** Reads a record into bytes of its length. Returns whether it is as it was written. */
  async readInto(slot: Slot, bytes: Buffer): Promise<boolean> {
    const got = await readFully(this.#handle, bytes, slot.offset, this.#name).catch(() => -1);
    return got === slot.length && digestOf(bytes) === slot.digest;
  }

  /** Bytes at an offset; undefined where the file ends before. Throws OpmateError IO. */
  async readAt(offset: number, length: number): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafeSlow(length);
    const got = await readFully(this.#handle, bytes, offset, this.#name);
    return got === length ? bytes : undefined;
  }

  sync(): Promise<void> {
    return this.#handle.sync();
  }

  makeReadable(): Promise<void> {
    return this.#handle.chmod(0o644);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

export function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
