/** Time limits of running requests for progress. */
import { NetworkError } from './transport-faults.js';

/** Minimum rate over four idle periods. */
const minBytesPerSecond = 256;
const ticksPerIdlePeriod = 4;

/**
 * Returns a ticker that calls its callbacks four times per idle period, with a single timer. They are in an array: a Set
 * leaves a table behind for every few that come and go, which keeps all their requests until the next full collection.
 */
export function createTicker(idleTimeoutMs: number) {
  const intervalMs = Math.max(1, idleTimeoutMs / ticksPerIdlePeriod);
  const ticks: (() => void)[] = [];
  let timer: NodeJS.Timeout | undefined;
  return {
    add(tick: () => void): void {
      ticks.push(tick);
      timer ??= setInterval(() => {
        for (const each of [...ticks]) if (ticks.includes(each)) each();
      }, intervalMs).unref();
    },
    delete(tick: () => void): void {
      const index = ticks.indexOf(tick);
      if (index >= 0) ticks.splice(index, 1);
      if (ticks.length > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

export type ProgressWatch = ReturnType<typeof watchProgress>;

/** Stops a request without progress for an idle period, or with almost none over four. */
export function watchProgress(
  host: string,
  idleTimeoutMs: number,
  ticker: ReturnType<typeof createTicker>,
  stop: (reason: NetworkError) => void,
) {
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
    /** Waits for a response for `periods` idle periods. */
    wait(periods: number): void {
      limit = ticksPerIdlePeriod * periods;
      quiet = 0;
      held = undefined;
    },
    /** Expects bytes to move, except while `isHeld` reports that our side is slow. */
    stream(isHeld: () => boolean): void {
      limit = ticksPerIdlePeriod;
      quiet = windowTicks = windowBytes = 0;
      held = isHeld;
    },
    moved(bytes: number): void {
      quiet = 0;
      windowBytes += bytes;
    },
    end: (): void => ticker.delete(tick),
  };
}
