import { type ErrorCode, defaultWindow } from './protocol.js';

/** Receives the events of a stream until it is closed. */
export interface StreamHandler {
  receive(piece: Buffer): void;
  /** The request is complete. */
  end(): void;
  /** The exchange is complete or was reset; nothing follows. */
  close(): void;
}

/** Connection of a stream. */
export interface StreamOwner {
  sendHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void;
  /** Sends queued pieces and trailers as soon as the windows allow. */
  schedule(stream: Http2Stream): void;
  reset(stream: Http2Stream, code: ErrorCode): void;
  /** Lets the client send `bytes` more. */
  returnWindow(stream: Http2Stream, bytes: number): void;
}

interface Piece {
  bytes: Uint8Array;
  whenTaken: (() => void) | undefined;
}

/** One request and its response. */
export class Http2Stream {
  readonly id: number;
  handler: StreamHandler | undefined;
  /** Bytes that each side may still send. */
  sendWindow: number;
  receiveWindow = defaultWindow;
  /** Received bytes not yet returned to the window. */
  unreturnedBytes = 0;
  /** Bytes of `content-length` not yet received. */
  missingBytes: number | undefined;
  hasResponded = false;
  isRequestEnded = false;
  isResponseEnded = false;
  /** The system has accepted the whole response. */
  isTaken = false;
  isClosed = false;
  isScheduled = false;
  readonly #owner: StreamOwner;
  readonly #pieces: Piece[] = [];
  #offset = 0;
  #trailers: Buffer | undefined;
  #isPaused = false;
  #held: Buffer[] = [];
  #hasNotifiedEnd = false;

  constructor(id: number, sendWindow: number, owner: StreamOwner) {
    this.id = id;
    this.sendWindow = sendWindow;
    this.#owner = owner;
  }

  /** Sends the encoded headers of the response; with `isLast` nothing follows. */
  respond(block: Buffer, isLast = false): void {
    if (this.isClosed || this.hasResponded) return;
    this.hasResponded = true;
    this.#owner.sendHeaders(this, block, isLast);
  }

  /** Sends a piece of the body, which must not change. `whenTaken` is not called once the stream is closed. */
  write(bytes: Uint8Array, whenTaken?: () => void): void {
    if (this.isClosed) return;
    this.#pieces.push({ bytes, whenTaken });
    this.#owner.schedule(this);
  }

  /** Sends encoded trailers after the body. */
  end(trailers: Buffer): void {
    if (this.isClosed) return;
    this.#trailers = trailers;
    this.#owner.schedule(this);
  }

  reset(code: ErrorCode): void {
    if (!this.isClosed) this.#owner.reset(this, code);
  }

  /** Holds back received pieces and their window. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const held = this.#held;
    this.#held = [];
    for (const piece of held) this.receive(piece, piece.length);
    this.#notifyEnd();
  }

  /** Accepts a piece of the request that used `size` bytes of the window. */
  receive(piece: Buffer, size: number): void {
    if (this.isClosed) return;
    if (this.#isPaused) {
      this.#held.push(piece);
      // Padding is returned at once.
      this.#owner.returnWindow(this, size - piece.length);
      return;
    }
    this.handler?.receive(piece);
    this.#owner.returnWindow(this, size);
  }

  endRequest(): void {
    this.isRequestEnded = true;
    this.#notifyEnd();
  }

  #notifyEnd(): void {
    if (!this.isRequestEnded || this.#isPaused || this.#hasNotifiedEnd || this.isClosed) return;
    this.#hasNotifiedEnd = true;
    this.handler?.end();
  }

  get hasPieces(): boolean {
    return this.#pieces.length > 0;
  }

  /** Trailers, once the body has been sent. */
  get trailers(): Buffer | undefined {
    return this.hasPieces ? undefined : this.#trailers;
  }

  /** Removes up to `limit` bytes of the body; the last part of a piece has its `whenTaken`. */
  takePiece(limit: number): Piece {
    const [piece] = this.#pieces as [Piece];
    const end = Math.min(this.#offset + limit, piece.bytes.length);
    const bytes =
      this.#offset === 0 && end === piece.bytes.length
        ? piece.bytes
        : piece.bytes.subarray(this.#offset, end);
    if (end < piece.bytes.length) {
      this.#offset = end;
      return { bytes, whenTaken: undefined };
    }
    this.#offset = 0;
    this.#pieces.shift();
    return { bytes, whenTaken: piece.whenTaken };
  }

  close(): void {
    this.isClosed = true;
    this.#pieces.length = 0;
    this.#held = [];
    this.handler?.close();
  }
}
