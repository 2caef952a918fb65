import { CancelledError, systemCode, throwIfCancelled } from './errors.js';

/** Options of every long operation. */
export interface CancelOptions {
  /** Cancels the operation: it rejects with CancelledError and cleans up. */
  signal?: AbortSignal | undefined;
}

/** Callbacks per signal, so that each signal has a single listener. */
const waiting = new WeakMap<AbortSignal, Set<() => void>>();

function callWaiting(this: AbortSignal): void {
  for (const call of waiting.get(this) ?? []) call();
}

/**
 * Calls `fn` once when `signal` is aborted, immediately if it already is. Returns a function that unregisters `fn`;
 * call it when nothing is left to cancel. All callbacks of a signal share one listener.
 */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    fn();
    return () => undefined;
  }
  const calls = waiting.get(signal) ?? new Set();
  if (calls.size === 0) {
    waiting.set(signal, calls);
    signal.addEventListener('abort', callWaiting, { once: true });
  }
  const call = (): void => fn();
  calls.add(call);
  return () => {
    if (calls.delete(call) && calls.size === 0) signal.removeEventListener('abort', callWaiting);
  };
}

/**
 * Returns `close` so that it runs once: when it is called first, or when the signal fires. A failure then goes to
 * `report`; a later call returns it too.
 */
export function closeOnAbort(
  signal: AbortSignal | undefined,
  close: () => Promise<void>,
  report: (error: unknown) => void = () => undefined,
): () => Promise<void> {
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  const stopWaiting = onAbort(signal, () => void closeOnce().catch(report));
  return async () => {
    stopWaiting();
    await closeOnce();
  };
}

/**
 * Runs `open`, which adds what it opens to a list. All of it is closed, the last first, once the result is closed, the
 * signal fires, or `open` fails.
 */
export async function openTogether<T>(
  signal: AbortSignal | undefined,
  open: (opened: { close(): unknown }[]) => Promise<T>,
): Promise<T & { close(): Promise<void> }> {
  const opened: { close(): unknown }[] = [];
  const close = async (): Promise<void> => {
    for (const item of opened.splice(0).reverse()) await item.close();
  };
  return keepOpen({ close }, async () => ({ ...(await open(opened)), close: closeOnAbort(signal, close) }));
}

/** Resolves after `ms` milliseconds. Throws CancelledError as soon as `signal` is aborted. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  throwIfCancelled(signal);
  await new Promise<void>((resolve) => {
    let unwatch = (): void => undefined;
    const end = (): void => {
      clearTimeout(timer);
      unwatch();
      resolve();
    };
    const timer = setTimeout(end, ms);
    unwatch = onAbort(signal, end);
  });
  throwIfCancelled(signal);
}

/**
 * Runs `work` over `items`, at most `limit` at a time, and returns the results in the order of `items`. The first
 * failure starts no new work, waits for running work, and is thrown; a failure other than cancellation takes
 * precedence.
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
        // Work aborted by the first failure may reject before it.
        if (!failed || (isAborted(failure) && !isAborted(error))) failure = error;
        failed = true;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker));
  if (failed) throw failure;
  return results;
}

/** Reports whether an error only says that work was cancelled. */
function isAborted(error: unknown): boolean {
  return (
    error instanceof CancelledError ||
    (error instanceof Error &&
      (error.name === 'AbortError' || systemCode(error) === 'ERR_STREAM_PREMATURE_CLOSE'))
  );
}

/** Maximum time that long work blocks the event loop, in milliseconds. */
const maxTurn = 5;
let turnStart = 0;
/** Returns milliseconds; `performance` would load a module that short commands do not need. */
const now = (): number => new Date().getTime();
const waitingForTurn: (() => void)[] = [];

/**
 * Yields to timers, sockets and other work if the event loop has been blocked for 5 ms. Await it between the steps
 * of long work. Of several waiters, one continues per turn of the loop.
 */
export function takeTurn(): Promise<void> | undefined {
  // The turn also ends when the clock is set back.
  if (Math.abs(now() - turnStart) < maxTurn) return undefined;
  return new Promise((resolve) => {
    if (waitingForTurn.push(resolve) === 1) setImmediate(startTurn);
  });
}

function startTurn(): void {
  const next = waitingForTurn.shift();
  if (waitingForTurn.length > 0) setImmediate(startTurn);
  turnStart = now();
  next?.();
}

/** Runs `work` with an opened resource, which stays open for its result; closes it if `work` fails. */
export async function keepOpen<R extends { close(): unknown }, T>(
  resource: R | Promise<R>,
  work: (resource: R) => T | Promise<T>,
): Promise<T> {
  const opened = await resource;
  try {
    return await work(opened);
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Runs `work` with an opened resource, and closes it afterwards. Throws what either of them throws. */
export async function withOpen<R extends { close(): unknown }, T>(
  resource: R | Promise<R>,
  work: (resource: R) => T | Promise<T>,
): Promise<T> {
  const opened = await resource;
  try {
    return await work(opened);
  } finally {
    await opened.close();
  }
}

interface Expiring {
  /** Called at the deadline. */
  expire(): void;
}

const maxTimerMs = 2 ** 31 - 1;

/** Deadlines of all calls or requests with a single timer: nearly all of them end long before. */
export class Deadlines {
  /** Deadlines on the clock of `performance.now`. */
  readonly #ends = new Map<Expiring, number>();
  #timer: NodeJS.Timeout | undefined;
  /** Time at which the timer fires; removing a call does not move it. */
  #firesAt = Infinity;

  /** Expires `call` after `ms` unless it is removed first; never if `ms` exceeds the maximum of timers, 24 days. */
  add(call: Expiring, ms: number): void {
    if (ms > maxTimerMs) return;
    const end = performance.now() + ms;
    this.#ends.set(call, end);
    if (end < this.#firesAt) this.#setTimer(end);
  }

  remove(call: Expiring): void {
    this.#ends.delete(call);
  }

  #setTimer(end: number): void {
    clearTimeout(this.#timer);
    this.#firesAt = end;
    this.#timer = setTimeout(() => this.#expire(), Math.max(0, Math.ceil(end - performance.now()))).unref();
  }

  #expire(): void {
    const now = performance.now();
    let next = Infinity;
    for (const [call, end] of this.#ends) {
      if (end > now) next = Math.min(next, end);
      else {
        this.#ends.delete(call);
        call.expire();
      }
    }
    this.#firesAt = Infinity;
    if (next < Infinity) this.#setTimer(next);
  }
}
