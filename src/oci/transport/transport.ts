/** HTTP in layers that each add one duty. The connection combines them: retry(auth(redirects(log(http)))). */
import type { Agent } from 'node:http';
import { pipeline, Readable, Transform } from 'node:stream';
import { Deadlines, onAbort } from '../../core/concurrency.js';
import { CancelledError, OpmateError, systemCode, throwIfCancelled } from '../../core/errors.js';
import type { Logger } from '../../core/log.js';
import { exchange } from './exchange.js';
import { createTicker, type ProgressWatch, watchProgress } from './progress-watch.js';
import { ReceivedResponse } from './received-response.js';
import { refusedAddressCode } from './guarded-lookup.js';
import { type RedirectSource, leadFrom, refusedAddress } from './network-policy.js';
import {
  describeFault,
  NetworkError,
  proxyFault,
  describeReason,
  type Route,
  speaksTls,
} from './transport-faults.js';

export interface TransportRequest {
  method: string;
  url: string;
  headers?: Record<string, string>;
  /** A stream is a function, so a retry or redirect can start it again. */
  body?: Buffer | (() => Readable);
  /** Bytes of a streamed body, sent as Content-Length and enforced; default: chunked. */
  bodySize?: number;
  signal?: AbortSignal | undefined;
  /** Time of `performance.now()` by which the response must begin; CancelledError otherwise. */
  deadline?: number | undefined;
  /** Origin of this URL, if the user did not name it. */
  lead?: RedirectSource | undefined;
  /** Returns a 429 without `Retry-After` of a redirect at once: what it would read is optional. */
  isOptional?: boolean | undefined;
  /** Subject of messages, and default scope of a challenge. */
  scope?: { repository: string; actions: ('pull' | 'push' | 'delete')[] };
}

export interface TransportResponse {
  status: number;
  headers: { get(name: string): string | null };
  /** Raw bytes. Must be read to the end or destroyed, unless `read` or `discard` is called. */
  readonly body: Readable;
  /** Reads the body whole, which costs less than its stream. Throws LimitError, naming `what`. */
  read(limit: number, what: string): Promise<Buffer>;
  /** Discards the body, and keeps the connection if the rest is short. */
  discard(): void;
  /** URL of the response, after redirects. */
  url: string;
  /** IP address of the peer; undefined behind a proxy. */
  address?: string | undefined;
}

/** Resolves with the response once its header has arrived. Throws NetworkError, CancelledError, and errors of its layers. */
export interface Transport {
  send(request: TransportRequest): Promise<TransportResponse>;
}

/** Route of requests to a host. */
export interface AgentRoute extends Route {
  agent: Agent;
  /** Returns the IP address of the server, once it is connected; undefined behind a proxy. */
  getAddress?: ((url: URL) => string | undefined) | undefined;
}

interface HttpTransportOptions {
  /** Returns the agent for a URL. Throws if `lead` must not lead there. */
  routeTo(url: URL, lead: RedirectSource | undefined): Promise<AgentRoute>;
  /** Time limit without progress: while connecting, waiting for the response, or in a body. */
  idleTimeoutMs: number;
}

/** Time limits that the requests of a transport share. */
interface TimeLimits {
  idleTimeoutMs: number;
  ticker: ReturnType<typeof createTicker>;
  deadlines: Deadlines;
}

/** Returns the transport that sends requests, without redirects and decompression. */
export function createHttpTransport({ routeTo, idleTimeoutMs }: HttpTransportOptions): Transport {
  const limits = { idleTimeoutMs, ticker: createTicker(idleTimeoutMs), deadlines: new Deadlines() };
  return {
    async send(request) {
      throwIfCancelled(request.signal);
      const url = new URL(request.url);
      const route = await routeTo(url, request.lead);
      return new RunningRequest(request, url, route, limits).send();
    },
  };
}

