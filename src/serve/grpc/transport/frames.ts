import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';
import { systemCode } from '../../../core/errors.js';
import { StatusError } from './status.js';

/**
 * Messages on a stream: a flag that tells whether the message is compressed, its length in four bytes, the message.
 * (Source: grpc/doc/PROTOCOL-HTTP2.md.)
 */

/** Maximum size of a request, decompressed too; also gRPC's default. */
const maxRequestBytes = 4 * 1024 * 1024;
const prefixLength = 5;
/** A copy of a reply is cheaper than a second write up to this size. */
const maxCopiedBytes = 16 * 1024;

/** Encodings of requests that are read, as `grpc-accept-encoding`. */
export const acceptedEncodings = 'identity,deflate,gzip';
const decompress = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);

/** A message as it came. */
interface ReceivedMessage {
  isCompressed: boolean;
  body: Buffer;
}

const nothing = Buffer.alloc(0);

/** Splits what comes on a stream into messages. */
export class MessageReader {
  /** The beginning of a message whose rest has not come. */
  #held = nothing;
  #heldLength = 0;

  /** Returns the messages that are whole now. Throws StatusError as soon as one is known to be too large. */
  read(piece: Buffer): ReceivedMessage[] {
    const bytes = this.#heldLength === 0 ? piece : this.#hold(piece);
    const messages: ReceivedMessage[] = [];
    let position = 0;
    while (bytes.length - position >= prefixLength) {
      const size = bytes.readUInt32BE(position + 1);
      if (size > maxRequestBytes) throw tooLarge(size);
      const end = position + prefixLength + size;
      if (bytes.length < end) break;
      messages.push({
        isCompressed: bytes[position] === 1,
        body: bytes.subarray(position + prefixLength, end),
      });
      position = end;
    }
    if (position > 0 || this.#heldLength === 0) {
      this.#held = nothing;
      this.#heldLength = 0;
      if (position < bytes.length) this.#hold(bytes.subarray(position));
    }
    return messages;
  }

  /** Copies a piece: a message in pieces of one byte would hold a buffer for each of them. */
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

/** Returns a message as it was before `grpc-encoding` compressed it. Throws StatusError. */
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
      ? new StatusError('RESOURCE_EXHAUSTED', `message is larger than ${maxRequestBytes} bytes decompressed`)
      : new StatusError('INTERNAL', 'message cannot be decompressed');
  }
}

/** Returns a reply as the pieces to write: one where it is small, its prefix apart where it is not. */
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
  return new StatusError('RESOURCE_EXHAUSTED', `message of ${size} bytes is larger than ${maxRequestBytes}`);
}
