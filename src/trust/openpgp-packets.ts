import { constants, inflateRawSync, inflateSync } from 'node:zlib';
import { LimitError, OpmateError } from '../core/errors.js';

/** Supported packet types of RFC 9580, section 5. */
export const packetType = {
  encryptedSessionKey: 1,
  signature: 2,
  symmetricSessionKey: 3,
  onePassSignature: 4,
  secretKey: 5,
  publicKey: 6,
  secretSubkey: 7,
  compressedData: 8,
  encryptedData: 9,
  marker: 10,
  literalData: 11,
  trust: 12,
  userId: 13,
  publicSubkey: 14,
  userAttribute: 17,
  encryptedIntegrityData: 18,
  aeadEncryptedData: 20,
  padding: 21,
} as const;

export interface Packet {
  type: number;
  body: Buffer;
}

/** Maximum number of packets in a message or keyring. */
const maxPackets = 50_000;
/** Maximum nesting of compressed packets. */
const maxNesting = 4;
/** Data packets, which alone may have partial or indeterminate lengths. */
const dataPackets: readonly number[] = [
  packetType.compressedData,
  packetType.encryptedData,
  packetType.literalData,
  packetType.encryptedIntegrityData,
  packetType.aeadEncryptedData,
];

/** Reads integers and bytes from the start of a packet. Throws OpmateError SYNTAX for missing bytes. */
export class PacketReader {
  #offset = 0;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset;
  }

  get offset(): number {
    return this.#offset;
  }

  take(count: number): Buffer {
    if (count > this.remaining) throw new OpmateError('SYNTAX', 'truncated OpenPGP packet');
    const taken = this.#bytes.subarray(this.#offset, this.#offset + count);
    this.#offset += count;
    return taken;
  }

  /** Reads an unsigned integer of 1, 2 or 4 bytes. */
  uint(bytes: 1 | 2 | 4): number {
    return this.take(bytes).readUIntBE(0, bytes);
  }

  /** Reads a multiprecision integer, without leading zeros. */
  mpi(): Buffer {
    const bits = this.uint(2);
    const value = this.take(Math.ceil(bits / 8));
    let zeros = 0;
    while (zeros < value.length && value[zeros] === 0) zeros++;
    return value.subarray(zeros);
  }

  rest(): Buffer {
    return this.take(this.remaining);
  }
}

/** Splits bytes into packets (RFC 9580, section 4.2). Throws OpmateError SYNTAX, or LIMIT above 50,000 packets. */
export function readPackets(bytes: Buffer): Packet[] {
  const reader = new PacketReader(bytes);
  const packets: Packet[] = [];
  while (reader.remaining > 0) {
    if (packets.length >= maxPackets) throw new LimitError(`more than ${maxPackets} OpenPGP packets`);
    const header = reader.uint(1);
    if ((header & 0x80) === 0) throw new OpmateError('SYNTAX', 'not OpenPGP data');
    packets.push((header & 0x40) === 0 ? readOldPacket(header, reader) : readNewPacket(header, reader));
  }
  return packets;
}

function readOldPacket(header: number, reader: PacketReader): Packet {
  const type = (header >> 2) & 0x0f;
  const lengthBytes = ([1, 2, 4] as const)[header & 3];
  if (lengthBytes !== undefined) return { type, body: reader.take(reader.uint(lengthBytes)) };
  requireDataPacket(type);
  return { type, body: reader.rest() };
}

function readNewPacket(header: number, reader: PacketReader): Packet {
  const type = header & 0x3f;
  const parts: Buffer[] = [];
  for (;;) {
    const { length, isPartial } = readNewLength(reader);
    parts.push(reader.take(length));
    if (!isPartial) return { type, body: parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts) };
    requireDataPacket(type);
    if (parts.length > maxPackets) throw new LimitError(`more than ${maxPackets} parts of an OpenPGP packet`);
  }
}

/** Reads a length of the new format, which subpackets use too, without partial ones. */
export function readNewLength(reader: PacketReader): { length: number; isPartial: boolean } {
  const first = reader.uint(1);
  if (first < 192) return { length: first, isPartial: false };
  if (first < 224) return { length: ((first - 192) << 8) + reader.uint(1) + 192, isPartial: false };
  if (first === 255) return { length: reader.uint(4), isPartial: false };
  return { length: 1 << (first & 0x1f), isPartial: true };
}

function requireDataPacket(type: number): void {
  if (dataPackets.includes(type)) return;
  throw new OpmateError('SYNTAX', `OpenPGP packet of type ${type} without a definite length`);
}

/**
 * Returns the packets of a message, with compressed ones expanded and meaningless ones omitted. `limit` is the
 * maximum of bytes after decompression. Throws OpmateError SYNTAX, UNSUPPORTED or LIMIT.
 */
