import type { Readable } from 'node:stream';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';

/** Returns the error for an image that took longer than its limit. */
export function imageTimeoutError(targetName: string, limitMs: number, cause?: unknown): OpmateError {
  const problem = `not finished in ${Number((limitMs / 1000).toPrecision(3))} s`;
  return new OpmateError('NETWORK', problem, {
    subject: targetName,
    hint: 'raise mirror.imageTimeoutMs',
    cause,
  });
}

/** Time limit for reading the content of one image; time passes while any of its streams is open. */
export class ImageClock {
  readonly #targetName: string;
  readonly #limitMs: number;
  readonly #controller = new AbortController();
  readonly #streams = new Set<Readable>();
  #open = 0;
  #leftMs: number;
  #startedAt = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(targetName: string, limitMs: number) {
    this.#targetName = targetName;
    this.#limitMs = this.#leftMs = limitMs;
  }

  /** Opens a stream of the image. Both `open` and the stream fail with an OpmateError when the time is over. */
  async watch(
    open: (options: CancelOptions) => Promise<Readable>,
    { signal }: CancelOptions,
  ): Promise<Readable> {
    const { signal: late } = this.#controller;
    this.#start();
    try {
      const stream = await open({ signal: signal === undefined ? late : AbortSignal.any([signal, late]) });
      this.#streams.add(stream);
      stream.once('close', () => {
        this.#streams.delete(stream);
        this.#stop();
      });
      return stream;
    } catch (error) {
      this.#stop();
      throw late.aborted && signal?.aborted !== true
        ? imageTimeoutError(this.#targetName, this.#limitMs, error)
        : error;
    }
  }

  #start(): void {
    if (this.#open++ > 0) return;
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => {
      // Streams get the reason before the signal ends them without one.
      for (const stream of this.#streams) stream.destroy(imageTimeoutError(this.#targetName, this.#limitMs));
      this.#controller.abort();
    }, this.#leftMs);
  }

  #stop(): void {
    if (--this.#open > 0) return;
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#startedAt));
  }
}
