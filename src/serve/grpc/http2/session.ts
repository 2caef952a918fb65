import type { Socket } from 'node:net';
import { FrameReader } from './frame-reader.js';
import { FrameWriter } from './frame-writer.js';
import { HeaderDecoder, emptyTableUpdate, maxListSize } from './hpack.js';
import {
  ConnectionError,
  type ErrorCode,
  defaultFrameSize,
  defaultWindow,
  errorCodes,
  frameFlags,
  frameTypes,
  maxFrameSize,
  maxWindow,
  preface,
  settingIds,
} from './protocol.js';
import { type RequestHeaders, toRequestHeaders } from './request-headers.js';
import { Http2Stream, type StreamOwner } from './stream.js';

/** Bytes that may wait for the system before streams stop sending. */
const maxUnwrittenBytes = 128 * 1024;
/** Part of a receive window that is returned at once. */
const returnedBytes = 32 * 1024;
/** Limits of one header block as it is sent. */
const maxBlockBytes = 64 * 1024;
const maxContinuations = 16;
/** Replies to pings and settings that a client may leave unread. */
const maxUnreadReplies = 1_000;
/** What a client may do wrong, or in vain, on one connection. */
const maxFaults = 1_000;
/** Streams whose responses may wait for the client, in multiples of those at work. */
const unreadStreams = 4;
/** Streams that are remembered after their end: what comes for one that the server reset was on its way. */
const maxRemembered = 200;
const abortMs = 1_000;
const defaultTableSize = 4096;

interface SessionOptions {
  /** Streams that may be open at once; clients wait with the others. */
  maxStreams: number;
  /** Is called for each request, and sets the handler of its stream. */
  onStream: (stream: Http2Stream, headers: RequestHeaders) => void;
}

/** A header block whose last frame has not come. */
interface OpenBlock {
  id: number;
  isLast: boolean;
  pieces: Buffer[];
  bytes: number;
}

/**
 * The server's end of an HTTP/2 connection: requests become streams; priorities, pushes and upgrades are left out, which
 * gRPC does not use. A client that breaks the protocol or its limits loses the connection. (Source: RFC 9113.)
 */
