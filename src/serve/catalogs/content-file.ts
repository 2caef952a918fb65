import { read } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { fileError } from '../../core/errors.js';
import { writeBytes } from '../../files/file-region.js';

/** Bytes that are appended, and read at any position. */
export interface ContentFile {
  /** Appends bytes, which may be reused afterwards. */
  append(bytes: Buffer): Promise<void>;
  /** Fills `target` from a position. Returns the number of bytes read. */
  read(target: Buffer, position: number): Promise<number>;
  close(): Promise<void>;
}

/** An open file, which may have lost its name. */
export class DiskFile implements ContentFile {
  readonly #handle: FileHandle;
  readonly #label: string;
  #end = 0;

  constructor(handle: FileHandle, label: string) {
    this.#handle = handle;
    this.#label = label;
  }

  async append(bytes: Buffer): Promise<void> {
    await writeBytes(this.#handle, bytes, this.#end);
    this.#end += bytes.length;
  }

  read(target: Buffer, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const readOn = (done: number): void => {
        // FileHandle.read takes twice as long.
        read(this.#handle.fd, target, done, target.length - done, position + done, (error, length) => {
          if (error !== null) reject(fileError(this.#label, error, { file: this.#label }));
          else if (length === 0 || done + length === target.length) resolve(done + length);
          else readOn(done + length);
        });
      };
      if (target.length === 0) resolve(0);
      else readOn(0);
    });
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

const chunkBytes = 1024 * 1024;

/** Bytes in memory, where no directory is writable. */
export class MemoryFile implements ContentFile {
  readonly #chunks: Buffer[] = [];
  #size = 0;

  append(bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const used = this.#size % chunkBytes;
      if (used === 0) this.#chunks.push(Buffer.allocUnsafeSlow(chunkBytes));
      const copied = bytes.copy(this.#chunks.at(-1) as Buffer, used, done);
      done += copied;
      this.#size += copied;
    }
    return Promise.resolve();
  }

  read(target: Buffer, position: number): Promise<number> {
    const available = Math.max(0, Math.min(target.length, this.#size - position));
    for (let done = 0; done < available;) {
      const offset = position + done;
      const chunk = this.#chunks[Math.floor(offset / chunkBytes)] as Buffer;
      const from = offset % chunkBytes;
      done += chunk.copy(target, done, from, from + available - done);
    }
    return Promise.resolve(available);
  }

  close(): Promise<void> {
    this.#chunks.length = 0;
    this.#size = 0;
    return Promise.resolve();
  }
}
