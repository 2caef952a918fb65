import { Buffer, isUtf8 } from 'node:buffer';
import { OpmateError } from '../core/errors.js';
import { isPlainBase64 } from '../core/text/base64.js';
import { parseExactly } from './go-json-parser.js';
import { type EncodableJson, type JsonObject, type JsonValue, RawJson, setJsonKey } from './json.js';
import { compareBytes } from '../core/order.js';
import { endOfString } from './raw-json.js';

export { GoJsonError } from './go-json-parser.js';
export { quoteGo } from '../core/go-json-quote.js';

/** Maximum depth of recursion; deeper values are processed iteratively. */
const recursionLimit = 500;

/**
 * Parses exactly one JSON value, with optional white space around it, with the results and error texts of Go's
 * encoding/json. Differs from JSON.parse: integers beyond 2^53 become bigints, numbers beyond float64 are errors, a
 * lone surrogate becomes U+FFFD, and the maximum nesting is 10,000. Throws GoJsonError.
 */
export function parseGoJson(text: string): JsonValue {
  let value: JsonValue;
  try {
    value = JSON.parse(text) as JsonValue;
  } catch {
    // The other parser has the message for this error.
    return parseExactly(text);
  }
  if (!isExactlyParsed(value, 0)) return parseExactly(text);
  // The first test is several times faster than the second.
  const mayHoldSurrogates = text.includes('\\u') && /\\u[dD]/.test(text);
  return mayHoldSurrogates ? parseExactly(text) : value;
}

/** Reports whether JSON.parse lost nothing: it rounds large numbers and has no nesting limit. */
function isExactlyParsed(value: JsonValue, depth: number): boolean {
  if (typeof value === 'number') return value < 2 ** 53 && value > -(2 ** 53);
  if (typeof value !== 'object' || value === null) return true;
  if (depth > recursionLimit) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isExactlyParsed(item, depth + 1)) return false;
    return true;
  }
  for (const key in value) if (!isExactlyParsed(value[key] as JsonValue, depth + 1)) return false;
  return true;
}

/** Decodes UTF-8 as Go does: each byte that is not part of valid UTF-8 becomes one U+FFFD. */
export function decodeUtf8(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (isUtf8(buffer)) return buffer.toString('utf8');
  let text = '';
  let start = 0;
  for (let i = 0; i < buffer.length;) {
    const width = validWidth(buffer, i);
    if (width > 0) {
      i += width;
      continue;
    }
    text += `${buffer.toString('utf8', start, i)}\ufffd`;
    start = ++i;
  }
  return text + buffer.toString('utf8', start);
}

function validWidth(bytes: Buffer, position: number): number {
  const first = bytes[position] as number;
  if (first < 0x80) return 1;
  const width = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  return width > 0 && position + width <= bytes.length && isUtf8(bytes.subarray(position, position + width))
    ? width
    : 0;
}

interface EncodeOptions {
  /** Spaces per level; compact if omitted. */
  indent?: number;
  /** Escapes `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026`. */
  escapeHtml?: boolean;
}

/**
 * Encodes JSON with the bytes of Go's encoder, without a trailing newline. Keys keep their order; objects with
 * index-like keys, whose order JavaScript does not keep, are sorted by bytes. A RawJson changes in white space and
 * `escapeHtml` escapes only. Throws OpmateError INVALID for numbers that are not finite.
 */
export function encodeGoJson(value: EncodableJson, options: EncodeOptions = {}): string {
  const { indent = 0, escapeHtml = false } = options;
  const text = encodePieces(value, indent).join('');
  return escapeHtml ? escapeHtmlCharacters(escapeLineSeparators(text)) : text;
}

/**
 * Encodes JSON as `encodeGoJson` does, as pieces to write one after the other: joining them takes longer than writing
 * long text.
 */
export function encodeGoJsonPieces(value: EncodableJson): string[] {
  return encodePieces(value, 0);
}

function encodePieces(value: EncodableJson, indent: number): string[] {
  const counts: Counts = { parts: 0, longText: 0 };
  // JSON.stringify is fastest for many parts, but not for long text.
  if (indent <= 10 && isPlain(value, 0, counts) && counts.longText < counts.parts * 200) {
    const text = JSON.stringify(value, null, indent);
    // It writes lone surrogates differently from Go.
    if (!text.includes('\\ud')) return [escapeLineSeparators(text)];
  }
  return encodeStepwise(value, indent);
}

