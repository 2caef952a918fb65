import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { type ErrorResponse, type ViewState, runHeader } from '../answers.js';
import { answerFromFiles, exportedPage } from './exported.js';

/** Answers that are kept until the catalog changes. */
const maxKept = 60;
/** How often the page polls the state of the catalog, while it is in sight. */
const pollMs = 2_000;

const kept = new Map<string, unknown>();
/** The view of the catalog that the kept answers are from. */
let currentRun: string | undefined;
/** What was last read of the state of the catalog; undefined after a failure. */
let currentState: string | undefined;
/** Grows whenever everything is to be requested anew. */
let generation = 0;
const listeners = new Set<() => void>();

/** An answer: the value once it is there, or why it is missing. */
export interface Loaded<T> {
  value?: T;
  error?: string;
}

/** Returns the path of a request with its parameters. */
export function requestPath(name: string, values: Record<string, string | string[]>): string {
  const pairs = Object.entries(values).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).map((text) => [key, text]),
  );
  return `api/${name}?${new URLSearchParams(pairs).toString()}`;
}

/** Requests an answer, and again once the catalog has changed; nothing while the address is undefined. */
export function useAnswer<T>(address: string | undefined): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { address?: string | undefined }>({});
  const current = useGeneration();
  // Before the browser paints, so that nothing waits for an empty page.
  useLayoutEffect(() => {
    if (address === undefined) return undefined;
    if (kept.has(address)) {
      setLoaded({ address, value: kept.get(address) as T });
      return undefined;
    }
    const abort = new AbortController();
    request<T>(address, abort.signal).then(
      (value) => setLoaded({ address, value }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        // What was read before stays in sight while the server is away: the bar says so.
        setLoaded((before) =>
          before.address === address && before.value !== undefined && isAway(error)
            ? before
            : { address, error: describeError(error) },
        );
      },
    );
    return () => abort.abort();
  }, [address, current]);
  if (address === undefined) return {};
  if (kept.has(address)) return { value: kept.get(address) as T };
  return loaded.address === address ? loaded : {};
}

/**
 * Polls the state of the catalog while the page is visible, and at once when it becomes visible again; a changed state
 * requests all answers anew. Returns the error of the last poll, undefined after a successful one.
 */
export function useStatePoll(): string | undefined {
  const [error, setError] = useState<string>();
  useEffect(() => {
    if (exportedPage !== undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isPolling = false;
    const poll = async (): Promise<void> => {
      if (isPolling) return;
      clearTimeout(timer);
      isPolling = true;
      try {
        const reply = await request<ViewState>('api/state', undefined);
        const state = formatState(reply);
        if (currentState !== state) {
          currentRun = reply.run;
          currentState = state;
          forgetAnswers();
        }
        setError(undefined);
      } catch (reason) {
        setError(describeError(reason));
        currentState = undefined;
      }
      isPolling = false;
      if (!document.hidden) timer = setTimeout(() => void poll(), pollMs);
    };
    const pollNow = (): void => {
      if (!document.hidden) void poll();
    };
    // The first view has the state too.
    timer = setTimeout(pollNow, pollMs);
    addEventListener('focus', pollNow);
    document.addEventListener('visibilitychange', pollNow);
    return () => {
      clearTimeout(timer);
      removeEventListener('focus', pollNow);
      document.removeEventListener('visibilitychange', pollNow);
    };
  }, []);
  return error;
}

/** The number of the generation of answers; what uses it is drawn again with each. */
export function useGeneration(): number {
  const [current, setCurrent] = useState(generation);
  useEffect(() => {
    const listener = (): void => setCurrent(generation);
    listeners.add(listener);
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return current;
}

function forgetAnswers(): void {
  kept.clear();
  generation++;
  for (const listener of listeners) listener();
}

async function request<T>(address: string, signal: AbortSignal | undefined): Promise<T> {
  if (exportedPage !== undefined) {
    const reply = (await answerFromFiles(exportedPage, address)) as T;
    kept.set(address, reply);
    return reply;
  }
  const response = await fetch(address, signal === undefined ? {} : { signal });
  const value = (await response.json()) as T | ErrorResponse;
  if (address !== 'api/state') noteRun(response.headers.get(runHeader));
  if (!response.ok) {
    const { error, hint } = value as ErrorResponse;
    throw new Error(hint === undefined ? error : `${error} (${hint})`);
  }
  if (address === 'api/state') return value as T;
  if (address === 'api/catalog') currentState = formatState(value as ViewState);
  kept.set(address, value);
  const [oldest] = kept.keys();
  if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
  return value as T;
}

function noteRun(run: string | null): void {
  if (run === null || run === currentRun) return;
  const isFirst = currentRun === undefined;
  currentRun = run;
  if (!isFirst) forgetAnswers();
}

function formatState({ run, isChecking }: ViewState): string {
  return `${run} ${isChecking}`;
}

/** Whether the server does not respond at all. */
function isAway(error: unknown): boolean {
  return error instanceof TypeError;
}

function describeError(error: unknown): string {
  if (isAway(error)) return 'opmate does not respond: it may have been stopped';
  return error instanceof Error ? error.message : String(error);
}
