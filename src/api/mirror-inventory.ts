import { getOrAdd } from '../core/groups.js';
import { parseMirrorTarget, pathBelow } from '../mirror/naming/mirror-target.js';
import type { Inventory } from '../mirror/inventory/inventory.js';
import { takeInventory } from '../mirror/inventory/take-inventory.js';
import type { ImageSetLock } from '../mirror/lock/lock.js';
import type { Session } from '../source/session.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './mirror/image-set-run.js';

/** Options of reading an inventory; `maxNestedPaths` is that of the run that mirrored the locks. */
export interface MirrorInventoryOptions extends Pick<MirrorOptions, 'maxNestedPaths' | 'maxPerRegistry'> {
  /** Repositories to read, by name below the destination; default all that the registry lists. */
  repositories?: readonly string[] | undefined;
  /** Read the repositories of these locks, untagged images included. */
  locks?: readonly ImageSetLock[] | undefined;
}

/**
 * Lists the repositories, tags, manifests and blobs of `docker://REGISTRY[/PATH]`, for `mirror --base`. Checks every blob;
 * omits unreadable manifests with a warning. Throws OpmateError: NOT_FOUND if the registry does not list its repositories
 * and none are named.
 */
export async function readMirrorInventory(
  destination: string,
  session: Session,
  options: MirrorInventoryOptions = {},
): Promise<Inventory> {
  const { repositories, locks, maxNestedPaths } = options;
  const target = parseMirrorTarget(destination, maxNestedPaths);
  const wanted = new Map<string, Set<string>>();
  const named = { ...target, maxNestedPaths: undefined };
  for (const name of repositories ?? []) wanted.set(pathBelow(named, name), new Set());
  for (const { images } of locks ?? []) {
    for (const { repository, tag, contents } of images) {
      const name = pathBelow(target, repository);
      const digests = getOrAdd(wanted, name, () => new Set());
      if (tag === undefined) digests.add(contents.root.digest);
    }
  }
  return takeInventory(target, {
    session,
    maxPerRegistry: resolveMaxPerRegistry(options),
    repositories: repositories === undefined && locks === undefined ? undefined : wanted,
  });
}
