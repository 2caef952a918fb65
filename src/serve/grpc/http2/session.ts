import type { Socket } from 'node:net';
import { readSettings } from './client-settings.js';
import { removePadding, requireSize } from './frame-payload.js';
import { FrameReader } from './frame-reader.js';
import { FrameWriter } from './frame-writer.js';
import { HeaderDecoder, maxListSize } from './hpack.js';
import {
  ConnectionError,
  type ErrorCode,
  createViolation,
  defaultWindow,
  errorCodes,
  frameFlags,
  frameTypes,
  maxWindow,
  preface,
  settingIds,
} from './protocol.js';
import { type RequestHeaders, toRequestHeaders } from './request-headers.js';
import { SendQueue } from './send-queue.js';
import { Http2Stream, type StreamOwner } from './stream.js';

/** Received bytes after which window is returned to the client. */
const returnedBytes = 32 * 1024;
/** Maximum size of one encoded header block. */
const maxBlockBytes = 64 * 1024;
const maxContinuations = 16;
/** Maximum replies to pings and settings that a client leaves unread. */
const maxUnreadReplies = 1_000;
/** Maximum faults and frames without effect per connection. */
const maxFaults = 1_000;
/** Streams with unread responses, in multiples of the open ones. */
const unreadStreams = 4;
/** Ended streams to remember: frames for one that the server reset may still arrive. */
const maxRemembered = 200;
const abortMs = 1_000;

interface SessionOptions {
  /** Maximum open streams; clients queue further ones. */
  maxStreams: number;
  /** Called for each request; sets the handler of its stream. */
  onStream: (stream: Http2Stream, headers: RequestHeaders) => void;
}

/** A header block whose last frame has not arrived. */
interface OpenBlock {
  id: number;
  isLast: boolean;
  pieces: Buffer[];
  bytes: number;
}

/**
 * Server side of an HTTP/2 connection, without priorities, pushes and upgrades, which gRPC does not use. A client that
 * violates the protocol or the limits is disconnected; the debug data of GOAWAY names the violation. (Source: RFC 9113.)
 */
export class Http2Session implements StreamOwner {
  readonly #socket: Socket;
  readonly #options: SessionOptions;
  readonly #reader = new FrameReader((type, flags, id, payload) => this.#take(type, flags, id, payload));
  readonly #writer: FrameWriter;
  readonly #queue: SendQueue;
  readonly #decoder = new HeaderDecoder();
  readonly #streams = new Map<number, Http2Stream>();
  /** Recently ended streams, newest last, and whether the server reset them. */
  readonly #ended = new Map<number, boolean>();
  #openStreams = 0;
  #lastId = 0;
  #prefaceLength = 0;
  #hasSettings = false;
  #block: OpenBlock | undefined;
  /** Received bytes not yet returned to the connection's window; paused streams do not hold them back. */
  #unreturnedBytes = 0;
  #streamWindow = defaultWindow;
  #unreadReplies = 0;
  #faults = 0;
  #whenAlive: (() => void) | undefined;
  #isReading = false;
  #isFlushing = false;
  /** New streams are refused. */
  #isClosing = false;
  #isOver = false;

  constructor(socket: Socket, options: SessionOptions) {
    this.#socket = socket;
    this.#options = options;
    this.#writer = new FrameWriter(socket, () => this.#continue());
    this.#queue = new SendQueue(this.#writer, (stream) => this.#endResponse(stream));
    socket.on('data', (piece: Buffer) => this.#read(piece));
    socket.once('close', () => this.#end());
    this.#writer.settings([
      [settingIds.MAX_CONCURRENT_STREAMS, options.maxStreams],
      [settingIds.MAX_HEADER_LIST_SIZE, maxListSize],
    ]);
    this.#writer.flush();
  }

