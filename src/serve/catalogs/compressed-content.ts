import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CancelledError, OpmateError } from '../../core/errors.js';
import type { ContentFile } from './content-file.js';

/**
 * A compressed form of a content, made once however many read it: who comes while it is made follows it as it grows.
 */
export class CompressedContent {
  readonly #file: ContentFile;
  readonly #made: Promise<void>;
  readonly #waiting = new Set<() => void>();
  #length = 0;
  #state: 'growing' | 'whole' | 'broken' = 'growing';
  #isClosed = false;

  /** Compresses pieces into a file, which is this form's from now on. */
  constructor(pieces: AsyncIterable<Buffer>, compressor: Transform, file: ContentFile) {
    this.#file = file;
    this.#made = this.#make(pieces, compressor);
  }

  /** Bytes; undefined while it is made. */
  get size(): number | undefined {
    return this.#state === 'whole' ? this.#length : undefined;
  }

  /** Whether it could not be made: the disk is full. */
  get isBroken(): boolean {
    return this.#state === 'broken';
  }

  /**
   * Resolves with the number of bytes there are, as soon as it is more than `known`, or `known` once that is all. Throws
   * OpmateError IO where the form cannot be made.
   */
  async grownBeyond(known: number): Promise<number> {
    while (this.#length <= known && this.#state === 'growing') {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
    if (this.#state === 'broken') throw new OpmateError('IO', 'the compressed catalog cannot be kept');
    return this.#length;
  }

  /** Fills `target` from a place below the number of bytes there are. */
  async read(target: Buffer, position: number): Promise<void> {
    const length = await this.#file.read(target, position);
    if (length < target.length) throw new OpmateError('IO', 'the compressed catalog ends too early');
  }

  /** Ends making it. Nobody may read it any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#made;
    await this.#file.close();
  }

  async #make(pieces: AsyncIterable<Buffer>, compressor: Transform): Promise<void> {
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

  #wake(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const resolve of waiting) resolve();
  }
}
