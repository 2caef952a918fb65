import { showSize } from '../../archive/limits.js';
import { LimitError } from '../../core/errors.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import type { LayoutStore } from '../../oci/layout/layout-store.js';

/** The storage limit is reached. */
export class StorageFullError extends LimitError {}

/** Removes something that may be sent again; returns its size in bytes, or undefined if nothing is left. */
type Eviction = () => Promise<number | undefined>;

/** Maximum bytes of blobs and uploads of a layout. */
export type StorageLimit = Awaited<ReturnType<typeof limitStorage>>;

/**
 * Limits the bytes of blobs and uploads of a layout. Additions are counted; removals, also by other processes, are seen
 * when the limit is reached and the directory is measured again.
 */
export async function limitStorage(layout: LayoutStore, max: number) {
  let used = await layout.usedBytes();
  /** Reserved bytes that may not be in a file yet. */
  let unwritten = 0;
  let evict: Eviction | undefined;
  const lock = new KeyedLock();
  const measure = async (): Promise<void> => {
    const stored = await layout.usedBytes();
    used = stored + unwritten;
  };
  /** Evicts until there is room for some bytes. */
  const makeRoom = async (bytes: number): Promise<void> => {
    while (used + bytes > max) {
      const freed = await evict?.();
      if (freed === undefined) return;
      used -= freed;
    }
  };
  const findRoom = async (bytes: number, giveUp: (() => Promise<void>) | undefined): Promise<void> => {
    if (used + bytes > max) await measure();
    if (used + bytes > max) await makeRoom(bytes);
    if (used + bytes <= max) return;
    await giveUp?.();
    await measure();
    throw new StorageFullError(`storage limit of ${showSize(max)} reached`);
  };
  return {
    /** Registers what makes room before anything is refused. */
    useEviction(eviction: Eviction): void {
      evict = eviction;
    },
    /**
     * Reserves bytes, and returns a function to call when they are written. Throws StorageFullError after `giveUp`, so
     * that others go on with what it frees.
     */
    async reserve(bytes: number, giveUp?: () => Promise<void>): Promise<() => void> {
      if (used + bytes > max) await lock.run('', () => findRoom(bytes, giveUp));
      used += bytes;
      unwritten += bytes;
      return () => {
        unwritten -= bytes;
      };
    },
  };
}
