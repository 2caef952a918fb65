import type { TarInput } from './tar-writer.js';

/** Directories of images that programs write to: what is in them may go, they themselves may not. */
export const sharedDirectories: ReadonlySet<string> = new Set(['tmp', 'var/tmp']);

/**
 * What a layer needs in addition to its entries: directories are written with all above them, and those that everybody may
 * write to would lose their sticky bit.
 */
export function listSharedDirectories(entries: readonly TarInput[]): TarInput[] {
  return [...sharedDirectories]
    .filter((shared) => entries.some((entry) => entry.path.startsWith(`${shared}/`)))
    .map((shared) => ({ path: shared, type: 'directory', mode: 0o1777 }));
}
