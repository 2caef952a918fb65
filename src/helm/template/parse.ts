import { TemplateFault } from './fault.js';
import type { Operand, Pipeline, TemplateNode } from './syntax.js';

/** A parsed template with its definitions. */
export interface ParsedTemplate {
  body: TemplateNode[];
  /** Definitions by name. */
  defined: Map<string, TemplateNode[]>;
}

interface ParseOptions {
  /** Name of the template in messages. */
  name: string;
  isFunction: (name: string) => boolean;
}

/** Maximum nesting of blocks and parentheses. */
const maxDepth = 200;

/** Parses a template. Throws TemplateFault of the kind `syntax` or `limit`. (Source: Go, text/template/parse.) */
export function parseTemplate(text: string, options: ParseOptions): ParsedTemplate {
  return new Parser(text, options).parse();
}

interface Token {
  kind: 'field' | 'variable' | 'word' | 'text' | 'number' | 'dot' | 'symbol';
  text: string;
  value?: string | number | bigint;
  hasSpaceBefore: boolean;
}

/** Part of a template: text or an action. */
type Piece = { kind: 'text'; text: string } | { kind: 'action'; tokens: Token[]; line: number };

class Parser {
  readonly #pieces: Piece[];
  readonly #options: ParseOptions;
  readonly #defined = new Map<string, TemplateNode[]>();
  #next = 0;
  #depth = 0;
  /** Variables in scope; Go rejects unknown ones. */
  readonly #variables: string[] = ['$'];
  #rangeDepth = 0;

  constructor(text: string, options: ParseOptions) {
    this.#options = options;
    this.#pieces = new Scanner(text, options.name).pieces();
  }

  parse(): ParsedTemplate {
    const { body, end } = this.#list(['']);
    if (end.word !== '') throw this.#fault(`unexpected {{${end.word}}}`, end.line);
    return { body, defined: this.#defined };
  }

  /** Reads up to one of the closing words; `''` is the end of the template. */
  #list(ends: readonly string[]): {
    body: TemplateNode[];
    end: { word: string; tokens: Token[]; line: number };
  } {
    const body: TemplateNode[] = [];
    for (;;) {
      const piece = this.#pieces[this.#next++];
      if (piece === undefined) {
        if (ends.includes('')) return { body, end: { word: '', tokens: [], line: 0 } };
        throw this.#fault('unexpected EOF', this.#lastLine());
      }
      if (piece.kind === 'text') {
        body.push(piece);
        continue;
      }
      const { tokens, line } = piece;
      const [first] = tokens;
      if (first === undefined) throw this.#fault('missing value for command', line);
      const word = first.kind === 'word' ? first.text : undefined;
      if (word === 'else' || word === 'end') {
        if (ends.includes(word)) return { body, end: { word, tokens: tokens.slice(1), line } };
        throw this.#fault(`unexpected {{${word}}}`, line);
      }
      const node = this.#node(word, tokens, line);
      if (node !== undefined) body.push(node);
    }
  }

  #node(word: string | undefined, tokens: Token[], line: number): TemplateNode | undefined {
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        return this.#control(word, tokens.slice(1), line);
      case 'define':
        return this.#define(tokens.slice(1), line);
      case 'block': {
        const [name, ...rest] = tokens.slice(1);
        const pipe = this.#pipeline(rest, line);
        this.#define(name === undefined ? [] : [name], line);
        return { kind: 'template', name: String(name?.value), pipe, line };
      }
      case 'template': {
        const [name, ...rest] = tokens.slice(1);
        if (name?.kind !== 'text') throw this.#fault('missing name of the template', line);
        const pipe = rest.length === 0 ? undefined : this.#pipeline(rest, line);
        return { kind: 'template', name: String(name.value), pipe, line };
      }
      case 'break':
      case 'continue':
        if (tokens.length > 1 || this.#rangeDepth === 0)
          throw this.#fault(`{{${word}}} outside {{range}}`, line);
        return { kind: word, line };
      default:
        return { kind: 'action', pipe: this.#pipeline(tokens, line), line };
    }
  }