export function readMessagePackets(bytes: Buffer, limit: number, depth = 0): Packet[] {
  return readPackets(bytes).flatMap((packet) => {
    if (packet.type === packetType.marker || packet.type === packetType.padding) return [];
    if (packet.type !== packetType.compressedData) return [packet];
    if (depth === maxNesting) throw new LimitError(`more than ${maxNesting} levels of OpenPGP compression`);
    return readMessagePackets(decompress(packet.body, limit), limit, depth + 1);
  });
}

function decompress(body: Buffer, limit: number): Buffer {
  const algorithm = body[0];
  const compressed = body.subarray(1);
  if (algorithm === 0) return compressed;
  if (algorithm !== 1 && algorithm !== 2) {
    const name = algorithm === 3 ? 'BZip2' : String(algorithm ?? 'none');
    throw new OpmateError('UNSUPPORTED', `OpenPGP compression ${name}`, {
      hint: 'use a message compressed with ZIP or ZLIB, or uncompressed',
    });
  }
  const options = { maxOutputLength: limit, finishFlush: constants.Z_FINISH, info: true as const };
  let result: { buffer: Buffer; engine: { bytesWritten: number } };
  try {
    // The types of Node.js lack the result of `info`.
    result = (algorithm === 1 ? inflateRawSync : inflateSync)(
      compressed,
      options,
    ) as unknown as typeof result;
  } catch (cause) {
    if ((cause as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new LimitError(`OpenPGP message of more than ${limit} bytes after decompression`, { cause });
    }
    throw new OpmateError('SYNTAX', 'damaged or truncated OpenPGP compression', { cause });
  }
  if (result.engine.bytesWritten < compressed.length) {
    throw new OpmateError('SYNTAX', 'data after the end of OpenPGP compression');
  }
  return result.buffer;
}

const armorBegin = /^-----BEGIN PGP ([A-Z ,/0-9]{1,60})-----[ \t]*\r?$/;
const armorEnd = /^-----END PGP ([A-Z ,/0-9]{1,60})-----[ \t]*\r?$/;

/** A decoded block of ASCII armor; `kind` is that of its first line: `PUBLIC KEY BLOCK`. */
interface ArmorBlock {
  kind: string;
  bytes: Buffer;
}

/** Decodes ASCII armor (RFC 9580, section 6). Returns undefined for binary data. Throws OpmateError SYNTAX. */
export function readArmor(bytes: Buffer): ArmorBlock[] | undefined {
  const text = bytes.toString('latin1');
  if (!/(?:^|\n)-----BEGIN PGP /.test(text)) return undefined;
  const blocks: ArmorBlock[] = [];
  let open: { kind: string; lines: string[] } | undefined;
  for (const line of text.split('\n')) {
    if (open === undefined) {
      const kind = armorBegin.exec(line)?.[1];
      // The text of a clear-signed message is no block; its signature is.
      if (kind !== undefined && kind !== 'SIGNED MESSAGE') open = { kind, lines: [] };
    } else if (armorEnd.exec(line)?.[1] !== open.kind) open.lines.push(line);
    else {
      blocks.push({ kind: open.kind, bytes: decodeArmor(open.lines) });
      open = undefined;
    }
  }
  if (open !== undefined || blocks.length === 0) throw new OpmateError('SYNTAX', 'truncated ASCII armor');
  return blocks;
}

function decodeArmor(content: readonly string[]): Buffer {
  const lines = content.map((line) => line.trim());
  const blank = lines.indexOf('');
  const body = lines.slice(blank + 1).filter((line) => line !== '');
  const checksum =
    body.at(-1)?.startsWith('=') === true && body.at(-1)?.length === 5 ? body.pop() : undefined;
  const base64 = body.join('');
  if (blank < 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) {
    throw new OpmateError('SYNTAX', 'damaged ASCII armor');
  }
  const decoded = Buffer.from(base64, 'base64');
  if (
    checksum !== undefined &&
    Buffer.from(checksum.slice(1), 'base64').readUIntBE(0, 3) !== crc24(decoded)
  ) {
    throw new OpmateError('SYNTAX', 'damaged ASCII armor: checksum mismatch');
  }
  return decoded;
}

/** Computes the checksum of RFC 9580, section 6.1.1. */
function crc24(bytes: Buffer): number {
  let crc = 0xb704ce;
  for (const byte of bytes) {
    crc ^= byte << 16;
    for (let i = 0; i < 8; i++) {
      crc <<= 1;
      if ((crc & 0x1000000) !== 0) crc ^= 0x1864cfb;
    }
  }
  return crc & 0xffffff;
}
