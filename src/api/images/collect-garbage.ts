import { collectGarbage as removeUnreferenced } from '../../oci/layout/layout-garbage.js';
import { LayoutStore } from '../../oci/layout/layout-store.js';
import type { CancelOptions } from '../../core/concurrency.js';

/** Options of `collectGarbage`. */
export interface CollectGarbageOptions extends CancelOptions {
  /** Minimum age of removed blobs, in milliseconds; default one hour. */
  minAgeMs?: number | undefined;
  /** List the blobs without removing them; default false. */
  dryRun?: boolean | undefined;
}

/** Age that spares pushes under way. */
export const defaultGarbageAgeMs = 3_600_000;

/**
 * Removes unreferenced blobs of an OCI layout directory and yields each, with its size in bytes. Safe while a registry
 * serves the layout. Throws OpmateError, INVALID for a manifest that cannot be read, before anything is removed.
 */
export async function* collectGarbage(
  directory: string,
  { minAgeMs = defaultGarbageAgeMs, dryRun = false, signal }: CollectGarbageOptions = {},
): AsyncGenerator<{ digest: string; size: number }> {
  const store = await LayoutStore.open(directory);
  yield* removeUnreferenced(store, { minAgeMs, isDryRun: dryRun, signal });
}
