import { randomUUID } from 'node:crypto';
import { Deadlines, takeTurn } from '../../../core/concurrency.js';
import { getMessage } from '../../../core/errors.js';
import type { LogLevel, Logger } from '../../../core/log.js';
import { defaultIdleMs, defaultRequestMs } from '../../server/http-server.js';
import { encodeHeaderBlock } from '../http2/hpack.js';
import { errorCodes } from '../http2/protocol.js';
import type { RequestHeaders } from '../http2/request-headers.js';
import type { Http2Stream, StreamHandler } from '../http2/stream.js';
import type { GrpcConnection, GrpcConnections } from './connections.js';
import { MessageReader, acceptedEncodings, decompressMessage, frameMessage } from './frames.js';
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
const resetDelayMs = 100;

export type Awaitable<T> = T | Promise<T>;
export type Messages = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

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

/** Headers of replies, encoded once. */
const baseFields = { ':status': '200', 'content-type': 'application/grpc' };
const baseBlock = encodeHeaderBlock(baseFields);
const okTrailers = encodeHeaderBlock({ 'grpc-status': String(statusCodes.OK) });

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
export class GrpcCall implements CallHeaders, StreamHandler {
  readonly headers: RequestHeaders;
  readonly #path: string;
  readonly #method: GrpcMethod;
  readonly #stream: Http2Stream;
  readonly #connection: GrpcConnection;
  readonly #calls: GrpcCalls;
  readonly #reader = new MessageReader();
  readonly #limit: ReplyLimit;
  readonly #lane: ReplyLane;
  #received: { isCompressed: boolean; body: Buffer }[] = [];
  #requestBytes = 0;
  #hasEnded = false;
  #isReplying = false;
  #startedAt: number | undefined;
  /** Work in the lane of the connection, waiting or started. */
  #work: (() => void) | undefined;
  #unreadBytes = 0;
  #awaken: (() => void) | undefined;
  #isOver = false;
  /** Deadline of the client. */
  #endsAt = Infinity;
  /** Time limit of the message that the call waits for. */
  #limitMs = Infinity;

