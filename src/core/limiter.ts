/** Runs a piece of work as soon as there is room for it. */
type Limiter = <T>(work: () => Promise<T>) => Promise<T>;

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
