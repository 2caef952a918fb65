/** Numbers, booleans and null as Go writes them in YAML after a pass through JSON text. */
import type { EncodableJson } from '../json.js';
import { formatFloat, resolveScalar } from './scalar.js';

/** Formats null, a boolean or a number; a bigint keeps all digits. */
export function formatScalar(value: null | boolean | number | bigint): string {
  const text = String(value);
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return text;
  if (Number.isInteger(value) && !text.includes('e')) {
    const integer = BigInt(text);
    if (integer >= -(2n ** 63n) && integer < 2n ** 64n) return text;
  }
  return formatFloat(value);
}

const HARD_NUMBER = /[[:,]\s*-?[0-9]+(?:[.eE]|[0-9]{15})|^\s*-?[0-9]/;
const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?/g;

/** A number that JSON.parse would round, or whose decimal point it would drop. */
export class NumberText {
  readonly yaml: string;
  constructor(text: string) {
    const { type, value } = resolveScalar(text);
    // Go would read an integer beyond 64 bits as a float; its digits matter more.
    if (type === 'float' && /[.eE]/.test(text)) this.yaml = formatFloat(value);
    else this.yaml = type === 'int' ? String(value) : text;
  }
}

/** A value to write, with numbers of raw JSON as text. */
export type WritableJson = EncodableJson | NumberText | WritableJson[] | { [key: string]: WritableJson };

/** Parses raw JSON without rounding its numbers. */
export function parseRawJson(text: string): WritableJson {
  if (!HARD_NUMBER.test(text)) return JSON.parse(text) as WritableJson;
  // A marker that no string of the text starts with, escaped or not.
  let code = 0xe000;
  for (let used = true; used; code++) {
    const hex = (code + 1).toString(16);
    used = new RegExp(`"(?:\\\\u${hex}|\\u${hex})`, 'i').test(text);
  }
  const mark = String.fromCharCode(code);
  const marked = text.replace(JSON_TOKEN, (token) => (token.startsWith('"') ? token : `"${mark}${token}"`));
  return JSON.parse(marked, (_key, value: WritableJson) =>
    typeof value === 'string' && value.startsWith(mark) ? new NumberText(value.slice(1)) : value,
  ) as WritableJson;
}
