import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CancelledError, OpmateError } from '../../core/errors.js';
import type { ContentFile } from './content-file.js';

/** Compressed content, created once for all readers, which may follow while it grows. */
export class CompressedContent {
  readonly #file: ContentFile;
  readonly #waiting = new Set<() => void>();
  #length = 0;
  #state: 'growing' | 'whole' | 'broken' = 'growing';
  #isClosed = false;
  readonly #written: Promise<void>;

  /** Compresses pieces into a file, which `close` closes. */
  constructor(pieces: AsyncIterable<Buffer>, compressor: Transform, file: ContentFile) {
    this.#file = file;
    this.#written = this.#write(pieces, compressor);
  }

  #wake(): void {
    const woken = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of woken) resolve();
  }

  async #write(pieces: AsyncIterable<Buffer>, compressor: Transform): Promise<void> {
    try {
      await pipeline(pieces, compressor, async (compressed: AsyncIterable<Buffer>) => {
        for await (const piece of compressed) {
          if (this.#isClosed) throw new CancelledError('closed');
          await this.#file.append(piece);
          this.#length += piece.length;
          this.#wake();
        }
      });
      this.#state = 'whole';
    } catch {
      this.#state = 'broken';
    }
    this.#wake();
  }

  /** Size in bytes; undefined while it grows. */
  get size() {
    return this.#state === 'whole' ? this.#length : undefined;
  }

  /** Writing has failed, for instance on a full disk. */
  get isBroken() {
    return this.#state === 'broken';
  }

  /**
   * Resolves with the number of written bytes once it exceeds `known`, or with `known` at the end. Throws OpmateError IO
   * where writing fails.
   */
  async grownBeyond(known: number): Promise<number> {
    while (this.#length <= known && this.#state === 'growing') {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
    if (this.#state === 'broken') throw new OpmateError('IO', 'cannot write the compressed catalog');
    return this.#length;
  }

  /** Fills `target` from a position among the written bytes. */
  async read(target: Buffer, position: number): Promise<void> {
    const count = await this.#file.read(target, position);
    if (count < target.length) throw new OpmateError('IO', 'truncated compressed catalog');
  }

  /** Stops writing and closes the file; readers must have finished. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#written;
    await this.#file.close();
  }
}
