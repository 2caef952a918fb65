import { showSize } from '../../archive/limits.js';
import { LimitError } from '../../core/errors.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';

/** Minimum time between measurements of a full directory. */
const remeasureMs = 1_000;

/** The storage limit is reached. */
export class StorageFullError extends LimitError {}

/** Maximum bytes of blobs and uploads of a layout. */
export type StorageLimit = Awaited<ReturnType<typeof limitStorage>>;

/**
 * Limits the bytes of blobs and uploads of a layout. Additions are counted; removals, also by other processes, are seen
 * when the limit is reached and the directory is measured again.
 */
export async function limitStorage(layout: LayoutStore, max: number) {
  let used = await layout.usedBytes();
  let measuredAt = performance.now();
  let measuring: Promise<void> | undefined;
  const measure = async (): Promise<void> => {
    used = await layout.usedBytes();
    measuredAt = performance.now();
  };
  return {
    /** Reserves bytes to write. Throws StorageFullError. */
    async reserve(bytes: number): Promise<void> {
      if (used + bytes > max && performance.now() - measuredAt >= remeasureMs) {
        await (measuring ??= measure().finally(() => (measuring = undefined)));
      }
      if (used + bytes > max) throw new StorageFullError(`storage limit of ${showSize(max)} reached`);
      used += bytes;
    },
  };
}
