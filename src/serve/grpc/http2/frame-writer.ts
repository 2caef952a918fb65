import type { Socket } from 'node:net';
import { type ErrorCode, frameFlags, frameTypes, headerSize } from './protocol.js';

/** What is copied together into one piece of memory, and the size up to which that is cheaper than another piece. */
const slabBytes = 32 * 1024;
const maxCopiedBytes = 4 * 1024;

/** Collects frames, and writes those of one turn together. */
export class FrameWriter {
  readonly #socket: Socket;
  readonly #whenWritten: () => void;
  #slab = Buffer.alloc(0);
  /** The part of the slab that belongs to this turn. */
  #start = 0;
  #end = 0;
  #pieces: Uint8Array[] = [];
  #waiting: (() => void)[] = [];
  #unwrittenBytes = 0;

  /** `whenWritten` is called when the system has taken what was flushed. */
  constructor(socket: Socket, whenWritten: () => void) {
    this.#socket = socket;
    this.#whenWritten = whenWritten;
  }

  /** Bytes that the system has not taken yet. */
  get unwrittenBytes(): number {
    return this.#unwrittenBytes;
  }

  /** Writes the head of a frame, and its payload with `add`. */
  begin(type: number, flags: number, id: number, length: number): void {
    this.#reserve(headerSize);
    const slab = this.#slab;
    slab.writeUIntBE(length, this.#end, 3);
    slab[this.#end + 3] = type;
    slab[this.#end + 4] = flags;
    slab.writeUInt32BE(id, this.#end + 5);
    this.#end += headerSize;
    this.#unwrittenBytes += headerSize;
  }

  /** The bytes may not change any more. */
  add(bytes: Uint8Array): void {
    this.#unwrittenBytes += bytes.length;
    if (bytes.length > maxCopiedBytes) {
      this.#endPiece();
      this.#pieces.push(bytes);
      return;
    }
    this.#reserve(bytes.length);
    this.#slab.set(bytes, this.#end);
    this.#end += bytes.length;
  }

  /** Writes header blocks, with continuations where they are longer than a frame. */
  headers(id: number, block: Uint8Array, isLast: boolean, frameSize: number): void {
    const endStream = isLast ? frameFlags.END_STREAM : 0;
    for (let start = 0; start === 0 || start < block.length; start += frameSize) {
      const part = block.length <= frameSize ? block : block.subarray(start, start + frameSize);
      const endHeaders = start + frameSize >= block.length ? frameFlags.END_HEADERS : 0;
      const type = start === 0 ? frameTypes.HEADERS : frameTypes.CONTINUATION;
      this.begin(type, endHeaders | (start === 0 ? endStream : 0), id, part.length);
      this.add(part);
    }
  }

  reset(id: number, code: ErrorCode): void {
    this.begin(frameTypes.RST_STREAM, 0, id, 4);
    this.#addNumber(code);
  }

  windowUpdate(id: number, bytes: number): void {
    this.begin(frameTypes.WINDOW_UPDATE, 0, id, 4);
    this.#addNumber(bytes);
  }

  goAway(lastId: number, code: ErrorCode): void {
    this.begin(frameTypes.GOAWAY, 0, 0, 8);
    this.#addNumber(lastId);
    this.#addNumber(code);
  }

  settings(values: readonly (readonly [id: number, value: number])[]): void {
    const payload = Buffer.alloc(values.length * 6);
    for (const [i, [id, value]] of values.entries()) {
      payload.writeUInt16BE(id, i * 6);
      payload.writeUInt32BE(value, i * 6 + 2);
    }
    this.begin(frameTypes.SETTINGS, 0, 0, payload.length);
    this.add(payload);
  }

  /** Calls back when all frames up to here have been taken by the system; never where the connection ends before. */
  afterwards(work: () => void): void {
    this.#waiting.push(work);
  }

  /** Hands all frames over to the socket. */
  flush(): void {
    this.#endPiece();
    const pieces = this.#pieces;
    const last = pieces.pop();
    if (last === undefined) return;
    const waiting = this.#waiting;
    let bytes = last.length;
    const written = (error?: Error | null): void => {
      this.#unwrittenBytes -= bytes;
      if (error) return;
      for (const work of waiting) work();
      this.#whenWritten();
    };
    this.#pieces = [];
    this.#waiting = [];
    if (pieces.length === 0) return void this.#socket.write(last, written);
    this.#socket.cork();
    for (const piece of pieces) {
      bytes += piece.length;
      this.#socket.write(piece);
    }
    this.#socket.write(last, written);
    this.#socket.uncork();
  }

  #addNumber(value: number): void {
    this.#reserve(4);
    this.#end = this.#slab.writeUInt32BE(value, this.#end);
    this.#unwrittenBytes += 4;
  }

  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#slab.length) return;
    this.#endPiece();
    this.#slab = Buffer.allocUnsafeSlow(slabBytes);
    this.#start = 0;
    this.#end = 0;
  }

  #endPiece(): void {
    if (this.#end > this.#start) this.#pieces.push(this.#slab.subarray(this.#start, this.#end));
    this.#start = this.#end;
  }
}
