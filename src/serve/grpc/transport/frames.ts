import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { systemCode } from '../../../core/errors.js';
import { StatusError } from './status.js';

/**
 * Messages on a stream: a flag for compression, the length in four bytes, the message.
 * (Source: grpc/doc/PROTOCOL-HTTP2.md.)
 */

/** Maximum size of a request, compressed or not; the default of gRPC. */
const maxRequestBytes = 4 * 1024 * 1024;
const prefixLength = 5;

/** Names the supported encodings of requests to a client that uses another. */
export const encodingsHeader = { 'grpc-accept-encoding': 'identity,deflate,gzip' };
const decompress = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

export interface ReceivedMessage {
  isCompressed: boolean;
  body: Buffer;
}

const nothing = Buffer.alloc(0);

/** Joins the bytes of a stream and splits them into messages. */
export class MessageReader {
  /** Received bytes, copied: pieces of one byte would keep a large buffer each. */
  #held = nothing;
  #start = 0;
  #end = 0;

  /** Bytes of messages not yet taken. */
  get heldLength(): number {
    return this.#end - this.#start;
  }

  /** Forgets the messages not yet taken. */
  clear(): void {
    this.#held = nothing;
    this.#start = 0;
    this.#end = 0;
  }

  push(piece: Buffer): void {
    if (this.#end + piece.length > this.#held.length) this.#grow(piece.length);
    piece.copy(this.#held, this.#end);
    this.#end += piece.length;
  }

  /** Takes the next message once it is complete. Throws StatusError as soon as its flag or length is invalid. */
  take(): ReceivedMessage | undefined {
    const length = this.#messageLength;
    if (length === undefined || this.heldLength < length) return undefined;
    const start = this.#start;
    this.#start += length;
    const body = this.#held.subarray(start + prefixLength, this.#start);
    const isCompressed = this.#held[start] === 1;
    if (this.heldLength === 0) this.clear();
    return { isCompressed, body };
  }

  /** Reports whether bytes follow the next message. Throws as `take` does. */
  get hasMore(): boolean {
    return this.heldLength > (this.#messageLength ?? Infinity);
  }

  /** Length of the next message with its prefix; undefined before its prefix is complete. */
  get #messageLength(): number | undefined {
    if (this.heldLength < prefixLength) return undefined;
    const size = this.#held.readUInt32BE(this.#start + 1);
    if (size > maxRequestBytes) throw tooLarge(size);
    const flag = this.#held[this.#start] as number;
    if (flag > 1) throw new StatusError('INTERNAL', `unexpected payload format ${flag}`);
    return prefixLength + size;
  }

  /** Makes room in a new buffer: taken messages are parts of the old one. */
  #grow(bytes: number): void {
    const length = this.heldLength;
    const grown = Buffer.allocUnsafe(Math.max(length + bytes, 2 * length));
    this.#held.copy(grown, 0, this.#start, this.#end);
    this.#held = grown;
    this.#start = 0;
    this.#end = length;
  }
}

/** Decompresses a message by its `grpc-encoding`. Throws StatusError. */
export async function decompressMessage(
  { isCompressed, body }: ReceivedMessage,
  encoding: string,
): Promise<Buffer> {
  if (!isCompressed || encoding === 'identity') return body;
  const inflateMessage = decompress.get(encoding);
  if (inflateMessage === undefined) {
    throw new StatusError('UNIMPLEMENTED', `unsupported message encoding "${encoding.slice(0, 100)}"`);
  }
  try {
    return await inflateMessage(body, { maxOutputLength: maxRequestBytes });
  } catch (error) {
    throw systemCode(error) === 'ERR_BUFFER_TOO_LARGE'
      ? new StatusError('RESOURCE_EXHAUSTED', `message exceeds ${maxRequestBytes} bytes decompressed`)
      : new StatusError('INTERNAL', 'invalid compressed message');
  }
}

/** Maximum size of a message that is copied behind its prefix, which takes less time than a second write. */
const maxCopiedBytes = 16 * 1024;

/** Returns a reply with its prefix, in pieces to write together: large messages are not copied. */
export function frameMessage(message: Uint8Array): [start: Uint8Array, rest?: Uint8Array] {
  const isCopied = message.length <= maxCopiedBytes;
  const start = Buffer.allocUnsafe(isCopied ? prefixLength + message.length : prefixLength);
  start[0] = 0;
  start.writeUInt32BE(message.length, 1);
  if (!isCopied) return [start, message];
  start.set(message, prefixLength);
  return [start];
}

function tooLarge(size: number): StatusError {
  return new StatusError('RESOURCE_EXHAUSTED', `message of ${size} bytes exceeds ${maxRequestBytes}`);
}
