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
  return new ExactParser(text).parse();
}

/** Reads one value with the containers that are open around it. */
class ExactParser {
  readonly #text: string;
  #at = 0;
  /** Containers around the value, the innermost last. */
  readonly #open: (JsonValue[] | JsonObject)[] = [];
  /** The key that waits for its value, for each open object; unused for arrays. */
  readonly #keys: string[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  parse(): JsonValue {
    for (;;) {
      let value = this.#readValue();
      // A container that was just opened has no value yet.
      if (value === undefined) continue;
      for (;;) {
        const container = this.#open.at(-1);
        this.#skipSpace();
        if (container === undefined) {
          if (this.#at < this.#text.length) throw this.#unexpected('after top-level value');
          return value;
        }
        const isArray = Array.isArray(container);
        if (isArray) container.push(value);
        else setJsonKey(container, this.#keys[this.#open.length - 1] as string, value);
        const character = this.#text[this.#at];
        if (character === ',') {
          this.#at++;
          if (!isArray) this.#readKey();
          break;
        }
        if (character !== (isArray ? ']' : '}')) {
          throw this.#unexpected(isArray ? 'after array element' : 'after object key:value pair');
        }
        this.#at++;
        value = this.#open.pop() as JsonValue;
      }
    }
  }

  /** Reads a scalar or an empty container; opens any other container and returns undefined. */
  #readValue(): JsonValue | undefined {
    this.#skipSpace();
    switch (this.#text[this.#at]) {
      case '{':
        return this.#openContainer({}, '}');
      case '[':
        return this.#openContainer([], ']');
      case '"':
        return this.#readString();
      case 't':
        return this.#readLiteral('true', true);
      case 'f':
        return this.#readLiteral('false', false);
      case 'n':
        return this.#readLiteral('null', null);
      default:
        return this.#readNumber();
    }
  }

  #openContainer(container: JsonValue[] | JsonObject, close: string): JsonValue | undefined {
    if (this.#open.length >= maxDepth) throw new GoJsonError('exceeded max depth', this.#at);
    this.#at++;
    this.#skipSpace();
    if (this.#text[this.#at] === close) {
      this.#at++;
      return container;
    }
    this.#open.push(container);
    if (close === '}') this.#readKey();
    return undefined;
  }

  #readKey(): void {
    this.#skipSpace();
    if (this.#text[this.#at] !== '"') throw this.#unexpected('looking for beginning of object key string');
    this.#keys[this.#open.length - 1] = this.#readString();
    this.#skipSpace();
    if (this.#text[this.#at] !== ':') throw this.#unexpected('after object key');
    this.#at++;
  }

  #readString(): string {
    const start = this.#at;
    const special = /["\\\u0000-\u001f]/g;
    let hasEscapes = false;
    for (this.#at++; ;) {
      special.lastIndex = this.#at;
      const match = special.exec(this.#text);
      this.#at = match === null ? this.#text.length : match.index;
      if (match?.[0] === '"') break;
      if (match?.[0] !== '\\') throw this.#unexpected('in string literal');
      hasEscapes = true;
      this.#at++;
      const letter = this.#text[this.#at] ?? '';
      if (letter === '' || !'"\\/bfnrtu'.includes(letter)) throw this.#unexpected('in string escape code');
      this.#at++;
      for (let i = 0; letter === 'u' && i < 4; i++, this.#at++) {
        if (!/[0-9a-fA-F]/.test(this.#text[this.#at] ?? '')) {
          throw this.#unexpected('in \\u hexadecimal character escape');
        }
      }
    }
    this.#at++;
    if (!hasEscapes) return this.#text.slice(start + 1, this.#at - 1);
    return (JSON.parse(this.#text.slice(start, this.#at)) as string).replace(/\p{Cs}/gu, '\ufffd');
  }

  #readLiteral<V>(literal: string, value: V): V {
    for (let i = 1; i < literal.length; i++) {
      this.#at++;
      if (this.#text[this.#at] !== literal[i]) {
        throw this.#unexpected(`in literal ${literal} (expecting '${literal[i]}')`);
      }
    }
    this.#at++;
    return value;
  }

  #readNumber(): number | bigint {
    const start = this.#at;
    if (this.#text[this.#at] === '-') this.#at++;
    if (this.#text[this.#at] === '0') this.#at++;
    else this.#readDigits(this.#at === start ? 'looking for beginning of value' : 'in numeric literal');
    let isInteger = true;
    if (this.#text[this.#at] === '.') {
      isInteger = false;
      this.#at++;
      this.#readDigits('after decimal point in numeric literal');
    }
    if (this.#text[this.#at] === 'e' || this.#text[this.#at] === 'E') {
      isInteger = false;
      this.#at++;
      if (this.#text[this.#at] === '+' || this.#text[this.#at] === '-') this.#at++;
      this.#readDigits('in exponent of numeric literal');
    }
    const token = this.#text.slice(start, this.#at);
    const value = Number(token);
    if (!Number.isFinite(value)) {
      const shown = token.length > 60 ? `${token.slice(0, 60)}…` : token;
      throw new GoJsonError(`json: cannot unmarshal number ${shown} into Go value of type float64`, start);
    }
    return isInteger && !Number.isSafeInteger(value) ? BigInt(token) : value;
  }

  #readDigits(context: string): void {
    const start = this.#at;
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (!(code >= 0x30 && code <= 0x39)) break;
      this.#at++;
    }
    if (this.#at === start) throw this.#unexpected(context);
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  #unexpected(context: string): GoJsonError {
    if (this.#at >= this.#text.length)
      return new GoJsonError('unexpected end of JSON input', this.#text.length);
    const codePoint = this.#text.codePointAt(this.#at) as number;
    // Go reports bytes, and shows the first byte of a character as if it were one.
    const byte = Buffer.from(String.fromCodePoint(codePoint))[0] as number;
    const character = String.fromCharCode(byte);
    const shown = character === "'" ? "\\'" : character === '"' ? '"' : quoteGo(character).slice(1, -1);
    return new GoJsonError(`invalid character '${shown}' ${context}`, this.#at);
  }
}
