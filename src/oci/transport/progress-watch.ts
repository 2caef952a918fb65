/** Time limits of running requests: for progress and for the start of the response. */
import { NetworkError } from './transport-faults.js';

/** Minimum rate over four idle periods. */
const minBytesPerSecond = 256;
const ticksPerIdlePeriod = 4;

interface Ticker {
  add(tick: () => void): void;
  delete(tick: () => void): void;
}

/** Returns a ticker that calls its callbacks four times per idle period, with a single timer. */
export function createTicker(idleTimeoutMs: number): Ticker {
  const intervalMs = Math.max(1, idleTimeoutMs / ticksPerIdlePeriod);
  const ticks = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  return {
    add(tick) {
      ticks.add(tick);
      timer ??= setInterval(() => {
        for (const each of ticks) each();
      }, intervalMs).unref();
    },
    delete(tick) {
      ticks.delete(tick);
      if (ticks.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

export interface ProgressWatch {
  /** Waits for a response for `periods` idle periods. */
  wait(periods: number): void;
  /** Expects bytes to move, except while `held` reports that our side is slow. */
  stream(held: () => boolean): void;
  moved(bytes: number): void;
  end(): void;
}

/** Stops a request without progress for an idle period, or with almost none over four. */
export function watchProgress(
  host: string,
  idleTimeoutMs: number,
  ticker: Ticker,
  stop: (reason: NetworkError) => void,
): ProgressWatch {
  let limit = ticksPerIdlePeriod;
  let quiet = 0;
  let held: (() => boolean) | undefined;
  let windowTicks = 0;
  let windowBytes = 0;
  const windowSize = ticksPerIdlePeriod * 4;
  const windowMinimum = (minBytesPerSecond * idleTimeoutMs * 4) / 1000;
  const seconds = (ms: number): string => `${Number((ms / 1000).toPrecision(3))} s`;
  function tick(): void {
    if (held?.()) {
      quiet = windowTicks = windowBytes = 0;
      return;
    }
    if (++quiet > limit) {
      const time = seconds((idleTimeoutMs * limit) / ticksPerIdlePeriod);
      stop(new NetworkError(`nothing received for ${time}`, { subject: host, temporary: true }));
      return;
    }
    if (held && ++windowTicks >= windowSize) {
      if (windowBytes < windowMinimum) {
        const time = seconds(idleTimeoutMs * 4);
        stop(
          new NetworkError(`too slow: ${windowBytes} bytes in ${time}`, { subject: host, temporary: false }),
        );
      }
      windowTicks = windowBytes = 0;
    }
  }
  ticker.add(tick);
  return {
    wait(periods) {
      limit = ticksPerIdlePeriod * periods;
      quiet = 0;
      held = undefined;
    },
    stream(isHeld) {
      limit = ticksPerIdlePeriod;
      quiet = windowTicks = windowBytes = 0;
      held = isHeld;
    },
    moved(bytes) {
      quiet = 0;
      windowBytes += bytes;
    },
    end: () => ticker.delete(tick),
  };
}

/** Deadlines of all requests with a single timer, which costs less than one per request. */
export class Deadlines {
  readonly #ends = new Map<() => void, number>();
  #timer: NodeJS.Timeout | undefined;
  #next = Infinity;

  /** Calls `end` at a time of `performance.now()`; returns a function that cancels it. */
  add(end: () => void, time: number): () => void {
    this.#ends.set(end, time);
    if (time < this.#next) this.#arm(time);
    return () => this.#ends.delete(end);
  }

  #arm(time: number): void {
    clearTimeout(this.#timer);
    this.#next = time;
    this.#timer = setTimeout(() => this.#check(), time - performance.now()).unref();
  }

  #check(): void {
    this.#next = Infinity;
    const now = performance.now();
    for (const [end, time] of this.#ends) {
      if (time > now) continue;
      this.#ends.delete(end);
      end();
    }
    if (this.#ends.size > 0) this.#arm(Math.min(...this.#ends.values()));
  }
}
