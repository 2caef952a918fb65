import type { SurveyedTransfer } from '../transfer/transfer-types.js';
import { type BytePlan, planBytes } from './byte-plan.js';
import type { LockedImage } from './lock.js';

/** Returns the size of a copy after a survey of the target. */
export function planSurveyed(
  images: readonly LockedImage[],
  surveyed: readonly SurveyedTransfer[],
): BytePlan {
  return planBytes(images, createPresence(surveyed));
}

/**
 * Returns a predicate for blobs that need not be sent: a blob in any repository of the target can be mounted in the
 * others.
 */
export function createPresence(surveyed: readonly SurveyedTransfer[]): (digest: string) => boolean {
  const lacking = new Set(surveyed.flatMap(({ blobs }) => blobs.map(({ digest }) => digest)));
  const present = new Set<string>();
  for (const { contents, blobs } of surveyed) {
    const missing = new Set(blobs.map(({ digest }) => digest));
    for (const { digest } of contents.manifests.flatMap((manifest) => manifest.blobs))
      if (!missing.has(digest)) present.add(digest);
  }
  return (digest) => present.has(digest) || !lacking.has(digest);
}