  #control(kind: 'if' | 'with' | 'range', tokens: Token[], line: number): TemplateNode {
    return this.#nested(line, () => {
      const scope = this.#variables.length;
      const pipe = this.#pipeline(tokens, line, kind === 'range');
      if (kind === 'range') this.#rangeDepth++;
      const { body, end } = this.#list(['else', 'end']);
      if (kind === 'range') this.#rangeDepth--;
      let otherwise: TemplateNode[] = [];
      if (end.word === 'else') {
        const [next, ...rest] = end.tokens;
        if (next === undefined) otherwise = this.#list(['end']).body;
        else if (next.kind === 'word' && next.text === kind && kind !== 'range')
          otherwise = [this.#control(kind, rest, end.line)];
        else throw this.#fault(`unexpected ${JSON.stringify(next.text)} in else`, end.line);
      } else if (end.tokens.length > 0) throw this.#fault('unexpected text in end', end.line);
      this.#variables.length = scope;
      return { kind, pipe, body, otherwise, line };
    });
  }

  #define([name, ...rest]: Token[], line: number): undefined {
    if (name?.kind !== 'text' || rest.length > 0) throw this.#fault('unexpected text in define', line);
    const outer = this.#variables.splice(1);
    const range = this.#rangeDepth;
    this.#rangeDepth = 0;
    const { body, end } = this.#nested(line, () => this.#list(['end']));
    if (end.tokens.length > 0) throw this.#fault('unexpected text in end', end.line);
    this.#rangeDepth = range;
    this.#variables.splice(1, this.#variables.length, ...outer);
    const key = String(name.value);
    // An empty definition does not replace another.
    if (!this.#defined.has(key) || !isEmptyBody(body)) this.#defined.set(key, body);
    return undefined;
  }

  #pipeline(tokens: Token[], line: number, isRange = false): Pipeline {
    const reader = new TokenReader(tokens);
    const pipe = this.#readPipeline(reader, line, isRange);
    if (!reader.isAtEnd)
      throw this.#fault(`unexpected ${JSON.stringify(reader.peek()?.text)} in command`, line);
    return pipe;
  }

  #readPipeline(reader: TokenReader, line: number, isRange: boolean): Pipeline {
    const variables: string[] = [];
    let isAssignment = false;
    const declared = reader.declaration(isRange);
    if (declared !== undefined) {
      variables.push(...declared.names);
      isAssignment = declared.isAssignment;
      for (const name of isAssignment ? variables : []) this.#requireVariable(name, line);
    }
    const commands: Operand[][] = [];
    for (;;) {
      const command = this.#command(reader, line);
      if (command.length === 0)
        throw this.#fault(
          commands.length === 0 ? 'missing value for command' : 'missing value after |',
          line,
        );
      commands.push(command);
      if (reader.peek()?.text !== '|' || reader.peek()?.kind !== 'symbol') break;
      reader.take();
    }
    for (const [first] of commands.slice(1))
      if (
        first?.kind !== 'function' &&
        first?.kind !== 'field' &&
        first?.kind !== 'variable' &&
        first?.kind !== 'chain' &&
        first?.kind !== 'pipeline'
      )
        throw this.#fault('non executable command in pipeline', line);
    if (!isAssignment) this.#variables.push(...variables);
    return { line, variables, isAssignment, commands };
  }

  #command(reader: TokenReader, line: number): Operand[] {
    const operands: Operand[] = [];
    for (;;) {
      const token = reader.peek();
      if (token === undefined || (token.kind === 'symbol' && (token.text === '|' || token.text === ')')))
        break;
      if (operands.length > 0 && !token.hasSpaceBefore)
        throw this.#fault(`unexpected ${JSON.stringify(token.text)} in operand`, line);
      operands.push(this.#operand(reader, line));
    }
    return operands;
  }

  #operand(reader: TokenReader, line: number): Operand {
    const token = reader.take() as Token;
    let operand: Operand;
    switch (token.kind) {
      case 'dot':
        return { kind: 'dot' };
      case 'field':
        operand = { kind: 'field', names: [token.text] };
        break;
      case 'variable':
        this.#requireVariable(token.text, line);
        operand = { kind: 'variable', name: token.text, names: [] };
        break;
      case 'text':
      case 'number':
        operand = { kind: 'literal', value: token.value as string | number | bigint };
        break;
      case 'word':
        operand = this.#word(token.text, line);
        break;
      case 'symbol': {
        if (token.text !== '(')
          throw this.#fault(`unexpected ${JSON.stringify(token.text)} in operand`, line);
        const pipe = this.#nested(line, () => this.#readPipeline(reader, line, false));
        if (reader.take()?.text !== ')') throw this.#fault('unclosed left paren', line);
        operand = { kind: 'pipeline', pipe };
        break;
      }
    }
    const names: string[] = [];
    for (;;) {
      const next = reader.peek();
      if (next?.kind !== 'field' || next.hasSpaceBefore) break;
      names.push(next.text);
      reader.take();
    }
    if (names.length === 0) return operand;
    if (operand.kind === 'field' || operand.kind === 'variable') operand.names.push(...names);
    else if (operand.kind === 'literal' || operand.kind === 'nil')
      throw this.#fault(`unexpected . after term ${JSON.stringify(token.text)}`, line);
    else operand = { kind: 'chain', of: operand, names };
    return operand;
  }

  #word(text: string, line: number): Operand {
    if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
    if (text === 'nil') return { kind: 'nil' };
    if (!this.#options.isFunction(text))
      throw this.#fault(`function ${JSON.stringify(text)} not defined`, line);
    return { kind: 'function', name: text };
  }

  #requireVariable(name: string, line: number): void {
    if (!this.#variables.includes(name))
      throw this.#fault(`undefined variable ${JSON.stringify(name)}`, line);
  }

  #nested<T>(line: number, work: () => T): T {
    if (++this.#depth > maxDepth)
      throw new TemplateFault('limit', `nested deeper than ${maxDepth}`, {
        template: this.#options.name,
        line,
      });
    const result = work();
    this.#depth--;
    return result;
  }

  #lastLine(): number {
    const last = this.#pieces.findLast((piece) => piece.kind === 'action');
    return last?.kind === 'action' ? last.line : 1;
  }

  #fault(message: string, line: number): TemplateFault {
    return new TemplateFault('syntax', message, { template: this.#options.name, line });
  }
}

