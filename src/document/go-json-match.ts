import { encodeGoJson } from './go-json.js';
import { type EncodableJson, RawJson } from './json.js';

/** Maximum depth of comparison. */
const maxDepth = 200;

/**
 * Reports whether `text` equals `encodeGoJson(value, { indent })`, without encoding the value: long strings are
 * compared in place. May return false for equal rare values (index-like keys, deep nesting, raw parts), but never
 * true for different ones. `text` must be valid JSON.
 */
export function isEncodedAs(text: string, value: EncodableJson, indent: number): boolean {
  return new Matcher(text, ' '.repeat(indent)).matches(value);
}

class Matcher {
  readonly #text: string;
  readonly #indents: string[];
  #at = 0;

  constructor(text: string, indent: string) {
    this.#text = text;
    this.#indents = Array.from({ length: maxDepth + 2 }, (_, depth) => `\n${indent.repeat(depth)}`);
  }

  matches(value: EncodableJson): boolean {
    return this.#value(value, 0) && this.#at === this.#text.length;
  }

  #take(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#at)) return false;
    this.#at += expected.length;
    return true;
  }

  #value(value: EncodableJson, depth: number): boolean {
    if (typeof value === 'string') return this.#string(value);
    if (typeof value !== 'object' || value === null) return this.#take(encodeGoJson(value));
    if (value instanceof RawJson || depth > maxDepth) return false;
    return Array.isArray(value) ? this.#array(value, depth) : this.#object(value, depth);
  }

  #string(value: string): boolean {
    const text = this.#text;
    const start = this.#at + 1;
    const end = start + value.length;
    const isLiteral =
      text.charCodeAt(start - 1) === 0x22 &&
      text.charCodeAt(end) === 0x22 &&
      // Comparing a slice is faster than `startsWith` for long strings.
      text.slice(start, end) === value &&
      !value.includes('\u2028') &&
      !value.includes('\u2029');
    if (!isLiteral) return this.#take(encodeGoJson(value));
    this.#at = end + 1;
    return true;
  }

  #array(items: EncodableJson[], depth: number): boolean {
    if (items.length === 0) return this.#take('[]');
    const inner = this.#indents[depth + 1] as string;
    for (const [index, item] of items.entries()) {
      if (!this.#take(index === 0 ? '[' : ',') || !this.#take(inner) || !this.#value(item, depth + 1))
        return false;
    }
    return this.#take(this.#indents[depth] as string) && this.#take(']');
  }

  #object(object: { [key: string]: EncodableJson }, depth: number): boolean {
    const keys = Object.keys(object);
    if (keys.length === 0) return this.#take('{}');
    const first = (keys[0] as string).charCodeAt(0);
    // Index-like keys come first in JavaScript, in another order.
    if (first >= 0x30 && first <= 0x39) return false;
    const inner = this.#indents[depth + 1] as string;
    for (const [index, key] of keys.entries()) {
      if (!this.#take(index === 0 ? '{' : ',') || !this.#take(inner)) return false;
      if (!this.#string(key) || !this.#take(': ')) return false;
      if (!this.#value(object[key] as EncodableJson, depth + 1)) return false;
    }
    return this.#take(this.#indents[depth] as string) && this.#take('}');
  }
}
