import { randomUUID } from 'node:crypto';
import {
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  constants,
} from 'node:http2';
import { Deadlines, takeTurn } from '../../../core/concurrency.js';
import { getMessage } from '../../../core/errors.js';
import type { LogLevel, Logger } from '../../../core/log.js';
import { defaultIdleMs, defaultRequestMs } from '../../server/http-server.js';
import type { GrpcConnection, GrpcConnections } from './connections.js';
import {
  MessageReader,
  type ReceivedMessage,
  decompressMessage,
  encodingsHeader,
  frameMessage,
} from './frames.js';
import { StatusError, type StatusName, encodeStatusMessage, getStatus, statusCodes } from './status.js';
import { type ReplyLane, ReplyLimit } from './reply-limit.js';

/** Unread bytes at which a stream pauses; the smaller limit applies while all streams together have too many. */
const maxUnreadBytes = 256 * 1024;
const maxCrowdedBytes = 32 * 1024;
/** Maximum unread unary replies and active streams per connection; others wait. */
const maxUnreadReplies = 16;
const maxActiveStreams = 16;
/** Calls of all connections beyond which each connection has one at a time. */
const maxCalls = 20_000;
/** Bytes of the requests of all calls beyond which only small requests are accepted. */
const maxRequestBytes = 64 * 1024 * 1024;
const smallRequestBytes = 16 * 1024;
/** Maximum bytes of requests that a stream sends ahead of the reply that it has not read. */
const maxAheadBytes = 64 * 1024;
const resetDelayMs = 100;

export type Awaitable<T> = T | Promise<T>;
export type Messages = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export type RequestHeaders = IncomingHttpHeaders;

/** Headers of a call, for its method. */
export interface CallHeaders {
  /** `:authority` or `host`; empty without either. */
  authority: string;
  headers: RequestHeaders;
}

/** A method of a service on encoded messages. Its errors become the status of the call. */
export type GrpcMethod = { level: LogLevel } & (
  | { kind: 'unary'; reply: (request: Buffer, call: CallHeaders) => Awaitable<Uint8Array> }
  | { kind: 'server-stream'; reply: (request: Buffer, call: CallHeaders) => Messages }
  /** One reply per request. */
  | { kind: 'bidi-stream'; reply: (request: Buffer) => Uint8Array }
);
type OneRequestMethod = Exclude<GrpcMethod, { kind: 'bidi-stream' }>;

const replyHeaders = { ':status': 200, 'content-type': 'application/grpc' };
const okTrailers: OutgoingHttpHeaders = { 'grpc-status': String(statusCodes.OK) };

/** Time limits of requests. */
export interface RequestLimits {
  /** Time for the request message of a call; default 5 seconds, as for HTTP requests. */
  requestMs?: number | undefined;
  /** Time for each message of a stream of requests; default 5 minutes. */
  idleMs?: number | undefined;
}

/** State that the calls of a server share. */
export class GrpcCalls {
  readonly unaryReplies = new ReplyLimit(maxUnreadReplies);
  readonly streamReplies = new ReplyLimit(maxActiveStreams);
  readonly deadlines = new Deadlines();
  readonly connections: GrpcConnections;
  readonly limits: { requestMs: number; idleMs: number };
  readonly logger: Logger;
  /** Calls whose method has begun. */
  openCalls = 0;
  /** Calls without a status. */
  allCalls = 0;
  requestBytes = 0;

  constructor(
    connections: GrpcConnections,
    {
      logger,
      requestMs = defaultRequestMs,
      idleMs = defaultIdleMs,
    }: RequestLimits & Pick<GrpcCalls, 'logger'>,
  ) {
    this.connections = connections;
    this.logger = logger;
    this.limits = { requestMs, idleMs };
  }
}

/** One call: reads the request and sends reply and status. */
export class GrpcCall implements CallHeaders {
  readonly headers: RequestHeaders;
  readonly #path: string;
  readonly #method: GrpcMethod;
  readonly #stream: ServerHttp2Stream;
  readonly #connection: GrpcConnection;
  readonly #calls: GrpcCalls;
  readonly #reader = new MessageReader();
  readonly #limit: ReplyLimit;
  readonly #lane: ReplyLane;
  #requestBytes = 0;
  #hasEnded = false;
  /** Working on a message, or waiting for its reply to be read. */
  #isReplying = false;
  #startedAt: number | undefined;
  /** Work in the lane of the connection, waiting or started. */
  #work: (() => void) | undefined;
  #unreadBytes = 0;
  #awaken: (() => void) | undefined;
  #isOver = false;
  /** Trailers after the messages, once known. */
  #trailers = okTrailers;
  /** Deadline of the client. */
  #endsAt = Infinity;
  /** Time limit of the current step, and what the client has not done when it expires. */
  #step = { ms: Infinity, isUnread: false };

