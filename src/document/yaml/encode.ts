import { LimitError } from '../../core/errors.js';
import { type EncodableJson, RawJson } from '../json.js';
import { NumberText, type WritableJson, parseRawJson, formatScalar } from './numbers.js';
import { sortedYamlKeys } from './order.js';
import { SINGLE_ESCAPES } from './scalar.js';
import { chooseStyle, toWellFormed } from './style.js';

/** Column after which text folds at its next single space. */
const BEST_WIDTH = 80;
/** Maximum bytes of a key without `? `. */
const MAX_SIMPLE_KEY = 128;

/**
 * Writes one value as YAML with the bytes of Go's sigs.k8s.io/yaml (go-yaml 2): keys in natural order, sequences not
 * indented under their key, text folded after column 80 or written as literal blocks, ambiguous text in double
 * quotes. Ends with a line break.
 *
 * Numbers are written as Go writes them after a pass through JSON text; a bigint keeps all digits. Lone surrogates
 * become U+FFFD. A key `<<` is quoted, which Go forgets. Throws LimitError for values nested some thousand levels
 * deep.
 */
export function encodeYaml(value: EncodableJson): string {
  try {
    return new YamlWriter().write(value);
  } catch (error) {
    if (error instanceof RangeError) throw new LimitError('value is nested too deeply to be written as YAML');
    throw error;
  }
}

/** Position of a node: at the top, after `key:`, or after `-` or the `:` of a long key. */
type Place = 'root' | 'value' | 'item';

class YamlWriter {
  #out = '';
  /** The current line is empty. */
  #lineStart = true;
  readonly #keys = new Map<string, string | undefined>();

  write(value: EncodableJson): string {
    this.#node(value, -2, -1, 'root');
    if (!this.#lineStart) this.#out += '\n';
    return this.#out;
  }

  /** Writes a node; `indent` is that of its collection, `column` the end of the current line. */
  #node(value: WritableJson, indent: number, column: number, place: Place): void {
    if (typeof value === 'string') {
      this.#scalar(value, Math.max(indent, 0) + 2, column);
    } else if (typeof value === 'object' && value !== null) {
      if (value instanceof RawJson) this.#node(parseRawJson(value.text), indent, column, place);
      else if (value instanceof NumberText) this.#plain(value.yaml);
      else if (Array.isArray(value)) this.#sequence(value, place === 'value' ? indent : indent + 2, place);
      else this.#mapping(value, indent + 2, place);
    } else {
      this.#plain(formatScalar(value));
    }
  }

