import { CancelledError, systemCode, throwIfCancelled } from './errors.js';

/** Options that every long operation takes. */
export interface CancelOptions {
  /** Stops the operation: it rejects with CancelledError and cleans up after itself. */
  signal?: AbortSignal | undefined;
}

/** What waits for signals: of each signal all of it behind one listener. */
const waiting = new WeakMap<AbortSignal, { calls: Set<() => void>; stop: () => void }>();

/**
 * Calls `fn` once when `signal` fires, at once when it has fired already. Returns what takes `fn` off again, to
 * be called when there is nothing left to stop. Any number may wait for one signal; it has one listener for all.
 */
export function onAbort(signal: AbortSignal | undefined, fn: () => void): () => void {
  if (signal === undefined) return () => undefined;
  if (signal.aborted) {
    fn();
    return () => undefined;
  }
  const { calls, stop } = waiting.get(signal) ?? startWaiting(signal);
  const call = (): void => fn();
  calls.add(call);
  return () => {
    if (calls.delete(call) && calls.size === 0) stop();
  };
}

function startWaiting(signal: AbortSignal): { calls: Set<() => void>; stop: () => void } {
  const calls = new Set<() => void>();
  function callAll(): void {
    for (const call of calls) call();
  }
  function stop(): void {
    signal.removeEventListener('abort', callAll);
    waiting.delete(signal);
  }
  signal.addEventListener('abort', callAll, { once: true });
  const started = { calls, stop };
  waiting.set(signal, started);
  return started;
}

/** Resolves after this time, in milliseconds, or as soon as `signal` fires. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    let unwatch = (): void => undefined;
    const end = (): void => {
      clearTimeout(timer);
      unwatch();
      resolve();
    };
    const timer = setTimeout(end, ms);
    unwatch = onAbort(signal, end);
  });
}

/**
 * Runs `work` over `items`, at most `limit` at a time, and returns the results in the order of `items`.
 * The first failure stops new work, is awaited with what is under way, and is thrown; one that is more than the end of
 * aborted work takes precedence over those that are not.
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
        // What the first failure aborts elsewhere may reject earlier than it does.
        if (!failed || (isAborted(failure) && !isAborted(error))) failure = error;
        failed = true;
      }
    }
  }
  await Promise.all(Array.from({ length: Math.max(1, Math.min(limit, items.length)) }, worker));
  if (failed) throw failure;
  return results;
}

/** Whether an error says only that the work was told to end. */
function isAborted(error: unknown): boolean {
  return (
    error instanceof CancelledError ||
    (error instanceof Error &&
      (error.name === 'AbortError' || systemCode(error) === 'ERR_STREAM_PREMATURE_CLOSE'))
  );
}

/** Milliseconds that long work keeps the event loop before others have their turn. */
const maxTurn = 20;
let turnStart = 0;
/** Milliseconds; Node.js would have to load a module for `performance`, which commands that end soon do not need. */
const now = (): number => new Date().getTime();
const waitingForTurn: (() => void)[] = [];

/**
 * Lets timers, sockets and other work go on where long work has kept the event loop for 20 ms; to be awaited
 * between the steps of whatever may take long. Of several long works, one goes on per turn of the loop.
 */
export function takeTurn(): Promise<void> | undefined {
  // A clock that is set back ends the turn.
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
