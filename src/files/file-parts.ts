import { type FileHandle, open } from 'node:fs/promises';
import { OpmateError } from '../core/errors.js';
import { openRegularFile } from './read-file.js';

/** A file, or a part of one, to be read later. */
export interface FilePart {
  file: string;
  /** Offset of the part; undefined for the whole file, which must have exactly `size` bytes. */
  offset?: number | undefined;
  size: number;
}

/** Maximum bytes of a piece and of read-ahead. */
const maxPiece = 256 * 1024;

/** The same where memory is reused. */
const maxReusedPiece = 1024 * 1024;

/**
 * Reads parts of files, one at a time. Parts of a file share a handle, and adjacent parts are read together: opening
 * thousands of small files costs more than processing them.
 */
export class FilePartReader {
  #opened: { file: string; handle: FileHandle } | undefined;
  /** Buffer of the last read, from `#start` on. */
  #bytes = Buffer.alloc(0);
  #start = 0;
  /** End of the last part. */
  #end = -1;
  readonly #maxPiece: number;
  /** Buffer of all reads; undefined if each has its own. */
  readonly #shared: ReturnType<typeof Buffer.allocUnsafeSlow> | undefined;

  /** With `reuses`, pieces are valid until the next one: for callers that keep none. */
  constructor({ reuses = false }: { reuses?: boolean } = {}) {
    this.#maxPiece = reuses ? maxReusedPiece : maxPiece;
    this.#shared = reuses ? Buffer.allocUnsafeSlow(maxReusedPiece) : undefined;
  }

  /**
   * Yields the bytes of a part in pieces of at most 256 KiB, which the caller owns, or 1 MiB if they are reused. Throws
   * OpmateError INVALID for a file whose length changed, IO for a file that is not regular, and system errors unchanged.
   */
  async *read({ file, offset, size }: FilePart, subject = file): AsyncGenerator<Buffer> {
    const handle = await this.#open(file);
    const start = offset ?? 0;
    const readsAhead = start === this.#end;
    const end = start + size;
    for (let position = start; position < end;) {
      const held = position - this.#start;
      if (held < 0 || held >= this.#bytes.length) {
        const wanted = readsAhead ? this.#maxPiece : Math.min(this.#maxPiece, end - position);
        const bytes = this.#shared ?? Buffer.allocUnsafeSlow(wanted);
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

  /** Closes the file; the reader remains usable. */
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

/** Maximum bytes buffered before a write. */
const heldBytes = 1024 * 1024;

/** Writes many small pieces into a new file with mode 0600. Throws system errors unchanged. */
export class JoinedFileWriter {
  readonly #handle: FileHandle;
  readonly #held = Buffer.allocUnsafeSlow(heldBytes);
  #length = 0;
  /** Bytes written so far, the offset of the next piece. */
  size = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Creates the file, which must not exist. */
  static async create(file: string): Promise<JoinedFileWriter> {
    return new JoinedFileWriter(await open(file, 'wx', 0o600));
  }

  /** Copies the bytes into the buffer. */
  async write(bytes: Buffer): Promise<void> {
    this.size += bytes.length;
    if (this.#length + bytes.length > heldBytes) await this.flush();
    if (bytes.length > heldBytes) await this.#handle.writeFile(bytes);
    else this.#length += bytes.copy(this.#held, this.#length);
  }

  /** Writes all buffered bytes to the file. */
  async flush(): Promise<void> {
    const length = this.#length;
    this.#length = 0;
    if (length > 0) await this.#handle.writeFile(this.#held.subarray(0, length));
  }

  /** Closes the file; buffered bytes are lost. */
  close(): Promise<void> {
    return this.#handle.close();
  }
}
