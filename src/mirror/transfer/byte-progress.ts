import { type Logger, silentLogger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import type { RepositoryLocation } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { toRepositoryKey } from './transfer-step.js';
import type { SurveyedTransfer } from './transfer-types.js';

/** Approximate number of progress updates per run. */
const progressSteps = 200;

/** Reports the progress of a copy in bytes; each blob counts once per registry, as the others are mounted. */
export function createByteProgress(surveyed: readonly SurveyedTransfer[], logger: Logger = silentLogger) {
  const expected = new Set<string>();
  /** Bytes sent of blobs under way. */
  const sent = new Map<string, number>();
  /** Images under way, in the order of their start. */
  const images = new Set<SurveyedTransfer>();
  let total = 0;
  let settled = 0;
  let reported = 0;
  for (const { target, blobs } of surveyed) {
    for (const blob of blobs) {
      const key = toKey(target, blob);
      if (!expected.has(key)) total += blob.size;
      expected.add(key);
    }
  }

  const getCurrent = (): number => {
    let current = settled;
    for (const bytes of sent.values()) current += bytes;
    return Math.min(current, total);
  };

  const report = (state: 'start' | 'update' | 'done'): void => {
    reported = getCurrent();
    const [image] = images;
    const item = image === undefined ? {} : { item: image.sourceName };
    logger.progress({ task: 'mirror', state, current: reported, total, unit: 'bytes', ...item });
  };

  const update = (): void => {
    const current = getCurrent();
    const isDue = Math.abs(current - reported) >= total / progressSteps;
    if (isDue || (current === total && current !== reported)) report('update');
  };

  return {
    report,
    startImage(image: SurveyedTransfer): void {
      images.add(image);
      if (reported === 0 && images.size === 1) report('update');
    },
    endImage: (image: SurveyedTransfer): void => void images.delete(image),
    /** Returns a callback for the sent bytes of a blob. */
    watch(target: Reference, blob: Descriptor): (bytes: number) => void {
      const key = `${toRepositoryKey(target)} ${blob.digest}`;
      return (bytes) => {
        sent.set(key, bytes);
        update();
      };
    },
    /** Records that the target has a blob; `isSent` if it was sent, expected or not. */
    settle(target: Reference, blob: Descriptor, isSent: boolean): void {
      sent.delete(`${toRepositoryKey(target)} ${blob.digest}`);
      const isExpected = expected.delete(toKey(target, blob));
      if (!isExpected && isSent) total += blob.size;
      if (isExpected || isSent) settled += blob.size;
      update();
    },
  };
}

/** Returns the place that the blobs of a target are shared in; a layout is a registry of its own. */
export function toBlobPlace(target: Reference): RepositoryLocation {
  return target.transport === 'docker' ? target : { registry: toRepositoryKey(target), repository: '' };
}

function toKey(target: Reference, { digest }: Descriptor): string {
  return `${toBlobPlace(target).registry} ${digest}`;
}
