import { sleep } from '../../core/concurrency.js';
import { addContext, addNote } from '../../core/diagnostics-error.js';
import { CancelledError, OpmateError, RegistryError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { decideRetry, isRetryStatus, type RetryBudget } from './retry-policy.js';
import { readRegistryErrors, formatRequestSubject } from './transport-responses.js';
import { isShortBody, type Transport, type TransportRequest, type TransportResponse } from './transport.js';
import { NetworkError } from './transport-faults.js';

interface RetryOptions extends RetryBudget {
  random: () => number;
  /** Monotonic clock in milliseconds. */
  now: () => number;
  logger?: Logger;
  /** Name of the option for the retry time, in messages; default none. */
  timeOption?: string | undefined;
}

/** Time before the first warning about a waiting request, and between warnings. */
const noticeAfterMs = 3_000;
const noticeEveryMs = 30_000;

/**
 * Time for the single attempt of a request to a server that has failed for the whole retry time, and the time after it in
 * which others fail without one: thousands of images on a dead host would take hours.
 */
const probeMs = 5_000;

/** A temporary error response, where no response can be returned. */
export class TemporaryResponseError extends RegistryError {
  override readonly name: string = 'TemporaryResponseError';
  /** Delay that it requests. */
  readonly retryAfterMs: number | undefined;
  constructor(message: string, status: number, retryAfterMs: number | undefined) {
    super(message, { status });
    this.retryAfterMs = retryAfterMs;
  }
}

/**
 * Repeats a request after a network error or a status of `isRetryStatus`, as `decideRetry` decides; after 429 with half the
 * concurrency, which then recovers. While a server fails every request, all requests to it share one retry time, and then
 * fail fast if it cannot be reached. Throws the last error, or RegistryError with the last status, when time or attempts
 * are used up, or immediately if `Retry-After` is beyond the time. Waiting for seconds is a warning.
 */
export function withRetry(next: Transport, options: RetryOptions): Transport {
  const throttle = new Throttle();
  const outages = new Map<string, Outage>();
  const notices = new RetryNotices(options);
  return {
    async send(request) {
      const outage = getOrAdd(outages, new URL(request.url).host, () => new Outage(options.timeoutMs));
      return new RetriedRequest(request, { next, options, throttle, outage, notices }).send();
    },
  };
}

/** Logs retries: each at debug level, and a warning now and then about a request that waits for seconds. */
class RetryNotices {
  readonly #options: RetryOptions;
  #nextWarning = -Infinity;

  constructor(options: RetryOptions) {
    this.#options = options;
  }

  log(failure: OpmateError, attempt: number, waitMs: number, elapsedMs: number): void {
    const { logger = silentLogger, timeoutMs } = this.#options;
    logger.log('debug', `${failure.message}; trying again in ${Math.round(waitMs)} ms`, { attempt });
    const now = this.#options.now();
    if (elapsedMs < noticeAfterMs || now < this.#nextWarning) return;
    this.#nextWarning = now + noticeEveryMs;
    const left = Math.round((timeoutMs - elapsedMs) / 1000);
    logger.log('warn', `${failure.message}; retrying for up to ${left} s`);
  }
}

/** State that the requests to a server share. */
interface RetryContext {
  next: Transport;
  options: RetryOptions;
  throttle: Throttle;
  outage: Outage;
  notices: RetryNotices;
}

/** A request with its attempts. */
class RetriedRequest {
  readonly #request: TransportRequest;
  readonly #context: RetryContext;
  #attempt = 0;
  /** Start of the request, later by the time in the queue of a throttled registry, which is not the request's. */
  #begun: number | undefined;
  /** Start of the current attempt. */
  #admitted = 0;
  #previous: Failure | undefined;

  constructor(request: TransportRequest, context: RetryContext) {
    this.#request = request;
    this.#context = context;
  }

  async send(): Promise<TransportResponse> {
    const { options, throttle, outage } = this.#context;
    for (;;) {
      this.#attempt++;
      const turn = await this.#enter();
      const outcome = await this.#try().finally(() => throttle.leave());
      throttle.note(turn, 'status' in outcome && outcome.status === 429);
      if (!('failure' in outcome)) {
        outage.end(options.now());
        return outcome.response;
      }
      this.#previous = outcome;
      await this.#waitOrGiveUp(outcome);
    }
  }

  /** Waits for capacity; returns the number of the attempt at the registry. */
  async #enter(): Promise<number> {
    const { options, throttle } = this.#context;
    const queued = options.now();
    const turn = await throttle.enter();
    this.#admitted = options.now();
    this.#begun = this.#begun === undefined ? this.#admitted : this.#begun + this.#admitted - queued;
    return turn;
  }

  /** Sends the request in the time left. Throws the failure of a server that cannot be reached. */
  async #try(): Promise<{ response: TransportResponse } | Failure> {
    const { next, options, outage } = this.#context;
    const isFirst = this.#attempt === 1;
    const known = isFirst ? outage.findFailure(this.#admitted) : undefined;
    if (known !== undefined) throw nameRequest(known, this.#request);
    const leftMs = this.#startOf(this.#admitted) + options.timeoutMs - this.#admitted;
    // Without time for retries, a request is sent once.
    const patience = isFirst ? Math.min(probeMs, options.timeoutMs || probeMs) : 0;
    const timeMs = Math.max(leftMs, patience);
    return tryOnce(next, this.#request, timeMs, this.#previous, options.timeOption);
  }

  /** Waits for the next attempt, or throws the failure if there is none. */
  async #waitOrGiveUp({ failure, status, retryAfterMs }: Failure): Promise<void> {
    const { options, outage, notices } = this.#context;
    const { timeoutMs, timeOption } = options;
    const attempt = this.#attempt;
    const failed = options.now();
    outage.note(failure, this.#admitted, failed);
    const elapsedMs = failed - this.#startOf(failed);
    const decision = decideRetry(
      { attempt, elapsedMs, status, retryAfterMs, jitter: options.random() },
      options,
    );
    if ('waitMs' in decision) {
      notices.log(failure, attempt, decision.waitMs, elapsedMs);
      return sleep(decision.waitMs, this.#request.signal);
    }
    if (decision.giveUp === 'longer requested')
      throw waitsTooLong(failure, retryAfterMs as number, timeoutMs - elapsedMs, timeOption);
    if (attempt === 1) throw failure;
    const time = decision.giveUp === 'time' ? ` in ${formatSeconds(failed - (this.#begun as number))}` : '';
    throw addNote(failure, `after ${attempt} attempts${time}`);
  }

  /** Returns the start of the retry time: of the request, or of an earlier outage of the server. */
  #startOf(now: number): number {
    return Math.min(this.#begun as number, this.#context.outage.since(now));
  }
}

function formatSeconds(ms: number): string {
  return `${Number((Math.max(0, ms) / 1000).toPrecision(2))} s`;
}

/** Time in which a server has failed every request. A pause of the whole retry time ends it: a poll begins anew. */
class Outage {
  /** Start of the first failed attempt, and end of the last one. */
  #first = Infinity;
  #last = -Infinity;
  #endedAt = -Infinity;
  #failure: OpmateError | undefined;
  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** Returns the start of the outage; Infinity without one. */
  since(now: number): number {
    if (now - this.#last > this.#timeoutMs) this.#first = Infinity;
    return this.#first;
  }

  /** Returns the last failure of a server that has been unreachable for the whole retry time, and was seconds ago. */
  findFailure(now: number): NetworkError | undefined {
    const isOver = now - this.since(now) < this.#timeoutMs || now - this.#last >= probeMs;
    return isOver || !(this.#failure instanceof NetworkError) ? undefined : this.#failure;
  }

  note(failure: OpmateError, begun: number, now: number): void {
    this.#first = Math.min(this.since(now), Math.max(begun, this.#endedAt));
    this.#last = now;
    this.#failure = failure;
  }

  end(now: number): void {
    this.#first = Infinity;
    this.#endedAt = now;
  }
}

/** Returns a failure of the server for another request. */
function nameRequest({ problem, hint }: NetworkError, request: TransportRequest): NetworkError {
  return new NetworkError(problem, { subject: formatRequestSubject(request), temporary: true, hint });
}

/** Limits concurrent requests once the registry responds with 429. */
class Throttle {
  #limit = Infinity;
  #running = 0;
  #begun = 0;
  /** Requests with a smaller number do not affect the limit. */
  #limited = 0;
  readonly #waiting: (() => void)[] = [];

  /** Waits for capacity; returns the number of the request. */
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

interface Failure {
  failure: OpmateError;
  status: number | undefined;
  retryAfterMs: number | undefined;
}

/** Returns the failure of a server that asks to wait for longer than is left of the retry time. */
function waitsTooLong(
  failure: OpmateError,
  retryAfterMs: number,
  leftMs: number,
  timeOption: string | undefined,
): OpmateError {
  const [seconds, left] = [Math.ceil(retryAfterMs / 1000), formatSeconds(leftMs)];
  const budget = timeOption ?? 'the retry time';
  const noted = addNote(failure, `asks to wait ${seconds} s, but only ${left} of ${budget} is left`);
  return addContext(noted, {
    newHint:
      timeOption === undefined ? 'wait before the next request' : `raise ${timeOption}, or try again later`,
  });
}

/** Sends a request; an attempt that runs out of time has the failure of the `previous` one. */
async function tryOnce(
  next: Transport,
  request: TransportRequest,
  timeMs: number,
  previous: Failure | undefined,
  timeOption: string | undefined,
): Promise<{ response: TransportResponse } | Failure> {
  // Large uploads may take longer; they must make progress instead.
  const deadline = isShortBody(request.body) ? performance.now() + Math.max(1, timeMs) : undefined;
  const isLate = (): boolean => deadline !== undefined && performance.now() >= deadline;
  try {
    const response = await next.send(deadline === undefined ? request : { ...request, deadline });
    if (!isRetryStatus(response.status) || isOptionalRefusal(request, response)) return { response };
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
    if (error instanceof TemporaryResponseError) {
      return { failure: error, status: error.status, retryAfterMs: error.retryAfterMs };
    }
    if (error instanceof CancelledError && isLate() && !request.signal?.aborted) {
      if (previous !== undefined) return { ...previous, retryAfterMs: undefined };
      const failure = new NetworkError('no response within the retry time', {
        subject: formatRequestSubject(request),
        temporary: true,
        hint: timeOption === undefined ? undefined : `raise it with ${timeOption}`,
      });
      return { failure, status: undefined, retryAfterMs: undefined };
    }
    throw error;
  }
}

function isOptionalRefusal({ isOptional, url }: TransportRequest, response: TransportResponse): boolean {
  const isRefused = response.status === 429 && retryAfterMs(response) === undefined;
  const [asked, final] = [new URL(url), new URL(response.url)];
  const isRedirected = asked.host !== final.host || asked.pathname !== final.pathname;
  return isOptional === true && isRefused && isRedirected;
}

/**
 * Returns the delay that a response requests; undefined if it has none. A date is compared to the `Date` of the response,
 * so clocks need not agree.
 */
export function retryAfterMs({ headers }: Pick<TransportResponse, 'headers'>): number | undefined {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  // Date.parse accepts almost anything; an HTTP date starts with the day of the week.
  const until = /^[A-Z][a-z]{2}/.test(text) ? Date.parse(text) : Number.NaN;
  const wait = until - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}
