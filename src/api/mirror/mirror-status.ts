import { UsageError } from '../../core/errors.js';
import { type LockStatus, readArchiveStatus, readRegistryStatus } from '../../mirror/lock/lock-status.js';
import { type ImageSetLock, withoutCharts, withoutHeld } from '../../mirror/lock/lock.js';
import { requireShardCount } from '../../mirror/lock/shard.js';
import type { Session } from '../../source/session.js';
import { parseDestination } from './destination.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './image-set-run.js';

/** Options of reading the status of a mirror. */
export interface MirrorStatusOptions extends Pick<
  MirrorOptions,
  'imagesAtOnce' | 'imageTimeoutMs' | 'layersAtOnce' | 'maxNestedPaths' | 'maxPerRegistry'
> {
  /** Look for Helm charts in a registry too; default false, as they are mirrored on request only. */
  helmCharts?: boolean | undefined;
  /** For a registry: number of shards of the lock; `shards` of the result has the rest of each. */
  shards?: number | undefined;
}

/**
 * Reads which images of a lock `docker://REGISTRY[/PATH]`, or the archive in `file://DIRECTORY`, has, and which are left to
 * copy; an unfinished archive has its written part. Throws OpmateError for an unavailable registry.
 */
export async function readMirrorStatus(
  lock: ImageSetLock,
  destination: string,
  session: Session,
  { helmCharts = false, maxNestedPaths, shards, ...limits }: MirrorStatusOptions = {},
): Promise<LockStatus> {
  const place = parseDestination(destination, session, maxNestedPaths);
  if (shards !== undefined && place.kind === 'disk')
    throw new UsageError('options.shards: shards mirror to a registry', {
      hint: 'use docker://REGISTRY[/PATH]',
    });
  if (shards !== undefined) requireShardCount(shards);
  const current = withoutHeld(lock);
  if (place.kind === 'disk') return readArchiveStatus(current, place.directory, session);
  const transfer = { ...limits, session, maxPerRegistry: resolveMaxPerRegistry(limits) };
  return readRegistryStatus(helmCharts ? current : withoutCharts(current), {
    target: place.target,
    transfer,
    shards,
  });
}
