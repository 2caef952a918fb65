import { showSize } from '../../archive/limits.js';
import { LimitError } from '../../core/errors.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';

/** How often a full directory is measured again. */
const remeasureMs = 1_000;

/** A directory has as many bytes as it may have. */
export class StorageFullError extends LimitError {}

/**
 * Bounds the bytes of blobs and uploads of a layout. What is added is counted; what is removed, also by other
 * processes, is seen when the limit is met and the directory is measured again.
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

  /** Makes room for bytes that are about to be written. Throws StorageFullError. */
  async take(bytes: number): Promise<void> {
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
