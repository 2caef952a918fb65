import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { readFully } from '../file-access.js';
import { writeBytes } from '../../files/file-region.js';
import { openNamelessFile } from '../../files/nameless-file.js';

/** Place of a record in its file, with its digest. */
export interface Slot {
  offset: number;
  length: number;
  /** SHA-256, base64 */
  digest: string;
}

/** Records are buffered up to this size: one write each for a hundred thousand takes many seconds. */
const bufferedBytes = 256 * 1024;

/** A write in progress. */
interface Write {
  from: number;
  to: number;
  done: Promise<void>;
}

/** A file of records, appended and read in any order. */
export class RecordFile {
  readonly #handle: FileHandle;
  readonly #name: string;
  #size: number;
  /** Buffered records, not in the file yet. */
  #buffered: Uint8Array[] = [];
  #bufferedFrom: number;
  readonly #writes = new Set<Write>();
  /** First failure of a write. */
  #failure: unknown;

  constructor(handle: FileHandle, name: string, size = 0) {
    this.#handle = handle;
    this.#name = name;
    this.#size = size;
    this.#bufferedFrom = size;
  }

  /** Creates a nameless file, which cannot be left behind. Throws the error of the file system. */
  static async unnamed(directory: string): Promise<RecordFile> {
    return new RecordFile(await openNamelessFile(directory), directory);
  }

  get size(): number {
    return this.#size;
  }

  /** Appends a record. Throws the error of the file system; buffered records may be lost with it. */
  async append(bytes: Uint8Array): Promise<Slot> {
    const slot = { offset: this.#size, length: bytes.length, digest: computeChecksum(bytes) };
    // Before the first await: appends may overlap.
    this.#size += bytes.length;
    this.#buffered.push(bytes);
    if (this.#size - this.#bufferedFrom >= bufferedBytes) await this.#writeBuffered();
    return slot;
  }

  async #writeBuffered(): Promise<void> {
    const buffered = this.#buffered;
    if (buffered.length === 0) return;
    const [from, to] = [this.#bufferedFrom, this.#size];
    this.#buffered = [];
    this.#bufferedFrom = to;
    const write = {
      from,
      to,
      done: writeBytes(
        this.#handle,
        buffered.length === 1 ? (buffered[0] as Uint8Array) : Buffer.concat(buffered),
        from,
      ),
    };
    this.#writes.add(write);
    try {
      await write.done;
    } catch (error) {
      this.#failure ??= error;
      throw error;
    } finally {
      this.#writes.delete(write);
    }
  }

  /** Waits until a part of the file is written or has failed. */
  async #settle(offset: number, length: number): Promise<void> {
    const end = offset + length;
    if (end > this.#bufferedFrom) await this.#writeBuffered().catch(() => undefined);
    for (const { from, to, done } of this.#writes) {
      if (from < end && offset < to) await done.catch(() => undefined);
    }
  }

  /** Reads a record; undefined if damaged or unreadable. */
  async read(slot: Slot): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafeSlow(slot.length);
    return (await this.readInto(slot, bytes)) ? bytes : undefined;
  }

  /** Reads a record into bytes of its length. Returns whether it is intact. */
  async readInto(slot: Slot, bytes: Buffer): Promise<boolean> {
    await this.#settle(slot.offset, slot.length);
    const length = await readFully(this.#handle, bytes, slot.offset, this.#name).catch(() => -1);
    return length === slot.length && computeChecksum(bytes) === slot.digest;
  }

  /** Reads bytes at an offset; undefined beyond the end. Throws OpmateError IO. */
  async readAt(offset: number, length: number): Promise<Buffer | undefined> {
    await this.#settle(offset, length);
    const bytes = Buffer.allocUnsafeSlow(length);
    const readLength = await readFully(this.#handle, bytes, offset, this.#name);
    return readLength === length ? bytes : undefined;
  }

  /** Writes all records to disk. Throws the first failure of a write. */
  async sync(): Promise<void> {
    await this.#writeBuffered();
    if (this.#failure !== undefined) throw this.#failure;
    await this.#handle.sync();
  }

  makeReadable(): Promise<void> {
    return this.#handle.chmod(0o644);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

export function computeChecksum(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
