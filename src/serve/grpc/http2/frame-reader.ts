import { ConnectionError, defaultFrameSize, errorCodes, headerSize } from './protocol.js';

type TakeFrame = (type: number, flags: number, id: number, payload: Buffer) => void;

const nothing = Buffer.alloc(0);

/** Splits the bytes of a connection into frames. */
export class FrameReader {
  readonly #take: TakeFrame;
  /** Start of an incomplete frame. */
  readonly #head = Buffer.alloc(headerSize);
  #headLength = 0;
  #payload: Buffer | undefined;
  #payloadLength = 0;

  constructor(take: TakeFrame) {
    this.#take = take;
  }

  /** Passes on each complete frame. Throws ConnectionError FRAME_SIZE_ERROR, and errors of `take`. */
  read(piece: Buffer): void {
    let position = 0;
    while (position < piece.length) {
      if (this.#payload !== undefined) {
        position = this.#fill(this.#payload, piece, position);
        continue;
      }
      const size = this.#headLength === 0 ? piece.length - position : 0;
      if (size >= headerSize) {
        const length = readLength(piece, position);
        const end = position + headerSize + length;
        if (end <= piece.length) {
          const payload = length === 0 ? nothing : piece.subarray(position + headerSize, end);
          this.#hand(piece, position, payload);
          position = end;
          continue;
        }
      }
      const copied = piece.copy(this.#head, this.#headLength, position);
      position += copied;
      this.#headLength += copied;
      if (this.#headLength < headerSize) return;
      const length = readLength(this.#head, 0);
      if (length > 0) this.#payload = Buffer.allocUnsafeSlow(length);
      else this.#finish(nothing);
    }
  }

  /** Adds to an incomplete payload; returns the position of the next frame. */
  #fill(payload: Buffer, piece: Buffer, position: number): number {
    const copied = piece.copy(payload, this.#payloadLength, position);
    this.#payloadLength += copied;
    if (this.#payloadLength === payload.length) this.#finish(payload);
    return position + copied;
  }

  #finish(payload: Buffer): void {
    this.#payload = undefined;
    this.#payloadLength = 0;
    this.#headLength = 0;
    this.#hand(this.#head, 0, payload);
  }

  #hand(head: Buffer, position: number, payload: Buffer): void {
    const id = head.readUInt32BE(position + 5) & 0x7fffffff;
    this.#take(head[position + 3] as number, head[position + 4] as number, id, payload);
  }
}

function readLength(head: Buffer, position: number): number {
  const length = head.readUIntBE(position, 3);
  if (length > defaultFrameSize) {
    throw new ConnectionError(
      errorCodes.FRAME_SIZE_ERROR,
      `frame of ${length} bytes exceeds ${defaultFrameSize}`,
    );
  }
  return length;
}
