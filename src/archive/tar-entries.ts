import { maxPathLength } from './entry-path.js';
import { tarBlockSize } from './tar-header.js';

/** Kind of an entry. `other` has no content: devices, pipes, sockets. */
type TarEntryType = 'file' | 'directory' | 'symlink' | 'link' | 'other' | 'unsupported';

/** Header of an entry, including its extension headers. */
export interface TarHeader {
  /** Name as in the archive, unchecked. */
  name: string;
  /** Unchecked target of a `symlink` or `link`; otherwise `''`. */
  linkName: string;
  /** `unsupported`: a sparse file, or an unknown type. */
  type: TarEntryType;
  /** Bytes of content without padding; 0 for entries without content. */
  size: number;
  mode: number;
}

/** Sequential bytes of an archive. */
export interface TarSource {
  /** Returns the next `length` bytes, fewer at the end of the archive. */
  read(length: number): Promise<Buffer>;
}

/** An unreadable archive; the message is a phrase that follows the name of the archive. */
export class TarProblem extends Error {
  readonly kind: 'truncated' | 'bad header' | 'ambiguous';
  constructor(kind: TarProblem['kind'], message: string) {
    super(message);
    this.kind = kind;
  }
}

/** Long names and PAX records are read into memory; real ones have a few hundred bytes. */
const maxExtensionSize = 1024 * 1024;

/**
 * Reads the next header of a tar archive: v7, ustar, GNU and PAX. `source` is at a header: the caller reads the
 * content of an entry and its padding. Returns undefined at the end of the archive; what follows is ignored.
 *
 * Reads archives as GNU tar and Go's `archive/tar`, the base of all image tools, both do. An archive for which they
 * disagree on a name, size or boundary is rejected, so that no archive reads differently elsewhere. Throws
 * TarProblem.
 */
export async function readTarHeader(source: TarSource): Promise<TarHeader | undefined> {
  let records: ReadonlyMap<string, string> | undefined;
  let longName: string | undefined;
  let longLink: string | undefined;
  for (;;) {
    const block = await readBlock(source);
    if (block === undefined || isZero(block)) {
      // One block of zeros suffices at the very end; elsewhere readers disagree.
      const second = block && (await readBlock(source));
      if (second !== undefined && !isZero(second)) throw ambiguous('single block of zeros before an entry');
      return undefined;
    }
    if (!hasValidChecksum(block)) throw new TarProblem('bad header', 'bad header');
    const flag = String.fromCharCode(block[156] as number);
    switch (flag) {
      case 'x':
        records = readRecords(await readExtension(source, block));
        break;
      case 'g':
        if (records ?? longName ?? longLink) throw ambiguous('global PAX header behind an extension header');
        for (const key of readRecords(await readExtension(source, block)).keys()) {
          if (isSignificant(key)) throw ambiguous(`global PAX header sets ${JSON.stringify(key)}`);
        }
        break;
      case 'L':
        longName = readLongName(await readExtension(source, block));
        break;
      case 'K':
        longLink = readLongName(await readExtension(source, block));
        break;
      case 'X':
        throw ambiguous('Solaris extension header');
      default:
        if (flag === 'S') await skipSparseMaps(source, block);
        return toHeader(block, flag, records ?? new Map(), longName, longLink);
    }
  }
}

function toHeader(
  block: Buffer,
  flag: string,
  records: ReadonlyMap<string, string>,
  longName: string | undefined,
  longLink: string | undefined,
): TarHeader {
  const sparse = isSparse(records);
  const name = agreed('path', records.get('path'), longName) ?? plainName(block);
  const linkName = agreed('linkpath', records.get('linkpath'), longLink) ?? readText(block, 157, 257);
  for (const [from, to] of [
    [108, 116],
    [116, 124],
    [136, 148],
  ] as const) {
    if (!isNumber(block.subarray(from, to))) throw new TarProblem('bad header', 'bad header');
  }
  const mode = readNumber(block.subarray(100, 108));
  const recorded = records.get('size');
  const declared = recorded === undefined ? readNumber(block.subarray(124, 136)) : Number(recorded);
  const kind = getType(flag, name);
  const hasContent = kind === 'file' || kind === 'unsupported';
  // Go gives such an entry content; GNU tar creates a directory and reads the content as the next header.
  const slashed = name.endsWith('/') && name.length <= maxPathLength;
  if (slashed && declared > 0 && !'\x00123456D'.includes(flag)) throw ambiguous('directory with content');
  return {
    name: records.get('GNU.sparse.name') ?? name,
    linkName: kind === 'symlink' || kind === 'link' ? linkName : '',
    type: sparse ? 'unsupported' : kind,
    size: hasContent ? declared : 0,
    mode,
  };
}

