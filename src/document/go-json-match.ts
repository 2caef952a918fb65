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
  const lines = Array.from({ length: maxDepth + 2 }, (_, depth) => `\n${' '.repeat(indent * depth)}`);
  let at = 0;

  function take(expected: string): boolean {
    if (!text.startsWith(expected, at)) return false;
    at += expected.length;
    return true;
  }

  function takeString(string: string): boolean {
    const start = at + 1;
    const end = start + string.length;
    const isLiteral =
      text.charCodeAt(start - 1) === 0x22 &&
      text.charCodeAt(end) === 0x22 &&
      // Comparing a slice is faster than `startsWith` for long strings.
      text.slice(start, end) === string &&
      !string.includes('\u2028') &&
      !string.includes('\u2029');
    if (!isLiteral) return take(encodeGoJson(string));
    at = end + 1;
    return true;
  }

  function takeValue(part: EncodableJson, depth: number): boolean {
    if (typeof part === 'string') return takeString(part);
    if (typeof part !== 'object' || part === null) return take(encodeGoJson(part));
    if (part instanceof RawJson || depth > maxDepth) return false;
    const inner = lines[depth + 1] as string;
    if (Array.isArray(part)) {
      if (part.length === 0) return take('[]');
      for (const [index, item] of part.entries()) {
        if (!take(index === 0 ? '[' : ',') || !take(inner) || !takeValue(item, depth + 1)) return false;
      }
      return take(lines[depth] as string) && take(']');
    }
    const keys = Object.keys(part);
    if (keys.length === 0) return take('{}');
    const first = (keys[0] as string).charCodeAt(0);
    // Index-like keys come first in JavaScript, in another order.
    if (first >= 0x30 && first <= 0x39) return false;
    for (const [index, key] of keys.entries()) {
      if (!take(index === 0 ? '{' : ',') || !take(inner) || !takeString(key) || !take(': ')) return false;
      if (!takeValue(part[key] as EncodableJson, depth + 1)) return false;
    }
    return take(lines[depth] as string) && take('}');
  }

  return takeValue(value, 0) && at === text.length;
}
