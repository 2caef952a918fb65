import type { NamedImage } from '../../mirror/image-set/planned-image.js';
import type { MirroredSet } from '../../mirror/image-set/image-set-resources.js';
import { type LockMirrorOptions, createLockMirror } from '../../mirror/lock/lock-mirror.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import type { ImageSetRun, MirrorResult } from './image-set-run.js';
import { type Templates, getTransferOptions } from './run-configuration.js';
import { writeResources, renderResources } from './write-results.js';

/** A lock with its images and templates for cluster resources. */
interface LockedSet {
  lock: ImageSetLock;
  set: MirroredSet<NamedImage>;
  templates: Templates;
}

/** Surveys the target, copies missing images of a lock, and writes cluster resources. */
export async function copyLocked(
  run: ImageSetRun,
  { lock, set, templates }: LockedSet,
  content: Pick<LockMirrorOptions, 'archive' | 'base' | 'open' | 'shard' | 'shardWaitMs'>,
): Promise<MirrorResult> {
  const mirror = createLockMirror(lock, {
    ...{ target: run.destination.target, transfer: getTransferOptions(run), ...content },
  });
  // Invalid resource names are errors before anything is copied.
  renderResources(run, set, templates);
  const bytes = await mirror.survey();
  run.options.onSurveyed?.(bytes);
  const { waiting, ...report } = await mirror.copy();
  const resources = await writeResources(run, set, templates);
  return { report, changes: [], resources, bytes, lock, waiting };
}
