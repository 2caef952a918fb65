import { Buffer } from 'node:buffer';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { type JsonObject, type JsonValue, setJsonKey } from './json.js';

/** Maximum nesting that Go's decoder allows. */
const maxDepth = 10_000;

/** Text is not JSON. The message is Go's. */
export class GoJsonError extends OpmateError {
  override readonly name: string = 'GoJsonError';
  /** Offset of the error in the text, in UTF-16 units. */
  readonly offset: number;
  constructor(message: string, offset: number) {
    super('SYNTAX', message);
    this.offset = offset;
  }
}

/**
 * Parses JSON that JSON.parse rejects or reads inexactly; see `parseGoJson`. Needs no stack for deep values. Throws
 * GoJsonError.
 */
export function parseExactly(text: string): JsonValue {
  let at = 0;
  const open: (JsonValue[] | JsonObject)[] = [];
  /** The key that waits for its value, for each open object; unused for arrays. */
  const keys: string[] = [];

  function parse(): JsonValue {
    for (;;) {
      let value = readValue();
      // A container that was just opened has no value yet.
      if (value === undefined) continue;
      for (;;) {
        const container = open.at(-1);
        skipSpace();
        if (container === undefined) {
          if (at < text.length) throw unexpected('after top-level value');
          return value;
        }
        const isArray = Array.isArray(container);
        if (isArray) container.push(value);
        else setJsonKey(container, keys[open.length - 1] as string, value);
        const character = text[at];
        if (character === ',') {
          at++;
          if (!isArray) readKey();
          break;
        }
        if (character !== (isArray ? ']' : '}')) {
          throw unexpected(isArray ? 'after array element' : 'after object key:value pair');
        }
        at++;
        value = open.pop() as JsonValue;
      }
    }
  }

  /** Reads a scalar or an empty container; opens any other container and returns undefined. */
  function readValue(): JsonValue | undefined {
    skipSpace();
    switch (text[at]) {
      case '{':
        return openContainer({}, '}');
      case '[':
        return openContainer([], ']');
      case '"':
        return readString();
      case 't':
        return readLiteral('true', true);
      case 'f':
        return readLiteral('false', false);
      case 'n':
        return readLiteral('null', null);
      default:
        return readNumber();
    }
  }

  function openContainer(container: JsonValue[] | JsonObject, close: string): JsonValue | undefined {
    if (open.length >= maxDepth) throw new GoJsonError('exceeded max depth', at);
    at++;
    skipSpace();
    if (text[at] === close) {
      at++;
      return container;
    }
    open.push(container);
    if (close === '}') readKey();
    return undefined;
  }

  function readKey(): void {
    skipSpace();
    if (text[at] !== '"') throw unexpected('looking for beginning of object key string');
    keys[open.length - 1] = readString();
    skipSpace();
    if (text[at] !== ':') throw unexpected('after object key');
    at++;
  }

  function readString(): string {
    const start = at;
    const special = /["\\\u0000-\u001f]/g;
    let hasEscapes = false;
    for (at++; ;) {
      special.lastIndex = at;
      const match = special.exec(text);
      at = match === null ? text.length : match.index;
      if (match?.[0] === '"') break;
      if (match?.[0] !== '\\') throw unexpected('in string literal');
      hasEscapes = true;
      at++;
      const letter = text[at] ?? '';
      if (letter === '' || !'"\\/bfnrtu'.includes(letter)) throw unexpected('in string escape code');
      at++;
      for (let i = 0; letter === 'u' && i < 4; i++, at++) {
        if (!/[0-9a-fA-F]/.test(text[at] ?? '')) {
          throw unexpected('in \\u hexadecimal character escape');
        }
      }
    }
    at++;
    if (!hasEscapes) return text.slice(start + 1, at - 1);
    return (JSON.parse(text.slice(start, at)) as string).replace(/\p{Cs}/gu, '\ufffd');
  }

  function readLiteral<V>(literal: string, value: V): V {
    for (let i = 1; i < literal.length; i++) {
      at++;
      if (text[at] !== literal[i]) {
        throw unexpected(`in literal ${literal} (expecting '${literal[i]}')`);
      }
    }
    at++;
    return value;
  }

  function readNumber(): number | bigint {
    const start = at;
    if (text[at] === '-') at++;
    if (text[at] === '0') at++;
    else readDigits(at === start ? 'looking for beginning of value' : 'in numeric literal');
    let isInteger = true;
    if (text[at] === '.') {
      isInteger = false;
      at++;
      readDigits('after decimal point in numeric literal');
    }
    if (text[at] === 'e' || text[at] === 'E') {
      isInteger = false;
      at++;
      if (text[at] === '+' || text[at] === '-') at++;
      readDigits('in exponent of numeric literal');
    }
    const token = text.slice(start, at);
    const value = Number(token);
    if (!Number.isFinite(value)) {
      const shown = token.length > 60 ? `${token.slice(0, 60)}…` : token;
      throw new GoJsonError(`json: cannot unmarshal number ${shown} into Go value of type float64`, start);
    }
    return isInteger && !Number.isSafeInteger(value) ? BigInt(token) : value;
  }

  function readDigits(context: string): void {
    const start = at;
    for (;;) {
      const code = text.charCodeAt(at);
      if (!(code >= 0x30 && code <= 0x39)) break;
      at++;
    }
    if (at === start) throw unexpected(context);
  }

  function skipSpace(): void {
    for (;;) {
      const code = text.charCodeAt(at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      at++;
    }
  }

  function unexpected(context: string): GoJsonError {
    if (at >= text.length) return new GoJsonError('unexpected end of JSON input', text.length);
    const codePoint = text.codePointAt(at) as number;
    // Go reports bytes, and shows the first byte of a character as if it were one.
    const byte = Buffer.from(String.fromCodePoint(codePoint))[0] as number;
    const character = String.fromCharCode(byte);
    const shown = character === "'" ? "\\'" : character === '"' ? '"' : quoteGo(character).slice(1, -1);
    return new GoJsonError(`invalid character '${shown}' ${context}`, at);
  }

  return parse();
}
