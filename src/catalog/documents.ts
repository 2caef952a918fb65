import type { FileHandle } from 'node:fs/promises';
import { isAscii, isUtf8 } from 'node:buffer';
import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { GoJsonError, decodeUtf8, parseGoJson } from '../document/go-json.js';
import type { JsonValue } from '../document/json.js';
import { YamlError, parseYaml } from '../document/yaml.js';
import { changed, readAgain, readFully, readSome } from './file-access.js';

/**
 * Reads one catalog file as a stream of documents.
 *
 * A file that begins with `{` is concatenated JSON; any other is YAML documents parted by `---` lines. A
 * JSON stream that stops being JSON within its first two documents goes on as YAML from that place.
 * (Source: the stream decoder of Kubernetes' apimachinery, which `opm` reads catalogs with.)
 */

/** A parsed document and where it stands in its file. */
export interface CatalogDocument {
  value: JsonValue;
  syntax: 'json' | 'yaml';
  /** Byte offset and length in the file. */
  offset: number;
  length: number;
  /** The document as it is written. */
  text: string;
  /** Why the document is not JSON, where the file began as JSON: what to report should it be no blob. */
  jsonError?: OpmateError | undefined;
}

/** Largest document that is read, in bytes: what fits in one string with room to spare. */
export const maxDocumentSize = 256 * 1024 * 1024;

/** How far the reader looks for the first character that is not white space. */
const lookAhead = 4096;
const chunkSize = 4 * 1024 * 1024;

const newline = 0x0a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;
const quote = 0x22;
const backslash = 0x5c;
const endOfPrettyObject = Buffer.from('\n}');
const endOfPrettyObjectCrlf = Buffer.from('\r\n}');
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf]);

/** A file to be read: open, under the name that messages give it. */
export interface OpenFile {
  handle: FileHandle;
  label: string;
  /** Its size, where that is known: spares asking whether there is more. */
  size?: number | undefined;
}

/**
 * The documents of a file, in order; the file stays open. Memory: the largest document, twice. Throws
 * OpmateError: IO when the file cannot be read, SYNTAX with the line when a document does not parse, LIMIT
 * for a document beyond 256 MiB.
 */
export async function* readDocuments(
  file: OpenFile,
  options: CancelOptions = {},
): AsyncGenerator<CatalogDocument, void, undefined> {
  const window = new FileWindow(file);
  try {
    await window.require(lookAhead);
    const head = window.skipByteOrderMark();
    if (beginsWithBrace(window.bytes(head, head + lookAhead))) {
      yield* readJsonDocuments(window, options);
    } else {
      yield* readYamlDocuments(window, window.position, undefined, options);
    }
  } finally {
    window.release();
  }
}

/**
 * Parses the document that stood at a known place of a file. Used to read a blob again after a first
 * pass; throws OpmateError IO when the file no longer holds a document there.
 */
export async function readDocumentAt(
  handle: FileHandle,
  place: { file: string; offset: number; length: number; syntax: 'json' | 'yaml' },
): Promise<JsonValue> {
  const text = decodeDocument(await readAgain(handle, place));
  try {
    return place.syntax === 'json' ? parseGoJson(text) : parseYaml(withLastNewline(text));
  } catch (error) {
    throw changed(place.file, error);
  }
}

/** The buffer of the file that was read last, for the next one: most catalogs are many small files. */
let spareBuffer: Buffer | undefined;

function takeBuffer(): Buffer {
  const buffer = spareBuffer ?? Buffer.allocUnsafeSlow(chunkSize);
  spareBuffer = undefined;
  return buffer;
}

/** A part of a file held in memory, which moves forward and grows as documents need it. */
class FileWindow {
  readonly #handle: FileHandle;
  readonly label: string;
  readonly #size: number | undefined;
  #buffer = takeBuffer();
  /** File offset of the buffer's first byte, and how many bytes of it are filled. */
  #base = 0;
  #filled = 0;
  #atEnd = false;
  /** File offset up to which everything has been handed out; bytes before it may be dropped. */
  position = 0;
  /** File offset from which on it is worth guessing where a JSON document ends. */
  guessFrom = 0;

