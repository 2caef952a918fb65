import { YamlError } from './error.js';
import { SINGLE_ESCAPES } from './scalar.js';

/** Kinds of tokens. */
export const TOKEN = {
  streamEnd: 0,
  versionDirective: 1,
  tagDirective: 2,
  documentStart: 3,
  documentEnd: 4,
  blockSequenceStart: 5,
  blockMappingStart: 6,
  blockEnd: 7,
  flowSequenceStart: 8,
  flowSequenceEnd: 9,
  flowMappingStart: 10,
  flowMappingEnd: 11,
  blockEntry: 12,
  flowEntry: 13,
  key: 14,
  value: 15,
  alias: 16,
  anchor: 17,
  tag: 18,
  scalar: 19,
} as const;

export interface Token {
  type: number;
  /** Zero-based line in the text. */
  line: number;
  /** Zero-based column, in UTF-16 units. */
  column: number;
  /** Text of a scalar, name of an anchor, handle of a tag, version of a directive. */
  value: string;
  /** Suffix of a tag, prefix of a tag directive. */
  suffix: string;
  /** Scalar without quotes. */
  plain: boolean;
}

interface SimpleKey {
  possible: boolean;
  required: boolean;
  number: number;
  pos: number;
  line: number;
  column: number;
}

/** Maximum nesting in Go's scanner, for block and flow collections each. */
const MAX_LEVELS = 10_000;

const SPACE = 0x20;
const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;

/**
 * Splits YAML 1.1 into tokens as libyaml does: a colon turns preceding content into a key, so tokens are held back
 * while that is possible; changes of indentation become tokens.
 */
export class YamlScanner {
  readonly #text: string;
  readonly #end: number;
  #pos = 0;
  #line = 0;
  #lineStart = 0;
  #flowLevel = 0;
  #indent = -1;
  readonly #indents: number[] = [];
  #keyAllowed = true;
  #tokens: Token[] = [];
  #head = 0;
  #taken = 0;
  readonly #keys: SimpleKey[] = [this.#newKey(false)];
  readonly #keyOfToken = new Map<number, SimpleKey>();
  #ready = false;
  /** Column of the current token. */
  #startColumn = 0;

  /** Requires a text without NUL. */
  constructor(text: string) {
    this.#end = text.length;
    this.#text = `${text}\0`;
  }

  /** Returns the next token without removing it. */
  peek(): Token {
    if (!this.#ready) this.#fill();
    return this.#tokens[this.#head] as Token;
  }

  /** Removes the next token. */
  skip(): void {
    this.#head++;
    this.#taken++;
    this.#ready = false;
    if (this.#head > 512) {
      this.#tokens = this.#tokens.slice(this.#head);
      this.#head = 0;
    }
  }

  #fill(): void {
    for (;;) {
      if (this.#head < this.#tokens.length) {
        const key = this.#keyOfToken.get(this.#taken);
        if (key === undefined || !this.#isValid(key)) break;
      }
      this.#fetch();
    }
    this.#ready = true;
  }

  #column(): number {
    return this.#pos - this.#lineStart;
  }

