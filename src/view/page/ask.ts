import { useEffect, useState } from 'preact/hooks';
import { type ErrorAnswer, runHeader } from '../answers.js';

/** Answers that are kept until the catalog changes. */
const maxKept = 60;
const kept = new Map<string, unknown>();
/** The view of the catalog that the kept answers are from. */
let currentRun: string | undefined;
let onChange: (() => void) | undefined;

/** What is known of an answer: the value once it is there, or why it is missing. */
export interface Asked<T> {
  value?: T;
  error?: string;
}

/** The address of a question. */
export function question(name: string, values: Record<string, string>): string {
  return `api/${name}?${new URLSearchParams(values).toString()}`;
}

/** Lets everything be asked anew. */
export function forgetAnswers(): void {
  kept.clear();
}

/** Calls `listener` when an answer is from another view of the catalog than those before. */
export function watchCatalog(listener: () => void): () => void {
  onChange = listener;
  return () => (onChange = undefined);
}

/** Asks the server; nothing is asked while the address is undefined. */
export function useAnswer<T>(address: string | undefined): Asked<T> {
  const [asked, setAsked] = useState<Asked<T> & { address?: string | undefined }>({});
  useEffect(() => {
    if (address === undefined || kept.has(address)) return undefined;
    const abort = new AbortController();
    ask<T>(address, abort.signal).then(
      (value) => setAsked({ address, value }),
      (error: unknown) => {
        if (!abort.signal.aborted) setAsked({ address, error: reasonOf(error) });
      },
    );
    return () => abort.abort();
  }, [address]);
  if (address === undefined) return {};
  if (kept.has(address)) return { value: kept.get(address) as T };
  return asked.address === address ? asked : {};
}

async function ask<T>(address: string, signal: AbortSignal): Promise<T> {
  const response = await fetch(address, { signal });
  const value = (await response.json()) as T | ErrorAnswer;
  noteRun(response.headers.get(runHeader));
  if (!response.ok) {
    const { error, hint } = value as ErrorAnswer;
    throw new Error(hint === undefined ? error : `${error} (${hint})`);
  }
  kept.set(address, value);
  const [oldest] = kept.keys();
  if (kept.size > maxKept && oldest !== undefined) kept.delete(oldest);
  return value as T;
}

function noteRun(run: string | null): void {
  if (run === null || run === currentRun) return;
  const isFirst = currentRun === undefined;
  currentRun = run;
  forgetAnswers();
  if (!isFirst) onChange?.();
}

function reasonOf(error: unknown): string {
  if (error instanceof TypeError) return 'opmate does not answer: it may have been stopped';
  return error instanceof Error ? error.message : String(error);
}