  constructor({ handle, label, size }: OpenFile) {
    this.#handle = handle;
    this.label = label;
    this.#size = size;
  }

  /** Gives the memory back; nothing of the window can be used afterwards. */
  release(): void {
    if (this.#buffer.length === chunkSize) spareBuffer = this.#buffer;
    this.#buffer = Buffer.alloc(0);
    this.#filled = 0;
  }

  /** File offset just after the last byte in memory. */
  get end(): number {
    return this.#base + this.#filled;
  }

  /** The bytes from one file offset to another, as far as they are in memory. Valid until the next read. */
  bytes(from: number, to: number): Buffer {
    return this.#buffer.subarray(from - this.#base, Math.min(to, this.end) - this.#base);
  }

  byteAt(offset: number): number | undefined {
    return offset < this.end ? this.#buffer[offset - this.#base] : undefined;
  }

  indexOf(needle: Buffer | number, from: number): number {
    const index = this.#buffer.subarray(0, this.#filled).indexOf(needle, from - this.#base);
    return index < 0 ? -1 : index + this.#base;
  }

  /** Reads until `count` bytes from `position` are in memory, or the file ends. */
  async require(count: number): Promise<void> {
    while (!this.#atEnd && this.end - this.position < count) await this.grow();
  }

  /** Reads one more chunk; false when the file has ended. */
  async grow(): Promise<boolean> {
    if (this.#atEnd) return false;
    const keepFrom = this.position - this.#base;
    const kept = this.#filled - keepFrom;
    if (kept > maxDocumentSize) {
      throw new LimitError(`a document of more than ${maxDocumentSize} bytes`, {
        subject: this.label,
        file: this.label,
        line: await this.lineOf(this.position),
        hint: 'split the document, or check that the file is a catalog',
      });
    }
    if (keepFrom > 0) {
      this.#buffer.copyWithin(0, keepFrom, this.#filled);
      this.#base = this.position;
      this.#filled = kept;
    }
    if (this.#buffer.length - this.#filled < chunkSize / 2) {
      const larger = Buffer.allocUnsafe(this.#buffer.length * 2);
      this.#buffer.copy(larger, 0, 0, this.#filled);
      this.#buffer = larger;
    }
    // Not all of a buffer that was doubled, so that the limit is noticed when it is passed.
    const left = Math.max(maxDocumentSize - this.#filled, 0) + chunkSize / 2;
    const room = Math.min(this.#buffer.length - this.#filled, left);
    const target = this.#buffer.subarray(this.#filled, this.#filled + room);
    const bytesRead = await readSome(this.#handle, target, this.end, this.label);
    this.#filled += bytesRead;
    // A read that stops short where the file should end has seen its end.
    if (bytesRead === 0 || (bytesRead < room && this.end === this.#size)) this.#atEnd = true;
    return bytesRead > 0;
  }

  skipByteOrderMark(): number {
    if (this.position === 0 && this.bytes(0, 3).equals(byteOrderMark)) this.position = 3;
    return this.position;
  }

  /** Line of a file offset, from 1. Reads the file again from its start, so only for messages. */
  lineOf(offset: number): Promise<number> {
    return new LineCounter(this.label).lineOf(this.#handle, offset);
  }
}

/** Bytes of a file between two places whose lines are remembered. */
const lineBlock = 16 * 1024;

/** Finds the lines of places in one file, in any order: reads the file once, and for each place one block of it. */
export class LineCounter {
  readonly #label: string;
  /** Line breaks before each block. */
  readonly #before: number[] = [0];
  #last = { offset: 0, line: 1 };

  /** `label` is how messages name the file. */
  constructor(label: string) {
    this.#label = label;
  }

  /** Returns the line, from 1, on which the byte at `offset` stands. Throws OpmateError IO. */
  async lineOf(handle: FileHandle, offset: number): Promise<number> {
    if (this.#last.offset === offset) return this.#last.line;
    const block = Math.floor(offset / lineBlock);
    while (this.#before.length <= block) if (!(await this.#readBlocks(handle, block))) break;
    const known = Math.min(block, this.#before.length - 1);
    const rest = Buffer.allocUnsafe(Math.min(offset - known * lineBlock, lineBlock));
    const length = await readFully(handle, rest, known * lineBlock, this.#label);
    const line = 1 + (this.#before[known] as number) + countNewlines(rest.subarray(0, length));
    this.#last = { offset, line };
    return line;
  }

  /** Counts some of the blocks before `last`; false where the file ends among them. */
  async #readBlocks(handle: FileHandle, last: number): Promise<boolean> {
    const first = this.#before.length - 1;
    const bytes = Buffer.allocUnsafe(Math.min(last - first, 64) * lineBlock);
    const length = await readFully(handle, bytes, first * lineBlock, this.#label);
    // Somebody else may have counted them meanwhile.
    if (this.#before.length - 1 !== first) return true;
    for (let index = 0; index + lineBlock <= length; index += lineBlock) {
      const before = this.#before.at(-1) as number;
      this.#before.push(before + countNewlines(bytes.subarray(index, index + lineBlock)));
    }
    return length === bytes.length;
  }
}

function countNewlines(bytes: Buffer): number {
  let count = 0;
  for (let i = bytes.indexOf(newline); i >= 0; i = bytes.indexOf(newline, i + 1)) count++;
  return count;
}

function beginsWithBrace(bytes: Buffer): boolean {
  for (const byte of bytes) {
    if (byte === openBrace) return true;
    if (!isSpace(byte)) return false;
  }
  return false;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === newline || byte === 0x0d || byte === 0x09;
}

/** Text of a document; bytes that are not UTF-8 become U+FFFD one by one, as in Go. */
function decodeDocument(bytes: Buffer): string {
  return isAscii(bytes) ? bytes.toString('latin1') : decodeUtf8(bytes);
}

/** A last line without a line break gets one, as the reference reader joins lines: block scalars keep it. */
function withLastNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

async function* readJsonDocuments(
  window: FileWindow,
  options: CancelOptions,
): AsyncGenerator<CatalogDocument, void, undefined> {
  let count = 0;
  for (;;) {
    throwIfCancelled(options.signal);
    await takeTurn();
    const start = await skipSpace(window, window.position);
    if (start === undefined) return;
    window.position = start;
    const next = await nextJsonDocument(window);
    if ('error' in next) {
      const failure = await jsonFailure(window, next, count > 1);
      if (count > 1) throw failure;
      yield* readYamlDocuments(window, await afterFirstNewline(window, window.position), failure, options);
      return;
    }
    count++;
    window.position = next.offset + next.length;
    yield next;
  }
}

/** File offset of the first byte from `from` that is not white space; undefined at the end of the file. */
async function skipSpace(window: FileWindow, from: number): Promise<number | undefined> {
  for (let offset = from; ; offset++) {
    let byte = window.byteAt(offset);
    if (byte === undefined) {
      window.position = offset;
      if (!(await window.grow())) return undefined;
      byte = window.byteAt(offset);
      if (byte === undefined) continue;
    }
    if (!isSpace(byte)) return offset;
  }
}

/** Where YAML reading takes over: after the white space up to and including the first line break. */
async function afterFirstNewline(window: FileWindow, from: number): Promise<number> {
  let position = from;
  for (;;) {
    const byte = window.byteAt(position);
    if (byte === undefined) {
      if (!(await window.grow())) return position;
      continue;
    }
    if (!isSpace(byte)) return position;
    position++;
    if (byte === newline) return position;
  }
}

interface JsonFault {
  error: GoJsonError;
  /** File offset that the error's own offset counts from. */
  offset: number;
}

/**
 * The JSON document that starts at the window's position. Tries the places where one that a program wrote
 * would end, because a slice that parses is the document whatever found its end; only if none of them
 * does, follows brackets and strings byte by byte.
 */
async function nextJsonDocument(window: FileWindow): Promise<CatalogDocument | JsonFault> {
  const offset = window.position;
  if (offset >= window.guessFrom) {
    const { end, searched } = await findLikelyEnd(window);
    if (end !== undefined) {
      const document = parseSlice(window, offset, end);
      if ('value' in document) return document;
    }
    // What was searched in vain is not searched again, however many documents stand in it.
    window.guessFrom = searched;
  }
  const end = await findExactEnd(window);
  return parseSlice(window, offset, end);
}

function parseSlice(window: FileWindow, offset: number, end: number): CatalogDocument | JsonFault {
  try {
    const text = decodeDocument(window.bytes(offset, end));
    return { value: parseGoJson(text), syntax: 'json', offset, length: end - offset, text };
  } catch (error) {
    if (error instanceof GoJsonError) return { error, offset };
    throw error;
  }
}

/** How far the likely end of a document is searched. A longer one is found by its brackets. */
const maxSearch = 16 * 1024 * 1024;

/** Where the document at the window's position may end, if anywhere, and how far that was searched. */
async function findLikelyEnd(window: FileWindow): Promise<{ end?: number; searched: number }> {
  const start = window.position;
  if (window.byteAt(start) !== openBrace) return { searched: start };
  let lineEnd = window.indexOf(newline, start);
  for (let searched = window.end; lineEnd < 0; searched = window.end) {
    if (searched - start > maxSearch) return { searched };
    if (!(await window.grow())) return { end: window.end, searched };
    lineEnd = window.indexOf(newline, searched);
  }
  const windowsLines = window.byteAt(lineEnd - 1) === 0x0d;
  const lastOfLine = lineEnd - (windowsLines ? 2 : 1);
  if (lastOfLine > start) {
    const isEnd = window.byteAt(lastOfLine) === closeBrace;
    return { ...(isEnd && { end: lastOfLine + 1 }), searched: lineEnd };
  }
  const needle = windowsLines ? endOfPrettyObjectCrlf : endOfPrettyObject;
  let searched = start;
  for (;;) {
    const index = window.indexOf(needle, searched);
    if (index >= 0) return { end: index + needle.length, searched: index + needle.length };
    searched = Math.max(start, window.end - needle.length);
    if (searched - start > maxSearch || !(await window.grow())) return { searched };
  }
}

/** End of the value at the window's position, by brackets and strings; the file's end if it has none. */
async function findExactEnd(window: FileWindow): Promise<number> {
  const start = window.position;
  let depth = 0;
  let inString = false;
  let i = 0;
  do {
    const bytes = window.bytes(start, window.end);
    while (i < bytes.length) {
      if (inString) {
        const end = bytes.indexOf(quote, i);
        if (end < 0) {
          i = bytes.length;
          break;
        }
        i = end + 1;
        inString = countBackslashes(bytes, end) % 2 === 1;
        if (!inString && depth === 0) return start + i;
        continue;
      }
      const byte = bytes[i++] as number;
      if (byte === quote) inString = true;
      else if (byte === openBrace || byte === openBracket) depth++;
      else if (byte === closeBrace || byte === closeBracket) {
        depth--;
        if (depth <= 0) return start + i;
      } else if (depth === 0 && i > 1 && isSpace(byte)) return start + i - 1;
    }
  } while (await window.grow());
  return window.end;
}

function countBackslashes(bytes: Buffer, before: number): number {
  let count = 0;
  while (bytes[before - 1 - count] === backslash) count++;
  return count;
}

/** The error for bytes that are not JSON, with file and line; the words of `opm` depend on what follows. */
async function jsonFailure(window: FileWindow, fault: JsonFault, isFinal: boolean): Promise<OpmateError> {
  const { error } = fault;
  const slice = window.bytes(fault.offset, window.end);
  const place = fault.offset + Buffer.byteLength(decodeDocument(slice).slice(0, error.offset));
  const truncated = error.message === 'unexpected end of JSON input';
  // `opm` counts the bytes read, the offending one included.
  const inStream = isFinal ? error.message : `json: offset ${place + 1}: ${error.message}`;
  const message = truncated ? 'unexpected EOF' : inStream;
  return new OpmateError('SYNTAX', message, {
    file: window.label,
    line: await window.lineOf(Math.min(place, window.end)),
    cause: error,
    hint: truncated ? 'download or create the file again: it ends inside an object' : undefined,
  });
}

async function* readYamlDocuments(
  window: FileWindow,
  from: number,
  jsonError: OpmateError | undefined,
  options: CancelOptions,
): AsyncGenerator<CatalogDocument, void, undefined> {
  window.position = from;
  let preferJsonError = jsonError;
  for (;;) {
    throwIfCancelled(options.signal);
    await takeTurn();
    const chunk = await nextYamlChunk(window);
    if (chunk === undefined) return;
    if ('badSeparator' in chunk) {
      throw (
        preferJsonError ??
        new OpmateError('SYNTAX', `invalid Yaml document separator: ${chunk.badSeparator}`, {
          file: window.label,
          line: await window.lineOf(chunk.end),
          hint: 'remove the text after ---: only a comment may follow',
        })
      );
    }
    const { offset, end, next } = chunk;
    let value: JsonValue;
    let text: string;
    try {
      const bytes = window.bytes(offset, end);
      checkYamlEncoding(bytes);
      text = decodeDocument(bytes);
      value = parseYaml(withLastNewline(text));
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      if (preferJsonError !== undefined) throw preferJsonError;
      throw new OpmateError('SYNTAX', `error converting YAML to JSON: ${error.message}`, {
        file: window.label,
        line: (await window.lineOf(offset)) + (error.line ?? 1) - 1,
        cause: error,
      });
    }
    yield { value, syntax: 'yaml', offset, length: end - offset, text, jsonError: preferJsonError };
    preferJsonError = undefined;
    window.position = next;
  }
}

interface YamlChunk {
  offset: number;
  end: number;
  /** Where the next chunk starts, after the separator line that ended this one. */
  next: number;
}

const separator = Buffer.from('\n---');

/**
 * The lines up to the next separator. A separator line before any content belongs to the chunk, so two of
 * them in a row make a chunk of their own, which is a null document.
 */
async function nextYamlChunk(
  window: FileWindow,
): Promise<YamlChunk | { badSeparator: string; end: number } | undefined> {
  const offset = window.position;
  await window.require(4);
  if (offset >= window.end) return undefined;
  if (window.bytes(offset, offset + 3).equals(separator.subarray(1))) {
    const rest = await restOfLine(window, offset + 3);
    if (rest !== '') return { badSeparator: rest, end: offset };
  }
  let searched = offset;
  for (;;) {
    const index = window.indexOf(separator, searched);
    if (index >= 0) {
      const rest = await restOfLine(window, index + separator.length);
      if (rest !== '') return { badSeparator: rest, end: index + 1 };
      const lineEnd = window.indexOf(newline, index + separator.length);
      return { offset, end: index + 1, next: lineEnd < 0 ? window.end : lineEnd + 1 };
    }
    searched = Math.max(offset, window.end - separator.length);
    if (!(await window.grow())) return { offset, end: window.end, next: window.end };
  }
}

/** What follows a separator on its line, unless it is white space or a comment. */
async function restOfLine(window: FileWindow, from: number): Promise<string> {
  let lineEnd = window.indexOf(newline, from);
  while (lineEnd < 0 && (await window.grow())) lineEnd = window.indexOf(newline, from);
  const rest = window
    .bytes(from, lineEnd < 0 ? window.end : lineEnd)
    .toString('utf8')
    .trim();
  return rest.startsWith('#') ? '' : rest.slice(0, 200);
}

/** Throws YamlError for bytes that are not UTF-8, in the words of the YAML reader of Go. */
export function checkYamlEncoding(bytes: Buffer): void {
  if (isUtf8(bytes)) return;
  let line = 1;
  for (let i = 0; i < bytes.length;) {
    const byte = bytes[i] as number;
    if (byte === newline) line++;
    const width = utf8Width(byte);
    if (width === 0) break;
    if (i + width > bytes.length) throw new YamlError('yaml: incomplete UTF-8 octet sequence', line);
    for (let k = 1; k < width; k++) {
      if (((bytes[i + k] as number) & 0xc0) !== 0x80) {
        throw new YamlError('yaml: invalid trailing UTF-8 octet', line);
      }
    }
    i += width;
  }
  throw new YamlError('yaml: invalid leading UTF-8 octet', line);
}

/** Bytes of the character that begins with this byte; 0 when none does. */
function utf8Width(byte: number): number {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}
