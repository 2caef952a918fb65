import { OpmateError } from '../core/errors.js';
import type { ImageSetLock } from './lock.js';

/** What one lock has and the other has not. */
export interface LockDiff {
  packages: { added: string[]; removed: string[] };
  /** `package/channel`; `changed` has another head. */
  channels: { added: string[]; removed: string[]; changed: { channel: string; from: string; to: string }[] };
  bundles: { added: string[]; removed: string[] };
  /** `repository:tag`, or `repository@digest`; `changed` has the same name and another digest. */
  images: { added: string[]; removed: string[]; changed: { image: string; from: string; to: string }[] };
  /** Of blobs, each once. */
  bytes: { added: number; removed: number };
}

/** Compares two locks; every list is sorted. */
export function diffLocks(from: ImageSetLock, to: ImageSetLock): LockDiff {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [from, to] });
}
