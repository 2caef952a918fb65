import type { Socket } from 'node:net';
import { type ErrorCode, frameFlags, frameTypes, headerSize } from './protocol.js';

/** Frames are copied into slabs; a payload of more than `maxCopiedBytes` is cheaper to write apart. */
const slabBytes = 32 * 1024;
const maxCopiedBytes = 4 * 1024;

/** Collects the frames of one turn and writes them together. */
export class FrameWriter {
  readonly #socket: Socket;
  readonly #whenWritten: () => void;
  #slab = Buffer.alloc(0);
  /** Part of the slab that is not flushed. */
  #start = 0;
  #end = 0;
  #pieces: Uint8Array[] = [];
  #waiting: (() => void)[] = [];
  #unwrittenBytes = 0;

  /** `whenWritten` is called when the system has accepted the flushed bytes. */
  constructor(socket: Socket, whenWritten: () => void) {
    this.#socket = socket;
    this.#whenWritten = whenWritten;
  }

  /** Bytes that the system has not accepted yet. */
  get unwrittenBytes(): number {
    return this.#unwrittenBytes;
  }

  /** Begins a frame; `add` appends its payload. */
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

  /** Appends bytes, which must not change afterwards. */
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

  /** Writes a header block, with continuations where it exceeds a frame. */
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

  /** `message` becomes the debug data. */
  goAway(lastId: number, code: ErrorCode, message = ''): void {
    const debugData = Buffer.from(message);
    this.begin(frameTypes.GOAWAY, 0, 0, 8 + debugData.length);
    this.#addNumber(lastId);
    this.#addNumber(code);
    this.add(debugData);
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

  /** Calls back when the system has accepted all frames so far; never where the connection ends first. */
  afterwards(work: () => void): void {
    this.#waiting.push(work);
  }

  /** Passes all frames to the socket. */
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
