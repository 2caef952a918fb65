import { useEffect, useState } from 'preact/hooks';
import { type ErrorAnswer, tokenHeader } from '../../answers.js';
import { type Asked, useGeneration } from '../ask.js';

/** Typing and clicking rests this long before the server is asked. */
const restMs = 150;
const tokenKey = 'opmate-token';
let token = '';

/** Takes the token out of the address, so that it is in no link that is copied; a reload still has it. */
export function takeToken(): void {
  const url = new URL(location.href);
  const given = url.searchParams.get('token');
  try {
    if (given !== null) sessionStorage.setItem(tokenKey, given);
    token = given ?? sessionStorage.getItem(tokenKey) ?? '';
  } catch {
    token = given ?? '';
  }
  if (given === null) return;
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
  const value = (await response.json()) as T | ErrorAnswer;
  if (response.ok) return value as T;
  const { error, hint } = value as ErrorAnswer;
  throw new Error(hint === undefined ? error : `${error} (${hint})`);
}

/** The answer to a posted question, the one before as long as it is not there; nothing is asked while it is undefined. */
export function usePosted<T>(path: string, body: object | undefined): Asked<T> & { isPending: boolean } {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const generation = useGeneration();
  const key = text === undefined ? undefined : `${generation} ${text}`;
  const [asked, setAsked] = useState<Asked<T> & { key?: string }>({});
  useEffect(() => {
    if (key === undefined || text === undefined) return undefined;
    const abort = new AbortController();
    const timer = setTimeout(() => {
      post<T>(path, JSON.parse(text) as object, abort.signal).then(
        (value) => setAsked({ key, value }),
        (error: unknown) => {
          if (!abort.signal.aborted)
            setAsked({ key, error: error instanceof Error ? error.message : String(error) });
        },
      );
    }, restMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path, key]);
  if (key === undefined) return { isPending: false };
  const { value, error } = asked;
  return {
    ...(value !== undefined && { value }),
    ...(error !== undefined && { error }),
    isPending: asked.key !== key,
  };
}