/** Types of entries by flag, but for those of files. */
const types: Readonly<Record<string, TarEntryType>> = {
  1: 'link',
  2: 'symlink',
  3: 'other',
  4: 'other',
  5: 'directory',
  6: 'other',
};

function getType(flag: string, name: string): TarEntryType {
  // Pre-POSIX archives mark directories like this.
  if ('0\x007'.includes(flag)) return name.endsWith('/') ? 'directory' : 'file';
  return types[flag] ?? 'unsupported';
}

/** Returns the agreed value of both: GNU tar prefers the PAX record, Go the GNU header. */
function agreed(key: string, record: string | undefined, long: string | undefined): string | undefined {
  if (record !== undefined && long !== undefined && record !== long) {
    throw ambiguous(`PAX ${JSON.stringify(key)} and GNU long name differ`);
  }
  return record ?? long;
}

/** Returns the name in the header itself, with the ustar prefix of long names. */
function plainName(block: Buffer): string {
  const name = readText(block, 0, 100);
  const magic = block.toString('latin1', 257, 265);
  if (magic.startsWith('ustar\0')) {
    const prefix = readText(block, 345, 500);
    // star archives have times after the first 131 bytes.
    if (block.toString('latin1', 508, 512) === 'tar\0' && prefix.length > 131) {
      throw ambiguous('name prefix that runs into the times of star');
    }
    return prefix === '' ? name : `${prefix}/${name}`;
  }
  if (magic === 'ustar  \0' && block[345] !== 0) {
    // GNU tar stores times here; old archives of Go programs have a prefix, which Go still reads.
    if (!isNumber(block.subarray(345, 357)) || !isNumber(block.subarray(357, 369))) {
      throw ambiguous('name prefix in a GNU header');
    }
  }
  return name;
}

/** Reads PAX records, `LENGTH KEY=VALUE\n` with the length of the whole record. */
function readRecords(bytes: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let index = 0; index < bytes.length;) {
    const space = bytes.indexOf(0x20, index);
    const digits = space < 0 ? '' : bytes.toString('latin1', index, space);
    const end = index + Number(digits);
    const equals = bytes.indexOf(0x3d, space);
    if (
      !/^[0-9]+$/.test(digits) ||
      !(end <= bytes.length) ||
      equals <= space + 1 ||
      equals >= end ||
      bytes[end - 1] !== 0x0a
    ) {
      throw new TarProblem('bad header', 'bad header: malformed PAX record');
    }
    const key = bytes.toString('utf8', space + 1, equals);
    const value = bytes.toString('utf8', equals + 1, end - 1);
    if (/^\s|\0/.test(key)) throw ambiguous(`PAX key ${JSON.stringify(key)}`);
    if (value === '' && (key === 'path' || key === 'linkpath')) {
      throw ambiguous(`empty PAX ${JSON.stringify(key)}`);
    }
    // NUL in a path is rejected with all other unsafe names.
    if (key === 'linkpath' && value.includes('\0')) throw ambiguous('NUL in PAX "linkpath"');
    if (key === 'size') {
      if (!/^[0-9]+$/.test(value))
        throw new TarProblem('bad header', `bad header: PAX size ${JSON.stringify(value.slice(0, 40))}`);
      checkSize(Number(value));
    }
    records.set(key, value);
    index = end;
  }
  return records;
}

function checkSize(size: number): void {
  // No archive is that large.
  if (!Number.isSafeInteger(size)) throw truncated();
}

