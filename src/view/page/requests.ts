import { useEffect, useLayoutEffect, useState } from 'preact/hooks';
import { type ErrorResponse, type ViewState, runHeader } from '../responses.js';
import { requestFromFiles, exportedPage } from './exported.js';

/** Maximum cached responses. */
const maxCached = 60;
/** Interval of polling the state of the catalog while the page is visible. */
const pollMs = 2_000;

const cache = new Map<string, unknown>();
/** Run of the cached responses. */
let currentRun: string | undefined;
/** Last state of the catalog; undefined after a failure. */
let currentState: string | undefined;
/** Number of times that the cache was cleared. */
let generation = 0;
const listeners = new Set<() => void>();

/** Response to a request: neither value nor error while pending. */
export interface Loaded<T> {
  value?: T;
  error?: string;
  /** Set if the server is unreachable, so that nothing is known about the requested thing. */
  isUnreachable?: boolean;
}

/** Returns the URL of a request with its parameters. */
export function toApiUrl(name: string, values: Record<string, string | string[]>): string {
  const pairs = Object.entries(values).flatMap(([key, value]) =>
    (Array.isArray(value) ? value : [value]).map((text) => [key, text]),
  );
  return `api/${name}?${new URLSearchParams(pairs).toString()}`;
}

/** Requests a URL, and again when the catalog changes; nothing while the URL is undefined. */
export function useResponse<T>(url: string | undefined): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T> & { url?: string | undefined }>({});
  const current = useGeneration();
  // Start before the browser paints an empty page.
  useLayoutEffect(() => {
    if (url === undefined) return undefined;
    if (cache.has(url)) {
      setLoaded({ url, value: cache.get(url) as T });
      return undefined;
    }
    const abort = new AbortController();
    request<T>(url, abort.signal).then(
      (value) => setLoaded({ url, value }),
      (error: unknown) => {
        if (abort.signal.aborted) return;
        // Keep the previous value while the server is unreachable; the page shows an alert.
        setLoaded((before) =>
          before.url === url && before.value !== undefined && isUnreachable(error)
            ? before
            : { url, error: describeError(error), isUnreachable: isUnreachable(error) },
        );
      },
    );
    return () => abort.abort();
  }, [url, current]);
  if (url === undefined) return {};
  if (cache.has(url)) return { value: cache.get(url) as T };
  return loaded.url === url ? loaded : {};
}

/**
 * Polls the state of the catalog while the page is visible, and when it becomes visible again; a changed state clears
 * the cache. Returns the error of the last poll, if any.
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
          clearCache();
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
    // The first response has the state already.
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

/** Returns the generation of the cache, and renders again when it changes. */
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

function clearCache(): void {
  cache.clear();
  generation++;
  for (const listener of listeners) listener();
}

async function request<T>(url: string, signal: AbortSignal | undefined): Promise<T> {
  if (exportedPage !== undefined) {
    const reply = (await requestFromFiles(exportedPage, url)) as T;
    cache.set(url, reply);
    return reply;
  }
  const response = await fetch(url, signal === undefined ? {} : { signal });
  const value = (await response.json()) as T | ErrorResponse;
  if (url !== 'api/state') updateRun(response.headers.get(runHeader));
  if (!response.ok) {
    throw toError(value as ErrorResponse);
  }
  if (url === 'api/state') return value as T;
  if (url === 'api/catalog') currentState = formatState(value as ViewState);
  cache.set(url, value);
  const [oldest] = cache.keys();
  if (cache.size > maxCached && oldest !== undefined) cache.delete(oldest);
  return value as T;
}

function updateRun(run: string | null): void {
  if (run === null || run === currentRun) return;
  const isFirst = currentRun === undefined;
  currentRun = run;
  if (!isFirst) clearCache();
}

function formatState({ run, isChecking }: ViewState): string {
  return `${run} ${isChecking}`;
}

function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError;
}

/** Converts the body of an error response. */
export function toError({ error, hint }: ErrorResponse): Error {
  return new Error(hint === undefined ? error : `${error} (${hint})`);
}

/** Returns the message of an error to show. */
export function describeError(error: unknown): string {
  if (isUnreachable(error)) return 'opmate does not respond: it may have been stopped';
  return error instanceof Error ? error.message : String(error);
}
