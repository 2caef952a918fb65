import { type LockStatus, readArchiveStatus, readRegistryStatus } from '../../mirror/lock/lock-status.js';
import { type ImageSetLock, withoutCharts } from '../../mirror/lock/lock.js';
import type { TransferOptions } from '../../mirror/transfer/transfer-types.js';
import type { Session } from '../../source/session.js';
import { parseDestination } from './destination.js';
import { resolveMaxPerRegistry } from './max-per-registry.js';

/** Options of reading what of a lock is mirrored. */
export interface MirrorStatusOptions extends Pick<
  TransferOptions,
  'imagesAtOnce' | 'imageTimeoutMs' | 'layersAtOnce'
> {
  /** Look for Helm charts in a registry too; default false, as they are mirrored on request only. */
  helmCharts?: boolean | undefined;
  /** Maximum number of path components at the target; default unlimited. */
  maxNestedPaths?: number | undefined;
  /** Maximum parallel requests per registry; default 6, or `imagesAtOnce` if that is more. */
  maxPerRegistry?: number | undefined;
  /** Of a registry: number of shards that share the lock; `shards` of the result has what is left of each. */
  shards?: number | undefined;
}

/**
 * Reads which images of a lock `docker://REGISTRY[/PATH]`, or the archive in `file://DIRECTORY`, has, and what is left to
 * copy; an unfinished archive has what is written of it. Throws OpmateError for a registry that is unavailable.
 */
export async function readMirrorStatus(
  lock: ImageSetLock,
  destination: string,
  session: Session,
  { helmCharts = false, maxNestedPaths, shards, ...limits }: MirrorStatusOptions = {},
): Promise<LockStatus> {
  const place = parseDestination(destination, session, maxNestedPaths);
  if (place.kind === 'disk') return readArchiveStatus(lock, place.directory, session);
  const transfer = { ...limits, session, maxPerRegistry };
  return readRegistryStatus(helmCharts ? lock : withoutCharts(lock), {
    target: place.target,
    transfer,
    shards,
  });
}