  constructor(
    stream: ServerHttp2Stream,
    headers: RequestHeaders,
    method: GrpcMethod,
    connection: GrpcConnection,
    calls: GrpcCalls,
  ) {
    this.#stream = stream;
    this.headers = headers;
    this.#path = headers[':path'] ?? '';
    this.#method = method;
    this.#connection = connection;
    this.#calls = calls;
    const isUnary = method.kind === 'unary';
    this.#limit = isUnary ? calls.unaryReplies : calls.streamReplies;
    this.#lane = isUnary ? connection.unaryReplies : connection.streamReplies;
  }

  get authority(): string {
    return this.headers[':authority'] ?? this.headers.host ?? '';
  }

  start(): void {
    // Always flowing: a paused stream of Node.js keeps an object per frame, up to one for each byte of its window.
    this.#stream.on('data', (piece: Buffer) => this.#receive(piece));
    this.#stream.once('end', () => this.#end());
    this.#stream.once('close', () => this.#close());
    const isCrowded = this.#calls.allCalls++ >= maxCalls;
    if (this.#connection.allCalls++ > 0 && isCrowded)
      return this.#fail(new StatusError('RESOURCE_EXHAUSTED', `more than ${maxCalls} open calls`));
    const timeout = this.headers['grpc-timeout'];
    if (timeout !== undefined) {
      const ms = readTimeout(String(timeout));
      if (ms === undefined) return this.#fail(new StatusError('INTERNAL', 'invalid grpc-timeout'));
      this.#endsAt = performance.now() + ms;
    }
    this.#awaitMessage();
  }

  #awaitMessage(): void {
    if (this.#isOver) return;
    const { requestMs, idleMs } = this.#calls.limits;
    this.#limitTime(this.#method.kind === 'bidi-stream' ? idleMs : requestMs);
  }

  /** Limits the time of the current step, within the deadline of the client. */
  #limitTime(ms: number, isUnread = false): void {
    this.#step = { ms, isUnread };
    const { deadlines } = this.#calls;
    deadlines.remove(this);
    deadlines.add(this, this.#endsAt === Infinity ? ms : Math.min(ms, this.#endsAt - performance.now()));
  }

  expire(): void {
    const { ms, isUnread } = this.#step;
    const missing = isUnread ? 'reply not read' : 'no complete request message';
    const problem =
      performance.now() >= this.#endsAt ? 'deadline exceeded' : `${missing} within ${ms / 1000} s`;
    this.#fail(new StatusError('DEADLINE_EXCEEDED', problem));
  }

  #receive(piece: Buffer): void {
    if (this.#isOver) return;
    const method = this.#method;
    try {
      this.#reader.push(piece);
      this.#countRequest(this.#reader.heldLength);
      if (method.kind === 'bidi-stream') this.#replyInTurns(method.reply);
      else if (this.#reader.hasMore)
        throw new StatusError('UNIMPLEMENTED', `second request message for ${this.#path}`);
    } catch (error) {
      this.#fail(error);
    }
  }

  #end(): void {
    this.#hasEnded = true;
    if (this.#isGone) return;
    const method = this.#method;
    try {
      if (method.kind === 'bidi-stream') return this.#replyInTurns(method.reply);
      const message = this.#takeMessage();
      if (message === undefined)
        throw new StatusError('UNIMPLEMENTED', `no request message for ${this.#path}`);
      if (!message.isCompressed) return this.#begin(method, message.body);
      decompressMessage(message, this.#encoding).then(
        (body) => {
          if (!this.#isGone) this.#begin(method, body);
        },
        (error: unknown) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Takes a complete message. Throws StatusError for an invalid one, and where the request ends within one. */
  #takeMessage(): ReceivedMessage | undefined {
    const message = this.#reader.take();
    if (message === undefined && this.#hasEnded && this.#reader.heldLength > 0)
      throw new StatusError('INTERNAL', `incomplete request message for ${this.#path}`);
    return message;
  }

  get #isGone(): boolean {
    return this.#isOver || this.#stream.closed || this.#stream.destroyed;
  }

  get #encoding(): string {
    return String(this.headers['grpc-encoding'] ?? 'identity');
  }

  /** Starts the method on a complete request. */
  #begin(method: OneRequestMethod, request: Buffer): void {
    this.#limitTime(Infinity);
    this.#calls.connections.begin(this.#connection);
    this.#startedAt = performance.now();
    this.#calls.openCalls++;
    const start = (): void => {
      if (this.#isGone) return;
      this.#isReplying = true;
      if (method.kind === 'unary') this.#replyOnce(method.reply, request);
      else void this.#replyAll(method.reply, request);
    };
    // Deferred: a call that is cancelled at once, as in a flood, never starts.
    this.#enter(() => setImmediate(start));
  }

  /** Does work that replies when the limit of unread replies allows it. */
  #enter(work: () => void): void {
    this.#work = work;
    this.#limit.enter(this.#lane, work);
  }

  #replyOnce(reply: (request: Buffer, call: CallHeaders) => Awaitable<Uint8Array>, request: Buffer): void {
    try {
      const message = reply(request, this);
      if (!(message instanceof Promise)) return this.#send(message);
      message.then(
        (bytes) => this.#send(bytes),
        (error: unknown) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  #send(message: Uint8Array): void {
    if (this.#isGone) return;
    this.#finish('OK');
    const [start, rest] = frameMessage(message);
    // Counts as unread until the stream is closed.
    this.#countUnread(start.length + (rest?.length ?? 0));
    this.#respond();
    const stream = this.#stream;
    if (rest !== undefined) {
      stream.cork();
      stream.write(start);
    }
    stream.end(rest ?? start);
  }

  /** Sends the headers of a reply with messages. */
  #respond(): void {
    const stream = this.#stream;
    if (stream.headersSent) return;
    stream.once('wantTrailers', () => stream.sendTrailers(this.#trailers));
    stream.respond(replyHeaders, { waitForTrailers: true });
  }

  /** Sends messages as fast as the client reads them, in turn with other calls. */
  async #replyAll(reply: (request: Buffer, call: CallHeaders) => Messages, request: Buffer): Promise<void> {
    try {
      for await (const message of reply(request, this)) {
        if (this.#isGone) return;
        this.#respond();
        this.#write(message);
        while (this.#hasManyUnread && !this.#isGone) {
          await new Promise<void>((resolve) => (this.#awaken = resolve));
        }
        const turn = takeTurn();
        if (turn !== undefined) await turn;
      }
      this.#succeed();
    } catch (error) {
      this.#fail(error);
    }
  }

  get #hasManyUnread(): boolean {
    return this.#unreadBytes > (this.#limit.isCrowded ? maxCrowdedBytes : maxUnreadBytes);
  }

  /** Sends a message, which is unread until the system accepts it. */
  #write(message: Uint8Array, whenRead?: () => void): void {
    const [start, rest] = frameMessage(message);
    const length = start.length + (rest?.length ?? 0);
    this.#countUnread(length);
    const onRead = (): void => {
      if (this.#work === undefined) return;
      this.#countUnread(-length);
      whenRead?.();
      if (!this.#hasManyUnread) this.#awaken?.();
    };
    const stream = this.#stream;
    if (rest === undefined) return void stream.write(start, onRead);
    stream.cork();
    stream.write(start);
    stream.write(rest, onRead);
    stream.uncork();
  }

  /** Replies to messages in turn: to the next one when the reply has been read. Throws StatusError. */
  #replyInTurns(reply: (request: Buffer) => Uint8Array): void {
    if (this.#isReplying) {
      if (this.#reader.heldLength <= maxAheadBytes) return;
      throw new StatusError(
        'RESOURCE_EXHAUSTED',
        `more than ${maxAheadBytes} bytes sent before a reply is read`,
      );
    }
    const message = this.#takeMessage();
    if (message === undefined) {
      if (this.#hasEnded) this.#succeed();
      return;
    }
    this.#isReplying = true;
    this.#limitTime(this.#calls.limits.idleMs, true);
    this.#enter(() => void this.#replyTo(message, reply));
  }

  async #replyTo(message: ReceivedMessage, reply: (request: Buffer) => Uint8Array): Promise<void> {
    try {
      const request = await decompressMessage(message, this.#encoding);
      if (this.#isGone) return;
      this.#respond();
      this.#write(reply(request), () => this.#continueInTurns(reply));
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Frees the place of the last reply and goes on to the next message. */
  #continueInTurns(reply: (request: Buffer) => Uint8Array): void {
    this.#work = undefined;
    this.#limit.leave(this.#lane);
    this.#isReplying = false;
    if (this.#isGone) return;
    try {
      this.#countRequest(this.#reader.heldLength);
      this.#awaitMessage();
      this.#replyInTurns(reply);
    } catch (error) {
      this.#fail(error);
    }
  }

  #succeed(): void {
    if (this.#isGone) return;
    this.#finish('OK');
    this.#respond();
    this.#stream.end();
  }

  /** Ends the call with the status of a failure, after the messages already sent. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    const status = getStatus(error);
    this.#finish(status, error);
    const stream = this.#stream;
    if (stream.closed || stream.destroyed) return;
    this.#trailers = {
      'grpc-status': String(statusCodes[status]),
      'grpc-message': encodeStatusMessage(error),
    };
    if (stream.headersSent) stream.end();
    else refuseStream(stream, { ...replyHeaders, ...encodingsHeader, ...this.#trailers });
    if (!this.#hasEnded || this.#method.kind === 'bidi-stream') this.#resetLater();
  }

  /** Discards the rest of a request, and ends it soon: some clients take an immediate reset for the status. */
  #resetLater(): void {
    const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;
    setTimeout(() => {
      // NO_ERROR would wait until the client reads.
      this.#stream.close(this.#stream.writableFinished ? NGHTTP2_NO_ERROR : NGHTTP2_CANCEL);
    }, resetDelayMs).unref();
  }

  /** Records the status of the call and logs it. */
  #finish(status: StatusName, error?: unknown): void {
    this.#isOver = true;
    this.#calls.allCalls--;
    this.#connection.allCalls--;
    this.#calls.requestBytes -= this.#requestBytes;
    this.#reader.clear();
    this.#calls.deadlines.remove(this);
    this.#awaken?.();
    if (this.#startedAt === undefined) return;
    const { connections, logger } = this.#calls;
    this.#calls.openCalls--;
    connections.end(this.#connection);
    // Of a flood, only the end of the connection is logged.
    if (status === 'CANCELLED' && !this.#isReplying) return;
    const isFault = status === 'INTERNAL';
    const level = isFault ? 'error' : this.#method.level;
    if (logger.shows?.(level) === false) return;
    const fields = {
      id: randomUUID(),
      method: this.#path,
      code: status,
      durationMs: Math.round((performance.now() - this.#startedAt) * 100) / 100,
      ...(isFault && { error: getMessage(error) }),
    };
    if (isFault || logger.logOften === undefined) logger.log(level, 'finished call', fields);
    else logger.logOften(level, 'finished call', fields);
  }

  /** Called when the stream has ended, read completely or cancelled. */
  #close(): void {
    if (!this.#isOver) {
      this.#finish('CANCELLED');
      this.#calls.connections.countCancelled(this.#connection);
    }
    this.#awaken?.();
    const work = this.#work;
    if (work === undefined) return;
    this.#work = undefined;
    this.#countUnread(-this.#unreadBytes);
    if (!this.#limit.withdraw(this.#lane, work)) this.#limit.leave(this.#lane);
  }

  /** Throws StatusError if the requests of all calls are too large. */
  #countRequest(bytes: number): void {
    this.#calls.requestBytes += bytes - this.#requestBytes;
    this.#requestBytes = bytes;
    if (bytes > smallRequestBytes && this.#calls.requestBytes > maxRequestBytes)
      throw new StatusError(
        'RESOURCE_EXHAUSTED',
        `unfinished requests of more than ${maxRequestBytes} bytes`,
      );
  }

  #countUnread(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#connection.unreadBytes += bytes;
    this.#limit.addUnread(bytes);
  }
}

/** Responds with headers only; a request that has not ended is read no further. */
export function refuseStream(stream: ServerHttp2Stream, headers: OutgoingHttpHeaders): void {
  stream.respond(headers, { endStream: true });
}

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Parses a `grpc-timeout` to milliseconds, rounded up; undefined if invalid. */
function readTimeout(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Math.ceil(Number(count) * (unitMs[unit] as number));
}
