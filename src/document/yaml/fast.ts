import { type JsonObject, type JsonValue, setJsonKey } from '../json.js';
import { SINGLE_ESCAPES, countBreaks, isWellFormed, mayResolve, resolveScalar } from './scalar.js';

/** Characters that the plain style does not use, line breaks other than `\n` included. */
const UNUSUAL = /[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]/;
/** Indicators that cannot start a plain scalar, and `?` and `:`, which can. */
const INDICATORS = new Uint8Array(128);
for (const char of '?:,[]{}#&*!|>\'"%@`\t') INDICATORS[char.charCodeAt(0)] = 1;
/** A scalar in a flow collection in its common form. */
const FLOW_WORD = /[A-Za-z0-9_./][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./-]+)*/y;
/** Maximum length of a simple key. */
const MAX_KEY = 1000;

const SPACE = 0x20;
const TAB = 0x09;
const LF = 0x0a;
const DASH = 0x2d;
const HASH = 0x23;
const COLON = 0x3a;
const QUOTE = 0x27;
const DOUBLE_QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Thrown for text outside the plain style, valid or not. */
const GIVE_UP = new Error('not plain YAML');

/**
 * Reads a document in the plain style that tools write: block mappings and sequences, scalars of every style, flow
 * collections on one line, comments. Returns undefined for other documents, valid or not; its results equal those of
 * the full reader, as tests verify.
 */
export function parseFastYaml(source: string, maxDepth: number): { value: JsonValue } | undefined {
  // Every line break reads as `\n`, in scalars too.
  const text = source.includes('\r') ? source.replaceAll('\r\n', '\n') : source;
  if (UNUSUAL.test(text) || !isWellFormed(text)) return undefined;
  try {
    return { value: new FastReader(text, maxDepth).read() };
  } catch (error) {
    if (error === GIVE_UP) return undefined;
    throw error;
  }
}

class FastReader {
  readonly #text: string;
  readonly #end: number;
  /** Start of the next content; the first of its line after a node was read. */
  #pos = 0;
  /** Column of the content; -1 at the end of the text. */
  #column = -1;
  /** A comment precedes the content. */
  #passedComment = false;
  #depth: number;

  constructor(text: string, maxDepth: number) {
    this.#text = text;
    this.#end = text.length;
    this.#depth = maxDepth;
  }