  #plain(text: string): void {
    this.#out += this.#lineStart ? text : ` ${text}`;
    this.#lineStart = false;
  }

  #newLine(indent: number): void {
    this.#out += this.#lineStart ? pad(indent) : `\n${pad(indent)}`;
    this.#lineStart = false;
  }

  #sequence(items: readonly WritableJson[], indent: number, place: Place): void {
    if (items.length === 0) return this.#plain('[]');
    let first = place === 'item';
    for (const item of items) {
      if (first) this.#out += ' -';
      else {
        this.#newLine(indent);
        this.#out += '-';
      }
      first = false;
      this.#node(item, indent, indent + 1, 'item');
    }
  }

  #mapping(object: { readonly [key: string]: WritableJson }, indent: number, place: Place): void {
    const keys = sortedYamlKeys(object);
    if (keys.length === 0) return this.#plain('{}');
    let first = place === 'item';
    for (const key of keys) {
      if (first) this.#out += ' ';
      else this.#newLine(indent);
      first = false;
      const value = object[key] as WritableJson;
      const text = this.#simpleKey(key);
      if (text === undefined) {
        this.#out += '?';
        this.#scalar(key, indent + 2, indent + 1);
        this.#newLine(indent);
        this.#out += ':';
        this.#node(value, indent, indent + 1, 'item');
      } else {
        this.#out += text;
        this.#node(value, indent, indent + text.length, 'value');
      }
    }
  }

  /** Returns a key with its colon if it fits on one line. */
  #simpleKey(key: string): string | undefined {
    let text = this.#keys.get(key);
    if (text !== undefined || this.#keys.has(key)) return text;
    if (!BREAKS.test(key) && (key.length <= 42 || Buffer.byteLength(key) <= MAX_SIMPLE_KEY)) {
      const writer = new YamlWriter();
      // Go omits the quotes, and its output then reads as a merge.
      if (key === '<<') writer.#plain('"<<"');
      else writer.#scalar(key, 0, -Infinity);
      text = `${writer.#out}:`;
    }
    if (this.#keys.size < 10_000) this.#keys.set(key, text);
    return text;
  }

  #scalar(raw: string, indent: number, column: number): void {
    const text = toWellFormed(raw);
    const style = chooseStyle(text);
    if (style === 'literal') this.#literal(text, indent);
    else if (style === 'double') this.#doubleQuoted(text, indent, column);
    else if (style === 'single') this.#singleQuoted(text, indent, column);
    else this.#folded(text, indent, column);
  }

  /** Writes text with line breaks for single spaces after the best width. */
  #folded(text: string, indent: number, column: number): void {
    const position = column + 1;
    if (position + text.length <= BEST_WIDTH) return this.#plain(text);
    this.#plain(fold(text, indent, position, 0, text.length));
  }

  #singleQuoted(text: string, indent: number, column: number): void {
    const position = column + 1;
    // Lines after LINE SEPARATOR and the like are indented like any other.
    const pieces = text.split(/(?<=[\u2028\u2029])(?![\u2028\u2029]|$)/);
    const written = pieces.map((piece, index) => {
      const quoted = piece.replaceAll("'", "''");
      const end = index === pieces.length - 1 ? quoted.length - 1 : quoted.length;
      if (index === 0) return fold(quoted, indent, position + 1, 1, end);
      return pad(indent) + fold(quoted, indent, indent, 0, end);
    });
    this.#plain(`'${written.join('')}'`);
  }

  #literal(text: string, indent: number): void {
    const mark = /^[ \n\u2028\u2029]/.test(text) ? '2' : '';
    const chomp = !/[\n\u2028\u2029]$/.test(text) ? '-' : /(?:^|[\n\u2028\u2029]).$/su.test(text) ? '+' : '';
    this.#plain(`|${mark}${chomp}\n`);
    const margin = pad(indent);
    if (text.includes('\u2028') || text.includes('\u2029')) {
      this.#out += text.replace(/(^|[\n\u2028\u2029])(?=[^\n\u2028\u2029])/g, `$1${margin}`);
    } else {
      for (let from = 0; from < text.length;) {
        const end = text.indexOf('\n', from);
        const stop = end < 0 ? text.length : end + 1;
        this.#out += end === from ? '\n' : margin + text.slice(from, stop);
        from = stop;
      }
    }
    this.#lineStart = chomp !== '-';
  }

  #doubleQuoted(text: string, indent: number, column: number): void {
    let position = column + 2;
    if (!DOUBLE_ESCAPED.test(text) && position + text.length <= BEST_WIDTH) return this.#plain(`"${text}"`);
    // Go looks for a byte order mark at the start of the text at every character.
    const escapeAll = text.charCodeAt(0) === 0xfeff;
    const parts: string[] = [];
    let spaces = false;
    for (let i = 0; i < text.length; i++) {
      const char = text[i] as string;
      if (escapeAll || DOUBLE_ESCAPED.test(char)) {
        const code = text.codePointAt(i) as number;
        if (code > 0xffff) i++;
        const escaped = toEscape(code);
        parts.push(escaped);
        position += escaped.length;
        spaces = false;
      } else if (char === ' ') {
        if (!spaces && position > BEST_WIDTH && i > 0 && i < text.length - 1) {
          parts.push(`\n${pad(indent)}`);
          position = indent;
          if (text[i + 1] === ' ') {
            parts.push('\\');
            position++;
          }
        } else {
          parts.push(char);
          position++;
        }
        spaces = true;
      } else {
        parts.push(char);
        position++;
        spaces = false;
      }
    }
    this.#plain(`"${parts.join('')}"`);
  }
}

/**
 * Breaks text at single spaces after the best width. `column` is its start; only spaces from `from` to `to`
 * (exclusive) are used.
 */
function fold(text: string, indent: number, column: number, from: number, to: number): string {
  let out = '';
  let start = 0;
  let position = column;
  let search = Math.max(from, BEST_WIDTH + 1 - position);
  for (;;) {
    const space = text.indexOf(' ', search);
    if (space < 0 || space >= to) break;
    if (text.charCodeAt(space + 1) === 0x20 || (space > 0 && text.charCodeAt(space - 1) === 0x20)) {
      search = space + 1;
      continue;
    }
    out += `${text.slice(start, space)}\n${pad(indent)}`;
    start = space + 1;
    position = indent;
    search = start + Math.max(0, BEST_WIDTH + 1 - position);
  }
  return start === 0 ? text : out + text.slice(start);
}

const BREAKS = /[\n\r\x85\u2028\u2029]/;
/** Characters escaped in double quotes; lone surrogates included. */
const DOUBLE_ESCAPED = /["\\\u2028\u2029]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]/;

/** Escapes by code point; other characters have no short one in Go. */
const ESCAPES = new Map(
  [...SINGLE_ESCAPES]
    .filter(([letter]) => !" '/".includes(letter))
    .map(([letter, character]) => [character.charCodeAt(0), `\\${letter}`]),
);

function toEscape(code: number): string {
  const short = ESCAPES.get(code);
  if (short !== undefined) return short;
  const digits = code.toString(16).toUpperCase();
  if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`;
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`;
}

const PADS = Array.from({ length: 64 }, (_, width) => ' '.repeat(width));

function pad(width: number): string {
  return PADS[width] ?? ' '.repeat(width);
}
