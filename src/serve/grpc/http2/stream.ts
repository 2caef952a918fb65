import { type ErrorCode, defaultWindow } from './protocol.js';

/** Whoever works on a stream; each method is called as long as the stream is not closed. */
export interface StreamHandler {
  receive(piece: Buffer): void;
  /** The request is complete. */
  end(): void;
  /** The response has been taken and the request has ended, or the stream was reset; nothing follows. */
  close(): void;
}

/** What a stream needs of its connection. */
export interface StreamOwner {
  sendHeaders(stream: Http2Stream, block: Buffer, isLast: boolean): void;
  /** Sends what waits on the stream as soon as its windows allow it. */
  schedule(stream: Http2Stream): void;
  reset(stream: Http2Stream, code: ErrorCode): void;
  /** Lets the client send that much more. */
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
  /** Bytes of the receive window that were read and not returned yet. */
  unreturnedBytes = 0;
  /** Bytes of the request that its `content-length` announces and that have not come. */
  missingBytes: number | undefined;
  hasResponded = false;
  isRequestEnded = false;
  isResponseEnded = false;
  /** The system has taken the whole response. */
  isTaken = false;
  isClosed = false;
  /** Whether it waits for its turn to send. */
  isScheduled = false;
  readonly #owner: StreamOwner;
  readonly #pieces: Piece[] = [];
  #offset = 0;
  #trailers: Buffer | undefined;
  #isPaused = false;
  #held: Buffer[] = [];
  #hasToldEnd = false;

  constructor(id: number, sendWindow: number, owner: StreamOwner) {
    this.id = id;
    this.sendWindow = sendWindow;
    this.#owner = owner;
  }

  /** Sends the header of the response, an encoded block; nothing follows it with `isLast`. */
  respond(block: Buffer, isLast = false): void {
    if (this.isClosed || this.hasResponded) return;
    this.hasResponded = true;
    this.#owner.sendHeaders(this, block, isLast);
  }

  /** Sends a piece of the body, which may not change any more. `whenTaken` is not called once the stream is closed. */
  write(bytes: Uint8Array, whenTaken?: () => void): void {
    if (this.isClosed) return;
    this.#pieces.push({ bytes, whenTaken });
    this.#owner.schedule(this);
  }

  /** Sends trailers, an encoded block, behind the body. */
  end(trailers: Buffer): void {
    if (this.isClosed) return;
    this.#trailers = trailers;
    this.#owner.schedule(this);
  }

  reset(code: ErrorCode): void {
    if (!this.isClosed) this.#owner.reset(this, code);
  }

  /** Holds back what comes, and the window for more. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    const held = this.#held;
    this.#held = [];
    for (const piece of held) this.receive(piece, piece.length);
    this.#tellEnd();
  }

  /** Takes a piece of the request, which took `size` bytes of the window. */
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
    this.#tellEnd();
  }

  #tellEnd(): void {
    if (!this.isRequestEnded || this.#isPaused || this.#hasToldEnd || this.isClosed) return;
    this.#hasToldEnd = true;
    this.handler?.end();
  }

  get hasPieces(): boolean {
    return this.#pieces.length > 0;
  }

  /** The trailers, once the body has been sent. */
  get trailers(): Buffer | undefined {
    return this.hasPieces ? undefined : this.#trailers;
  }

  /** Removes up to `limit` bytes of the body; `whenTaken` comes with the last of a piece. */
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

  /** Marks the stream as closed, and says so to its handler. */
  close(): void {
    this.isClosed = true;
    this.#pieces.length = 0;
    this.#held = [];
    this.handler?.close();
  }
}