  constructor(
    stream: Http2Stream,
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
    this.#stream.handler = this;
    const isCrowded = this.#calls.allCalls++ >= maxCalls;
    if (this.#connection.allCalls++ > 0 && isCrowded)
      return this.#fail(new StatusError('RESOURCE_EXHAUSTED', `more than ${maxCalls} open calls`));
    const timeout = this.headers['grpc-timeout'];
    if (timeout !== undefined) {
      const ms = readTimeout(timeout);
      if (ms === undefined) return this.#fail(new StatusError('INTERNAL', 'invalid grpc-timeout'));
      this.#endsAt = performance.now() + ms;
    }
    this.#awaitMessage();
  }

  #awaitMessage(): void {
    if (this.#isOver) return;
    const { requestMs, idleMs } = this.#calls.limits;
    this.#setLimit(this.#method.kind === 'bidi-stream' ? idleMs : requestMs);
  }

  /** Limits the time of the current step, within the deadline of the client. */
  #setLimit(ms: number): void {
    this.#limitMs = ms;
    const { deadlines } = this.#calls;
    deadlines.remove(this);
    deadlines.add(this, this.#endsAt === Infinity ? ms : Math.min(ms, this.#endsAt - performance.now()));
  }

  expire(): void {
    const isLate = performance.now() >= this.#endsAt;
    const problem = isLate
      ? 'deadline exceeded'
      : `no complete request message within ${this.#limitMs / 1000} s`;
    this.#fail(new StatusError('DEADLINE_EXCEEDED', problem));
  }

  receive(piece: Buffer): void {
    if (this.#isOver) return;
    try {
      this.#received.push(...this.#reader.read(piece));
      // A stream is paused while it replies to a message.
      const isStream = this.#method.kind === 'bidi-stream';
      this.#countRequest(isStream ? this.#reader.heldLength : this.#requestBytes + piece.length);
    } catch (error) {
      return this.#fail(error);
    }
    if (this.#method.kind === 'bidi-stream') void this.#replyInTurns(this.#method.reply);
    else if (this.#received.length > 1) {
      this.#fail(new StatusError('UNIMPLEMENTED', `second request message for ${this.#path}`));
    }
  }

  end(): void {
    this.#hasEnded = true;
    if (this.#isOver) return;
    if (this.#reader.heldLength > 0)
      return this.#fail(new StatusError('INTERNAL', `incomplete request message for ${this.#path}`));
    const method = this.#method;
    if (method.kind === 'bidi-stream') return void this.#replyInTurns(method.reply);
    const [message] = this.#received;
    if (message === undefined) {
      return this.#fail(new StatusError('UNIMPLEMENTED', `no request message for ${this.#path}`));
    }
    if (!message.isCompressed) return this.#begin(method, message.body);
    decompressMessage(message, this.#encoding).then(
      (body) => {
        if (!this.#isOver) this.#begin(method, body);
      },
      (error: unknown) => this.#fail(error),
    );
  }

  get #isGone(): boolean {
    return this.#isOver || this.#stream.isClosed;
  }

  get #encoding(): string {
    return this.headers['grpc-encoding'] ?? 'identity';
  }

  /** Starts the method on a complete request. */
  #begin(method: OneRequestMethod, request: Buffer): void {
    this.#setLimit(Infinity);
    this.#startedAt = performance.now();
    this.#calls.openCalls++;
    this.#calls.connections.begin(this.#connection);
    this.#work =
      method.kind === 'unary'
        ? () => this.#replyOnce(method.reply, request)
        : // Deferred: a call that is cancelled at once, as in a flood, never starts.
          () => void setImmediate(() => void this.#replyAll(method.reply, request));
    this.#limit.enter(this.#lane, this.#work);
  }

  #replyOnce(reply: (request: Buffer, call: CallHeaders) => Awaitable<Uint8Array>, request: Buffer): void {
    if (this.#isGone) return;
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
    // Counts as unread until the stream is closed.
    this.#addUnread(message.length);
    this.#stream.respond(baseBlock);
    for (const piece of frameMessage(message)) this.#stream.write(piece);
    this.#stream.end(okTrailers);
  }

  /** Sends messages as fast as the client reads them, in turn with other calls. */
  async #replyAll(reply: (request: Buffer, call: CallHeaders) => Messages, request: Buffer): Promise<void> {
    try {
      if (this.#isGone) return;
      for await (const message of reply(request, this)) {
        if (this.#isGone) return;
        this.#stream.respond(baseBlock);
        this.#write(message);
        while (this.#hasManyUnread && !this.#isOver) {
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

  #write(message: Uint8Array): void {
    this.#addUnread(message.length);
    const whenRead = (): void => {
      this.#addUnread(-message.length);
      if (!this.#hasManyUnread) this.#awaken?.();
    };
    const pieces = frameMessage(message);
    for (const piece of pieces) this.#stream.write(piece, piece === pieces.at(-1) ? whenRead : undefined);
  }

  /** Replies to messages in turn; the next one is read once the reply is being sent. */
  async #replyInTurns(reply: (request: Buffer) => Uint8Array): Promise<void> {
    if (this.#isReplying) return;
    this.#isReplying = true;
    try {
      for (;;) {
        const message = this.#received.shift();
        if (message === undefined || this.#isOver) break;
        this.#setLimit(Infinity);
        this.#stream.pause();
        const request = await decompressMessage(message, this.#encoding);
        if (this.#isGone) return;
        const frames = Buffer.concat(frameMessage(reply(request)));
        this.#stream.respond(baseBlock);
        await new Promise<void>((resolve) => {
          this.#awaken = resolve;
          this.#stream.write(frames, resolve);
        });
        this.#awaitMessage();
      }
      this.#isReplying = false;
      if (this.#hasEnded) this.#succeed();
      else this.#stream.resume();
    } catch (error) {
      this.#fail(error);
    }
  }

  #succeed(): void {
    if (this.#isGone) return;
    this.#finish('OK');
    this.#stream.respond(baseBlock);
    this.#stream.end(okTrailers);
  }

  /** Ends the call with the status of a failure, after the messages already sent. */
  #fail(error: unknown): void {
    if (this.#isOver) return;
    const status = getStatus(error);
    this.#finish(status, error);
    const stream = this.#stream;
    if (stream.isClosed) return;
    const trailers = {
      'grpc-status': String(statusCodes[status]),
      'grpc-message': encodeStatusMessage(error),
    };
    // A client with an unsupported compression needs to know the supported ones.
    const fields = { ...baseFields, 'grpc-accept-encoding': acceptedEncodings, ...trailers };
    if (stream.hasResponded) stream.end(encodeHeaderBlock(trailers));
    else stream.respond(encodeHeaderBlock(fields), true);
    if (this.#hasEnded) return;
    // The rest of the request is discarded; some clients take an immediate reset for the status.
    stream.resume();
    setTimeout(() => stream.reset(errorCodes.NO_ERROR), resetDelayMs).unref();
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
  close(): void {
    if (!this.#isOver) {
      this.#finish('CANCELLED');
      this.#calls.connections.countCancelled(this.#connection);
    }
    this.#awaken?.();
    const work = this.#work;
    if (work === undefined) return;
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

  #addUnread(bytes: number): void {
    if (!this.#stream.isClosed) this.#countUnread(bytes);
  }

  #countUnread(bytes: number): void {
    this.#unreadBytes += bytes;
    this.#connection.unreadBytes += bytes;
    this.#limit.addUnread(bytes);
  }
}

const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };

/** Parses a `grpc-timeout` to milliseconds, rounded up; undefined if invalid. */
function readTimeout(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,8})([HMSmun])$/.exec(text) ?? [];
  return unit === undefined ? undefined : Math.ceil(Number(count) * (unitMs[unit] as number));
}
