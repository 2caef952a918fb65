import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { readFully } from '../../catalog/file-access.js';
import { writeBytes } from '../../files/file-region.js';
import { openNamelessFile } from '../../files/nameless-file.js';

/** Where a record stands in its file, and the digest that it must have. */
export interface Slot {
  offset: number;
  length: number;
  /** SHA-256, base64 */
  digest: string;
}

/** Records wait until there is this much to write: a write for each of a hundred thousand takes many seconds. */
const heldBytes = 256 * 1024;

/** Bytes that are on their way into the file. */
interface Write {
  from: number;
  to: number;
  done: Promise<void>;
}

/** A file of records that are written one after the other and read in any order. */
export class RecordFile {
  readonly #handle: FileHandle;
  readonly #name: string;
  #size: number;
  /** The last records, which are not in the file yet. */
  #held: Uint8Array[] = [];
  #heldFrom: number;
  readonly #writes = new Set<Write>();
  /** Why records are missing in the file. */
  #failure: unknown;

  constructor(handle: FileHandle, name: string, size = 0) {
    this.#handle = handle;
    this.#name = name;
    this.#size = size;
    this.#heldFrom = size;
  }

  /** A file without a name, so that nothing of it can be left behind. Throws what the file system throws. */
  static async unnamed(directory: string): Promise<RecordFile> {
    return new RecordFile(await openNamelessFile(directory), directory);
  }

  get size(): number {
    return this.#size;
  }

  /** Adds a record. Throws what the file system throws, e.g. for a full disk; records before may be lost then too. */
  async append(bytes: Uint8Array): Promise<Slot> {
    const slot = { offset: this.#size, length: bytes.length, digest: computeDigest(bytes) };
    // Taken at once: several records may be on their way.
    this.#size += bytes.length;
    this.#held.push(bytes);
    if (this.#size - this.#heldFrom >= heldBytes) await this.#writeHeld();
    return slot;
  }

  async #writeHeld(): Promise<void> {
    const held = this.#held;
    if (held.length === 0) return;
    const [from, to] = [this.#heldFrom, this.#size];
    this.#held = [];
    this.#heldFrom = to;
    const write = {
      from,
      to,
      done: writeBytes(this.#handle, held.length === 1 ? (held[0] as Uint8Array) : Buffer.concat(held), from),
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

  /** Waits until a part of the file is there, or is known to be missing. */
  async #settle(offset: number, length: number): Promise<void> {
    const end = offset + length;
    if (end > this.#heldFrom) await this.#writeHeld().catch(() => undefined);
    for (const { from, to, done } of this.#writes) {
      if (from < end && offset < to) await done.catch(() => undefined);
    }
  }

  /** A record as it was written; undefined where it is damaged or cannot be read. */
  async read(slot: Slot): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafeSlow(slot.length);
    return (await this.readInto(slot, bytes)) ? bytes : undefined;
  }

  /** Reads a record into bytes of its length. Returns whether it is as it was written. */
  async readInto(slot: Slot, bytes: Buffer): Promise<boolean> {
    await this.#settle(slot.offset, slot.length);
    const got = await readFully(this.#handle, bytes, slot.offset, this.#name).catch(() => -1);
    return got === slot.length && computeDigest(bytes) === slot.digest;
  }

  /** Bytes at an offset; undefined where the file ends before. Throws OpmateError IO. */
  async readAt(offset: number, length: number): Promise<Buffer | undefined> {
    await this.#settle(offset, length);
    const bytes = Buffer.allocUnsafeSlow(length);
    const got = await readFully(this.#handle, bytes, offset, this.#name);
    return got === length ? bytes : undefined;
  }

  /** All records are in the file when this returns. Throws what writing any of them threw. */
  async sync(): Promise<void> {
    await this.#writeHeld();
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

export function computeDigest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('base64');
}