  read(): JsonValue {
    this.#toContent(0);
    if (this.#column === 0 && this.#text.startsWith('---', this.#pos)) {
      this.#pos += 3;
      this.#restOfLine();
    }
    if (this.#column < 0) throw GIVE_UP;
    const value = this.#blockNode(-1, this.#column);
    if (this.#column >= 0) throw GIVE_UP;
    return value;
  }

  /** Moves from the start of a line to the next content, past empty lines and comments. */
  #toContent(lineStart: number): void {
    const text = this.#text;
    this.#passedComment = false;
    let start = lineStart;
    for (;;) {
      let pos = start;
      let char = text.charCodeAt(pos);
      while (char === SPACE) char = text.charCodeAt(++pos);
      if (char === LF) {
        start = pos + 1;
      } else if (char === HASH) {
        const end = text.indexOf('\n', pos);
        start = end < 0 ? this.#end : end + 1;
        this.#passedComment = true;
      } else if (pos >= this.#end) {
        this.#pos = this.#end;
        this.#column = -1;
        return;
      } else if (char === TAB) {
        throw GIVE_UP;
      } else {
        this.#pos = pos;
        this.#column = pos - start;
        return;
      }
    }
  }

  /** Moves past the end of a line that may hold blanks and a comment only. */
  #restOfLine(): void {
    const text = this.#text;
    let pos = this.#pos;
    let char = text.charCodeAt(pos);
    if (char === SPACE) {
      while (char === SPACE) char = text.charCodeAt(++pos);
      if (char === HASH) {
        const end = text.indexOf('\n', pos);
        return this.#toContent(end < 0 ? this.#end : end + 1);
      }
    }
    if (char === LF) this.#toContent(pos + 1);
    else if (pos >= this.#end) this.#toContent(this.#end);
    else throw GIVE_UP;
  }

  #isEntry(): boolean {
    if (this.#text.charCodeAt(this.#pos) !== DASH) return false;
    const next = this.#text.charCodeAt(this.#pos + 1);
    return next === SPACE || next === LF || this.#pos + 1 >= this.#end;
  }

  /** Reads the node at the current content; `parent` is the column of its collection. */
  #blockNode(parent: number, column: number): JsonValue {
    if (this.#isEntry()) return this.#sequence(column);
    const key = this.#tryKey();
    if (key !== undefined) return this.#mapping(column, key);
    if (parent < 0) throw GIVE_UP;
    return this.#inlineValue(parent);
  }

  #sequence(column: number): JsonValue[] {
    if (--this.#depth < 0) throw GIVE_UP;
    const items: JsonValue[] = [];
    const text = this.#text;
    do {
      const dash = this.#pos;
      let pos = dash + 1;
      while (text.charCodeAt(pos) === SPACE) pos++;
      this.#pos = pos;
      const char = text.charCodeAt(pos);
      if (char === LF || char === HASH || pos >= this.#end) {
        this.#pos = dash + 1;
        this.#restOfLine();
        items.push(this.#column > column ? this.#blockNode(column, this.#column) : null);
      } else {
        items.push(this.#blockNode(column, column + pos - dash));
      }
    } while (this.#column === column && this.#isEntry());
    this.#depth++;
    return items;
  }

  /** Reads a mapping whose first key and colon were read. */
  #mapping(column: number, firstKey: string): JsonObject {
    if (--this.#depth < 0) throw GIVE_UP;
    const object: JsonObject = {};
    const text = this.#text;
    let key = firstKey;
    for (;;) {
      const colonEnd = this.#pos;
      let pos = colonEnd;
      while (text.charCodeAt(pos) === SPACE) pos++;
      const char = text.charCodeAt(pos);
      let value: JsonValue = null;
      if (char === LF || pos >= this.#end || char === HASH) {
        this.#restOfLine();
        if (this.#column > column) value = this.#blockNode(column, this.#column);
        else if (this.#column === column && this.#isEntry()) value = this.#sequence(column);
      } else {
        this.#pos = pos;
        value = this.#inlineValue(column);
      }
      setJsonKey(object, key, value);
      if (this.#column !== column) break;
      const next = this.#tryKey();
      if (next === undefined) throw GIVE_UP;
      key = next;
    }
    this.#depth++;
    return object;
  }

  /** Reads a key with its colon if the line has one. */
  #tryKey(): string | undefined {
    const text = this.#text;
    const start = this.#pos;
    const first = text.charCodeAt(start);
    if (first === DOUBLE_QUOTE || first === QUOTE) return this.#tryQuotedKey(first);
    if (first < 128 && INDICATORS[first] === 1) {
      // Another kind of value may stand here, but no plain key.
      if (first === 0x5b || first === 0x7b || first === 0x7c || first === 0x3e) return undefined;
      throw GIVE_UP;
    }
    if (first === DASH && (this.#isEntry() || text.startsWith('---', start))) throw GIVE_UP;
    let pos = start;
    for (;;) {
      const char = text.charCodeAt(pos);
      if (char === COLON) {
        const next = text.charCodeAt(pos + 1);
        if (next === SPACE || next === LF || pos + 1 >= this.#end) break;
        if (next === TAB) throw GIVE_UP;
      } else if (char === LF || pos >= this.#end) {
        return undefined;
      } else if (char === SPACE && text.charCodeAt(pos + 1) === HASH) {
        return undefined;
      } else if (char === TAB) {
        throw GIVE_UP;
      }
      pos++;
    }
    if (text.charCodeAt(pos - 1) === SPACE || pos - start > MAX_KEY) throw GIVE_UP;
    const key = text.slice(start, pos);
    this.#pos = pos + 1;
    if (key === '<<') throw GIVE_UP;
    if (!mayResolve(first)) return key;
    if (key.startsWith('...')) throw GIVE_UP;
    const { type, value } = resolveScalar(key);
    if (type === 'str' || type === 'timestamp') return key;
    if (type === 'float' || type === 'null' || typeof value === 'bigint') throw GIVE_UP;
    return String(value);
  }

  #tryQuotedKey(quote: number): string | undefined {
    const text = this.#text;
    const start = this.#pos;
    const end = text.indexOf(quote === QUOTE ? "'" : '"', start + 1);
    if (end < 0 || end - start > MAX_KEY) return undefined;
    if (text.charCodeAt(end + 1) !== COLON) return undefined;
    const after = text.charCodeAt(end + 2);
    if (after !== SPACE && after !== LF && end + 2 < this.#end) return undefined;
    const key = text.slice(start + 1, end);
    if (key.includes('\n') || key.includes('\\') || key.includes('\t')) throw GIVE_UP;
    this.#pos = end + 2;
    return key;
  }

  /** Reads a scalar or flow collection with its continuation lines. */
  #inlineValue(parent: number): JsonValue {
    const text = this.#text;
    const first = text.charCodeAt(this.#pos);
    if (first < 128 && INDICATORS[first] === 1) {
      let value: JsonValue;
      switch (first) {
        case DOUBLE_QUOTE:
          value = this.#doubleQuoted();
          break;
        case QUOTE:
          value = this.#singleQuoted();
          break;
        case 0x7c: // |
        case 0x3e: // >
          return this.#blockScalar(parent, first === 0x7c);
        case 0x5b: // [
        case 0x7b: // {
          value = this.#flow();
          break;
        default:
          throw GIVE_UP;
      }
      this.#restOfLine();
      return value;
    }
    if (first === DASH && (this.#isEntry() || text.charCodeAt(this.#pos + 1) === TAB)) throw GIVE_UP;
    const plain = this.#plain(parent);
    if (!mayResolve(first)) return plain;
    const { type, value } = resolveScalar(plain);
    if (type === 'float' && !Number.isFinite(value)) throw GIVE_UP;
    return value;
  }

  #plain(parent: number): string {
    const text = this.#text;
    const line = this.#plainLine(this.#pos);
    const lineEnd = this.#pos;
    if (text.charCodeAt(lineEnd) === HASH) {
      this.#pos = lineEnd - 1;
      this.#restOfLine();
      return line;
    }
    // Lines indented deeper than the parent belong to the scalar.
    this.#skipToContent(lineEnd, parent);
    if (this.#column <= parent) return line;
    let value = line;
    let previousEnd = lineEnd;
    for (;;) {
      const breaks = countBreaks(text, previousEnd, this.#pos);
      value += breaks === 1 ? ' ' : '\n'.repeat(breaks - 1);
      value += this.#plainLine(this.#pos);
      previousEnd = this.#pos;
      if (text.charCodeAt(previousEnd) === HASH) throw GIVE_UP;
      this.#skipToContent(previousEnd, parent);
      if (this.#column <= parent) return value;
    }
  }

  /** Moves to the content after a line of a plain scalar; a comment ends the scalar. */
  #skipToContent(lineEnd: number, parent: number): void {
    this.#toContent(lineEnd < this.#end ? lineEnd + 1 : this.#end);
    if (this.#column > parent && this.#passedComment) throw GIVE_UP;
  }

  /** Returns the rest of the line without trailing blanks; moves to its line break or the `#` of a comment. */
  #plainLine(start: number): string {
    const text = this.#text;
    const end = text.indexOf('\n', start);
    const lineEnd = end < 0 ? this.#end : end;
    let line = text.slice(start, lineEnd);
    this.#pos = lineEnd;
    if (line.includes('\t') || line.includes(': ')) {
      // Valid after a comment only.
      const comment = line.indexOf(' #');
      if (comment < 0 || line.slice(0, comment).includes(': ') || line.includes('\t')) throw GIVE_UP;
    }
    const comment = line.indexOf(' #');
    if (comment >= 0) {
      this.#pos = start + comment + 1;
      line = line.slice(0, comment);
    }
    let length = line.length;
    while (line.charCodeAt(length - 1) === SPACE) length--;
    if (line.charCodeAt(length - 1) === COLON) throw GIVE_UP;
    return length === line.length ? line : line.slice(0, length);
  }

  #singleQuoted(): string {
    const text = this.#text;
    const parts: string[] = [];
    let start = this.#pos + 1;
    for (;;) {
      const end = text.indexOf("'", start);
      if (end < 0) throw GIVE_UP;
      const doubled = text.charCodeAt(end + 1) === QUOTE;
      parts.push(text.slice(start, doubled ? end + 1 : end));
      start = doubled ? end + 2 : end + 1;
      if (!doubled) break;
    }
    this.#pos = start;
    const value = parts.length === 1 ? (parts[0] as string) : parts.join('');
    return value.includes('\n') ? foldQuoted(value) : value;
  }

  #doubleQuoted(): string {
    const text = this.#text;
    const start = this.#pos + 1;
    let end = text.indexOf('"', start);
    if (end < 0) throw GIVE_UP;
    const simple = text.slice(start, end);
    if (!simple.includes('\\')) {
      this.#pos = end + 1;
      return simple.includes('\n') ? foldQuoted(simple) : simple;
    }
    // A quote after an odd number of backslashes is part of the text.
    while (isEscaped(text, end, start)) {
      end = text.indexOf('"', end + 1);
      if (end < 0) throw GIVE_UP;
    }
    this.#pos = end + 1;
    return unescape(text.slice(start, end));
  }

  #blockScalar(parent: number, literal: boolean): string {
    const text = this.#text;
    let pos = this.#pos + 1;
    let chomping = 0;
    let indent = 0;
    for (let i = 0; i < 2; i++) {
      const char = text.charCodeAt(pos);
      if ((char === 0x2b || char === DASH) && chomping === 0) chomping = char === DASH ? -1 : 1;
      else if (char > 0x30 && char <= 0x39 && indent === 0) indent = Math.max(parent, 0) + char - 0x30;
      else break;
      pos++;
    }
    while (text.charCodeAt(pos) === SPACE) pos++;
    if (text.charCodeAt(pos) !== LF) throw GIVE_UP;
    let start = pos + 1;
    if (indent === 0) {
      indent = this.#detectIndent(start);
      if (indent <= parent || indent < 1) indent = Math.max(parent + 1, 1);
    }
    const parts: string[] = [];
    let breaks = 0;
    let afterBlank = false;
    let ended = true;
    while (start < this.#end) {
      let position = start;
      const limit = start + indent;
      while (position < limit && text.charCodeAt(position) === SPACE) position++;
      const char = text.charCodeAt(position);
      if (char === LF) {
        breaks++;
        start = position + 1;
        continue;
      }
      if (position < limit || position >= this.#end) {
        if (char === TAB) throw GIVE_UP;
        break;
      }
      const newline = text.indexOf('\n', position);
      const end = newline < 0 ? this.#end : newline;
      const blank = char === SPACE || char === TAB;
      if (parts.length === 0) parts.push('\n'.repeat(breaks));
      else if (literal || afterBlank || blank) parts.push('\n'.repeat(breaks + 1));
      else parts.push(breaks === 0 ? ' ' : '\n'.repeat(breaks));
      parts.push(text.slice(position, end));
      afterBlank = blank;
      breaks = 0;
      ended = newline >= 0;
      start = end + 1;
    }
    if (chomping !== -1 && parts.length > 0 && ended) parts.push('\n');
    if (chomping === 1) parts.push('\n'.repeat(breaks));
    this.#toContent(Math.min(start, this.#end));
    return parts.length === 2 && parts[0] === '' ? (parts[1] as string) : parts.join('');
  }

  /** Returns the column of the first nonempty line, from the start of a line. */
  #detectIndent(lineStart: number): number {
    const text = this.#text;
    let start = lineStart;
    let widest = 0;
    for (;;) {
      let pos = start;
      while (text.charCodeAt(pos) === SPACE) pos++;
      const width = pos - start;
      if (text.charCodeAt(pos) !== LF) {
        if (widest > width || text.charCodeAt(pos) === TAB || pos >= this.#end) throw GIVE_UP;
        return width;
      }
      widest = Math.max(widest, width);
      start = pos + 1;
    }
  }

  /** Reads a flow collection that ends on its line. */
  #flow(): JsonValue {
    if (--this.#depth < 0) throw GIVE_UP;
    const close = this.#text.charCodeAt(this.#pos) === 0x5b ? 0x5d : 0x7d;
    const items: JsonValue[] = [];
    const object: JsonObject = {};
    this.#pos++;
    for (let first = true; ; first = false) {
      let char = this.#flowSpace();
      if (char !== close && !first) {
        if (char !== 0x2c) throw GIVE_UP;
        this.#pos++;
        char = this.#flowSpace();
      }
      if (char === close) break;
      if (close === 0x5d) {
        items.push(this.#flowValue(char));
        if (this.#flowSpace() === COLON) throw GIVE_UP;
      } else {
        const start = this.#pos;
        const quoted = char === QUOTE || char === DOUBLE_QUOTE;
        const key = quoted ? this.#flowValue(char) : this.#flowWord();
        if (typeof key !== 'string' || key === '<<' || this.#pos - start > MAX_KEY) throw GIVE_UP;
        if (!quoted && resolveScalar(key).type !== 'str') throw GIVE_UP;
        if (this.#text.charCodeAt(this.#pos) !== COLON) throw GIVE_UP;
        this.#pos++;
        if (!quoted && this.#text.charCodeAt(this.#pos) !== SPACE) throw GIVE_UP;
        setJsonKey(object, key, this.#flowValue(this.#flowSpace()));
      }
    }
    this.#pos++;
    this.#depth++;
    return close === 0x5d ? items : object;
  }

  #flowSpace(): number {
    while (this.#text.charCodeAt(this.#pos) === SPACE) this.#pos++;
    return this.#text.charCodeAt(this.#pos);
  }

  #flowWord(): string {
    FLOW_WORD.lastIndex = this.#pos;
    const match = FLOW_WORD.exec(this.#text);
    if (match === null) throw GIVE_UP;
    this.#pos = FLOW_WORD.lastIndex;
    return match[0];
  }

  #flowValue(first: number): JsonValue {
    if (first === 0x5b || first === 0x7b) return this.#flow();
    if (first === QUOTE || first === DOUBLE_QUOTE) {
      const start = this.#pos;
      const value = first === QUOTE ? this.#singleQuoted() : this.#doubleQuoted();
      const end = this.#text.indexOf('\n', start);
      if (end >= 0 && end < this.#pos) throw GIVE_UP;
      return value;
    }
    const word = this.#flowWord();
    const next = this.#text.charCodeAt(this.#pos);
    if (next !== 0x2c && next !== 0x5d && next !== 0x7d && next !== SPACE) throw GIVE_UP;
    if (next === SPACE) {
      const after = this.#flowSpace();
      if (after !== 0x2c && after !== 0x5d && after !== 0x7d) throw GIVE_UP;
    }
    const { type, value } = resolveScalar(word);
    if (type === 'float' && !Number.isFinite(value)) throw GIVE_UP;
    return value;
  }
}

function isEscaped(text: string, position: number, from: number): boolean {
  let pos = position;
  while (pos > from && text.charCodeAt(pos - 1) === BACKSLASH) pos--;
  return (position - pos) % 2 === 1;
}

/** Folds the lines of a quoted scalar without escapes. */
function foldQuoted(raw: string): string {
  if (/\n(?:---|\.\.\.)/.test(raw)) throw GIVE_UP;
  // The lookbehind prevents quadratic time on long runs of blanks.
  return raw.replace(/(?<![ \t])[ \t]*\n[ \t\n]*/g, (space) => {
    const breaks = countBreaks(space, 0, space.length);
    return breaks === 1 ? ' ' : '\n'.repeat(breaks - 1);
  });
}

/** Escapes, and line breaks with adjacent blanks; an escaped blank does not match. */
const UNFOLD = /\\(?:\n[ \t\n]*|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^])|(?<!(?<!\\)[ \t])[ \t]*\n[ \t\n]*/g;

function unescape(raw: string): string {
  if (/\n(?:---|\.\.\.)/.test(raw)) throw GIVE_UP;
  return raw.replace(UNFOLD, (match) => {
    if (match.charCodeAt(0) !== BACKSLASH) {
      const breaks = countBreaks(match, 0, match.length);
      return breaks === 1 ? ' ' : '\n'.repeat(breaks - 1);
    }
    if (match.charCodeAt(1) === LF) return '\n'.repeat(countBreaks(match, 2, match.length));
    if (match.length > 2) {
      const code = Number.parseInt(match.slice(2), 16);
      if (code >= 0xd800 && code <= 0xdfff) throw GIVE_UP;
      return String.fromCharCode(code);
    }
    const simple = SINGLE_ESCAPES.get(match[1] as string);
    if (simple === undefined) throw GIVE_UP;
    return simple;
  });
}
