import { isUtf8 } from 'node:buffer';
import { OpmateError } from '../../core/errors.js';
import { readOwnFile } from '../../files/own-files.js';

/**
 * Messages of the `.proto` files in schemas/, encoded and decoded by tables that the build creates from these files.
 * (Source: protobuf.dev, Encoding.)
 */

interface FieldTable {
  name: string;
  number: number;
  /** A scalar type, `enum`, or the full name of a message. */
  type: string;
  isList?: boolean;
  isOneOf?: boolean;
}

/** A `.proto` file with its `google.protobuf.FileDescriptorProto`. */
interface ProtoFile {
  name: string;
  imports: string[];
  /** Full names of all declarations, methods included. */
  symbols: string[];
  descriptor: Buffer;
}

/**
 * Value of a message to encode. Text may be bytes, and a message may be encoded already; absent and empty fields are
 * omitted, except for members of a oneof and of lists.
 */
export type Encodable<T> = T extends string
  ? string | Uint8Array
  : T extends readonly (infer Item)[]
    ? readonly Encodable<Item>[]
    : T extends object
      ? Uint8Array | { readonly [Key in keyof T]?: Encodable<T[Key]> | undefined }
      : T;

type Value = string | number | boolean | Uint8Array | Message | readonly Value[];
interface Message {
  [field: string]: Value | undefined;
}

const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;
type WireType = (typeof wireTypes)[keyof typeof wireTypes];

/** Maximum nesting of messages; in `google.protobuf.Struct`, every third level is one of JSON. */
const maxDepth = 3000;

interface Descriptors {
  files: (Omit<ProtoFile, 'descriptor'> & { descriptor: string })[];
  tables: Record<string, FieldTable[]>;
}

let descriptors: Descriptors | undefined;
const types = new Map<string, MessageType<object>>();

function readDescriptors(): Descriptors {
  return (descriptors ??= JSON.parse(readOwnFile('dist/proto-descriptors.json').toString()) as Descriptors);
}

/** Returns the `.proto` files, each after its imports. */
export function readProtoFiles(): ProtoFile[] {
  return readDescriptors().files.map((file) => ({
    ...file,
    descriptor: Buffer.from(file.descriptor, 'base64'),
  }));
}

/** Returns a message type by its full name, such as `api.Bundle`. */
export function messageType<T extends object>(name: string): MessageType<T> {
  let type = types.get(name);
  if (type === undefined) {
    const table = readDescriptors().tables[name];
    if (table === undefined) throw new Error(`unknown message type ${name}`);
    types.set(name, (type = new MessageType(table)));
  }
  return type as unknown as MessageType<T>;
}

/** Encodes and decodes the messages of a type. */
export class MessageType<T extends object> {
  readonly #fields: readonly Field[];
  readonly #byName = new Map<string, Field>();
  readonly #byNumber = new Map<number, Field>();

  constructor(table: readonly FieldTable[]) {
    this.#fields = table.map((field) => new Field(field));
    for (const field of this.#fields) {
      this.#byName.set(field.name, field);
      this.#byNumber.set(field.number, field);
    }
  }

  /** Names of all fields, in decoding order. */
  get fieldNames(): string[] {
    return this.#fields.map(({ name }) => name);
  }

  /** Encodes a message. Throws OpmateError LIMIT where messages are nested too deeply. */
  encode(value: Encodable<T>): Buffer {
    const writer = new MessageWriter();
    this.write(writer, value as Message, 0);
    return writer.finish();
  }

  /**
   * Decodes a message and skips unknown fields; an absent field is empty, or undefined for a message or a member of a
   * oneof. Throws OpmateError SYNTAX for another message or text that is not UTF-8, LIMIT for too deep nesting.
   */
  decode(bytes: Uint8Array): T {
    return this.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, true) as T;
  }

  /** Decodes the present fields only, in order of their numbers. Throws as `decode`. */
  decodePresent(bytes: Uint8Array): Partial<T> {
    return this.read(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0, false) as Partial<T>;
  }

  write(writer: MessageWriter, message: Message, depth: number): void {
    if (depth > maxDepth) throw tooDeep();
    for (const name of Object.keys(message)) {
      const value = message[name];
      if (value === undefined) continue;
      const field = this.#byName.get(name);
      if (field === undefined) throw new Error(`unknown field ${name}`);
      if (field.isList) {
        for (const item of value as readonly Value[]) field.write(writer, item, depth);
      } else if (field.isOneOf || !field.isEmpty(value)) field.write(writer, value, depth);
    }
  }

  read(bytes: Buffer, depth: number, withDefaults: boolean): Message {
    if (depth > maxDepth) throw tooDeep();
    const present = new Map<string, Value>();
    for (const [number, wireType, raw] of readFields(bytes)) {
      const field = this.#byNumber.get(number);
      if (field === undefined) continue;
      if (field.wireType !== wireType) throw malformed();
      const value = field.read(raw, depth, withDefaults);
      const list = field.isList ? present.get(field.name) : undefined;
      if (list !== undefined) (list as Value[]).push(value);
      else present.set(field.name, field.isList ? [value] : value);
    }
    const message: Message = {};
    for (const field of this.#fields) {
      const value = present.get(field.name) ?? (withDefaults ? field.empty() : undefined);
      if (value !== undefined) message[field.name] = value;
    }
    return message;
  }
}