function isEmptyBody(body: readonly TemplateNode[]): boolean {
  return body.every((node) => node.kind === 'text' && node.text.trim() === '');
}

class TokenReader {
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get isAtEnd(): boolean {
    return this.#next >= this.#tokens.length;
  }

  peek(): Token | undefined {
    return this.#tokens[this.#next];
  }

  take(): Token | undefined {
    return this.#tokens[this.#next++];
  }

  /** Reads `$x :=`, `$x =` and, in a range, `$i, $x :=`. */
  declaration(isRange: boolean): { names: string[]; isAssignment: boolean } | undefined {
    const names: string[] = [];
    let position = this.#next;
    for (;;) {
      const token = this.#tokens[position];
      const mark = this.#tokens[position + 1];
      if (token?.kind !== 'variable' || mark?.kind !== 'symbol') return undefined;
      names.push(token.text);
      position += 2;
      if (mark.text === ':=' || mark.text === '=') {
        this.#next = position;
        return { names, isAssignment: mark.text === '=' };
      }
      if (mark.text !== ',' || !isRange || names.length > 1) return undefined;
    }
  }
}

/** Splits a template into text and actions, and actions into tokens. */
class Scanner {
  readonly #text: string;
  readonly #name: string;
  #lineAt = 0;
  #line = 1;

  constructor(text: string, name: string) {
    this.#text = text;
    this.#name = name;
  }

