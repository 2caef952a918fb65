import { setMaxListeners } from 'node:events';
import { throwIfCancelled } from './errors.js';

/** Options that every long operation takes. */
export interface CancelOptions {
  /** Stops the operation: it rejects with CancelledError and cleans up after itself. */
  signal?: AbortSignal | undefined;
}

/**
 * Calls `fn` once when `signal` fires, at once when it has fired already. Returns what takes `fn` off again, to
 * be called when there is nothing left to stop. Any number may wait for one signal.
 */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    fn();
    return () => undefined;
  }
  // Node would take more than ten for a leak, and warn.
  setMaxListeners(0, signal);
  signal.addEventListener('abort', fn, { once: true });
  return () => signal.removeEventListener('abort', fn);
}

/**
 * Runs `work` over `items`, at most `limit` at a time, and returns the results in the order of `items`.
 * The first failure stops new work, is awaited with what is under way, and is thrown.
 */
export async function mapConcurrent<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, index: number) => Promise<R>,
  options: CancelOptions = {},
): Promise<R[]> {
  const results = new Array<R>(items.length);
  let next = 0;
  let failed = false;
  let failure: unknown;
  async function worker(): Promise<void> {
    while (!failed && next < items.length) {
      const index = next++;
      try {
        throwIfCancelled(options.signal);
        results[index] = await work(items[index] as T, index);
      } catch (error) {
        if (!failed) failure = error;
        failed = true;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker));
  if (failed) throw failure;
  return results;
}
