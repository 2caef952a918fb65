import { useEffect, useState } from 'preact/hooks';
import { type ErrorResponse, tokenHeader } from '../../responses.js';
import { type Loaded, describeError, toError, useGeneration } from '../requests.js';

/** Delay of requests while the selection changes. */
const debounceMs = 150;
const tokenKey = 'opmate-token';
let token = '';

/** Moves the token from the URL, which may be copied, to the storage of the session. */
export function takeToken(): void {
  const url = new URL(location.href);
  const tokenFromUrl = url.searchParams.get('token');
  try {
    if (tokenFromUrl !== null) sessionStorage.setItem(tokenKey, tokenFromUrl);
    token = tokenFromUrl ?? sessionStorage.getItem(tokenKey) ?? '';
  } catch {
    token = tokenFromUrl ?? '';
  }
  if (tokenFromUrl === null) return;
  url.searchParams.delete('token');
  history.replaceState(null, '', url);
}

/** Posts JSON to the server. Throws Error with the message of an error response. */
export async function post<T>(path: string, body: object, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', [tokenHeader]: token },
    body: JSON.stringify(body),
    ...(signal !== undefined && { signal }),
  });
  const value = (await response.json()) as T | ErrorResponse;
  if (response.ok) return value as T;
  throw toError(value as ErrorResponse);
}

/**
 * Posts a body, and returns the response; the previous one while pending. Posts nothing while the body is undefined, and
 * again for a changed `attempt`.
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
          if (!abort.signal.aborted) setLoaded({ key, error: describeError(error) });
        },
      );
    }, debounceMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, key]);
  if (key === undefined) return { isPending: false };
  const { key: loadedKey, ...response } = loaded;
  return { ...response, isPending: loadedKey !== key };
}