export class Http2Session implements StreamOwner {
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #reader = new FrameReader((type, flags, id, payload) => this.#take(type, flags, id, payload));
  readonly #writer: FrameWriter;
  readonly #decoder = new HeaderDecoder();
  readonly #streams = new Map<number, Http2Stream>();
  /** Streams that have ended lately, the newest last, and whether the server reset them. */
  readonly #ended = new Map<number, boolean>();
  /** Streams that have something to send, in turn. */
  #scheduled: Http2Stream[] = [];
  #openStreams = 0;
  #lastId = 0;
  #prefaceLength = 0;
  #hasSettings = false;
  #block: OpenBlock | undefined;
  #sendWindow = defaultWindow;
  /** Bytes of the connection's receive window, which no stream holds back, that are to be returned. */
  #unreturnedBytes = 0;
  #streamWindow = defaultWindow;
  #frameSize = defaultFrameSize;
  #needsTableUpdate = false;
  #unreadReplies = 0;
  #faults = 0;
  #whenAlive: (() => void) | undefined;
  #isReading = false;
  #isFlushing = false;
  /** No further streams are taken. */
  #isClosing = false;
  /** The connection is gone, or about to be. */
  #isOver = false;

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#writer = new FrameWriter(socket, () => this.#continue());
    socket.on('data', (piece: Buffer) => this.#read(piece));
    socket.once('close', () => this.#end());
    this.#writer.settings([
      [settingIds.MAX_CONCURRENT_STREAMS, options.maxStreams],
      [settingIds.MAX_HEADER_LIST_SIZE, maxListSize],
    ]);
    this.#writer.flush();
  }

  /** Asks the client whether it is alive. */
  ping(whenAlive: () => void): void {
    this.#whenAlive = whenAlive;
    this.#writer.begin(frameTypes.PING, 0, 0, 8);
    this.#writer.add(Buffer.alloc(8));
    this.#writer.flush();
  }

  /** Takes no more streams, and ends the connection after those that are open. */
  close(): void {
    if (this.#isClosing || this.#isOver) return;
    this.#isClosing = true;
    this.#writer.goAway(this.#lastId, errorCodes.NO_ERROR);
    this.#writer.flush();
    this.#endIfIdle();
  }

  sendHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void {
    this.#writeHeaders(stream, block, isLast);
    this.#flushLater();
  }

  schedule(stream: Http2Stream): void {
    if (stream.isScheduled) return;
    this.#enqueue(stream);
    this.#flushLater();
  }

  reset(stream: Http2Stream, code: ErrorCode): void {
    this.#writer.reset(stream.id, code);
    this.#closeStream(stream, true);
    this.#flushLater();
  }

  returnWindow(stream: Http2Stream, bytes: number): void {
    stream.unreturnedBytes += bytes;
    if (stream.unreturnedBytes < returnedBytes || stream.isRequestEnded || stream.isClosed) return;
    this.#writer.windowUpdate(stream.id, stream.unreturnedBytes);
    stream.receiveWindow += stream.unreturnedBytes;
    stream.unreturnedBytes = 0;
    this.#flushLater();
  }

  #read(piece: Buffer): void {
    if (this.#isOver) return;
    this.#isReading = true;
    try {
      const rest = this.#prefaceLength < preface.length ? this.#readPreface(piece) : piece;
      this.#reader.read(rest);
    } catch (error) {
      if (!(error instanceof ConnectionError)) throw error;
      this.#abort(error.code);
    } finally {
      this.#isReading = false;
    }
    this.#continue();
  }

  /** Returns what follows the preface. */
  #readPreface(piece: Buffer): Buffer {
    const start = this.#prefaceLength;
    const part = piece.subarray(0, preface.length - start);
    if (!part.equals(preface.subarray(start, start + part.length))) throw violation('no HTTP/2');
    this.#prefaceLength += part.length;
    return piece.subarray(part.length);
  }

  #take(type: number, flags: number, id: number, payload: Buffer): void {
    if (this.#isOver) return;
    if (this.#block !== undefined && (type !== frameTypes.CONTINUATION || id !== this.#block.id)) {
      throw violation('header block without its end');
    }
    if (!this.#hasSettings && type !== frameTypes.SETTINGS) throw violation('no settings');
    switch (type) {
      case frameTypes.DATA:
        return this.#takeData(flags, id, payload);
      case frameTypes.HEADERS:
        return this.#takeHeaders(flags, id, payload);
      case frameTypes.CONTINUATION:
        return this.#takeContinuation(flags, payload);
      case frameTypes.PRIORITY:
        requireSize(payload, 5);
        if (id === 0) throw violation('priority of the connection');
        return;
      case frameTypes.RST_STREAM:
        requireSize(payload, 4);
        return this.#takeReset(id);
      case frameTypes.SETTINGS:
        return this.#takeSettings(flags, id, payload);
      case frameTypes.PUSH_PROMISE:
        throw violation('push by a client');
      case frameTypes.PING:
        requireSize(payload, 8);
        return this.#takePing(flags, id, payload);
      case frameTypes.GOAWAY:
        if (id !== 0) throw violation('end of a stream as of the connection');
        this.#isClosing = true;
        return;
      case frameTypes.WINDOW_UPDATE:
        requireSize(payload, 4);
        return this.#takeWindowUpdate(id, payload.readUInt32BE(0) & 0x7fffffff);
      default:
      // Extensions may be ignored.
    }
  }

  #takeData(flags: number, id: number, payload: Buffer): void {
    const stream = this.#findStream(id);
    const piece = withoutPadding(flags, payload);
    const isLast = (flags & frameFlags.END_STREAM) !== 0;
    this.#unreturnedBytes += payload.length;
    if (this.#unreturnedBytes >= returnedBytes) {
      this.#writer.windowUpdate(0, this.#unreturnedBytes);
      this.#unreturnedBytes = 0;
    }
    if (piece.length === 0 && !isLast) this.#countFault();
    if (stream === undefined) {
      if (this.#ended.get(id) !== true) this.#refuse(id, errorCodes.STREAM_CLOSED);
      return;
    }
    if (stream.isRequestEnded) return this.#fail(stream, errorCodes.STREAM_CLOSED);
    if (payload.length > stream.receiveWindow) return this.#fail(stream, errorCodes.FLOW_CONTROL_ERROR);
    stream.receiveWindow -= payload.length;
    if (stream.missingBytes !== undefined) stream.missingBytes -= piece.length;
    if (payload.length > 0) stream.receive(piece, payload.length);
    if (isLast) this.#endRequest(stream);
  }

  #takeHeaders(flags: number, id: number, payload: Buffer): void {
    if (id % 2 === 0) throw violation(`stream ${id} of a client`);
    let fragment = withoutPadding(flags, payload);
    if ((flags & frameFlags.PRIORITY) !== 0) {
      if (fragment.length < 5) throw new ConnectionError(errorCodes.FRAME_SIZE_ERROR, 'priority is cut off');
      fragment = fragment.subarray(5);
    }
    const isLast = (flags & frameFlags.END_STREAM) !== 0;
    if ((flags & frameFlags.END_HEADERS) !== 0) return this.#takeBlock(id, isLast, fragment);
    this.#block = { id, isLast, pieces: [fragment], bytes: fragment.length };
  }

  #takeContinuation(flags: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw violation('continuation of nothing');
    block.pieces.push(payload);
    block.bytes += payload.length;
    if (block.bytes > maxBlockBytes || block.pieces.length > maxContinuations) {
      throw new ConnectionError(errorCodes.ENHANCE_YOUR_CALM, 'header block is too large');
    }
    if ((flags & frameFlags.END_HEADERS) === 0) return;
    this.#block = undefined;
    this.#takeBlock(block.id, block.isLast, Buffer.concat(block.pieces));
  }

  #takeBlock(id: number, isLast: boolean, block: Buffer): void {
    // Of each block, wanted or not: the next ones refer to its fields.
    const fields = this.#decoder.decode(block);
    const known = this.#streams.get(id);
    if (known !== undefined) {
      if (known.isRequestEnded) return this.#fail(known, errorCodes.STREAM_CLOSED);
      if (!isLast) return this.#fail(known, errorCodes.PROTOCOL_ERROR);
      return this.#endRequest(known);
    }
    if (id <= this.#lastId) {
      const isReset = this.#ended.get(id);
      if (isReset === undefined) throw violation(`stream ${id} behind ${this.#lastId}`);
      if (isReset) return;
      throw new ConnectionError(errorCodes.STREAM_CLOSED, `stream ${id} has ended`);
    }
    this.#lastId = id;
    const { maxStreams, onStream } = this.#options;
    const isFull = this.#openStreams >= maxStreams || this.#streams.size >= unreadStreams * maxStreams;
    if (isFull || this.#isClosing) return this.#refuse(id, errorCodes.REFUSED_STREAM);
    const headers = fields && toRequestHeaders(fields);
    if (headers === undefined) return this.#refuse(id, errorCodes.PROTOCOL_ERROR);
    const stream = new Http2Stream(id, this.#streamWindow, this);
    const length = headers['content-length'];
    if (length !== undefined) stream.missingBytes = Number(length);
    this.#streams.set(id, stream);
    this.#openStreams++;
    onStream(stream, headers);
    if (isLast) this.#endRequest(stream);
  }

  #takeReset(id: number): void {
    const stream = this.#findStream(id);
    if (stream !== undefined) this.#closeStream(stream);
  }

  #takeSettings(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw violation('settings of a stream');
    this.#hasSettings = true;
    if ((flags & frameFlags.ACK) !== 0) return requireSize(payload, 0);
    if (payload.length % 6 !== 0)
      throw new ConnectionError(errorCodes.FRAME_SIZE_ERROR, 'settings are cut off');
    let window = this.#streamWindow;
    for (let i = 0; i < payload.length; i += 6) {
      const value = payload.readUInt32BE(i + 2);
      switch (payload.readUInt16BE(i)) {
        case settingIds.HEADER_TABLE_SIZE:
          if (value < defaultTableSize) this.#needsTableUpdate = true;
          break;
        case settingIds.INITIAL_WINDOW_SIZE:
          if (value > maxWindow) throw overflow('initial window is too large');
          window = value;
          break;
        case settingIds.MAX_FRAME_SIZE:
          if (value < defaultFrameSize || value > maxFrameSize) throw violation('invalid frame size');
          this.#frameSize = value;
          break;
        case settingIds.ENABLE_PUSH:
          if (value > 1) throw violation('invalid setting for pushes');
          break;
        default:
      }
    }
    this.#moveWindows(window);
    this.#reply(frameTypes.SETTINGS, payload.subarray(0, 0));
  }

  #moveWindows(window: number): void {
    const change = window - this.#streamWindow;
    if (change === 0) return;
    this.#streamWindow = window;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += change;
      if (stream.sendWindow > maxWindow) throw overflow('window of a stream is too large');
      this.#scheduleWaiting(stream);
    }
  }

  #takePing(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw violation('ping on a stream');
    if ((flags & frameFlags.ACK) === 0) return this.#reply(frameTypes.PING, payload);
    this.#whenAlive?.();
    this.#whenAlive = undefined;
  }

  #takeWindowUpdate(id: number, bytes: number): void {
    if (id === 0) {
      if (bytes === 0) throw violation('window update of 0 bytes');
      this.#sendWindow += bytes;
      if (this.#sendWindow > maxWindow) throw overflow('window of the connection is too large');
      return;
    }
    const stream = this.#findStream(id);
    if (stream === undefined) return;
    if (bytes === 0) return this.#fail(stream, errorCodes.PROTOCOL_ERROR);
    stream.sendWindow += bytes;
    if (stream.sendWindow > maxWindow) return this.#fail(stream, errorCodes.FLOW_CONTROL_ERROR);
    this.#scheduleWaiting(stream);
  }

  /** Finds a stream that has been begun; undefined where it is over. */
  #findStream(id: number): Http2Stream | undefined {
    if (id === 0 || id > this.#lastId || id % 2 === 0) throw violation(`stream ${id} has not been opened`);
    return this.#streams.get(id);
  }

  #scheduleWaiting(stream: Http2Stream): void {
    if (stream.hasPieces) this.schedule(stream);
  }

  #endRequest(stream: Http2Stream): void {
    if (stream.isClosed) return;
    if ((stream.missingBytes ?? 0) !== 0) return this.#fail(stream, errorCodes.PROTOCOL_ERROR);
    if (stream.isResponseEnded) this.#openStreams--;
    stream.endRequest();
    this.#closeIfDone(stream);
  }

  #endResponse(stream: Http2Stream): void {
    stream.isResponseEnded = true;
    if (stream.isRequestEnded) this.#openStreams--;
    this.#writer.afterwards(() => {
      stream.isTaken = true;
      this.#closeIfDone(stream);
    });
  }

  #closeIfDone(stream: Http2Stream): void {
    if (stream.isTaken && stream.isRequestEnded && !stream.isClosed) this.#closeStream(stream);
  }

  #closeStream(stream: Http2Stream, isReset = false): void {
    if (!stream.isRequestEnded || !stream.isResponseEnded) this.#openStreams--;
    this.#streams.delete(stream.id);
    this.#remember(stream.id, isReset);
    stream.close();
    this.#endIfIdle();
  }

  #remember(id: number, isReset: boolean): void {
    this.#ended.set(id, isReset);
    for (const oldest of this.#ended.keys()) {
      if (this.#ended.size <= maxRemembered) return;
      this.#ended.delete(oldest);
    }
  }

  /** Replies to a frame, unless the client reads no replies. */
  #reply(type: number, payload: Buffer): void {
    if (++this.#unreadReplies > maxUnreadReplies) {
      throw new ConnectionError(errorCodes.ENHANCE_YOUR_CALM, 'too many unread replies');
    }
    this.#writer.begin(type, frameFlags.ACK, 0, payload.length);
    this.#writer.add(payload);
  }

  #refuse(id: number, code: ErrorCode): void {
    this.#countFault();
    this.#writer.reset(id, code);
    this.#remember(id, true);
  }

  #fail(stream: Http2Stream, code: ErrorCode): void {
    this.#countFault();
    this.reset(stream, code);
  }

  #countFault(): void {
    if (++this.#faults > maxFaults)
      throw new ConnectionError(errorCodes.ENHANCE_YOUR_CALM, 'too many faults');
  }

  #enqueue(stream: Http2Stream): void {
    stream.isScheduled = true;
    this.#scheduled.push(stream);
  }

  /** Sends what is ready when the work that is under way has been done. */
  #flushLater(): void {
    if (this.#isReading || this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#continue();
    });
  }

  /** Sends what streams and the connection have, as far as the windows and the system allow it. */
  #continue(): void {
    if (this.#isOver) return;
    if (this.#writer.unwrittenBytes === 0) this.#unreadReplies = 0;
    while (this.#scheduled.length > 0 && this.#writer.unwrittenBytes < maxUnwrittenBytes) {
      const [stream] = this.#scheduled as [Http2Stream];
      if (stream.hasPieces && !stream.isClosed && stream.sendWindow > 0 && this.#sendWindow <= 0) break;
      this.#scheduled.shift();
      stream.isScheduled = false;
      this.#send(stream);
    }
    this.#writer.flush();
    if (this.#isClosing) this.#endIfIdle();
  }

  /** Sends one frame of a stream, and its trailers behind the last. */
  #send(stream: Http2Stream): void {
    if (stream.isClosed) return;
    if (stream.hasPieces) {
      const limit = Math.min(this.#frameSize, this.#sendWindow, stream.sendWindow);
      if (limit <= 0) return;
      const { bytes, whenTaken } = stream.takePiece(limit);
      this.#writer.begin(frameTypes.DATA, 0, stream.id, bytes.length);
      this.#writer.add(bytes);
      this.#sendWindow -= bytes.length;
      stream.sendWindow -= bytes.length;
      if (whenTaken !== undefined) this.#writer.afterwards(whenTaken);
    }
    const { trailers } = stream;
    if (trailers !== undefined) this.#writeHeaders(stream, trailers, true);
    else if (stream.hasPieces) this.#enqueue(stream);
  }

  #writeHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void {
    const whole = this.#needsTableUpdate ? Buffer.concat([emptyTableUpdate, block]) : block;
    this.#needsTableUpdate = false;
    this.#writer.headers(stream.id, whole, isLast, this.#frameSize);
    if (isLast) this.#endResponse(stream);
  }

  #endIfIdle(): void {
    if (!this.#isClosing || this.#isOver || this.#streams.size > 0) return;
    this.#isOver = true;
    this.#writer.flush();
    this.#socket.end();
  }

  /** Ends the connection of a client that broke a rule, and says which. */
  #abort(code: ErrorCode): void {
    this.#isOver = true;
    this.#writer.goAway(this.#lastId, code);
    this.#writer.flush();
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), abortMs).unref();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#scheduled = [];
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.close();
  }
}

function withoutPadding(flags: number, payload: Buffer): Buffer {
  if ((flags & frameFlags.PADDED) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding >= payload.length) throw violation('more padding than payload');
  return payload.subarray(1, payload.length - padding);
}

function requireSize(payload: Buffer, size: number): void {
  if (payload.length !== size) {
    throw new ConnectionError(
      errorCodes.FRAME_SIZE_ERROR,
      `frame of ${payload.length} bytes, expected ${size}`,
    );
  }
}

function violation(message: string): ConnectionError {
  return new ConnectionError(errorCodes.PROTOCOL_ERROR, message);
}

function overflow(message: string): ConnectionError {
  return new ConnectionError(errorCodes.FLOW_CONTROL_ERROR, message);
}
