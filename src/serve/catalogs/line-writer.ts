import { createHash } from 'node:crypto';
import { systemReason } from '../../core/errors.js';
import { encodeGoJsonPieces, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import type { ContentFile } from './content-file.js';

const bufferBytes = 4 * 1024 * 1024;
/** Maximum bytes of a UTF-16 code unit in UTF-8. */
const maxUnitBytes = 3;

/** Failure of the place that content is written to, not of the catalog. */
export class PlaceError extends Error {}

export function throwPlaceError(error: unknown): never {
  throw new PlaceError(systemReason(error), { cause: error });
}

/** Writes blobs as lines with sorted keys; one buffer is filled while the other is written. */
export class LineWriter {
  readonly #file: ContentFile;
  readonly #hash = createHash('sha256');
  #filling = Buffer.allocUnsafeSlow(bufferBytes);
  #written = Buffer.allocUnsafeSlow(bufferBytes);
  #filled = 0;
  #writing: Promise<unknown> = Promise.resolve();

  constructor(file: ContentFile) {
    this.#file = file;
  }

  /** Appends a blob. Returns the length of its line with the line break. Throws PlaceError. */
  async append(blob: JsonObject): Promise<number> {
    const pieces = encodeGoJsonPieces(sortKeysDeep(blob));
    pieces.push('\n');
    let units = 0;
    for (const { length } of pieces) units += length;
    const maxBytes = units * maxUnitBytes;
    if (maxBytes > bufferBytes - this.#filled) await this.#flush();
    if (maxBytes > bufferBytes) {
      const line = Buffer.from(pieces.join(''));
      await this.#write(line);
      return line.length;
    }
    const start = this.#filled;
    for (const piece of pieces) this.#filled += this.#filling.write(piece, this.#filled);
    return this.#filled - start;
  }

  /** Writes what is left. Returns the hash of all lines. Throws PlaceError. */
  async finish(): Promise<string> {
    await this.#flush();
    await this.#writing;
    return `sha256:${this.#hash.digest('hex')}`;
  }

  async #flush(): Promise<void> {
    if (this.#filled === 0) return;
    await this.#write(this.#filling.subarray(0, this.#filled));
    [this.#filling, this.#written] = [this.#written, this.#filling];
    this.#filled = 0;
  }

  /** Starts to write bytes, after the write before; they must stay as they are until the next call. */
  async #write(bytes: Buffer): Promise<void> {
    await this.#writing;
    this.#hash.update(bytes);
    this.#writing = this.#file.append(bytes).catch(throwPlaceError);
    // Awaited before the next write, or at the end.
    this.#writing.catch(() => undefined);
  }
}