/** Escapes `<`, `>` and `&` in JSON text. */
export function escapeHtmlCharacters(text: string): string {
  return text.replaceAll('<', '\\u003c').replaceAll('>', '\\u003e').replaceAll('&', '\\u0026');
}

function escapeLineSeparators(text: string): string {
  return text.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

interface Counts {
  parts: number;
  /** Number of characters in long strings. */
  longText: number;
}

/** Minimum length of strings that are checked for base64. */
const longString = 1024;

/** Reports whether JSON.stringify encodes the structure and numbers of a value as Go does. */
function isPlain(value: EncodableJson, depth: number, counts: Counts): boolean {
  counts.parts++;
  switch (typeof value) {
    case 'string':
      if (value.length >= longString) counts.longText += value.length;
      return true;
    case 'boolean':
      return true;
    case 'number':
      return Number.isFinite(value) && !Object.is(value, -0);
    case 'object':
      break;
    default:
      return false;
  }
  if (value === null) return true;
  if (depth > recursionLimit || value instanceof RawJson) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isPlain(item, depth + 1, counts)) return false;
    return true;
  }
  let isFirst = true;
  for (const key in value) {
    // Index-like keys come first, so one check is enough.
    if (isFirst && looksLikeIndex(key)) return false;
    isFirst = false;
    const item = (value as { [key: string]: EncodableJson })[key] as EncodableJson;
    if (!isPlain(item, depth + 1, counts)) return false;
  }
  return true;
}

function looksLikeIndex(key: string): boolean {
  const code = key.charCodeAt(0);
  return code >= 0x30 && code <= 0x39 && /^\d{1,10}$/.test(key);
}

interface Level {
  value: EncodableJson[] | { [key: string]: EncodableJson };
  /** Keys of the object; undefined for an array. */
  keys: string[] | undefined;
  next: number;
}

/** Encodes a value of any depth without recursion. Long texts are pieces of their own. */
function encodeStepwise(root: EncodableJson, indent: number): string[] {
  const levels: Level[] = [];
  const pieces: string[] = [];
  let text = '';
  let value = root;
  for (;;) {
    const level = openLevel(value);
    if (level === undefined) {
      if (typeof value === 'string' && value.length >= longString && isPlainBase64(value)) {
        pieces.push(`${text}"`, value);
        text = '"';
      } else text += encodeLeaf(value, indent, levels.length);
    } else {
      text += level.keys === undefined ? '[' : '{';
      levels.push(level);
    }
    for (;;) {
      const current = levels.at(-1);
      if (current === undefined) {
        pieces.push(text);
        return pieces;
      }
      const { keys, next } = current;
      if (next < (keys ?? (current.value as EncodableJson[])).length) break;
      levels.pop();
      if (next > 0) text += lineBreak(indent, levels.length);
      text += keys === undefined ? ']' : '}';
    }
    const current = levels.at(-1) as Level;
    if (current.next > 0) text += ',';
    text += lineBreak(indent, levels.length);
    if (current.keys === undefined) value = (current.value as EncodableJson[])[current.next] as EncodableJson;
    else {
      const key = current.keys[current.next] as string;
      text += `${encodeString(key)}:${indent > 0 ? ' ' : ''}`;
      value = (current.value as { [key: string]: EncodableJson })[key] as EncodableJson;
    }
    current.next++;
  }
}

function openLevel(value: EncodableJson): Level | undefined {
  if (typeof value !== 'object' || value === null || value instanceof RawJson) return undefined;
  if (Array.isArray(value)) return { value, keys: undefined, next: 0 };
  const keys = Object.keys(value);
  if (keys.length > 0 && looksLikeIndex(keys[0] as string)) keys.sort(compareBytes);
  return { value: value as { [key: string]: EncodableJson }, keys, next: 0 };
}

function encodeLeaf(value: EncodableJson, indent: number, depth: number): string {
  if (typeof value === 'string') return encodeString(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new OpmateError('INVALID', `json: unsupported value: ${value}`);
    return Object.is(value, -0) ? '-0' : String(value);
  }
  if (value instanceof RawJson) return respace(value.text, indent, depth);
  return String(value as null | boolean | bigint);
}

