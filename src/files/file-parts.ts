import { type FileHandle, open } from 'node:fs/promises';
import { OpmateError } from '../core/errors.js';
import { openRegularFile } from './read-file.js';

/** A file, or a part of one, that is read when its turn comes. */
export interface FilePart {
  file: string;
  /** Where the part starts; undefined for the whole file, which must have exactly `size` bytes. */
  offset?: number | undefined;
  size: number;
}

/** Maximum bytes of a piece, and of what is read ahead. */
const maxPiece = 256 * 1024;

/**
 * Reads parts of files, one at a time. Parts of one file share a handle, and parts that follow each other are read
 * together: opening and reading thousands of small files takes longer than anything that is done with them.
 */
export class FilePartReader {
  #opened: { file: string; handle: FileHandle } | undefined;
  /** What was read last, from `#start` on. */
  #bytes = Buffer.alloc(0);
  #start = 0;
  /** Where the last part ended. */
  #end = -1;

  /**
   * Yields the bytes of a part, in pieces of at most 256 KiB that are the caller's. Throws OpmateError INVALID for a
   * file that is shorter or longer than it was, IO for what is no regular file, and errors of the system as they are.
   */
  async *read({ file, offset, size }: FilePart, subject = file): AsyncGenerator<Buffer> {
    const handle = await this.#open(file);
    const start = offset ?? 0;
    const readsAhead = start === this.#end;
    const end = start + size;
    for (let position = start; position < end;) {
      const held = position - this.#start;
      if (held < 0 || held >= this.#bytes.length) {
        const wanted = readsAhead ? maxPiece : Math.min(maxPiece, end - position);
        const bytes = Buffer.allocUnsafeSlow(wanted);
        const { bytesRead } = await handle.read(bytes, 0, wanted, position);
        if (bytesRead === 0) throw changed('shorter', size, subject);
        this.#bytes = bytes.subarray(0, bytesRead);
        this.#start = position;
        continue;
      }
      const piece = this.#bytes.subarray(held, held + end - position);
      position += piece.length;
      yield piece;
    }
    this.#end = end;
    if (offset === undefined && (await handle.stat()).size !== size) throw changed('longer', size, subject);
  }

  async #open(file: string): Promise<FileHandle> {
    if (this.#opened?.file === file) return this.#opened.handle;
    await this.close();
    const handle = await openRegularFile(file);
    this.#opened = { file, handle };
    return handle;
  }

  /** The reader can be used again. */
  async close(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    this.#bytes = Buffer.alloc(0);
    this.#end = -1;
    await opened?.handle.close();
  }
}

function changed(size: 'shorter' | 'longer', expected: number, subject: string): OpmateError {
  return new OpmateError('INVALID', `${size} than the ${expected} bytes that it had`, { subject });
}

/** Bytes that wait until they are written together. */
const heldBytes = 1024 * 1024;

/** Writes many small pieces into a new file, of mode 0600. Throws errors of the system as they are. */
export class JoinedFileWriter {
  readonly #handle: FileHandle;
  readonly #held = Buffer.allocUnsafeSlow(heldBytes);
  #length = 0;
  /** Bytes written so far: where the next piece starts. */
  size = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** The file must not exist. */
  static async create(file: string): Promise<JoinedFileWriter> {
    return new JoinedFileWriter(await open(file, 'wx', 0o600));
  }

  /** Takes a copy of the bytes. */
  async write(bytes: Buffer): Promise<void> {
    this.size += bytes.length;
    if (this.#length + bytes.length > heldBytes) await this.flush();
    if (bytes.length > heldBytes) await this.#handle.writeFile(bytes);
    else this.#length += bytes.copy(this.#held, this.#length);
  }

  /** Everything is in the file when this returns. */
  async flush(): Promise<void> {
    const length = this.#length;
    this.#length = 0;
    if (length > 0) await this.#handle.writeFile(this.#held.subarray(0, length));
  }

  /** What was not flushed is lost. */
  close(): Promise<void> {
    return this.#handle.close();
  }
}