  #at(offset: number): number {
    const pos = this.#pos + offset;
    return pos < this.#end ? this.#text.charCodeAt(pos) : 0;
  }

  #fail(problem: string): never {
    const where = this.#line > 0 ? `line ${this.#line + 1}: ` : '';
    throw new YamlError(`yaml: ${where}${problem}`, this.#line + 1, `yaml: ${problem}`);
  }

  #put(type: number, value = '', suffix = '', plain = false, line = this.#line): void {
    this.#tokens.push({ type, line, column: this.#startColumn, value, suffix, plain });
  }

  /** Inserts a token before the one with a number; at the end if that one was removed. */
  #insert(number: number, type: number, line: number, column: number): void {
    const token = { type, line, column, value: '', suffix: '', plain: false };
    const index = number < 0 ? -1 : number - this.#taken;
    if (index < 0) this.#tokens.push(token);
    else this.#tokens.splice(this.#head + index, 0, token);
  }

  #fetch(): void {
    this.#skipToToken();
    this.#startColumn = this.#column();
    this.#unroll(this.#startColumn);
    if (this.#pos >= this.#end) return this.#fetchStreamEnd();
    const char = this.#at(0);
    if (this.#column() === 0) {
      if (char === 0x25) return this.#fetchDirective();
      if (this.#isDocumentMark()) {
        this.#endBlocks();
        this.#put(char === 0x2d ? TOKEN.documentStart : TOKEN.documentEnd);
        this.#pos += 3;
        return;
      }
    }
    const blankAfter = isBlankOrEnd(this.#at(1));
    switch (char) {
      case 0x5b: // [
        return this.#fetchFlowStart(TOKEN.flowSequenceStart);
      case 0x7b: // {
        return this.#fetchFlowStart(TOKEN.flowMappingStart);
      case 0x5d: // ]
        return this.#fetchFlowEnd(TOKEN.flowSequenceEnd);
      case 0x7d: // }
        return this.#fetchFlowEnd(TOKEN.flowMappingEnd);
      case 0x2c: // ,
        this.#dropKey();
        return this.#putIndicator(TOKEN.flowEntry, true);
      case 0x2d: // -
        if (!blankAfter) return this.#fetchPlain();
        this.#beginBlock('block sequence entries', TOKEN.blockSequenceStart);
        this.#dropKey();
        return this.#putIndicator(TOKEN.blockEntry, true);
      case 0x3f: // ?
        if (this.#flowLevel === 0 && !blankAfter) return this.#fetchPlain();
        this.#beginBlock('mapping keys', TOKEN.blockMappingStart);
        this.#dropKey();
        return this.#putIndicator(TOKEN.key, this.#flowLevel === 0);
      case 0x3a: // :
        if (this.#flowLevel > 0 || blankAfter) return this.#fetchValue();
        return this.#fetchPlain();
      case 0x2a: // *
        return this.#fetchAnchor(TOKEN.alias);
      case 0x26: // &
        return this.#fetchAnchor(TOKEN.anchor);
      case 0x21: // !
        return this.#fetchTag();
      case 0x7c: // |
      case 0x3e: // >
        if (this.#flowLevel === 0) return this.#fetchBlockScalar(char === 0x7c);
        break;
      case 0x27: // '
        return this.#fetchQuoted(true);
      case 0x22: // "
        return this.#fetchQuoted(false);
      case 0x23: // #
      case 0x25: // %
      case 0x40: // @
      case 0x60: // `
      case TAB:
        break;
      default:
        return this.#fetchPlain();
    }
    return this.#fail('found character that cannot start any token');
  }

  #skipToToken(): void {
    for (;;) {
      let char = this.#at(0);
      while (char === SPACE || (char === TAB && (this.#flowLevel > 0 || !this.#keyAllowed))) {
        this.#pos++;
        char = this.#at(0);
      }
      if (char === 0x23) {
        while (!isBreakOrEnd(this.#at(0))) this.#pos++;
        char = this.#at(0);
      }
      if (!isBreak(char)) return;
      this.#skipBreak();
      if (this.#flowLevel === 0) this.#keyAllowed = true;
    }
  }

  /** Reads a line break; returns its replacement in a scalar. */
  #skipBreak(): string {
    const char = this.#at(0);
    this.#pos += char === CR && this.#at(1) === LF ? 2 : 1;
    this.#line++;
    this.#lineStart = this.#pos;
    return char === 0x2028 || char === 0x2029 ? String.fromCharCode(char) : '\n';
  }

  /** Reports whether `---` or `...` stands here as a word; called at the start of a line only. */
  #isDocumentMark(): boolean {
    const char = this.#at(0);
    if (char !== 0x2d && char !== 0x2e) return false;
    return this.#at(1) === char && this.#at(2) === char && isBlankOrEnd(this.#at(3));
  }

  #isValid(key: SimpleKey): boolean {
    if (!key.possible) return false;
    if (key.line >= this.#line && key.pos + 1024 >= this.#pos) return true;
    if (key.required) this.#fail("could not find expected ':'");
    key.possible = false;
    return false;
  }

  #newKey(possible: boolean): SimpleKey {
    const number = this.#taken + this.#tokens.length - this.#head;
    const column = this.#column();
    const required = possible && this.#flowLevel === 0 && this.#indent === column;
    return { possible, required, number, pos: this.#pos, line: this.#line, column };
  }

  /** Notes that a simple key may begin here; none can follow at once. */
  #saveKey(): void {
    if (!this.#keyAllowed) return;
    this.#dropKey();
    const key = this.#newKey(true);
    this.#keys[this.#keys.length - 1] = key;
    this.#keyOfToken.set(key.number, key);
    this.#keyAllowed = false;
  }

  #dropKey(): void {
    const key = this.#keys[this.#keys.length - 1] as SimpleKey;
    if (!key.possible) return;
    if (key.required) this.#fail("could not find expected ':'");
    key.possible = false;
    this.#keyOfToken.delete(key.number);
  }

  #roll(column: number, number: number, type: number, line: number): void {
    if (this.#flowLevel > 0 || this.#indent >= column) return;
    this.#indents.push(this.#indent);
    this.#indent = column;
    if (this.#indents.length > MAX_LEVELS) this.#fail(`exceeded max depth of ${MAX_LEVELS}`);
    this.#insert(number, type, line, column);
  }

  #unroll(column: number): void {
    if (this.#flowLevel > 0) return;
    while (this.#indent > column) {
      this.#put(TOKEN.blockEnd);
      this.#indent = this.#indents.pop() as number;
    }
  }

  /** Ends all block collections. */
  #endBlocks(): void {
    this.#unroll(-1);
    this.#dropKey();
    this.#keyAllowed = false;
  }

  /** Begins a block collection at the current column unless it has begun. */
  #beginBlock(parts: string, type: number): void {
    if (this.#flowLevel > 0) return;
    if (!this.#keyAllowed) this.#fail(`${parts} are not allowed in this context`);
    this.#roll(this.#column(), -1, type, this.#line);
  }

  /** Puts the token of an indicator of one character. */
  #putIndicator(type: number, keyAllowed: boolean): void {
    this.#keyAllowed = keyAllowed;
    this.#put(type);
    this.#pos++;
  }

  #fetchStreamEnd(): void {
    // The end of the stream is on its own line.
    if (this.#column() !== 0) {
      this.#line++;
      this.#lineStart = this.#pos;
    }
    this.#endBlocks();
    this.#put(TOKEN.streamEnd);
  }

  #fetchFlowStart(type: number): void {
    this.#saveKey();
    this.#keys.push(this.#newKey(false));
    this.#flowLevel++;
    if (this.#flowLevel > MAX_LEVELS) this.#fail(`exceeded max depth of ${MAX_LEVELS}`);
    this.#putIndicator(type, true);
  }

  #fetchFlowEnd(type: number): void {
    this.#dropKey();
    if (this.#flowLevel > 0) {
      this.#flowLevel--;
      this.#keyOfToken.delete((this.#keys.pop() as SimpleKey).number);
    }
    this.#putIndicator(type, false);
  }

  #fetchValue(): void {
    const key = this.#keys[this.#keys.length - 1] as SimpleKey;
    const isSimple = this.#isValid(key);
    if (isSimple) {
      this.#insert(key.number, TOKEN.key, key.line, key.column);
      this.#roll(key.column, key.number, TOKEN.blockMappingStart, key.line);
      key.possible = false;
      this.#keyOfToken.delete(key.number);
    } else {
      this.#beginBlock('mapping values', TOKEN.blockMappingStart);
    }
    this.#putIndicator(TOKEN.value, !isSimple && this.#flowLevel === 0);
  }

  #takeName(): string {
    const start = this.#pos;
    while (isNameChar(this.#at(0))) this.#pos++;
    return this.#text.slice(start, this.#pos);
  }

  #fetchAnchor(type: number): void {
    this.#saveKey();
    this.#pos++;
    const name = this.#takeName();
    const next = this.#at(0);
    if (name === '' || !(isBlankOrEnd(next) || AFTER_ANCHOR.has(next))) {
      this.#fail('did not find expected alphabetic or numeric character');
    }
    this.#put(type, name);
  }

  #fetchTag(): void {
    this.#saveKey();
    let handle = '';
    let suffix: string;
    if (this.#at(1) === 0x3c) {
      this.#pos += 2;
      suffix = this.#takeUri('', false);
      if (this.#at(0) !== 0x3e) this.#fail("did not find the expected '>'");
      this.#pos++;
    } else {
      handle = this.#takeTagHandle(false);
      if (handle.length > 1 && handle.endsWith('!')) {
        suffix = this.#takeUri('', false);
      } else {
        suffix = this.#takeUri(handle.slice(1), true);
        handle = '!';
        if (suffix === '') [handle, suffix] = ['', '!'];
      }
    }
    if (!isBlankOrEnd(this.#at(0))) this.#fail('did not find expected whitespace or line break');
    this.#put(TOKEN.tag, handle, suffix);
  }

  #takeTagHandle(directive: boolean): string {
    if (this.#at(0) !== 0x21) this.#fail("did not find expected '!'");
    this.#pos++;
    let handle = `!${this.#takeName()}`;
    if (this.#at(0) === 0x21) {
      handle += '!';
      this.#pos++;
    } else if (directive && handle !== '!') {
      this.#fail("did not find expected '!'");
    }
    return handle;
  }

  #takeUri(head: string, mayBeEmpty: boolean): string {
    const start = this.#pos;
    while (isNameChar(this.#at(0)) || URI_CHARS.has(this.#at(0))) this.#pos++;
    if (this.#pos === start && !mayBeEmpty) this.#fail('did not find expected tag URI');
    const uri = this.#text.slice(start, this.#pos);
    if (!uri.includes('%')) return head + uri;
    try {
      return head + decodeURIComponent(uri);
    } catch {
      return this.#fail('did not find URI escaped octet');
    }
  }

  #fetchDirective(): void {
    this.#endBlocks();
    this.#pos++;
    const name = this.#takeName();
    if (name === '') this.#fail('could not find expected directive name');
    if (!isBlankOrEnd(this.#at(0))) this.#fail('found unexpected non-alphabetical character');
    const line = this.#line;
    this.#skipBlanks();
    let token: [number, string, string];
    if (name === 'YAML') {
      const rest = /^[0-9]{1,2}\.[0-9]{1,2}/.exec(this.#text.slice(this.#pos, this.#pos + 6));
      if (rest === null) this.#fail('did not find expected version number');
      this.#pos += rest[0].length;
      token = [TOKEN.versionDirective, rest[0], ''];
    } else if (name === 'TAG') {
      const handle = this.#takeTagHandle(true);
      if (!isBlank(this.#at(0))) this.#fail('did not find expected whitespace');
      this.#skipBlanks();
      const prefix = this.#takeUri('', false);
      if (!isBlankOrEnd(this.#at(0))) this.#fail('did not find expected whitespace or line break');
      token = [TOKEN.tagDirective, handle, prefix];
    } else {
      this.#fail('found unknown directive name');
    }
    this.#finishLine();
    this.#put(token[0], token[1], token[2], false, line);
  }

  #skipBlanks(): void {
    while (isBlank(this.#at(0))) this.#pos++;
  }

  /** Reads blanks, a comment and the line break after them. */
  #finishLine(): void {
    this.#skipBlanks();
    if (this.#at(0) === 0x23) {
      while (!isBreakOrEnd(this.#at(0))) this.#pos++;
    }
    if (!isBreakOrEnd(this.#at(0))) this.#fail('did not find expected comment or line break');
    if (this.#pos < this.#end) this.#skipBreak();
  }

  #fetchBlockScalar(literal: boolean): void {
    this.#dropKey();
    this.#keyAllowed = true;
    const line = this.#line;
    this.#pos++;
    let chomping = 0;
    let increment = 0;
    for (let i = 0; i < 2; i++) {
      const char = this.#at(0);
      if ((char === 0x2b || char === 0x2d) && chomping === 0) {
        chomping = char === 0x2b ? 1 : -1;
      } else if (char >= 0x30 && char <= 0x39 && increment === 0) {
        if (char === 0x30) this.#fail('found an indentation indicator equal to 0');
        increment = char - 0x30;
      } else {
        break;
      }
      this.#pos++;
    }
    this.#finishLine();
    let indent = increment > 0 ? Math.max(this.#indent, 0) + increment : 0;
    const parts: string[] = [];
    let lastBreak = '';
    let breaks: string;
    [indent, breaks] = this.#takeBlockBreaks(indent);
    let afterBlank = false;
    while (this.#column() === indent && this.#pos < this.#end) {
      const blank = isBlank(this.#at(0));
      if (!literal && !afterBlank && !blank && lastBreak === '\n') {
        if (breaks === '') parts.push(' ');
      } else {
        parts.push(lastBreak);
      }
      parts.push(breaks);
      afterBlank = blank;
      const start = this.#pos;
      while (!isBreakOrEnd(this.#at(0))) this.#pos++;
      parts.push(this.#text.slice(start, this.#pos));
      lastBreak = this.#pos < this.#end ? this.#skipBreak() : '';
      [indent, breaks] = this.#takeBlockBreaks(indent);
    }
    if (chomping !== -1) parts.push(lastBreak);
    if (chomping === 1) parts.push(breaks);
    this.#put(TOKEN.scalar, parts.join(''), '', false, line);
  }

  /** Reads empty lines and the following indentation; detects the indentation if it is 0. */
  #takeBlockBreaks(indent: number): [number, string] {
    let breaks = '';
    let widest = 0;
    for (;;) {
      while ((indent === 0 || this.#column() < indent) && this.#at(0) === SPACE) this.#pos++;
      widest = Math.max(widest, this.#column());
      if ((indent === 0 || this.#column() < indent) && this.#at(0) === TAB) {
        this.#fail('found a tab character where an indentation space is expected');
      }
      if (!isBreak(this.#at(0))) break;
      breaks += this.#skipBreak();
    }
    return [indent === 0 ? Math.max(widest, this.#indent + 1, 1) : indent, breaks];
  }

  /**
   * Reads blanks and line breaks between two pieces of a scalar; returns their folded text, and whether it had a
   * break.
   */
  #takeFold(escapedBreak: boolean, indent: number): [string, boolean] {
    const start = this.#pos;
    let first = '';
    let more = '';
    let broken = escapedBreak;
    for (;;) {
      const char = this.#at(0);
      if (isBlank(char)) {
        if (broken && char === TAB && this.#column() < indent) {
          this.#fail('found a tab character that violates indentation');
        }
        this.#pos++;
      } else if (isBreak(char)) {
        if (broken) {
          more += this.#skipBreak();
        } else {
          first = this.#skipBreak();
          broken = true;
        }
      } else {
        break;
      }
    }
    if (!broken) return [this.#text.slice(start, this.#pos), false];
    if (first === '\n') return [more === '' ? ' ' : more, true];
    return [first + more, true];
  }

  #fetchQuoted(single: boolean): void {
    this.#saveKey();
    const line = this.#line;
    const quote = single ? 0x27 : 0x22;
    const parts: string[] = [];
    this.#pos++;
    for (;;) {
      if (this.#column() === 0 && this.#isDocumentMark()) this.#fail('found unexpected document indicator');
      if (this.#pos >= this.#end) this.#fail('found unexpected end of stream');
      let escapedBreak = false;
      let start = this.#pos;
      for (;;) {
        const char = this.#at(0);
        if (isBlankOrEnd(char)) break;
        if (char === quote) {
          if (!single || this.#at(1) !== 0x27) break;
          parts.push(this.#text.slice(start, this.#pos + 1));
          this.#pos += 2;
          start = this.#pos;
        } else if (!single && char === 0x5c) {
          parts.push(this.#text.slice(start, this.#pos));
          if (isBreak(this.#at(1))) {
            this.#pos++;
            this.#skipBreak();
            escapedBreak = true;
            start = this.#pos;
            break;
          }
          parts.push(this.#takeEscape());
          start = this.#pos;
        } else {
          this.#pos++;
        }
      }
      parts.push(this.#text.slice(start, this.#pos));
      if (this.#at(0) === quote && this.#pos < this.#end) break;
      parts.push(this.#takeFold(escapedBreak, 0)[0]);
    }
    this.#pos++;
    this.#put(TOKEN.scalar, parts.join(''), '', false, line);
  }

  #takeEscape(): string {
    const char = this.#text[this.#pos + 1] as string;
    const simple = ESCAPES.get(char);
    if (simple !== undefined) {
      this.#pos += 2;
      return simple;
    }
    const length = char === 'x' ? 2 : char === 'u' ? 4 : char === 'U' ? 8 : 0;
    if (length === 0) this.#fail('found unknown escape character');
    this.#pos += 2;
    const digits = this.#text.slice(this.#pos, this.#pos + length);
    if (!/^[0-9a-fA-F]+$/.test(digits) || digits.length < length) {
      this.#fail('did not find expected hexdecimal number');
    }
    let code = Number.parseInt(digits, 16);
    this.#pos += length;
    // Go rejects every surrogate; JSON writes a pair for a character beyond U+FFFF.
    if (code >= 0xd800 && code < 0xdc00) {
      const low = /^\\u(d[c-f][0-9a-f]{2})$/i.exec(this.#text.slice(this.#pos, this.#pos + 6));
      if (low !== null) {
        code = 0x10000 + ((code - 0xd800) << 10) + Number.parseInt(low[1] as string, 16) - 0xdc00;
        this.#pos += 6;
      }
    }
    if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
      this.#fail('found invalid Unicode character escape code');
    }
    return String.fromCodePoint(code);
  }

  #fetchPlain(): void {
    this.#saveKey();
    const line = this.#line;
    const indent = this.#indent + 1;
    const inFlow = this.#flowLevel > 0;
    let value = '';
    let fold = '';
    let broken = false;
    for (;;) {
      if (this.#column() === 0 && this.#isDocumentMark()) break;
      if (this.#at(0) === 0x23) break;
      const start = this.#pos;
      for (;;) {
        const char = this.#at(0);
        if (isBlankOrEnd(char)) break;
        if (char === 0x3a && isBlankOrEnd(this.#at(1))) break;
        if (inFlow && FLOW_STOPS.has(char)) break;
        this.#pos++;
      }
      if (this.#pos > start) {
        value += fold + this.#text.slice(start, this.#pos);
        broken = false;
      }
      if (!isBlank(this.#at(0)) && !isBreak(this.#at(0))) break;
      [fold, broken] = this.#takeFold(false, indent);
      if (!inFlow && this.#column() < indent) break;
    }
    if (broken) this.#keyAllowed = true;
    this.#put(TOKEN.scalar, value, '', true, line);
  }
}

/** Includes the escaped tab; the fast reader leaves texts with tabs to this one. */
const ESCAPES = new Map([...SINGLE_ESCAPES, ['\t', '\t']]);

const FLOW_STOPS = toCodes(',?[]{}');
const URI_CHARS = toCodes(";/?:@&=+$,.!~*'()[]%");
const AFTER_ANCHOR = toCodes('?:,]}%@`');

function toCodes(chars: string): Set<number> {
  return new Set(Array.from(chars, (char) => char.charCodeAt(0)));
}

function isBlank(char: number): boolean {
  return char === SPACE || char === TAB;
}

function isBreak(char: number): boolean {
  return char === LF || char === CR || char === 0x85 || char === 0x2028 || char === 0x2029;
}

function isBreakOrEnd(char: number): boolean {
  return char === 0 || isBreak(char);
}

function isBlankOrEnd(char: number): boolean {
  return char === SPACE || char === TAB || isBreakOrEnd(char);
}

function isNameChar(char: number): boolean {
  return (
    (char >= 0x30 && char <= 0x39) ||
    (char >= 0x41 && char <= 0x5a) ||
    (char >= 0x61 && char <= 0x7a) ||
    char === 0x5f ||
    char === 0x2d
  );
}
