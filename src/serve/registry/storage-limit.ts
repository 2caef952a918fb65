import { showSize } from '../../archive/limits.js';
import { LimitError } from '../../core/errors.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';

/** Minimum time between measurements of a full directory. */
const remeasureMs = 1_000;

/** The storage limit is reached. */
export class StorageFullError extends LimitError {}

/**
 * Limits the bytes of blobs and uploads of a layout. Additions are counted; removals, also by other processes, are seen
 * when the limit is reached and the directory is measured again.
 */
export class StorageLimit {
  readonly #layout: LayoutStore;
  readonly #max: number;
  #used: number;
  #measuredAt = performance.now();
  #measuring: Promise<void> | undefined;

  private constructor(layout: LayoutStore, max: number, used: number) {
    this.#layout = layout;
    this.#max = max;
    this.#used = used;
  }

  static async open(layout: LayoutStore, max: number): Promise<StorageLimit> {
    return new StorageLimit(layout, max, await layout.usedBytes());
  }

  /** Reserves bytes to write. Throws StorageFullError. */
  async reserve(bytes: number): Promise<void> {
    if (this.#used + bytes > this.#max) await this.#measure();
    if (this.#used + bytes > this.#max) {
      throw new StorageFullError(`storage limit of ${showSize(this.#max)} reached`);
    }
    this.#used += bytes;
  }

  async #measure(): Promise<void> {
    if (performance.now() - this.#measuredAt < remeasureMs) return;
    this.#measuring ??= this.#layout
      .usedBytes()
      .then((used) => {
        this.#used = used;
        this.#measuredAt = performance.now();
      })
      .finally(() => (this.#measuring = undefined));
    await this.#measuring;
  }
}
