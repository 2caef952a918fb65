import { type FileHandle, open } from 'node:fs/promises';
import { LimitError, OpmateError, fileError } from '../core/errors.js';
import { normalizeEntryPath, showName } from './entry-path.js';

/** Where the content of a file lies in an uncompressed tar archive. */
export interface TarSlice {
  offset: number;
  size: number;
}

export interface TarIndexOptions {
  /** Entries, links and directories included; 200,000 when left out. */
  maxEntries?: number;
  /** The open file to read, which stays open; the path then only names it in messages. */
  handle?: FileHandle;
}

const blockSize = 512;
/** Long names and PAX records are read into memory; real ones have a few hundred bytes. */
const maxExtensionSize = 1024 * 1024;

/**
 * Finds every regular file of an uncompressed tar archive without reading content. Names are as
 * `normalizeEntryPath` gives them; of a name that occurs twice the last counts, as when unpacking. Links to a
 * file of the archive stand for that file; others are left out.
 *
 * Throws OpmateError NOT_FOUND or IO, SYNTAX (no tar archive, damaged, or shorter than it says),
 * UNSUPPORTED (a compressed or sparse one), UNSAFE (names) or LIMIT.
 */
export async function indexTar(path: string, options: TarIndexOptions = {}): Promise<Map<string, TarSlice>> {
  let own: FileHandle | undefined;
  try {
    const handle = options.handle ?? (own = await open(path, 'r'));
    return await new Indexer(handle, path, options.maxEntries ?? 200_000).run();
  } catch (error) {
    throw fileError(path, error);
  } finally {
    await own?.close();
  }
}

class Indexer {
  readonly #handle: FileHandle;
  readonly #path: string;
  readonly #maxEntries: number;
  readonly #files = new Map<string, TarSlice>();
  readonly #links = new Map<string, string>();

  constructor(handle: FileHandle, path: string, maxEntries: number) {
    this.#handle = handle;
    this.#path = path;
    this.#maxEntries = maxEntries;
  }

  async run(): Promise<Map<string, TarSlice>> {
    const { size: total } = await this.#handle.stat();
    let records: Records = {};
    let position = 0;
    let entries = 0;
    while (position + blockSize <= total) {
      const header = await this.#read(position, blockSize);
      if (header.every((byte) => byte === 0)) break;
      if (!hasValidChecksum(header)) throw this.#damaged(position);
      if (++entries > this.#maxEntries) {
        throw new LimitError(`${this.#path}: more than ${this.#maxEntries} entries`, {
          hint: 'raise the limit with --max-entries if you trust where this comes from',
        });
      }
      const type = String.fromCharCode(header[156] as number);
      const size = records.size ?? readNumber(header.subarray(124, 136));
      const content = position + blockSize;
      if (!Number.isSafeInteger(size) || size < 0 || content + size > total) throw this.#damaged(position);
      if (type === 'x' || type === 'L' || type === 'K') {
        if (size > maxExtensionSize) throw new LimitError(`${this.#path}: header of ${size} bytes`);
        const bytes = await this.#read(content, size);
        if (type === 'x') records = { ...records, ...this.#readRecords(bytes, position) };
        else if (type === 'L') records.path ??= readText(bytes);
        else records.linkpath ??= readText(bytes);
      } else if (type !== 'g') {
        this.#add(type, header, { offset: content, size }, records);
        records = {};
      }
      position = content + Math.ceil(size / blockSize) * blockSize;
    }
    if (entries === 0 && total > 0) throw this.#damaged(0);
    this.#resolveLinks();
    return this.#files;
  }

  #add(type: string, header: Buffer, slice: TarSlice, records: Records): void {
    const prefix =
      header.toString('latin1', 257, 262) === 'ustar' && header[263] !== 0x20
        ? readText(header.subarray(345, 500))
        : '';
    const short = readText(header.subarray(0, 100));
    const name = normalizeEntryPath(records.path ?? (prefix ? `${prefix}/${short}` : short), this.#path);
    if (type === 'S' || records.sparse) {
      throw new OpmateError('UNSUPPORTED', `${this.#path}: entry ${showName(name)}: sparse file`);
    }
    if (type === '0' || type === '\0' || type === '7') {
      this.#links.delete(name);
      this.#files.set(name, slice);
    } else if (type === '1' || type === '2') {
      const target = records.linkpath ?? readText(header.subarray(157, 257));
      const directory = type === '2' && !target.startsWith('/') ? `${name}/../` : '';
      this.#files.delete(name);
      this.#links.set(name, normalizeEntryPath(`${directory}${target}`, this.#path));
    }
  }

  #resolveLinks(): void {
    for (const [name, first] of this.#links) {
      let target: string | undefined = first;
      for (let hops = 0; hops < 16 && target !== undefined && !this.#files.has(target); hops++) {
        target = this.#links.get(target);
      }
      const slice = target === undefined ? undefined : this.#files.get(target);
      if (slice !== undefined) this.#files.set(name, slice);
    }
  }

  /** PAX extended header records: `LENGTH KEY=VALUE\n`, the length being that of the whole record. */
  #readRecords(bytes: Buffer, position: number): Records {
    const records: Records = {};
    let at = 0;
    while (at < bytes.length && bytes[at] !== 0) {
      const space = bytes.indexOf(0x20, at);
      const length = space < 0 ? Number.NaN : Number(bytes.toString('latin1', at, space));
      const equals = bytes.indexOf(0x3d, space);
      if (
        !Number.isSafeInteger(length) ||
        length < 5 ||
        at + length > bytes.length ||
        equals < 0 ||
        equals >= at + length
      ) {
        throw this.#damaged(position);
      }
      const key = bytes.toString('utf8', space + 1, equals);
      const value = bytes.toString('utf8', equals + 1, at + length - 1);
      if (key === 'path') records.path = value;
      else if (key === 'linkpath') records.linkpath = value;
      else if (key === 'size') records.size = Number(value);
      else if (key.startsWith('GNU.sparse.')) records.sparse = true;
      at += length;
    }
    return records;
  }

  async #read(position: number, length: number): Promise<Buffer> {
    const bytes = Buffer.alloc(length);
    const { bytesRead } = await this.#handle.read(bytes, 0, length, position);
    if (bytesRead !== length) throw this.#damaged(position);
    return bytes;
  }

  #damaged(position: number): OpmateError {
    const problem = position === 0 ? 'not a tar archive' : `damaged tar archive at byte ${position}`;
    return new OpmateError('SYNTAX', `${this.#path}: ${problem}`);
  }
}

interface Records {
  path?: string;
  linkpath?: string;
  size?: number;
  sparse?: boolean;
}

function readText(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end);
}

/** Octal digits, or with the first bit set a big-endian number (GNU, for sizes from 8 GiB). */
function readNumber(bytes: Buffer): number {
  if (((bytes[0] as number) & 0x80) !== 0) {
    return bytes.subarray(1).reduce((value, byte) => value * 256 + byte, (bytes[0] as number) & 0x7f);
  }
  const text = readText(bytes).trim();
  return text === '' ? 0 : /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN;
}

function hasValidChecksum(header: Buffer): boolean {
  const expected = readNumber(header.subarray(148, 156));
  let unsigned = 0;
  let signed = 0;
  for (let i = 0; i < blockSize; i++) {
    const byte = i >= 148 && i < 156 ? 0x20 : (header[i] as number);
    unsigned += byte;
    signed += byte > 127 ? byte - 256 : byte;
  }
  return expected === unsigned || expected === signed;
}