/** A request under way. Its signal and time limits apply until its response has been read. */
class RunningRequest {
  readonly #request: TransportRequest;
  readonly #url: URL;
  readonly #route: AgentRoute;
  readonly #deadlines: Deadlines;
  readonly #expiry = { expire: (): void => this.#stop(new CancelledError('no response in time')) };
  readonly #watch: ProgressWatch;
  readonly #unwatch: () => void;
  /** Idle periods in which a response must begin. */
  readonly #patience: number;
  #upload: Readable | Buffer | undefined;
  /** Destroys the connection. */
  #destroy: (() => void) | undefined;
  /** First reason to stop, which is then the error of the request. */
  #stopped: OpmateError | undefined;

  constructor(request: TransportRequest, url: URL, route: AgentRoute, limits: TimeLimits) {
    const { method, signal, deadline } = request;
    const { idleTimeoutMs, ticker, deadlines } = limits;
    this.#request = request;
    this.#url = url;
    this.#route = route;
    this.#deadlines = deadlines;
    this.#patience = method === 'GET' || method === 'HEAD' ? 1 : 4;
    this.#unwatch = onAbort(signal, () =>
      this.#stop(new CancelledError('cancelled', { cause: signal?.reason })),
    );
    this.#watch = watchProgress(url.host, idleTimeoutMs, ticker, (reason) => this.#stop(reason));
    if (deadline !== undefined) deadlines.add(this.#expiry, deadline - performance.now());
  }

