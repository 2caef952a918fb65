import { type Logger, silentLogger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import type { RepositoryLocation } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { toRepositoryKey } from './transfer-step.js';
import type { SurveyedTransfer } from './transfer-types.js';

/** Approximate number of progress updates per run. */
const progressSteps = 200;

/** Reports the progress of a copy in bytes; each blob counts once per registry, as the others are mounted. */
export class ByteProgress {
  readonly #logger: Logger;
  readonly #expected = new Set<string>();
  /** Bytes sent of blobs under way. */
  readonly #sent = new Map<string, number>();
  /** Images under way, in the order of their start. */
  readonly #images = new Set<SurveyedTransfer>();
  #total = 0;
  #settled = 0;
  #reported = 0;

  constructor(surveyed: readonly SurveyedTransfer[], logger: Logger = silentLogger) {
    this.#logger = logger;
    for (const { target, blobs } of surveyed) {
      for (const blob of blobs) {
        const key = toKey(target, blob);
        if (!this.#expected.has(key)) this.#total += blob.size;
        this.#expected.add(key);
      }
    }
  }

  report(state: 'start' | 'update' | 'done'): void {
    this.#reported = this.#getCurrent();
    const [image] = this.#images;
    const item = image === undefined ? {} : { item: image.sourceName };
    const amounts = { current: this.#reported, total: this.#total, unit: 'bytes' as const };
    this.#logger.progress({ task: 'mirror', state, ...amounts, ...item });
  }

  startImage(image: SurveyedTransfer): void {
    this.#images.add(image);
    if (this.#reported === 0 && this.#images.size === 1) this.report('update');
  }

  endImage(image: SurveyedTransfer): void {
    this.#images.delete(image);
  }

  /** Returns a callback for the sent bytes of a blob. */
  watch(target: Reference, blob: Descriptor): (bytes: number) => void {
    const key = `${toRepositoryKey(target)} ${blob.digest}`;
    return (bytes) => {
      this.#sent.set(key, bytes);
      this.#update();
    };
  }

  /** Records that the target has a blob; `isSent` if it was sent, expected or not. */
  settle(target: Reference, blob: Descriptor, isSent: boolean): void {
    this.#sent.delete(`${toRepositoryKey(target)} ${blob.digest}`);
    const isExpected = this.#expected.delete(toKey(target, blob));
    if (!isExpected && isSent) this.#total += blob.size;
    if (isExpected || isSent) this.#settled += blob.size;
    this.#update();
  }

  /** Reports a further step, and the end. */
  #update(): void {
    const current = this.#getCurrent();
    const isDue = Math.abs(current - this.#reported) >= this.#total / progressSteps;
    if (isDue || (current === this.#total && current !== this.#reported)) this.report('update');
  }

  #getCurrent(): number {
    let current = this.#settled;
    for (const bytes of this.#sent.values()) current += bytes;
    return Math.min(current, this.#total);
  }
}

/** Returns the place that the blobs of a target are shared in; a layout is a registry of its own. */
export function toBlobPlace(target: Reference): RepositoryLocation {
  return target.transport === 'docker' ? target : { registry: toRepositoryKey(target), repository: '' };
}

function toKey(target: Reference, { digest }: Descriptor): string {
  return `${toBlobPlace(target).registry} ${digest}`;
}