class Field {
  readonly name: string;
  readonly number: number;
  readonly isList: boolean;
  readonly isOneOf: boolean;
  readonly wireType: WireType;
  readonly #type: string;
  #message: MessageType<object> | undefined;

  constructor({ name, number, type, isList = false, isOneOf = false }: FieldTable) {
    this.name = name;
    this.number = number;
    this.isList = isList;
    this.isOneOf = isOneOf;
    this.#type = type;
    this.wireType = ['bool', 'int32', 'enum'].includes(type)
      ? wireTypes.varint
      : type === 'double'
        ? wireTypes.fixed64
        : wireTypes.bytes;
  }

  get #inner(): MessageType<object> {
    return (this.#message ??= messageType(this.#type));
  }

  write(writer: MessageWriter, value: Value, depth: number): void {
    const { number, wireType } = this;
    if (wireType === wireTypes.varint) writer.varint(number, Number(value));
    else if (wireType === wireTypes.fixed64) writer.double(number, value as number);
    else if (typeof value === 'string') writer.text(number, value);
    else if (value instanceof Uint8Array) writer.bytes(number, value);
    else {
      const inner = new MessageWriter();
      this.#inner.write(inner, value as Message, depth + 1);
      writer.bytes(number, inner.finish());
    }
  }

  read(raw: number | Buffer, depth: number, withDefaults: boolean): Value {
    if (typeof raw === 'number') return this.#type === 'bool' ? raw !== 0 : raw;
    switch (this.#type) {
      case 'double':
        return raw.readDoubleLE();
      case 'bytes':
        return raw;
      case 'string':
        if (!isUtf8(raw)) throw new OpmateError('SYNTAX', 'invalid UTF-8 in a message');
        return raw.toString();
      default:
        return this.#inner.read(raw, depth + 1, withDefaults);
    }
  }

  isEmpty(value: Value): boolean {
    if (value instanceof Uint8Array) return value.length === 0 && this.empty() !== undefined;
    return value === '' || value === 0 || value === false;
  }

  empty(): Value | undefined {
    if (this.isList) return [];
    if (this.isOneOf) return undefined;
    switch (this.#type) {
      case 'string':
        return '';
      case 'bytes':
        return Buffer.alloc(0);
      case 'bool':
        return false;
      default:
        return this.wireType === wireTypes.bytes ? undefined : 0;
    }
  }
}

class MessageWriter {
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  text(field: number, value: string): void {
    const size = Buffer.byteLength(value);
    this.#start(field, wireTypes.bytes, size);
    this.#length += this.#bytes.write(value, this.#length);
  }

  bytes(field: number, value: Uint8Array): void {
    this.#start(field, wireTypes.bytes, value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  varint(field: number, value: number): void {
    this.#reserve(20);
    this.#varint(field * 8 + wireTypes.varint);
    this.#varint(value);
  }

  double(field: number, value: number): void {
    this.#reserve(20);
    this.#varint(field * 8 + wireTypes.fixed64);
    this.#length = this.#bytes.writeDoubleLE(value, this.#length);
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

/** Yields number, wire type and content of each field. */
function* readFields(message: Buffer): Generator<[number: number, type: number, raw: number | Buffer]> {
  let position = 0;
  const varint = (): number => {
    let value = 0;
    for (let shift = 1, count = 0; count < 10; shift *= 0x80, count++) {
      const byte = message[position++];
      if (byte === undefined) break;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  };
  const take = (size: number): Buffer => {
    if (position + size > message.length) throw malformed();
    return message.subarray(position, (position += size));
  };
  while (position < message.length) {
    const tag = varint();
    const [number, type] = [Math.floor(tag / 8), tag % 8];
    if (number === 0) throw malformed();
    if (type === wireTypes.varint) yield [number, type, varint()];
    else if (type === wireTypes.fixed64) yield [number, type, take(8)];
    else if (type === wireTypes.bytes) yield [number, type, take(varint())];
    else if (type === wireTypes.fixed32) yield [number, type, take(4)];
    else throw malformed();
  }
}

function malformed(): OpmateError {
  return new OpmateError('SYNTAX', 'invalid protocol buffers message');
}

function tooDeep(): OpmateError {
  return new OpmateError('LIMIT', `message nested deeper than ${maxDepth} levels`);
}
