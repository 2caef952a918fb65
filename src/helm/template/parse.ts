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

interface Token {
  kind: 'field' | 'variable' | 'word' | 'text' | 'number' | 'dot' | 'symbol';
  text: string;
  value?: string | number | bigint;
  hasSpaceBefore: boolean;
}

/** Part of a template: text or an action. */
type Piece = { kind: 'text'; text: string } | { kind: 'action'; tokens: Token[]; line: number };

/** Parses a template. Throws TemplateFault of the kind `syntax` or `limit`. (Source: Go, text/template/parse.) */
export function parseTemplate(text: string, { name: template, isFunction }: ParseOptions): ParsedTemplate {
  return new TemplateParser(text, template, isFunction).parse();
}

/** Parses the pieces of a template into nodes. */
class TemplateParser {
  readonly #template: ParseOptions['name'];
  readonly #isFunction: ParseOptions['isFunction'];
  /** Pieces left; lists in lists continue where their parent stopped. */
  readonly #pieces: ArrayIterator<Piece>;
  readonly #defined = new Map<string, TemplateNode[]>();
  /** Variables in scope; Go rejects unknown ones. */
  readonly #variables = ['$'];
  #depth = 0;
  #rangeDepth = 0;
  /** Tokens of the current action, the next of them, and its line. */
  #tokens: readonly Token[] = [];
  #position = 0;
  #line = 1;

  constructor(text: string, template: ParseOptions['name'], isFunction: ParseOptions['isFunction']) {
    this.#template = template;
    this.#isFunction = isFunction;
    this.#pieces = new TemplateScanner(text, template).scan().values();
  }

  parse(): ParsedTemplate {
    return { body: this.#parseList('').body, defined: this.#defined };
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#position];
  }

  #take(): Token | undefined {
    return this.#tokens[this.#position++];
  }

