import { writeSync } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { OpmateError, systemReason } from '../core/errors.js';
import { openNamelessFile } from '../files/nameless-file.js';
import { readFully } from './file-access.js';

/** Position of a text in a spool. */
export interface SpoolSlot {
  offset: number;
  length: number;
}

const memoryLimit = 16 * 1024 * 1024;

/**
 * Text to be written in another order than it was created. The first 16 MiB stay in memory; the rest goes to a
 * nameless file, so that nothing can be left behind.
 */
export class Spool {
  readonly #directory: string;
  #pieceAt = new Map<number, Buffer>();
  #size = 0;
  #file: Promise<FileHandle> | undefined;

  /** `directory` is for the file, if one is needed. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** Throws OpmateError IO with the directory, for example for a full disk. */
  async append(text: string | Buffer): Promise<SpoolSlot> {
    const bytes = typeof text === 'string' ? Buffer.from(text, 'utf8') : text;
    const slot = { offset: this.#size, length: bytes.length };
    // Reserved immediately: several pieces may be in progress.
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
      // On a full disk, a write may be partial without an error; the next one fails.
      for (let done = 0; done < bytes.length;) {
        done += writeSync(file.fd, bytes, done, bytes.length - done, offset + done);
      }
    } catch (error) {
      throw new OpmateError('IO', `cannot write temporary data: ${systemReason(error)}`, {
        subject: this.#directory,
        hint: 'set TMPDIR to a writable directory with enough space',
        cause: error,
      });
    }
  }

  /** Throws OpmateError IO for an unreadable spool file. */
  async read(slot: SpoolSlot): Promise<Buffer> {
    const piece = this.#pieceAt.get(slot.offset);
    if (piece !== undefined && piece.length === slot.length) return piece;
    const bytes = Buffer.allocUnsafe(slot.length);
    const file = await this.#file;
    const length = file === undefined ? 0 : await readFully(file, bytes, slot.offset, this.#directory);
    if (length === bytes.length) return bytes;
    throw new OpmateError('IO', 'truncated temporary data', { subject: this.#directory });
  }

  async close(): Promise<void> {
    this.#pieceAt = new Map();
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await file?.close();
  }
}
