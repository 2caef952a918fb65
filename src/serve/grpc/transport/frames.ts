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
/** Maximum size at which copying a reply is cheaper than a second write. */
const maxCopiedBytes = 16 * 1024;

/** Supported encodings of requests, as in `grpc-accept-encoding`. */
export const acceptedEncodings = 'identity,deflate,gzip';
const decompress = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

interface ReceivedMessage {
  isCompressed: boolean;
  body: Buffer;
}

const nothing = Buffer.alloc(0);

/** Splits the bytes of a stream into messages. Throws StatusError for an invalid flag of compression. */
export class MessageReader {
  /** Start of an incomplete message. */
  #held = nothing;
  #heldLength = 0;

  /** Bytes of the incomplete message. */
  get heldLength(): number {
    return this.#heldLength;
  }

  /** Forgets the incomplete message. */
  clear(): void {
    this.#held = nothing;
    this.#heldLength = 0;
  }

  /** Returns the completed messages. Throws StatusError as soon as a length is too large. */
  read(piece: Buffer): ReceivedMessage[] {
    const bytes = this.#heldLength === 0 ? piece : this.#hold(piece);
    const messages: ReceivedMessage[] = [];
    let position = 0;
    while (bytes.length - position >= prefixLength) {
      const size = bytes.readUInt32BE(position + 1);
      if (size > maxRequestBytes) throw tooLarge(size);
      const flag = bytes[position] as number;
      if (flag > 1) throw new StatusError('INTERNAL', `unexpected payload format ${flag}`);
      const end = position + prefixLength + size;
      if (bytes.length < end) break;
      messages.push({
        isCompressed: flag === 1,
        body: bytes.subarray(position + prefixLength, end),
      });
      position = end;
    }
    if (position > 0 || this.#heldLength === 0) {
      this.clear();
      if (position < bytes.length) this.#hold(bytes.subarray(position));
    }
    return messages;
  }

  /** Copies a piece: a message in pieces of one byte would keep a buffer for each. */
  #hold(piece: Buffer): Buffer {
    const length = this.#heldLength + piece.length;
    if (length > this.#held.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#held.length));
      this.#held.copy(grown, 0, 0, this.#heldLength);
      this.#held = grown;
    }
    piece.copy(this.#held, this.#heldLength);
    this.#heldLength = length;
    return this.#held.subarray(0, length);
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

/** Returns the pieces of a reply to write: one for a small reply, else prefix and message. */
export function frameMessage(message: Uint8Array): readonly Uint8Array[] {
  const isCopied = message.length <= maxCopiedBytes;
  const frame = Buffer.allocUnsafe(prefixLength + (isCopied ? message.length : 0));
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  if (!isCopied) return [frame, message];
  frame.set(message, prefixLength);
  return [frame];
}

function tooLarge(size: number): StatusError {
  return new StatusError('RESOURCE_EXHAUSTED', `message of ${size} bytes exceeds ${maxRequestBytes}`);
}