  #isSymbol(token: Token | undefined, text: string): boolean {
    return token?.kind === 'symbol' && token.text === text;
  }

  #fault(message: string): TemplateFault {
    return new TemplateFault('syntax', message, { template: this.#template, line: this.#line });
  }

  #unexpected(token: Token, where: string): TemplateFault {
    return this.#fault(`unexpected ${JSON.stringify(token.text)} in ${where}`);
  }

  #nested<T>(work: () => T): T {
    if (++this.#depth > maxDepth)
      throw new TemplateFault('limit', `nested deeper than ${maxDepth}`, {
        template: this.#template,
        line: this.#line,
      });
    const result = work();
    this.#depth--;
    return result;
  }

  /** Reads up to one of the closing words, whose action is current then; `''` is the end of the template. */
  #parseList(...ends: string[]): { body: TemplateNode[]; end: string } {
    const body: TemplateNode[] = [];
    for (const piece of this.#pieces) {
      if (piece.kind === 'text') {
        body.push(piece);
        continue;
      }
      ({ tokens: this.#tokens, line: this.#line } = piece);
      this.#position = 1;
      const [first] = this.#tokens;
      if (first === undefined) throw this.#fault('missing value for command');
      const word = first.kind === 'word' ? first.text : undefined;
      if (word === 'else' || word === 'end') {
        if (ends.includes(word)) return { body, end: word };
        throw this.#fault(`unexpected {{${word}}}`);
      }
      const node = this.#parseNode(word);
      if (node !== undefined) body.push(node);
    }
    if (ends.includes('')) return { body, end: '' };
    throw this.#fault('unexpected EOF');
  }

  #parseNode(word: string | undefined): TemplateNode | undefined {
    const start = this.#line;
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        return this.#parseControl(word);
      case 'define':
        this.#parseDefinition(this.#take());
        return undefined;
      case 'block': {
        const name = this.#take();
        const pipe = this.#parsePipeline();
        this.#parseDefinition(name);
        return { kind: 'template', name: String(name?.value), pipe, line: start };
      }
      case 'template': {
        const name = this.#take();
        if (name?.kind !== 'text') throw this.#fault('missing name of the template');
        const pipe = this.#peek() === undefined ? undefined : this.#parsePipeline();
        return { kind: 'template', name: String(name.value), pipe, line: this.#line };
      }
      case 'break':
      case 'continue':
        if (this.#peek() !== undefined || this.#rangeDepth === 0)
          throw this.#fault(`{{${word}}} outside {{range}}`);
        return { kind: word, line: this.#line };
      default:
        this.#position = 0;
        return { kind: 'action', pipe: this.#parsePipeline(), line: this.#line };
    }
  }

  #parseControl(kind: 'if' | 'with' | 'range'): TemplateNode {
    return this.#nested(() => {
      const start = this.#line;
      const scope = this.#variables.length;
      const pipe = this.#parsePipeline(kind === 'range');
      if (kind === 'range') this.#rangeDepth++;
      const { body, end } = this.#parseList('else', 'end');
      if (kind === 'range') this.#rangeDepth--;
      let otherwise: TemplateNode[] = [];
      const next = this.#take();
      if (end === 'end') {
        if (next !== undefined) throw this.#fault('unexpected text in end');
      } else if (next === undefined) otherwise = this.#parseList('end').body;
      else if (next.kind === 'word' && next.text === kind && kind !== 'range')
        otherwise = [this.#parseControl(kind)];
      else throw this.#unexpected(next, 'else');
      this.#variables.length = scope;
      return { kind, pipe, body, otherwise, line: start };
    });
  }

  #parseDefinition(name: Token | undefined): void {
    if (name?.kind !== 'text' || this.#peek() !== undefined) throw this.#fault('unexpected text in define');
    const outer = this.#variables.splice(1);
    const outerDepth = this.#rangeDepth;
    this.#rangeDepth = 0;
    const { body } = this.#nested(() => this.#parseList('end'));
    if (this.#peek() !== undefined) throw this.#fault('unexpected text in end');
    this.#rangeDepth = outerDepth;
    this.#variables.splice(1, this.#variables.length, ...outer);
    const key = String(name.value);
    // An empty definition does not replace another.
    const isEmpty = body.every((node) => node.kind === 'text' && node.text.trim() === '');
    if (!isEmpty || !this.#defined.has(key)) this.#defined.set(key, body);
  }

  /** Parses the rest of the current action. */
  #parsePipeline(isRange = false): Pipeline {
    const pipe = this.#readPipeline(isRange);
    const next = this.#peek();
    if (next !== undefined) throw this.#unexpected(next, 'command');
    return pipe;
  }

  #readPipeline(isRange: boolean): Pipeline {
    const { names, isAssignment } = this.#readDeclaration(isRange);
    if (isAssignment) names.forEach((name) => this.#requireVariable(name));
    const commands: Operand[][] = [];
    for (;;) {
      const command = this.#readCommand();
      if (command.length === 0)
        throw this.#fault(commands.length === 0 ? 'missing value for command' : 'missing value after |');
      commands.push(command);
      if (!this.#isSymbol(this.#peek(), '|')) break;
      this.#position++;
    }
    if (commands.slice(1).some(([first]) => ['dot', 'nil', 'literal'].includes((first as Operand).kind)))
      throw this.#fault('non executable command in pipeline');
    if (!isAssignment) this.#variables.push(...names);
    return { variables: names, isAssignment, commands };
  }

  /** Reads `$x :=`, `$x =` and, in a range, `$i, $x :=`. */
  #readDeclaration(isRange: boolean): { names: string[]; isAssignment: boolean } {
    const names: string[] = [];
    for (let i = this.#position; ; i += 2) {
      const [token, mark] = this.#tokens.slice(i, i + 2);
      if (token?.kind !== 'variable' || mark?.kind !== 'symbol') break;
      names.push(token.text);
      if (mark.text === ':=' || mark.text === '=') {
        this.#position = i + 2;
        return { names, isAssignment: mark.text === '=' };
      }
      if (mark.text !== ',' || !isRange || names.length > 1) break;
    }
    return { names: [], isAssignment: false };
  }

  #readCommand(): Operand[] {
    const operands: Operand[] = [];
    for (;;) {
      const token = this.#peek();
      if (token === undefined || this.#isSymbol(token, '|') || this.#isSymbol(token, ')')) return operands;
      if (operands.length > 0 && !token.hasSpaceBefore) throw this.#unexpected(token, 'operand');
      this.#position++;
      operands.push(token.kind === 'dot' ? { kind: 'dot' } : this.#withFields(this.#readTerm(token), token));
    }
  }

  #readTerm(token: Token): Operand {
    const { kind, text, value } = token;
    if (value !== undefined) return { kind: 'literal', value };
    if (kind === 'field') return { kind, names: [text] };
    if (kind === 'variable') {
      this.#requireVariable(text);
      return { kind, name: text, names: [] };
    }
    if (kind === 'word') {
      if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
      if (text === 'nil') return { kind: 'nil' };
      if (!this.#isFunction(text)) throw this.#fault(`function ${JSON.stringify(text)} not defined`);
      return { kind: 'function', name: text };
    }
    if (text !== '(') throw this.#unexpected(token, 'operand');
    const pipe = this.#nested(() => this.#readPipeline(false));
    if (!this.#isSymbol(this.#take(), ')')) throw this.#fault('unclosed left paren');
    return { kind: 'pipeline', pipe };
  }

  /** Adds the fields that follow a term without a space. */
  #withFields(term: Operand, { text }: Token): Operand {
    const names: string[] = [];
    for (let next = this.#peek(); next?.kind === 'field' && !next.hasSpaceBefore; next = this.#peek()) {
      names.push(next.text);
      this.#position++;
    }
    if (names.length === 0) return term;
    if (term.kind === 'literal' || term.kind === 'nil')
      throw this.#fault(`unexpected . after term ${JSON.stringify(text)}`);
    if (term.kind === 'field' || term.kind === 'variable')
      return { ...term, names: [...term.names, ...names] };
    return { kind: 'chain', of: term, names };
  }

  #requireVariable(name: string): void {
    if (!this.#variables.includes(name)) throw this.#fault(`undefined variable ${JSON.stringify(name)}`);
  }
}

const numberPattern =
  /[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:[0-9][0-9_]*)?\.?[0-9][0-9_]*(?:[eE][+-]?[0-9]+)?\.?)/y;
const tokenPatterns: readonly (readonly [Token['kind'], RegExp])[] = [
  ['symbol', /:=|[|(),=]/y],
  ['field', /\.[\p{L}_][\p{L}\p{Nd}_]*/uy],
  ['dot', /\./y],
  ['variable', /\$[\p{L}\p{Nd}_]*/uy],
  ['word', /[\p{L}_][\p{L}\p{Nd}_]*/uy],
];

/** Splits a template into text and actions, and actions into tokens. */
class TemplateScanner {
  readonly #text: string;
  readonly #template: string;
  #position = 0;
  #line = 1;
  #trimsNext = false;

  constructor(text: string, template: string) {
    this.#text = text;
    this.#template = template;
  }

  scan(): Piece[] {
    const pieces: Piece[] = [];
    let counted = 0;
    for (;;) {
      const open = this.#text.indexOf('{{', this.#position);
      const trimsBefore = open >= 0 && /^-[ \t\r\n]/.test(this.#text.slice(open + 2, open + 4));
      let part = this.#text.slice(this.#position, open < 0 ? this.#text.length : open);
      if (this.#trimsNext) part = part.replace(/^[ \t\r\n]+/, '');
      if (trimsBefore) part = trimEnd(part);
      if (part !== '') pieces.push({ kind: 'text', text: part });
      if (open < 0) return pieces;
      for (; counted < open; counted++) if (this.#text[counted] === '\n') this.#line++;
      this.#position = open + (trimsBefore ? 3 : 2);
      if (this.#take(trimsBefore ? /[ \t\r\n]?\/\*/y : /\/\*/y) === undefined) {
        pieces.push({ kind: 'action', tokens: this.#scanAction(), line: this.#line });
        continue;
      }
      const close = this.#text.indexOf('*/', this.#position);
      if (close < 0) throw this.#fault('unclosed comment');
      this.#position = close + 2;
      const end = this.#take(/(?:[ \t\r\n]+-)?\}\}/y);
      if (end === undefined) throw this.#fault('comment ends before closing delimiter');
      this.#trimsNext = end !== '}}';
    }
  }

  #fault(message: string): TemplateFault {
    return new TemplateFault('syntax', message, { template: this.#template, line: this.#line });
  }

  /** Reads what a sticky pattern matches; undefined for no match. */
  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#position;
    const match = pattern.exec(this.#text)?.[0];
    this.#position += match?.length ?? 0;
    return match;
  }

  #scanToken(): Omit<Token, 'hasSpaceBefore'> {
    const number = this.#take(numberPattern);
    if (number !== undefined) {
      const value = toNumber(number);
      if (value === undefined || /\w/.test(this.#text[this.#position] ?? ''))
        throw this.#fault(`bad number syntax: ${JSON.stringify(number)}`);
      return { kind: 'number', text: number, value };
    }
    for (const [kind, pattern] of tokenPatterns) {
      const match = this.#take(pattern);
      if (match !== undefined) return { kind, text: kind === 'field' ? match.slice(1) : match };
    }
    const raw = this.#take(/`[^`]*`/y);
    if (raw !== undefined) return { kind: 'text', text: raw, value: raw.slice(1, -1).replaceAll('\r', '') };
    const quoted = this.#take(/"(?:[^"\\\n]|\\[^\n])*"/y);
    if (quoted !== undefined) {
      const value = unquote(quoted.slice(1, -1));
      if (value === undefined) throw this.#fault(`invalid string ${quoted}`);
      return { kind: 'text', text: quoted, value };
    }
    const first = this.#text[this.#position];
    const character = this.#take(/'(?:[^'\\\n]|\\[^\n])+'/uy) ?? '';
    const [code, ...rest] = unquote(character.slice(1, -1)) ?? '';
    if (code === undefined || rest.length > 0)
      throw this.#fault(`unexpected ${JSON.stringify(first)} in command`);
    return { kind: 'number', text: character, value: BigInt(code.codePointAt(0) as number) };
  }

  #scanAction(): Token[] {
    const tokens: Token[] = [];
    for (;;) {
      const hasSpaceBefore = this.#take(/[ \t\r\n]+/y) !== undefined;
      this.#trimsNext = hasSpaceBefore && this.#take(/-\}\}/y) !== undefined;
      if (this.#trimsNext || this.#take(/\}\}/y) !== undefined) return tokens;
      if (this.#position >= this.#text.length) throw this.#fault('unclosed action');
      tokens.push({ ...this.#scanToken(), hasSpaceBefore });
    }
  }
}

/** Avoids a regular expression, which would be quadratic in runs of spaces. */
function trimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && ' \t\r\n'.includes(text[end - 1] as string)) end--;
  return text.slice(0, end);
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
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  "'": "'",
  '"': '"',
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
