import { type BytePlan, planBytes } from './byte-plan.js';
import type { LockedImage } from './lock.js';
import type { SurveyedTransfer } from '../transfer/transfer-types.js';

/** What copying images means in bytes, by what a survey has found. */
export function planSurveyed(
  images: readonly LockedImage[],
  surveyed: readonly SurveyedTransfer[],
): BytePlan {
  return planBytes(images, createPresence(surveyed));
}

/**
 * Whether a blob need not be sent, by what a survey has found: one that is in any repository of the target can be
 * taken from there by the others.
 */
export function createPresence(surveyed: readonly SurveyedTransfer[]): (digest: string) => boolean {
  const lacking = new Set(surveyed.flatMap(({ blobs }) => blobs.map(({ digest }) => digest)));
  const there = new Set<string>();
  for (const { contents, blobs } of surveyed) {
    const own = new Set(blobs.map(({ digest }) => digest));
    for (const manifest of contents.manifests) {
      for (const { digest } of manifest.blobs) if (!own.has(digest)) there.add(digest);
    }
  }
  return (digest) => there.has(digest) || !lacking.has(digest);
}