  /** Resolves with the response once its header has arrived. */
  async send(): Promise<TransportResponse> {
    const url = this.#url;
    try {
      throwIfCancelled(this.#request.signal);
      const { status, headers, body } = await this.#exchange();
      if (status === 407) throw proxyFault(url.host, this.#route.proxy ?? 'proxy', 407);
      this.#deadlines.remove(this.#expiry);
      const received = this.#receive(status, headers, body);
      if (url.protocol === 'http:' && status === 400)
        await refuseTlsComplaint(url, this.#route, headers.get('content-type'), received.body);
      return received;
    } catch (error) {
      this.#release();
      this.#destroy?.();
      throw await this.#describe(error);
    }
  }

  /** Sends the request and its body; short bodies have a time limit, others must make progress. */
  #exchange(): ReturnType<typeof exchange> {
    const { method, body } = this.#request;
    const content = streamedBody(this.#request);
    if (content) {
      this.#upload = sendThrough(content, this.#watch, this.#patience);
    } else {
      this.#upload = body as Buffer | undefined;
      this.#watch.wait(this.#patience);
    }
    return exchange(this.#url, {
      method,
      headers: requestHeaders(this.#request, content?.size),
      body: this.#upload,
      agent: this.#route.agent,
      onOpen: (destroy) => {
        this.#destroy = destroy;
        if (this.#stopped) destroy();
      },
    });
  }

  #receive(status: number, headers: TransportResponse['headers'], source: Readable): ReceivedResponse {
    const url = this.#url;
    const length = headers.get('content-length');
    return new ReceivedResponse(
      { status, headers, url: url.href, address: this.#route.getAddress?.(url) },
      {
        source,
        isEmpty: this.#request.method === 'HEAD',
        watch: this.#watch,
        release: () => this.#release(),
        describe: (bytes, cause) => this.#stopped ?? cutOff(url.host, bytes, length, cause),
      },
    );
  }

  #stop(reason: OpmateError): void {
    this.#stopped ??= reason;
    this.#destroy?.();
  }

  #release(): void {
    this.#watch.end();
    this.#unwatch();
    this.#deadlines.remove(this.#expiry);
    // An early response leaves an unsent rest of the body.
    if (this.#upload && !Buffer.isBuffer(this.#upload)) this.#upload.destroy();
  }

  /** Returns the error of a request without response. */
  async #describe(error: unknown): Promise<unknown> {
    const { lead } = this.#request;
    if (this.#stopped) return this.#stopped;
    if (error instanceof OpmateError) return error;
    if (lead && systemCode(error) === refusedAddressCode)
      return refusedAddress(this.#url, describeReason(error), lead, this.#route.hints);
    return describeFault(error, this.#url, this.#route);
  }
}

function requestHeaders(request: TransportRequest, size: number | undefined): Record<string, string> {
  const length: Record<string, string> = size === undefined ? {} : { 'content-length': String(size) };
  return { 'user-agent': 'opmate', 'accept-encoding': 'identity', ...length, ...request.headers };
}

interface StreamedBody {
  open(): Readable;
  size: number | undefined;
}

/** Returns a body that is long enough to watch its progress. */
function streamedBody({ body, bodySize }: TransportRequest): StreamedBody | undefined {
  if (typeof body === 'function') return { open: body, size: bodySize };
  if (!body || isShortBody(body)) return undefined;
  function* pieces(whole: Buffer): Generator<Buffer> {
    for (let index = 0; index < whole.length; index += 65_536) yield whole.subarray(index, index + 65_536);
  }
  return { open: () => Readable.from(pieces(body)), size: body.length };
}

/** Reports whether a body is sent in one piece, so its request has a time limit. */
export function isShortBody(body: TransportRequest['body']): boolean {
  return body === undefined || (typeof body !== 'function' && body.length <= 1_048_576);
}

/** Returns the body to send, with its progress watched and its size enforced. */
function sendThrough({ open, size }: StreamedBody, watch: ProgressWatch, patience: number): Readable {
  const source = open();
  let sent = 0;
  function checked(final: boolean): Error | null {
    if (size === undefined || (final ? sent === size : sent <= size)) return null;
    const amount = final ? `only ${sent}` : 'more';
    return new OpmateError('DIGEST', `request body: ${amount} bytes came where ${size} were promised`);
  }
  const through = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sent += chunk.length;
      watch.moved(chunk.length);
      done(checked(false), chunk);
    },
    flush(done) {
      const error = checked(true);
      if (!error) watch.wait(patience);
      done(error);
    },
    destroy(error, done) {
      source.destroy();
      done(error);
    },
  });
  // With empty buffers the source is slow.
  watch.stream(() => through.writableLength + through.readableLength === 0);
  pipeline(source, through, () => undefined);
  return through;
}

function cutOff(host: string, received: number, length: string | null, cause: Error): OpmateError {
  if (cause instanceof OpmateError) return cause;
  const whole = length === null ? '' : ` of ${length}`;
  return new NetworkError(`connection cut after ${received}${whole} bytes`, {
    subject: host,
    temporary: true,
    cause,
  });
}

/** Detects the response of Go and nginx to plain HTTP on a TLS port: 400 and a sentence. */
async function refuseTlsComplaint(
  url: URL,
  route: Route,
  type: string | null,
  body: Readable,
): Promise<void> {
  if (type !== null && !type.startsWith('text/')) return;
  const text = await peek(body, 1024);
  if (/HTTP request (was sent )?to (an )?HTTPS (server|port)/i.test(text)) {
    body.destroy();
    throw speaksTls(url.host, route);
  }
}

/** Returns the first bytes of a body, which stay in it. */
async function peek(body: Readable, limit: number): Promise<string> {
  while (body.readableLength < limit && !body.readableEnded && !body.destroyed) {
    const before = body.readableLength;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        body.off('readable', done).off('end', done).off('close', done);
        resolve();
      };
      body.once('readable', done).once('end', done).once('close', done);
    });
    if (body.readableLength === before) break;
  }
  const bytes = body.read(Math.min(body.readableLength, limit)) as Buffer | null;
  if (bytes) body.unshift(bytes);
  return bytes?.toString('latin1') ?? '';
}

const redirectStatuses: readonly number[] = [301, 302, 303, 307, 308];

/**
 * Follows at most 10 redirects. Those to another origin drop `Authorization` and cookies. Throws OpmateError UNSAFE for a
 * redirect from HTTPS to HTTP, to another scheme, or with user information, and with `sameOrigin` to another origin. Its
 * target has the rules of a `lead`.
 */
