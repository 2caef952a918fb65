import { onAbort } from '../../core/concurrency.js';

/** Returns `close` so that it runs once: when it is called first, or when the signal fires. */
export function closeOnAbort(
  signal: AbortSignal | undefined,
  close: () => Promise<void>,
): () => Promise<void> {
  let closed: Promise<void> | undefined;
  const closeOnce = (): Promise<void> => (closed ??= close());
  // A later call returns the failure.
  const stopWaiting = onAbort(signal, () => void closeOnce().catch(() => undefined));
  return async () => {
    stopWaiting();
    await closeOnce();
  };
}