/** Reports whether a record determines a name, size or boundary. */
function isSignificant(key: string): boolean {
  return key === 'path' || key === 'linkpath' || key === 'size' || key.startsWith('GNU.sparse.');
}

/** Reports whether PAX records mark a sparse file. Throws if only GNU tar reads them so. */
function isSparse(records: ReadonlyMap<string, string>): boolean {
  if (![...records.keys()].some((key) => key.startsWith('GNU.sparse.'))) return false;
  const [major, minor] = [records.get('GNU.sparse.major'), records.get('GNU.sparse.minor')];
  const version = `${major ?? ''}.${minor ?? ''}`;
  const known = version === '.' ? !!records.get('GNU.sparse.map') : /^(?:0\.[01]|1\.0)$/.test(version);
  if (!known) throw ambiguous('sparse file without a map');
  return true;
}

async function readExtension(source: TarSource, block: Buffer): Promise<Buffer> {
  const size = readNumber(block.subarray(124, 136));
  if (size > maxExtensionSize) throw new TarProblem('truncated', 'oversized header');
  const bytes = await source.read(Math.ceil(size / tarBlockSize) * tarBlockSize);
  if (bytes.length < size) throw truncated();
  return bytes.subarray(0, size);
}

function readLongName(bytes: Buffer): string {
  const name = readText(bytes, 0, bytes.length);
  if (name === '') throw ambiguous('empty GNU long name');
  return name;
}

/** Skips the map blocks after the header of an old GNU sparse file. */
async function skipSparseMaps(source: TarSource, block: Buffer): Promise<void> {
  for (let more = block[482] !== 0; more;) {
    const map = await readBlock(source);
    if (map === undefined) throw truncated();
    more = map[504] !== 0;
  }
}

async function readBlock(source: TarSource): Promise<Buffer | undefined> {
  const block = await source.read(tarBlockSize);
  if (block.length === tarBlockSize) return block;
  if (block.length > 0) throw truncated();
  return undefined;
}

const zeros = Buffer.alloc(tarBlockSize);
function isZero(block: Buffer): boolean {
  return block[0] === 0 && block.equals(zeros);
}

function readText(bytes: Buffer, from: number, to: number): string {
  const end = bytes.subarray(from, to).indexOf(0);
  return bytes.toString('utf8', from, end < 0 ? to : from + end);
}

// Octal digits with leading blanks and trailing blanks or NUL; text after NUL is ignored.
const octal = /^\0? *([0-7]+)(?:\0.*|[ \0]*)$/s;

/** Reports whether a field holds a number or is empty. */
function isNumber(field: Buffer): boolean {
  const first = field[0] as number;
  const text = field.toString('latin1');
  return first === 0x80 || first === 0xff || octal.test(text) || /^[ \0]*$/.test(text);
}

/** Reads octal digits or, after the byte 0x80, a big-endian number (GNU, for sizes from 8 GiB). */
function readNumber(field: Buffer): number {
  if (field[0] === 0x80) {
    const size = field.subarray(1).reduce((value, byte) => value * 256 + byte, 0);
    checkSize(size);
    return size;
  }
  const text = field.toString('latin1');
  const digits = octal.exec(text)?.[1] ?? (/^\0+$/.test(text) ? '0' : undefined);
  if (digits === undefined) throw new TarProblem('bad header', 'bad header');
  return Number.parseInt(digits, 8);
}

function hasValidChecksum(block: Buffer): boolean {
  const expected = octal.exec(block.toString('latin1', 148, 156))?.[1];
  if (expected === undefined) return false;
  // The checksum reads its own field as spaces; some old writers summed signed bytes.
  let unsigned = 8 * 0x20;
  let negative = 0;
  for (let i = 0; i < tarBlockSize; i++) {
    if (i >= 148 && i < 156) continue;
    const byte = block[i] as number;
    unsigned += byte;
    if (byte > 127) negative += 256;
  }
  const sum = Number.parseInt(expected, 8);
  return sum === unsigned || sum === unsigned - negative;
}

function ambiguous(problem: string): TarProblem {
  return new TarProblem('ambiguous', `ambiguous header: ${problem}`);
}

function truncated(): TarProblem {
  return new TarProblem('truncated', 'unexpected end');
}
