import { decodeHuffman } from './huffman.js';
import { ConnectionError, errorCodes } from './protocol.js';

const fieldOverhead = 32;
const maxTableSize = 4096;
/** Maximum size of a field list in octets. (Source: RFC 9113, section 6.5.2.) */
export const maxListSize = 65_536;
const maxFields = 128;

/** A header field; fields of the tables are shared objects. */
export interface HeaderField {
  readonly name: string;
  readonly value: string;
  /** Name and value are allowed in HTTP/2. */
  readonly isValid: boolean;
}

const validName = /^:?[!#$%&'*+.^_`|~0-9a-z-]+$/;
const invalidValue = /[\0\r\n]|^[\t ]|[\t ]$/;

function createField(name: string, value: string): HeaderField {
  return { name, value, isValid: validName.test(name) && !invalidValue.test(value) };
}

/** Static table, from index 1. (Source: RFC 7541, appendix A.) */
const staticFields = `:authority
:method GET
:method POST
:path /
:path /index.html
:scheme http
:scheme https
:status 200
:status 204
:status 206
:status 304
:status 400
:status 404
:status 500
accept-charset
accept-encoding gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate`
  .split('\n')
  .map((line) => /^(:?[^ ]+) ?(.*)$/.exec(line) as RegExpExecArray)
  .map(([, name, value]) => createField(name as string, value as string));

function getSize({ name, value }: HeaderField): number {
  return name.length + value.length + fieldOverhead;
}

/** Decodes the header blocks of one connection, in order. (Source: RFC 7541.) */
export class HeaderDecoder {
  /** Newest last. */
  readonly #table: HeaderField[] = [];
  #tableSize = 0;
  #maxTableSize = maxTableSize;
  #block: Buffer = Buffer.alloc(0);
  #position = 0;

  /**
   * Returns the fields of a block; undefined for more than 128 fields or 64 KiB, which still update the table.
   * Throws ConnectionError COMPRESSION_ERROR.
   */
  decode(block: Buffer): readonly HeaderField[] | undefined {
    this.#block = block;
    this.#position = 0;
    const fields: HeaderField[] = [];
    let size = 0;
    let isFirst = true;
    while (this.#position < block.length) {
      const first = block[this.#position] as number;
      if ((first & 0xe0) === 0x20) {
        if (!isFirst) throw invalid('late table size update');
        this.#resize(this.#readInteger(5));
        continue;
      }
      isFirst = false;
      const field = this.#readField(first);
      size += getSize(field);
      if (size <= maxListSize && fields.length <= maxFields) fields.push(field);
    }
    return size <= maxListSize && fields.length <= maxFields ? fields : undefined;
  }

  #readField(first: number): HeaderField {
    if ((first & 0x80) !== 0) return this.#getField(this.#readInteger(7));
    const isIndexed = (first & 0x40) !== 0;
    const index = this.#readInteger(isIndexed ? 6 : 4);
    const name = index === 0 ? this.#readString() : this.#getField(index).name;
    const field = createField(name, this.#readString());
    if (isIndexed) this.#add(field);
    return field;
  }

  #getField(index: number): HeaderField {
    const field = staticFields[index - 1] ?? this.#table[this.#table.length - (index - staticFields.length)];
    if (index === 0 || field === undefined) throw invalid(`invalid index ${index}`);
    return field;
  }

  #add(field: HeaderField): void {
    const size = getSize(field);
    this.#evict(this.#maxTableSize - size);
    if (size > this.#maxTableSize) return;
    this.#table.push(field);
    this.#tableSize += size;
  }

  #resize(size: number): void {
    if (size > maxTableSize) throw invalid(`table size ${size} is larger than ${maxTableSize}`);
    this.#maxTableSize = size;
    this.#evict(size);
  }

  /** Removes the oldest fields until the rest fits in `size`. */
  #evict(size: number): void {
    let count = 0;
    while (this.#tableSize > Math.max(0, size))
      this.#tableSize -= getSize(this.#table[count++] as HeaderField);
    if (count > 0) this.#table.splice(0, count);
  }

  #readInteger(prefixBits: number): number {
    const mask = (1 << prefixBits) - 1;
    let value = this.#readByte() & mask;
    if (value < mask) return value;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#readByte();
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value;
    }
    throw invalid('integer is too large');
  }

  #readString(): string {
    const isHuffman = ((this.#block[this.#position] ?? 0) & 0x80) !== 0;
    const length = this.#readInteger(7);
    const end = this.#position + length;
    if (end > this.#block.length) throw invalid('truncated string');
    const bytes = this.#block.subarray(this.#position, end);
    this.#position = end;
    return isHuffman ? decodeHuffman(bytes) : bytes.toString('latin1');
  }

  #readByte(): number {
    const byte = this.#block[this.#position++];
    if (byte === undefined) throw invalid('truncated header block');
    return byte;
  }
}

function invalid(message: string): ConnectionError {
  return new ConnectionError(errorCodes.COMPRESSION_ERROR, message);
}

/**
 * Encodes the fields of a response, `:status` first, without the dynamic table: the block is valid on every connection.
 * Names and values are ASCII.
 */
export function encodeHeaderBlock(fields: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  for (const [name, value] of Object.entries(fields)) {
    const index = staticFields.findIndex((field) => field.name === name && field.value === value);
    if (index >= 0) parts.push(encodeInteger(index + 1, 7, 0x80));
    else parts.push(Buffer.from([0]), encodeString(name), encodeString(value));
  }
  return Buffer.concat(parts);
}

/** Start of the first header block after a client has limited the table: ours is empty. */
export const emptyTableUpdate = Buffer.from([0x20]);

function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  return Buffer.concat([encodeInteger(bytes.length, 7, 0), bytes]);
}

function encodeInteger(value: number, prefixBits: number, flags: number): Buffer {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) return Buffer.from([flags | value]);
  const bytes = [flags | mask];
  let rest = value - mask;
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}
