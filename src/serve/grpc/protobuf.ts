import { isUtf8 } from 'node:buffer';
import { OpmateError } from '../../core/errors.js';

/**
 * The wire format of protocol buffers, as far as this API needs it. (Source: protobuf.dev, Encoding.)
 */

const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Writes one message. Fields may come in any order; empty texts are left out, as proto3 has it. */
export class MessageWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  text(field: number, value: string): this {
    return value === '' ? this : this.item(field, value);
  }

  /** A text that is written even when it is empty: an item of a list, or the member of a oneof. */
  item(field: number, value: string): this {
    const size = Buffer.byteLength(value);
    this.#start(field, wireTypes.bytes, size);
    this.#length += this.#bytes.write(value, this.#length);
    return this;
  }

  items(field: number, values: readonly string[]): this {
    for (const value of values) this.item(field, value);
    return this;
  }

  /** An embedded message, or bytes. */
  bytes(field: number, value: Uint8Array): this {
    this.#start(field, wireTypes.bytes, value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  message(field: number, write: (writer: MessageWriter) => void): this {
    const inner = new MessageWriter();
    write(inner);
    return this.bytes(field, inner.#bytes.subarray(0, inner.#length));
  }

  /** A number from 0 to 2^53 or a boolean; written even when it is 0. */
  varint(field: number, value: number): this {
    this.#reserve(20);
    this.#varint(field * 8 + wireTypes.varint);
    this.#varint(value);
    return this;
  }

  double(field: number, value: number): this {
    this.#reserve(20);
    this.#varint(field * 8 + wireTypes.fixed64);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
    return this;
  }

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #start(field: number, wireType: number, size: number): void {
    this.#reserve(size + 20);
    this.#varint(field * 8 + wireType);
    this.#varint(size);
  }

  #varint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
    this.#bytes[this.#length++] = rest;
  }

  #reserve(size: number): void {
    if (this.#length + size <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#length + size));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

/** A message with `write`'s fields. */
export function encodeMessage(write: (writer: MessageWriter) => void): Buffer {
  const writer = new MessageWriter();
  write(writer);
  return writer.finish();
}

/** A field of a message. */
export interface MessageField {
  field: number;
  /** A text, bytes, or a message. */
  bytes?: Buffer;
  /** A number that is written as it is needed, or a boolean. */
  number?: number;
}

/** The fields of a message in their order. Throws OpmateError SYNTAX for what is no message. */
export function* readFields(message: Buffer): Generator<MessageField, void, undefined> {
  let at = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1, count = 0; count < 10; shift *= 0x80, count++) {
      const byte = message[at++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  };
  while (at < message.length) {
    const tag = varint();
    const field = Math.floor(tag / 8);
    if (field === 0) throw malformed();
    switch (tag % 8) {
      case wireTypes.varint:
        yield { field, number: varint() };
        continue;
      case wireTypes.fixed64:
        at += 8;
        break;
      case wireTypes.fixed32:
        at += 4;
        break;
      case wireTypes.bytes: {
        const size = varint();
        if (at + size > message.length) throw malformed();
        at += size;
        yield { field, bytes: message.subarray(at - size, at) };
        continue;
      }
      default:
        throw malformed();
    }
    yield { field };
  }
  if (at > message.length) throw malformed();
}

/**
 * The texts of a message by field number; of a field that comes twice, the last. Fields of other types are passed
 * over, as unknown ones are. Throws OpmateError SYNTAX for what is no message or has text that is not UTF-8.
 */
export function readTexts(bytes: Uint8Array): ReadonlyMap<number, string> {
  const texts = new Map<number, string>();
  const message = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const { field, bytes: value } of readFields(message)) {
    if (value === undefined) continue;
    if (!isUtf8(value)) throw new OpmateError('SYNTAX', 'a text of the request is not UTF-8');
    texts.set(field, value.toString());
  }
  return texts;
}

function malformed(): OpmateError {
  return new OpmateError('SYNTAX', 'the request is not a protocol buffers message');
}