  /** Sends a ping; `whenAlive` is called with the reply. */
  ping(whenAlive: () => void): void {
    this.#whenAlive = whenAlive;
    this.#writer.begin(frameTypes.PING, 0, 0, 8);
    this.#writer.add(Buffer.alloc(8));
    this.#writer.flush();
  }

  /** Refuses new streams, and ends the connection after the open ones. */
  close(): void {
    if (this.#isClosing || this.#isOver) return;
    this.#isClosing = true;
    this.#writer.goAway(this.#lastId, errorCodes.NO_ERROR);
    this.#writer.flush();
    this.#endIfIdle();
  }

  sendHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void {
    this.#queue.sendHeaders(stream, block, isLast);
    this.#flushLater();
  }

  schedule(stream: Http2Stream): void {
    if (stream.isScheduled) return;
    this.#queue.add(stream);
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
      this.#abort(error);
    } finally {
      this.#isReading = false;
    }
    this.#continue();
  }

  /** Returns the bytes after the preface. */
  #readPreface(piece: Buffer): Buffer {
    const start = this.#prefaceLength;
    const part = piece.subarray(0, preface.length - start);
    if (!part.equals(preface.subarray(start, start + part.length)))
      throw createViolation('invalid connection preface');
    this.#prefaceLength += part.length;
    return piece.subarray(part.length);
  }

  #take(type: number, flags: number, id: number, payload: Buffer): void {
    if (this.#isOver) return;
    if (this.#block !== undefined && (type !== frameTypes.CONTINUATION || id !== this.#block.id)) {
      throw createViolation(`expected CONTINUATION of stream ${this.#block.id}`);
    }
    if (!this.#hasSettings && type !== frameTypes.SETTINGS)
      throw createViolation('expected SETTINGS as first frame');
    switch (type) {
      case frameTypes.DATA:
        return this.#takeData(flags, id, payload);
      case frameTypes.HEADERS:
        return this.#takeHeaders(flags, id, payload);
      case frameTypes.CONTINUATION:
        return this.#takeContinuation(flags, payload);
      case frameTypes.PRIORITY:
        requireSize(payload, 5);
        if (id === 0) throw createViolation('PRIORITY on stream 0');
        return;
      case frameTypes.RST_STREAM:
        requireSize(payload, 4);
        return this.#takeReset(id);
      case frameTypes.SETTINGS:
        return this.#takeSettings(flags, id, payload);
      case frameTypes.PUSH_PROMISE:
        throw createViolation('PUSH_PROMISE from a client');
      case frameTypes.PING:
        requireSize(payload, 8);
        return this.#takePing(flags, id, payload);
      case frameTypes.GOAWAY:
        if (id !== 0) throw createViolation(`GOAWAY on stream ${id}`);
        this.#isClosing = true;
        return;
      case frameTypes.WINDOW_UPDATE:
        requireSize(payload, 4);
        return this.#takeWindowUpdate(id, payload.readUInt32BE(0) & 0x7fffffff);
      default:
      // Extensions are ignored.
    }
  }

  #takeData(flags: number, id: number, payload: Buffer): void {
    const stream = this.#findStream(id);
    const piece = removePadding(flags, payload);
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
    if (id % 2 === 0) throw createViolation(`even stream ${id} from a client`);
    let fragment = removePadding(flags, payload);
    if ((flags & frameFlags.PRIORITY) !== 0) {
      if (fragment.length < 5) throw new ConnectionError(errorCodes.FRAME_SIZE_ERROR, 'truncated priority');
      fragment = fragment.subarray(5);
    }
    const isLast = (flags & frameFlags.END_STREAM) !== 0;
    if ((flags & frameFlags.END_HEADERS) !== 0) return this.#takeBlock(id, isLast, fragment);
    this.#block = { id, isLast, pieces: [fragment], bytes: fragment.length };
  }

  #takeContinuation(flags: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw createViolation('CONTINUATION without HEADERS');
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
    // Refused blocks too: later ones refer to their fields.
    const fields = this.#decoder.decode(block);
    const known = this.#streams.get(id);
    if (known !== undefined) {
      if (known.isRequestEnded) return this.#fail(known, errorCodes.STREAM_CLOSED);
      if (!isLast) return this.#fail(known, errorCodes.PROTOCOL_ERROR);
      return this.#endRequest(known);
    }
    if (id <= this.#lastId) {
      const isReset = this.#ended.get(id);
      if (isReset === undefined) throw createViolation(`stream ${id} after ${this.#lastId}`);
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
    if (id !== 0) throw createViolation(`SETTINGS on stream ${id}`);
    this.#hasSettings = true;
    if ((flags & frameFlags.ACK) !== 0) return requireSize(payload, 0);
    const { window, frameSize, limitsTable } = readSettings(payload);
    if (limitsTable) this.#queue.needsTableUpdate = true;
    if (frameSize !== undefined) this.#queue.frameSize = frameSize;
    if (window !== undefined) this.#moveWindows(window);
    this.#reply(frameTypes.SETTINGS, payload.subarray(0, 0));
  }

  #moveWindows(window: number): void {
    const change = window - this.#streamWindow;
    if (change === 0) return;
    this.#streamWindow = window;
    for (const stream of this.#streams.values()) {
      stream.sendWindow += change;
      if (stream.sendWindow > maxWindow) {
        throw new ConnectionError(
          errorCodes.FLOW_CONTROL_ERROR,
          `window of stream ${stream.id} exceeds 2^31-1 bytes`,
        );
      }
      this.#scheduleWaiting(stream);
    }
  }

  #takePing(flags: number, id: number, payload: Buffer): void {
    if (id !== 0) throw createViolation(`PING on stream ${id}`);
    if ((flags & frameFlags.ACK) === 0) return this.#reply(frameTypes.PING, payload);
    this.#whenAlive?.();
    this.#whenAlive = undefined;
  }

  #takeWindowUpdate(id: number, bytes: number): void {
    if (id === 0) {
      if (bytes === 0) throw createViolation('WINDOW_UPDATE of 0 bytes');
      return this.#queue.addWindow(bytes);
    }
    const stream = this.#findStream(id);
    if (stream === undefined) return;
    if (bytes === 0) return this.#fail(stream, errorCodes.PROTOCOL_ERROR);
    stream.sendWindow += bytes;
    if (stream.sendWindow > maxWindow) return this.#fail(stream, errorCodes.FLOW_CONTROL_ERROR);
    this.#scheduleWaiting(stream);
  }

  /** Finds an opened stream; undefined where it has ended. */
  #findStream(id: number): Http2Stream | undefined {
    if (id === 0 || id > this.#lastId || id % 2 === 0) throw createViolation(`stream ${id} is not open`);
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

  /** Acknowledges a frame. Throws ConnectionError where the client leaves too many replies unread. */
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

  /** Sends frames after the current turn. */
  #flushLater(): void {
    if (this.#isReading || this.#isFlushing) return;
    this.#isFlushing = true;
    setImmediate(() => {
      this.#isFlushing = false;
      this.#continue();
    });
  }

  #continue(): void {
    if (this.#isOver) return;
    if (this.#writer.unwrittenBytes === 0) this.#unreadReplies = 0;
    this.#queue.send();
    this.#writer.flush();
    if (this.#isClosing) this.#endIfIdle();
  }

  #endIfIdle(): void {
    if (!this.#isClosing || this.#isOver || this.#streams.size > 0) return;
    this.#isOver = true;
    this.#writer.flush();
    this.#socket.end();
  }

  #abort({ code, message }: ConnectionError): void {
    this.#isOver = true;
    this.#writer.goAway(this.#lastId, code, message);
    this.#writer.flush();
    this.#socket.end();
    setTimeout(() => this.#socket.destroy(), abortMs).unref();
    this.#end();
  }

  #end(): void {
    this.#isOver = true;
    this.#queue.clear();
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.close();
  }
}
