import { addNote } from '../../core/diagnostics-error.js';
import { CancelledError, OpmateError, RegistryError } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { decideRetry, isRetryStatus, pause, type RetryBudget } from './retry-policy.js';
import { readRegistryErrors, formatRequestSubject } from './transport-answers.js';
import { isShortBody, type Transport, type TransportRequest, type TransportResponse } from './transport.js';
import { NetworkError } from './transport-faults.js';

interface RetryOptions extends RetryBudget {
  random: () => number;
  /** Milliseconds of a clock that never goes back. */
  now: () => number;
  logger?: Logger;
}

/** After how long a user is told what keeps a request waiting, and how often at most. */
const noticeAfterMs = 3_000;
const noticeEveryMs = 30_000;

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
 * Tries a request again after a network fault and a response of `isRetryStatus`, as `decideRetry` says; after 429 with
 * half as many under way, and one more for each that many that succeed. Every other answer is handed on. Throws the last fault, or RegistryError with the last status, when the time, or the attempts,
 * are used up; at once when `Retry-After` lies beyond the time. A wait of seconds is told as a warning.
 */
export function withRetry(next: Transport, options: RetryOptions): Transport {
  const logger = options.logger ?? silentLogger;
  const throttle = new Throttle();
  let nextNotice = -Infinity;

  function tell(failure: OpmateError, attempt: number, waitMs: number, elapsedMs: number): void {
    logger.log('debug', `${failure.message}; trying again in ${Math.round(waitMs)} ms`, { attempt });
    const now = options.now();
    if (elapsedMs < noticeAfterMs || now < nextNotice) return;
    nextNotice = now + noticeEveryMs;
    const left = Math.round((options.timeoutMs - elapsedMs) / 1000);
    logger.log('warn', `${failure.message}; retrying for up to ${left} s`);
  }

  return {
    async send(request) {
      let begun: number | undefined;
      for (let attempt = 1; ; attempt++) {
        const turn = await throttle.enter();
        begun ??= options.now();
        const leftMs = begun + options.timeoutMs - options.now();
        const outcome = await tryOnce(next, request, leftMs).finally(() => throttle.leave());
        throttle.note(turn, 'status' in outcome && outcome.status === 429);
        if (!('failure' in outcome)) return outcome.response;
        const { failure, status, retryAfterMs } = outcome;
        const elapsedMs = options.now() - begun;
        const decision = decideRetry(
          { attempt, elapsedMs, status, retryAfterMs, jitter: options.random() },
          options,
        );
        if ('waitMs' in decision) {
          tell(failure, attempt, decision.waitMs, elapsedMs);
          await pause(decision.waitMs, request.signal);
          continue;
        }
        if (decision.giveUp === 'asked for longer') {
          const seconds = Math.ceil((retryAfterMs as number) / 1000);
          throw addNote(failure, `asks to wait ${seconds} s, longer than the time for retries`);
        }
        if (attempt === 1) throw failure;
        const time = decision.giveUp === 'time' ? ` in ${Number((elapsedMs / 1000).toPrecision(2))} s` : '';
        throw addNote(failure, `after ${attempt} attempts${time}`);
      }
    },
  };
}

/** How many requests may be under way: any number until the registry says that there are too many. */
class Throttle {
  #limit = Infinity;
  #running = 0;
  #begun = 0;
  /** Requests that began before this one say nothing about the limit. */
  #limited = 0;
  readonly #waiting: (() => void)[] = [];

  /** Waits for room; returns the number of the request. */
  async enter(): Promise<number> {
    while (this.#running >= this.#limit) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#running++;
    return this.#begun++;
  }

  leave(): void {
    this.#running--;
    this.#release();
  }

  note(turn: number, isTooMany: boolean): void {
    if (!isTooMany) this.#limit += 1 / this.#limit;
    else if (turn >= this.#limited) {
      this.#limit = Math.max(1, Math.floor(Math.min(this.#limit, this.#running + 1) / 2));
      this.#limited = this.#begun;
    }
    this.#release();
  }

  #release(): void {
    for (let free = this.#limit - this.#running; free >= 1 && this.#waiting.length > 0; free--)
      this.#waiting.shift()?.();
  }
}

type Outcome =
  | { response: TransportResponse }
  | { failure: OpmateError; status: number | undefined; retryAfterMs: number | undefined };

async function tryOnce(next: Transport, request: TransportRequest, timeMs: number): Promise<Outcome> {
  // A large upload may well take longer; it is held to making progress instead.
  const deadline = isShortBody(request.body) ? performance.now() + Math.max(1, timeMs) : undefined;
  const isLate = (): boolean => deadline !== undefined && performance.now() >= deadline;
  try {
    const response = await next.send(deadline === undefined ? request : { ...request, deadline });
    if (!isRetryStatus(response.status)) return { response };
    const { summary, codes } = await readRegistryErrors(response);
    const failure = new RegistryError(summary, {
      subject: formatRequestSubject(request),
      status: response.status,
      registryCodes: codes,
      hint: response.status === 429 ? 'log in or try again later: the registry limits requests' : undefined,
    });
    return { failure, status: response.status, retryAfterMs: retryAfterMs(response) };
  } catch (error) {
    if (error instanceof NetworkError && error.temporary) {
      return { failure: error, status: undefined, retryAfterMs: undefined };
    }
    if (error instanceof TemporaryAnswerError) {
      return { failure: error, status: error.status, retryAfterMs: error.retryAfterMs };
    }
    if (error instanceof CancelledError && isLate() && !request.signal?.aborted) {
      throw new NetworkError('no response within the retry time', {
        subject: formatRequestSubject(request),
        temporary: true,
        hint: 'raise it with --retry-timeout',
      });
    }
    throw error;
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
