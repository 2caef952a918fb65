import { invalidValue } from '../core/errors.js';
import { getOrAdd } from '../core/groups.js';
import { parseMirrorTarget, pathBelow } from '../mirror/naming/mirror-target.js';
import {
  type Inventory,
  computeInventoryId,
  encodeInventory,
  summarizeInventory,
} from '../mirror/inventory/inventory.js';
import { takeInventory } from '../mirror/inventory/take-inventory.js';
import { isRepositoryName } from '../oci/registry/registry-names.js';
import type { Session } from '../source/session.js';
import { readNamedLock } from './mirror/find-lock.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './mirror/image-set-run.js';

/** Options of reading an inventory; `maxNestedPaths` is that of the run that mirrored the locks. */
export interface MirrorInventoryOptions extends Pick<MirrorOptions, 'maxNestedPaths' | 'maxPerRegistry'> {
  /** Repositories to read, by name below the destination; default all that the registry lists. */
  repositories?: readonly string[] | undefined;
  /** Read the repositories of these locks, named as for `readNamedLock`, untagged images included. */
  locks?: readonly string[] | undefined;
}

/** Inventory of a registry. */
export interface MirrorInventory {
  inventory: Inventory;
  /** Digest of its content. */
  id: string;
  /** The inventory as JSON, for the file that `base` names. */
  text: string;
  /** Numbers of repositories, tags, manifests and blobs, and bytes. */
  amounts: ReturnType<typeof summarizeInventory>;
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
): Promise<MirrorInventory> {
  const { repositories, locks, maxNestedPaths } = options;
  const target = parseMirrorTarget(destination, maxNestedPaths);
  for (const name of repositories ?? []) {
    if (isRepositoryName(name)) continue;
    throw invalidValue('options.repositories', name, 'not a repository name', {
      hint: 'use the path below the destination, without registry and tag: ns/name',
    });
  }
  const wanted = new Map<string, Set<string>>();
  const named = { ...target, maxNestedPaths: undefined };
  for (const name of repositories ?? []) wanted.set(pathBelow(named, name), new Set());
  for (const name of locks ?? []) {
    const { images } = await readNamedLock(name, session);
    for (const { repository, tag, contents } of images) {
      const name = pathBelow(target, repository);
      const digests = getOrAdd(wanted, name, () => new Set());
      if (tag === undefined) digests.add(contents.root.digest);
    }
  }
  const inventory = await takeInventory(target, {
    session,
    maxPerRegistry: resolveMaxPerRegistry(options),
    repositories: repositories === undefined && locks === undefined ? undefined : wanted,
  });
  return {
    inventory,
    id: computeInventoryId(inventory),
    text: encodeInventory(inventory),
    amounts: summarizeInventory(inventory),
  };
}
