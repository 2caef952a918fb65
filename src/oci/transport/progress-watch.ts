/** Watches over requests under way: that something moves, and that a response begins in time. */
import { NetworkError } from './transport-faults.js';

/** Slower than this over four idle periods counts as a stalled connection. */
const minBytesPerSecond = 256;
const ticksPerIdlePeriod = 4;

interface Ticker {
  add(tick: () => void): void;
  delete(tick: () => void): void;
}

/** Calls what was added four times per idle period: one timer for all requests, none while there are none. */
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
  /** From now on an answer is awaited, for `periods` idle periods. */
  wait(periods: number): void;
  /** From now on bytes must move, except while `held` says that our side is the slow one. */
  stream(held: () => boolean): void;
  moved(bytes: number): void;
  end(): void;
}

/**
 * Stops a request in which nothing moves for an idle period, or next to nothing over four of them: a
 * server that sends a byte a second would hold it for ever otherwise. Trying again would only take as long.
 */
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

/** Deadlines of all requests behind one timer: setting and clearing one for each costs more than what it watches. */
export class Deadlines {
  readonly #ends = new Map<() => void, number>();
  #timer: NodeJS.Timeout | undefined;
  #next = Infinity;

  /** Calls `end` at a time of `performance.now()`; returns what takes it back. */
  add(end: () => void, position: number): () => void {
    this.#ends.set(end, position);
    if (position < this.#next) this.#arm(position);
    return () => this.#ends.delete(end);
  }

  #arm(position: number): void {
    clearTimeout(this.#timer);
    this.#next = position;
    this.#timer = setTimeout(() => this.#check(), position - performance.now()).unref();
  }

  #check(): void {
    this.#next = Infinity;
    const now = performance.now();
    for (const [end, index] of this.#ends) {
      if (index > now) continue;
      this.#ends.delete(end);
      end();
    }
    if (this.#ends.size > 0) this.#arm(Math.min(...this.#ends.values()));
  }
}
