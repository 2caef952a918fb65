import { useEffect, useState } from 'preact/hooks';
import { type ErrorResponse, tokenHeader } from '../../answers.js';
import { type Loaded, useGeneration } from '../requests.js';

/** Typing and clicking rest this long before a request is sent. */
const restMs = 150;
const tokenKey = 'opmate-token';
let token = '';

/** Takes the token out of the address, so that it is in no link that is copied; a reload still has it. */
export function takeToken(): void {
  const url = new URL(location.href);
  const tokenInAddress = url.searchParams.get('token');
  try {
    if (tokenInAddress !== null) sessionStorage.setItem(tokenKey, tokenInAddress);
    token = tokenInAddress ?? sessionStorage.getItem(tokenKey) ?? '';
  } catch {
    token = tokenInAddress ?? '';
  }
  if (tokenInAddress === null) return;
  url.searchParams.delete('token');
  history.replaceState(null, '', url);
}

/** Posts JSON to the server. Throws Error with the reason of the server. */
export async function post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', [tokenHeader]: token },
    body: JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
  const value = (await response.json()) as T | ErrorResponse;
  if (response.ok) return value as T;
  const { error, hint } = value as ErrorResponse;
  throw new Error(hint === undefined ? error : `${error} (${hint})`);
}

/**
 * The answer to a posted body, the one before until it is there; nothing is posted while the body is undefined. With
 * another `attempt` the same body is posted again.
 */
export function usePosted<T>(
  path: string,
  body: object | undefined,
  attempt = 0,
): Loaded<T> & { isPending: boolean } {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const generation = useGeneration();
  const key = text === undefined ? undefined : `${generation} ${attempt} ${text}`;
  const [loaded, setLoaded] = useState<Loaded<T> & { key?: string }>({});
  useEffect(() => {
    if (key === undefined || text === undefined) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<T>(path, JSON.parse(text) as object, abort.signal).then(
        (value) => setLoaded({ key, value }),
        (error: unknown) => {
          if (!abort.signal.aborted)
            setLoaded({ key, error: error instanceof Error ? error.message : String(error) });
        },
      );
    }, restMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, key]);
  if (key === undefined) return { isPending: false };
  const { value, error } = loaded;
  return {
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error }),
    isPending: loaded.key !== key,
  };
}
