import type { TarInput } from './tar-writer.js';

/** Directories of images that programs write to: their content may be removed, but not the directories. */
export const sharedDirectories: ReadonlySet<string> = new Set(['tmp', 'var/tmp']);

/**
 * Returns the directories that a layer needs in addition to its entries: parent directories are written too, and
 * shared ones would lose their sticky bit.
 */
export function listSharedDirectories(entries: readonly TarInput[]): TarInput[] {
  return [...sharedDirectories]
    .filter((shared) => entries.some((entry) => entry.path.startsWith(`${shared}/`)))
    .map((shared) => ({ path: shared, type: 'directory', mode: 0o1777 }));
}
