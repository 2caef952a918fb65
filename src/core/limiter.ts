/** Runs a piece of work as soon as there is room for it. */
export type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

/** What is faster than this is bound by processors, not by the way to another machine. */
const distantMs = 20;
/** Pieces of work after which the fastest of them tells how far away it is done. */
const probed = 16;

/**
 * Lets at most `limit` pieces of work run at a time, and `distantLimit` while even the fastest of the last ones took as
 * long as a way to another machine and back.
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

/** Lets at most `limit` pieces of work run at a time; the others wait, first come first served. */
export function createLimiter(limit: number): Limiter {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // Whoever waits takes the place over.
      const next = waiting.shift();
      if (next !== undefined) next();
      else running--;
    }
  };
}