  pieces(): Piece[] {
    const text = this.#text;
    const pieces: Piece[] = [];
    let position = 0;
    let trimsNext = false;
    const addText = (from: number, to: number, trimsEnd: boolean): void => {
      let part = text.slice(from, to);
      if (trimsNext) part = part.replace(/^[ \t\r\n]+/, '');
      if (trimsEnd) part = trimEnd(part);
      if (part !== '') pieces.push({ kind: 'text', text: part });
    };
    for (;;) {
      const open = text.indexOf('{{', position);
      if (open < 0) {
        addText(position, text.length, false);
        return pieces;
      }
      const trimsBefore = /^-[ \t\r\n]/.test(text.slice(open + 2, open + 4));
      addText(position, open, trimsBefore);
      const start = open + (trimsBefore ? 3 : 2);
      const line = this.#lineOf(open);
      const comment = /^[ \t\r\n]?\/\*/.exec(text.slice(start, start + 3));
      if (comment !== null && (trimsBefore || !/^\s/.test(text.slice(start, start + 1)))) {
        const close = text.indexOf('*/', start + comment[0].length);
        if (close < 0) throw this.#fault('unclosed comment', line);
        const end = /^(?:[ \t\r\n]+-)?\}\}/.exec(text.slice(close + 2, close + 200));
        if (end === null) throw this.#fault('comment ends before closing delimiter', line);
        trimsNext = end[0] !== '}}';
        position = close + 2 + end[0].length;
        continue;
      }
      const action = this.#action(start, line);
      pieces.push({ kind: 'action', tokens: action.tokens, line });
      trimsNext = action.trimsAfter;
      position = action.end;
    }
  }

  #action(start: number, line: number): { tokens: Token[]; end: number; trimsAfter: boolean } {
    const text = this.#text;
    const tokens: Token[] = [];
    let position = start;
    let hasSpaceBefore = true;
    for (;;) {
      const space = matchAt(/[ \t\r\n]+/y, text, position);
      if (space !== undefined) {
        position += space.length;
        hasSpaceBefore = true;
        if (text.startsWith('-}}', position)) return { tokens, end: position + 3, trimsAfter: true };
      }
      if (text.startsWith('}}', position)) return { tokens, end: position + 2, trimsAfter: false };
      if (position >= text.length) throw this.#fault('unclosed action', line);
      const token = this.#token(position, line);
      tokens.push({ ...token, hasSpaceBefore });
      position += token.length;
      hasSpaceBefore = false;
    }
  }

  #token(position: number, line: number): Omit<Token, 'hasSpaceBefore'> & { length: number } {
    const text = this.#text;
    const symbol = matchAt(/:=|[|(),=]/y, text, position);
    if (symbol !== undefined) return { kind: 'symbol', text: symbol, length: symbol.length };
    const number = matchAt(
      /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:[0-9][0-9_]*)?\.?[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?\.?)/y,
      text,
      position,
    );
    if (number !== undefined && /[0-9]/.test(number)) {
      const value = toNumber(number);
      if (value === undefined || /\w/.test(text[position + number.length] ?? ''))
        throw this.#fault(`bad number syntax: ${JSON.stringify(number)}`, line);
      return { kind: 'number', text: number, value, length: number.length };
    }
    const field = matchAt(/\.[\p{L}_][\p{L}\p{Nd}_]*/uy, text, position);
    if (field !== undefined) return { kind: 'field', text: field.slice(1), length: field.length };
    if (text[position] === '.') return { kind: 'dot', text: '.', length: 1 };
    const variable = matchAt(/\$[\p{L}\p{Nd}_]*/uy, text, position);
    if (variable !== undefined) return { kind: 'variable', text: variable, length: variable.length };
    const word = matchAt(/[\p{L}_][\p{L}\p{Nd}_]*/uy, text, position);
    if (word !== undefined) return { kind: 'word', text: word, length: word.length };
    const raw = matchAt(/`[^`]*`/y, text, position);
    if (raw !== undefined)
      return { kind: 'text', text: raw, value: raw.slice(1, -1).replaceAll('\r', ''), length: raw.length };
    const quoted = matchAt(/"(?:[^"\\\n]|\\[^\n])*"/y, text, position);
    if (quoted !== undefined) {
      const value = unquote(quoted.slice(1, -1));
      if (value === undefined) throw this.#fault(`invalid string ${quoted}`, line);
      return { kind: 'text', text: quoted, value, length: quoted.length };
    }
    const character = matchAt(/'(?:[^'\\\n]|\\[^\n])+'/uy, text, position);
    const code = character === undefined ? undefined : unquote(character.slice(1, -1));
    if (character !== undefined && code !== undefined && [...code].length === 1)
      return {
        kind: 'number',
        text: character,
        value: BigInt(code.codePointAt(0) as number),
        length: character.length,
      };
    throw this.#fault(`unexpected ${JSON.stringify(text[position])} in command`, line);
  }

  /** Returns the line of an offset; requires ascending offsets. */
  #lineOf(offset: number): number {
    for (
      let position = this.#text.indexOf('\n', this.#lineAt);
      position >= 0 && position < offset;
      position = this.#text.indexOf('\n', position + 1)
    ) {
      this.#line++;
      this.#lineAt = position + 1;
    }
    return this.#line;
  }

  #fault(message: string, line: number): TemplateFault {
    return new TemplateFault('syntax', message, { template: this.#name, line });
  }
}

/** Avoids a regular expression, which would be quadratic in runs of spaces. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && ' \t\r\n'.includes(text[end - 1] as string)) end--;
  return text.slice(0, end);
}

function matchAt(pattern: RegExp, text: string, position: number): string | undefined {
  pattern.lastIndex = position;
  return pattern.exec(text)?.[0];
}

function toNumber(text: string): number | bigint | undefined {
  const plain = text.replaceAll('_', '').replace(/^\+/, '');
  const [, sign, rest = ''] = /^(-?)(.*)$/.exec(plain) as RegExpExecArray;
  const isWhole = /^0[xXbBoO]/.test(rest) || /^\d+$/.test(rest);
  try {
    if (isWhole) {
      const octal = /^0\d+$/.test(rest) ? `0o${rest.slice(1)}` : rest;
      return sign === '-' ? -BigInt(octal) : BigInt(octal);
    }
  } catch {
    return undefined;
  }
  const value = Number(plain);
  return Number.isFinite(value) ? value : undefined;
}

const escapes: Readonly<Record<string, string>> = {
  ...{ a: '\x07', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"' },
};

/** Returns the content of a Go string; undefined for an invalid escape. */
export function unquote(text: string): string | undefined {
  let isInvalid = false;
  const value = text.replace(
    /\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|[\s\S])/g,
    (_all, code: string) => {
      const first = code[0] as string;
      if (code.length === 1 && first in escapes) return escapes[first] as string;
      const number = /^[0-7]{3}$/.test(code) ? parseInt(code, 8) : parseInt(code.slice(1), 16);
      if (Number.isNaN(number) || number > 0x10ffff || code.length === 1) isInvalid = true;
      return isInvalid ? '' : String.fromCodePoint(number);
    },
  );
  return isInvalid ? undefined : value;
}