export function withRedirects(next: Transport, { sameOrigin = false } = {}): Transport {
  return {
    async send(request) {
      let current = request;
      for (let hops = 0; ; hops++) {
        const response = await next.send(current);
        const location = response.headers.get('location');
        if (location === null || !redirectStatuses.includes(response.status)) return response;
        response.discard();
        const from = new URL(current.url);
        if (hops === 10)
          throw new OpmateError('REGISTRY', 'more than 10 redirects', { subject: new URL(request.url).host });
        const to = redirectTarget(from, location);
        if (sameOrigin && to.origin !== from.origin) {
          throw new OpmateError('UNSAFE', `redirect to another host (${to.host}) refused`, {
            subject: from.host,
          });
        }
        const named = current.lead?.origin ?? new URL(request.url).origin;
        const lead = to.origin === from.origin ? current.lead : leadFrom(current, response, 'redirect');
        current = redirected(current, response.status, from, to);
        current.lead = to.origin === named ? undefined : lead;
      }
    },
  };
}

function redirectTarget(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href))
    throw new OpmateError('REGISTRY', 'redirect to an invalid URL', { subject: from.host });
  const to = new URL(location, from);
  if (to.protocol !== 'https:' && to.protocol !== 'http:') {
    throw new OpmateError('UNSAFE', `redirect to ${to.protocol} refused`, { subject: from.host });
  }
  if (from.protocol === 'https:' && to.protocol === 'http:') {
    throw new OpmateError('UNSAFE', `redirect from HTTPS to plain HTTP (${to.host}) refused`, {
      subject: from.host,
    });
  }
  if (to.username || to.password) {
    throw new OpmateError('UNSAFE', 'redirect to a URL with user information refused', {
      subject: from.host,
    });
  }
  return to;
}

function redirected(request: TransportRequest, status: number, from: URL, to: URL): TransportRequest {
  const leaves = to.origin !== from.origin;
  const toGet = status === 303 && request.method !== 'HEAD';
  const dropped = [...(leaves ? ['authorization', 'cookie', 'proxy-authorization'] : [])];
  if (toGet) dropped.push('content-type', 'content-length', 'content-range');
  const headers = Object.fromEntries(
    Object.entries(request.headers ?? {}).filter(([name]) => !dropped.includes(name.toLowerCase())),
  );
  const { body, bodySize, ...rest } = request;
  const kept = toGet ? {} : { ...(body && { body }), ...(bodySize !== undefined && { bodySize }) };
  return { ...rest, ...kept, method: toGet ? 'GET' : request.method, url: to.href, headers };
}

/**
 * Resolves the `location` of an upload against `base`. Throws OpmateError UNSAFE for another origin, since the request has
 * credentials and content.
 */
export function resolveUploadLocation(base: string, location: string): string {
  const from = new URL(base);
  if (!URL.canParse(location, from.href)) {
    throw new OpmateError('REGISTRY', 'upload location is not a valid URL', { subject: from.host });
  }
  const to = new URL(location, from);
  if (to.origin !== from.origin || to.username || to.password) {
    const downgrade = to.host === from.host && from.protocol === 'https:' && to.protocol === 'http:';
    throw new OpmateError('UNSAFE', `upload location at another origin (${to.origin}) refused`, {
      subject: from.host,
      hint: downgrade ? 'set X-Forwarded-Proto: https in the proxy before the registry' : undefined,
    });
  }
  return to.href;
}

/** Logs every request and its response at debug level, without credentials. */
export function withLog(next: Transport, logger: Logger): Transport {
  return {
    async send(request) {
      if (logger.shows?.('debug') === false) return next.send(request);
      const what = `${request.method} ${describeUrl(request.url)}`;
      try {
        const response = await next.send(request);
        logger.log('debug', `${what}: ${response.status}`);
        return response;
      } catch (error) {
        logger.log('debug', `${what}: ${error instanceof OpmateError ? error.message : 'failed'}`);
        throw error;
      }
    },
  };
}

const shownParameters = ['digest', 'mount', 'from', 'n', 'last', 'service', 'scope', 'artifactType'];

/** Returns a URL for messages, without user information and unknown parameters. */
export function describeUrl(text: string): string {
  const url = new URL(text);
  const shown = [...url.searchParams].filter(([name]) => shownParameters.includes(name));
  const hidden = [...url.searchParams].length > shown.length ? ['…'] : [];
  const query = [...shown.map(([name, value]) => `${name}=${value}`), ...hidden].join('&');
  return `${url.origin}${url.pathname}${query && `?${query}`}`;
}
