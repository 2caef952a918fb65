import type { FileHandle } from 'node:fs/promises';
import { isAscii, isUtf8 } from 'node:buffer';
import { type CancelOptions, takeTurn } from '../core/concurrency.js';
import { addContext } from '../core/diagnostics-error.js';
import { LimitError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { changedFileError } from '../files/file-status.js';
import { GoJsonError, decodeUtf8, parseGoJson } from '../document/go-json.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import { YamlError, parseYaml } from '../document/yaml.js';

import { readAgain, readFully, readSome } from './file-access.js';
import { toMeta } from './meta.js';

/**
 * Reads one catalog file as a stream of documents.
 *
 * A file that starts with `{` is concatenated JSON; others are YAML documents separated by `---` lines. A stream that
 * stops being JSON objects within its first two documents continues as YAML from the end of the last object, after white
 * space up to the first line break. (Source: the stream decoder of Kubernetes' apimachinery, with which `opm` reads
 * catalogs.)
 */

/** A parsed document with its place in the file. */
export interface CatalogDocument {
  value: JsonValue;
  syntax: 'json' | 'yaml';
  /** Byte offset and length in the file. */
  offset: number;
  length: number;
  /** Text of the document. */
  text: string;
  /** Reason why the document is not JSON although the file started as JSON: reported if it is not a blob. */
  jsonError?: unknown;
}

/** White space as Go's unicode package has it. */
const spaces = '\\t-\\r \\u0085\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';
const goSpace = new RegExp(`^[${spaces}]$`);
/** Start of a file that may be JSON. */
const opening = new RegExp(`^[${spaces}]*\\{`);

/** Maximum document size in bytes, which fits in one string. */
export const maxDocumentSize = 256 * 1024 * 1024;

/** Bytes searched for the first character that is not white space. */
const lookAhead = 4096;
const chunkSize = 4 * 1024 * 1024;
/** Bytes of the longest character in UTF-8. */
const longestCharacter = 4;

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

/** An open file with its name in messages. */
export interface OpenFile {
  handle: FileHandle;
  label: string;
  /** Size, if known, which saves a read at the end. */
  size?: number | undefined;
}

/**
 * Yields the documents of a file in order; the file stays open. Memory: twice the largest document. Throws
 * OpmateError: IO for an unreadable file, SYNTAX with the line of an invalid document, LIMIT for a document beyond
 * 256 MiB.
 */
export async function* readDocuments(
  file: OpenFile,
  options: CancelOptions = {},
): AsyncGenerator<CatalogDocument, void, undefined> {
  const window = new FileWindow(file);
  try {
    await window.require(lookAhead);
    const head = window.skipByteOrderMark();
    if (opening.test(window.bytes(head, head + lookAhead).toString('utf8'))) {
      yield* readJsonDocuments(window, options);
    } else {
      yield* readYamlDocuments(window, undefined, options);
    }
  } finally {
    window.release();
  }
}

/**
 * Parses the document at a known place of a file, to read a blob again. Throws OpmateError IO if the file no longer
 * has a document there.
 */
export async function readDocumentAt(
  handle: FileHandle,
  place: { file: string; offset: number; length: number; syntax: 'json' | 'yaml' },
): Promise<JsonValue> {
  const text = decodeDocument(await readAgain(handle, place));
  try {
    return place.syntax === 'json' ? parseGoJson(text) : parseYaml(withLastNewline(text));
  } catch (error) {
    throw changedFileError(place.file, 'catalog', error);
  }
}

/** Buffer of the last file, for reuse: most catalogs are many small files. */
let spareBuffer: Buffer | undefined;

function takeBuffer(): Buffer {
  const buffer = spareBuffer ?? Buffer.allocUnsafeSlow(chunkSize);
  spareBuffer = undefined;
  return buffer;
}

/** A part of a file in memory, which moves forward and grows as needed. */
class FileWindow {
  readonly #handle: FileHandle;
  readonly label: string;
  readonly #size: number | undefined;
  #buffer = takeBuffer();
  /** File offset of the start of the buffer, and its length. */
  #base = 0;
  #filled = 0;
  #atEnd = false;
  /** File offset up to which documents were returned; earlier bytes may be dropped. */
  position = 0;
  /** File offset from which guessing the end of a JSON document is worthwhile. */
  guessFrom = 0;

  constructor({ handle, label, size }: OpenFile) {
    this.#handle = handle;
    this.label = label;
    this.#size = size;
  }

  /** Releases the memory; the window is unusable afterwards. */
  release(): void {
    if (this.#buffer.length === chunkSize) spareBuffer = this.#buffer;
    this.#buffer = Buffer.alloc(0);
    this.#filled = 0;
  }

  /** Returns the file offset after the last byte in memory. */
  get end(): number {
    return this.#base + this.#filled;
  }

  /** Returns the bytes between two file offsets that are in memory. Valid until the next read. */
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

  /** Reads one more chunk; returns false at the end of the file. */
  async grow(): Promise<boolean> {
    if (this.#atEnd) return false;
    const keepFrom = this.position - this.#base;
    const kept = this.#filled - keepFrom;
    if (kept > maxDocumentSize) {
      throw new LimitError(`a document of more than ${maxDocumentSize} bytes`, {
        about: this.label,
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
    // Not all of a doubled buffer, so that the limit is checked when it is passed.
    const left = Math.max(maxDocumentSize - this.#filled, 0) + chunkSize / 2;
    const room = Math.min(this.#buffer.length - this.#filled, left);
    const target = this.#buffer.subarray(this.#filled, this.#filled + room);
    const bytesRead = await readSome(this.#handle, target, this.end, this.label);
    this.#filled += bytesRead;
    // A short read at the expected end has reached the end.
    if (bytesRead === 0 || (bytesRead < room && this.end === this.#size)) this.#atEnd = true;
    return bytesRead > 0;
  }

  /** Moves to a file offset that was in memory before. */
  seek(offset: number): void {
    if (offset < this.#base) {
      this.#base = offset;
      this.#filled = 0;
      this.#atEnd = false;
    }
    this.position = offset;
  }

  skipByteOrderMark(): number {
    if (this.position === 0 && this.bytes(0, 3).equals(byteOrderMark)) this.position = 3;
    return this.position;
  }

  /** Returns the one-based line of a file offset. Reads the file again, so for messages only. */
  lineOf(offset: number): Promise<number> {
    return new LineCounter(this.label).lineOf(this.#handle, offset);
  }
}

/** Bytes between two places whose lines are cached. */
const lineBlock = 16 * 1024;

/** Finds the lines of places in a file, in any order: reads the file once, and one block per place. */
export class LineCounter {
  readonly #label: string;
  /** Line breaks before each block. */
  readonly #before: number[] = [0];
  #last = { offset: 0, line: 1 };

  /** `label` is the name of the file in messages. */
  constructor(label: string) {
    this.#label = label;
  }

  /** Returns the one-based line of the byte at `offset`. Throws OpmateError IO. */
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

  /** Counts the lines of blocks before `last`; returns false if the file is shorter. */
  async #readBlocks(handle: FileHandle, last: number): Promise<boolean> {
    const first = this.#before.length - 1;
    const bytes = Buffer.allocUnsafe(Math.min(last - first, 64) * lineBlock);
    const length = await readFully(handle, bytes, first * lineBlock, this.#label);
    // A concurrent call may have counted them.
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

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === newline || byte === 0x0d || byte === 0x09;
}

/** Returns the text of a document; each byte that is not UTF-8 becomes U+FFFD, as in Go. */
function decodeDocument(bytes: Buffer): string {
  return isAscii(bytes) ? bytes.toString('latin1') : decodeUtf8(bytes);
}

/** Adds a missing line break at the end, as the reference reader joins lines: block scalars keep it. */
function withLastNewline(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`;
}

async function* readJsonDocuments(
  window: FileWindow,
  options: CancelOptions,
): AsyncGenerator<CatalogDocument, void, undefined> {
  for (let count = 0; ; count++) {
    throwIfCancelled(options.signal);
    await takeTurn();
    const mayBeYaml = count <= 1;
    const yamlStart = mayBeYaml ? await findYamlStart(window) : undefined;
    const start = await skipSpace(window, window.position);
    if (start === undefined) return;
    window.position = start;
    const next = await nextJsonDocument(window);
    const failure = 'error' in next ? await jsonFailure(window, next, !mayBeYaml) : undefined;
    if (!('error' in next) && (!mayBeYaml || isJsonObject(next.value) || next.value === null)) {
      window.position = next.offset + next.length;
      yield next;
      continue;
    }
    const error = failure ?? (await findMetaFault(window, next as CatalogDocument));
    if (yamlStart === undefined) throw error;
    window.seek(yamlStart);
    yield* readYamlDocuments(window, error, options);
    return;
  }
}

/** Returns the error of a JSON value that is no object. */
async function findMetaFault(
  window: FileWindow,
  { value, offset, length, syntax }: CatalogDocument,
): Promise<unknown> {
  try {
    toMeta(value, syntax, { file: window.label, offset, length, syntax });
  } catch (error) {
    if (!(error instanceof OpmateError)) return error;
    return addContext(error, { file: window.label, line: await window.lineOf(offset) });
  }
  return undefined;
}

/** Returns the file offset of the first byte from `from` that is not white space; undefined at the end of the file. */
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

/**
 * Returns the offset where YAML continues from the position of the window: after white space up to and including the
 * first line break. Undefined where the reference decoder gives up: before fewer than four bytes, and before a
 * character that is not UTF-8.
 */
async function findYamlStart(window: FileWindow): Promise<number | undefined> {
  for (let position = window.position; ;) {
    while (window.end - position < longestCharacter) if (!(await window.grow())) return undefined;
    const width = utf8Width(window.byteAt(position) as number);
    const character = window.bytes(position, position + width).toString('utf8');
    if (width === 0 || character.startsWith('\ufffd')) return undefined;
    if (!goSpace.test(character)) return position;
    position += width;
    if (character === '\n') return position;
  }
}

interface JsonFault {
  error: GoJsonError;
  /** File offset that the offset of the error is relative to. */
  offset: number;
}

/**
 * Returns the JSON document at the position of the window. Tries likely ends first, as a slice that parses is the
 * document; otherwise follows brackets and strings byte by byte.
 */
async function nextJsonDocument(window: FileWindow): Promise<CatalogDocument | JsonFault> {
  const offset = window.position;
  if (offset >= window.guessFrom) {
    const { end, searched } = await findLikelyEnd(window);
    if (end !== undefined) {
      const document = parseSlice(window, offset, end);
      if ('value' in document) return document;
    }
    // What was searched in vain is not searched again.
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

/** Maximum search for the likely end of a document; longer ones are found by their brackets. */
const maxSearch = 16 * 1024 * 1024;

/** Returns the likely end of the document at the position of the window, if any, and the end of the search. */
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

/**
 * Returns the end of the value at the position of the window by brackets and strings; the end of the file if
 * unclosed.
 */
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

/** Returns the error for invalid JSON, with file and line; the words of `opm` depend on what follows. */
async function jsonFailure(window: FileWindow, fault: JsonFault, isFinal: boolean): Promise<OpmateError> {
  const { error } = fault;
  const slice = window.bytes(fault.offset, window.end);
  const place = fault.offset + Buffer.byteLength(decodeDocument(slice).slice(0, error.offset));
  const truncated = error.message === 'unexpected end of JSON input';
  // `opm` counts the bytes read, including the invalid one.
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
  jsonError: unknown,
  options: CancelOptions,
): AsyncGenerator<CatalogDocument, void, undefined> {
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
  /** Start of the next chunk, after the separator line. */
  next: number;
}

const separator = Buffer.from('\n---');

/**
 * Returns the lines up to the next separator. A leading separator belongs to the chunk, so two in a row are a chunk
 * with a null document.
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

/** Returns the text after a separator on its line, except white space and comments. */
async function restOfLine(window: FileWindow, from: number): Promise<string> {
  let lineEnd = window.indexOf(newline, from);
  while (lineEnd < 0 && (await window.grow())) lineEnd = window.indexOf(newline, from);
  const rest = window
    .bytes(from, lineEnd < 0 ? window.end : lineEnd)
    .toString('utf8')
    .trim();
  return rest.startsWith('#') ? '' : rest.slice(0, 200);
}

/** Throws YamlError for invalid UTF-8, in the words of Go's YAML reader. */
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

/** Returns the length of the character with this first byte; 0 if invalid. */
function utf8Width(byte: number): number {
  if (byte < 0x80) return 1;
  if (byte >= 0xc2 && byte < 0xe0) return 2;
  if (byte >= 0xe0 && byte < 0xf0) return 3;
  return byte >= 0xf0 && byte < 0xf5 ? 4 : 0;
}