const needsCare = /["\\\u0000-\u001f\u2028\u2029\ud800-\udfff]/;

function encodeString(text: string): string {
  if (text.length < 100 && !needsCare.test(text)) return `"${text}"`;
  const parts = /\p{Cs}/u.test(text) ? text.split(/\p{Cs}/u) : [text];
  const encoded = parts.map((part) => JSON.stringify(part).slice(1, -1)).join('\\ufffd');
  return `"${escapeLineSeparators(encoded)}"`;
}

const spaces = ' '.repeat(64);

function lineBreak(indent: number, depth: number): string {
  if (indent === 0) return '';
  const width = indent * depth;
  return `\n${width <= spaces.length ? spaces.slice(0, width) : ' '.repeat(width)}`;
}

/** Rewrites the white space of valid JSON text; `depth` is the level of its first line. */
function respace(text: string, indent: number, depth: number): string {
  const colon = indent > 0 ? ': ' : ':';
  let result = '';
  let level = depth;
  let isEmpty = false;
  for (let i = 0; i < text.length;) {
    const start = i;
    switch (text[i++]) {
      case ' ':
      case '\t':
      case '\r':
      case '\n':
        continue;
      case ':':
        result += colon;
        continue;
      case ',':
        result += `,${lineBreak(indent, level)}`;
        continue;
      case '}':
      case ']':
        level--;
        if (!isEmpty) result += lineBreak(indent, level);
        isEmpty = false;
        result += text[start];
        continue;
      case '"':
        i = endOfString(text, start);
        break;
      case '{':
      case '[':
        if (isEmpty) result += lineBreak(indent, level);
        level++;
        isEmpty = true;
        result += text[start];
        continue;
      default:
        while (i < text.length && !' \t\r\n,]}'.includes(text[i] as string)) i++;
    }
    if (isEmpty) result += lineBreak(indent, level);
    isEmpty = false;
    result += text.slice(start, i);
  }
  return result;
}

/**
 * Returns the value with all object keys in byte order; the same value if already sorted. Index-like keys stay where
 * JavaScript places them; `encodeGoJson` sorts those.
 */
export function sortKeysDeep(value: JsonValue, depth = 0): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (depth > recursionLimit) return sortCopy(value);
  if (Array.isArray(value)) {
    let copy: JsonValue[] | undefined;
    for (let i = 0; i < value.length; i++) {
      const item = value[i] as JsonValue;
      const sorted = sortKeysDeep(item, depth + 1);
      if (sorted !== item) (copy ??= value.slice())[i] = sorted;
    }
    return copy ?? value;
  }
  let copy: JsonObject | undefined = areSorted(value) ? undefined : sortOneObject(value);
  for (const key in value) {
    const item = value[key] as JsonValue;
    const sorted = sortKeysDeep(item, depth + 1);
    if (sorted === item) continue;
    copy ??= sortOneObject(value);
    setJsonKey(copy, key, sorted);
  }
  return copy ?? value;
}

function areSorted(value: JsonObject): boolean {
  let last: string | undefined;
  for (const key in value) {
    // Native comparison is by UTF-16, which differs for characters from U+D800 only.
    if (last !== undefined && (!(last < key) || /[\ud800-\uffff]/.test(key))) {
      if (compareBytes(last, key) > 0) return false;
    }
    last = key;
  }
  return true;
}

function sortOneObject(value: JsonObject): JsonObject {
  const copy: JsonObject = {};
  for (const key of Object.keys(value).sort(compareBytes)) setJsonKey(copy, key, value[key] as JsonValue);
  return copy;
}

/** Copies and sorts deeply nested values without recursion. */
function sortCopy(root: JsonValue): JsonValue {
  const holder: JsonValue[] = [root];
  const waiting: (JsonValue[] | JsonObject)[] = [holder];
  for (let parent = waiting.pop(); parent !== undefined; parent = waiting.pop()) {
    for (const key of Object.keys(parent)) {
      const item = (parent as JsonObject)[key] as JsonValue;
      if (typeof item !== 'object' || item === null) continue;
      const copy = Array.isArray(item) ? item.slice() : sortOneObject(item);
      setJsonKey(parent as JsonObject, key, copy);
      waiting.push(copy);
    }
  }
  return holder[0] as JsonValue;
}

/** Returns the kind of a value as encoding/json names it in `cannot unmarshal … into …`. */
export function getGoKind(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  switch (typeof value) {
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'number';
    default:
      return typeof value;
  }
}
