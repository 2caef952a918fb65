import { setTimeout as sleep } from 'node:timers/promises';
import { onAbort } from '../core/concurrency.js';
import { CancelledError, OpmateError, RegistryError, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { readRegistryErrors, subjectOf } from './transport-answers.js';
import { isShortBody, type Transport, type TransportRequest, type TransportResponse } from './transport.js';
import { NetworkError } from './transport-faults.js';

export interface RetryOptions {
  /** How often a request is tried in all. */
  maxAttempts: number;
  /** No attempt begins later than this after the first. */
  timeoutMs: number;
  /** The wait after the first failure; doubles from one to the next, and is four times as long after 429. */
  baseDelayMs: number;
  random: () => number;
  /** Milliseconds of a clock that never goes back. */
  now: () => number;
  logger?: Logger;
}

/** Answers after which the same request may succeed a little later. */
export const retryStatuses: readonly number[] = [408, 429, 500, 502, 503, 504];

/** An answer that asks for another attempt, met where no response can be handed up. */
export class TemporaryAnswerError extends RegistryError {
  override readonly name: string = 'TemporaryAnswerError';
  /** How long it asks to wait. */
  readonly retryAfterMs: number | undefined;
  constructor(message: string, status: number, retryAfterMs: number | undefined) {
    super(message, { status });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Tries a request again after a network fault, 408, 429, 500, 502, 503 or 504, with growing, jittered waits;
 * `Retry-After` is obeyed. Every other answer is handed on. Throws the last fault, or RegistryError with the
 * last status, when attempts or time are used up; at once when `Retry-After` lies beyond the time.
 */
export function withRetry(next: Transport, options: RetryOptions): Transport {
  const logger = options.logger ?? silentLogger;
  return {
    async send(request) {
      const deadline = options.now() + options.timeoutMs;
      for (let attempt = 1; ; attempt++) {
        const outcome = await tryOnce(next, request, deadline - options.now());
        if (!('failure' in outcome)) return outcome.response;
        const { failure, status, asked } = outcome;
        const factor = 2 ** (attempt - 1) * (status === 429 ? 4 : 1);
        const wait = Math.max(asked ?? 0, options.baseDelayMs * factor * (0.5 + options.random() / 2));
        const left = deadline - options.now();
        if (asked !== undefined && asked > left) {
          throw withNote(
            failure,
            `asks to wait ${Math.ceil(asked / 1000)} s, longer than the time for retries`,
          );
        }
        if (attempt >= options.maxAttempts || wait > left) {
          throw attempt === 1 ? failure : withNote(failure, `after ${attempt} attempts`);
        }
        logger.log('debug', `${failure.message}; trying again in ${Math.round(wait)} ms`, { attempt });
        await pause(wait, request.signal);
      }
    },
  };
}

type Outcome =
  | { response: TransportResponse }
  | { failure: OpmateError; status: number | undefined; asked: number | undefined };

async function tryOnce(next: Transport, request: TransportRequest, timeMs: number): Promise<Outcome> {
  // AbortSignal.any would leave something behind at a signal that lives as long as the run, request by request.
  const attempt = new AbortController();
  let release = onAbort(request.signal, () => attempt.abort(request.signal?.reason));
  let isLate = false;
  function end(): void {
    isLate = true;
    attempt.abort();
  }
  // A large upload may well take longer; it is held to making progress instead.
  const bounded = isShortBody(request.body);
  const timeout = bounded ? setTimeout(end, Math.max(1, timeMs)) : undefined;
  try {
    const response = await next.send({ ...request, signal: attempt.signal });
    // The body is still to be read.
    response.body.once('close', release);
    release = () => undefined;
    if (!retryStatuses.includes(response.status)) return { response };
    const { summary, codes } = await readRegistryErrors(response);
    const failure = new RegistryError(`${subjectOf(request)}: ${summary}`, {
      status: response.status,
      registryCodes: codes,
      hint: response.status === 429 ? 'the registry limits requests; log in or try again later' : undefined,
    });
    return { failure, status: response.status, asked: retryAfterMs(response) };
  } catch (error) {
    if (error instanceof NetworkError && error.temporary) {
      return { failure: error, status: undefined, asked: undefined };
    }
    if (error instanceof TemporaryAnswerError) {
      return { failure: error, status: error.status, asked: error.retryAfterMs };
    }
    if (error instanceof CancelledError && isLate && !request.signal?.aborted) {
      throw new NetworkError(`${subjectOf(request)}: no answer in the time for retries`, {
        temporary: true,
        hint: 'raise it with --retry-timeout',
      });
    }
    throw error;
  } finally {
    clearTimeout(timeout);
    release();
  }
}

/**
 * How long an answer asks to wait. A date is compared to the answer's own `Date`, so that the clocks of both
 * sides need not agree. Undefined when it says nothing that can be understood.
 */
export function retryAfterMs({ headers }: Pick<TransportResponse, 'headers'>): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Date.parse takes almost anything; an HTTP date begins with the day of the week.
  const until = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  const wait = until - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

function withNote(failure: OpmateError, note: string): OpmateError {
  const message = `${failure.message} (${note})`;
  const { hint, cause } = failure;
  if (failure instanceof RegistryError) {
    return new RegistryError(message, {
      hint,
      cause,
      status: failure.status,
      registryCodes: failure.registryCodes,
    });
  }
  return new NetworkError(message, { hint, cause, temporary: true });
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  throwIfCancelled(signal);
  try {
    await sleep(ms, undefined, signal ? { signal } : {});
  } catch (error) {
    throwIfCancelled(signal);
    throw error;
  }
}
