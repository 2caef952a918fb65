import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { LayerInput } from '../../src/archive/layers.js';

/** A raw entry of a crafted archive: nothing is checked, so anything hostile can be said. */
export interface RawEntry {
  name: string | Buffer;
  /** The type flag of the header; `0` (file) unless told. */
  flag?: string;
  content?: string | Buffer;
  linkName?: string;
  /** What the header says of its size, where that is not the length of `content`. */
  size?: number;
  /** The twelve bytes of the size field. */
  sizeField?: Buffer;
  mode?: number;
  /** Records of a PAX header written before the entry. */
  pax?: Record<string, string>;
}

/** A tar archive of `entries` as they come. */
export function rawTar(entries: RawEntry[], options: { end?: boolean } = {}): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    if (entry.pax !== undefined) {
      const records = Object.entries(entry.pax).map(([key, value]) => paxRecord(key, value));
      parts.push(rawEntry({ name: 'PaxHeaders/x', flag: 'x', content: records.join('') }));
    }
    parts.push(rawEntry(entry));
  }
  if (options.end !== false) parts.push(Buffer.alloc(1024));
  return Buffer.concat(parts);
}

/** One record of a PAX header, with its own length in front. */
export function paxRecord(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  let length = Buffer.byteLength(rest);
  while (length !== Buffer.byteLength(rest) + String(length).length) {
    length = Buffer.byteLength(rest) + String(length).length;
  }
  return `${length}${rest}`;
}

function rawEntry(entry: RawEntry): Buffer {
  const content = Buffer.from(entry.content ?? '');
  const header = Buffer.alloc(512);
  Buffer.from(entry.name).copy(header, 0, 0, 100);
  header.write(octal(entry.mode ?? 0o644, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  if (entry.sizeField !== undefined) entry.sizeField.copy(header, 124);
  else header.write(octal(entry.size ?? content.length, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(entry.flag ?? '0', 156);
  header.write((entry.linkName ?? '').slice(0, 100), 157);
  header.write('ustar\u000000', 257);
  header.fill(' ', 148, 156);
  header.write(
    `${octal(
      header.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

/** A layer of these bytes, in chunks of `chunkSize`, that counts how often it is opened. */
export function layerFrom(bytes: Buffer, chunkSize = 64 * 1024): LayerInput & { opened: number } {
  return {
    label: `sha256:${createHash('sha256').update(bytes).digest('hex')}`,
    opened: 0,
    async open() {
      this.opened++;
      return streamOf(bytes, chunkSize);
    },
  };
}

/** A gzip-compressed layer of crafted entries. */
export function rawLayer(entries: RawEntry[]): LayerInput & { opened: number } {
  return layerFrom(gzipSync(rawTar(entries)));
}

export function streamOf(bytes: Buffer, chunkSize = 64 * 1024): Readable {
  const chunks: Buffer[] = [];
  for (let i = 0; i < bytes.length; i += chunkSize) chunks.push(bytes.subarray(i, i + chunkSize));
  return Readable.from(chunks, { objectMode: false });
}
