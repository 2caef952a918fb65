/** Runs work as soon as a slot is free. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

/** Faster work is limited by processors, not by the network. */
const distantMs = 20;
/** Number of runs whose fastest one decides between near and distant. */
const probed = 16;

/**
 * Returns a limiter of `limit` concurrent runs, and of `distantLimit` while even the fastest recent run took as long
 * as a round trip to another machine.
 */
export function createDistanceLimiter(limit: number, distantLimit: number): Limiter {
  const near = createLimiter(limit);
  const far = createLimiter(distantLimit);
  let limiter = near;
  let fastest = Infinity;
  let count = 0;
  return (work) =>
    limiter(async () => {
      const begun = performance.now();
      const result = await work();
      fastest = Math.min(fastest, performance.now() - begun);
      if (++count % probed === 0) {
        limiter = fastest >= distantMs ? far : near;
        fastest = Infinity;
      }
      return result;
    });
}

/** Returns a limiter of `limit` concurrent runs; others wait, first come, first served. */
export function createLimiter(limit: number): Limiter {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // The slot passes to the next waiter.
      const next = waiting.shift();
      if (next !== undefined) next();
      else running--;
    }
  };
}
