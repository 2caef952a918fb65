import type { FileHandle } from 'node:fs/promises';
import { OpmateError, systemReason } from '../core/errors.js';
import { openNamelessFile } from '../files/nameless-file.js';
import { readFully } from './file-access.js';

/** Where a piece of text stands in a spool. */
export interface SpoolSlot {
  offset: number;
  length: number;
}

const memoryLimit = 48 * 1024 * 1024;

/**
 * Text that waits to be written in another order than it was made. The first 48 MiB stay in memory; what
 * comes after goes to a file that has no name any more, so nothing of it can be left behind.
 */
export class Spool {
  readonly #directory: string;
  #pieceAt = new Map<number, Buffer>();
  #size = 0;
  #file: Promise<FileHandle> | undefined;

  /** `directory` is where the file is made, if one is needed. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Throws OpmateError IO that names the directory, for example when its disk is full. */
  async append(text: string | Buffer): Promise<SpoolSlot> {
    const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text;
    const slot = { offset: this.#size, length: bytes.length };
    // Taken at once: several pieces may be on their way to the file.
    this.#size += bytes.length;
    if (this.#size <= memoryLimit && this.#file === undefined) {
      this.#pieceAt.set(slot.offset, bytes);
    } else {
      await this.#write(bytes, slot.offset);
    }
    return slot;
  }

  async #write(bytes: Buffer, offset: number): Promise<void> {
    try {
      this.#file ??= openNamelessFile(this.#directory);
      const file = await this.#file;
      // When a disk runs full, a part is written without an error; the next attempt fails.
      for (let done = 0; done < bytes.length;) {
        done += (await file.write(bytes, done, bytes.length - done, offset + done)).bytesWritten;
      }
    } catch (error) {
      throw new OpmateError('IO', `cannot write temporary data: ${systemReason(error)}`, {
        subject: this.#directory,
        hint: 'set TMPDIR to a writable directory with enough space',
        cause: error,
      });
    }
  }

  /** Throws OpmateError IO when the file of the spool cannot be read. */
  async read(slot: SpoolSlot): Promise<Buffer> {
    const piece = this.#pieceAt.get(slot.offset);
    if (piece !== undefined && piece.length === slot.length) return piece;
    const bytes = Buffer.allocUnsafe(slot.length);
    const file = await this.#file;
    const length = file === undefined ? 0 : await readFully(file, bytes, slot.offset, this.#directory);
    if (length === bytes.length) return bytes;
    throw new OpmateError('IO', 'temporary data ends too early', { subject: this.#directory });
  }

  async close(): Promise<void> {
    this.#pieceAt = new Map();
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await file?.close();
  }
}
