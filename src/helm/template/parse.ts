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
  /** Pieces left; lists in lists continue where their parent stopped. */
  const pieces = scan(text, template).values();
  const defined = new Map<string, TemplateNode[]>();
  /** Variables in scope; Go rejects unknown ones. */
  const variables = ['$'];
  let depth = 0;
  let rangeDepth = 0;
  /** Tokens of the current action, the next of them, and its line. */
  let tokens: readonly Token[] = [];
  let position = 0;
  let line = 1;

  const peek = (): Token | undefined => tokens[position];
  const take = (): Token | undefined => tokens[position++];
  const isSymbol = (token: Token | undefined, text: string): boolean =>
    token?.kind === 'symbol' && token.text === text;
  const fault = (message: string): TemplateFault => new TemplateFault('syntax', message, { template, line });
  const unexpected = (token: Token, where: string): TemplateFault =>
    fault(`unexpected ${JSON.stringify(token.text)} in ${where}`);

  const nested = <T>(work: () => T): T => {
    if (++depth > maxDepth)
      throw new TemplateFault('limit', `nested deeper than ${maxDepth}`, { template, line });
    const result = work();
    depth--;
    return result;
  };

  /** Reads up to one of the closing words, whose action is current then; `''` is the end of the template. */
  const parseList = (...ends: string[]): { body: TemplateNode[]; end: string } => {
    const body: TemplateNode[] = [];
    for (const piece of pieces) {
      if (piece.kind === 'text') {
        body.push(piece);
        continue;
      }
      ({ tokens, line } = piece);
      position = 1;
      const [first] = tokens;
      if (first === undefined) throw fault('missing value for command');
      const word = first.kind === 'word' ? first.text : undefined;
      if (word === 'else' || word === 'end') {
        if (ends.includes(word)) return { body, end: word };
        throw fault(`unexpected {{${word}}}`);
      }
      const node = parseNode(word);
      if (node !== undefined) body.push(node);
    }
    if (ends.includes('')) return { body, end: '' };
    throw fault('unexpected EOF');
  };

  const parseNode = (word: string | undefined): TemplateNode | undefined => {
    const start = line;
    switch (word) {
      case 'if':
      case 'with':
      case 'range':
        return parseControl(word);
      case 'define':
        parseDefinition(take());
        return undefined;
      case 'block': {
        const name = take();
        const pipe = parsePipeline();
        parseDefinition(name);
        return { kind: 'template', name: String(name?.value), pipe, line: start };
      }
      case 'template': {
        const name = take();
        if (name?.kind !== 'text') throw fault('missing name of the template');
        const pipe = peek() === undefined ? undefined : parsePipeline();
        return { kind: 'template', name: String(name.value), pipe, line };
      }
      case 'break':
      case 'continue':
        if (peek() !== undefined || rangeDepth === 0) throw fault(`{{${word}}} outside {{range}}`);
        return { kind: word, line };
      default:
        position = 0;
        return { kind: 'action', pipe: parsePipeline(), line };
    }
  };

  const parseControl = (kind: 'if' | 'with' | 'range'): TemplateNode =>
    nested(() => {
      const start = line;
      const scope = variables.length;
      const pipe = parsePipeline(kind === 'range');
      if (kind === 'range') rangeDepth++;
      const { body, end } = parseList('else', 'end');
      if (kind === 'range') rangeDepth--;
      let otherwise: TemplateNode[] = [];
      const next = take();
      if (end === 'end') {
        if (next !== undefined) throw fault('unexpected text in end');
      } else if (next === undefined) otherwise = parseList('end').body;
      else if (next.kind === 'word' && next.text === kind && kind !== 'range')
        otherwise = [parseControl(kind)];
      else throw unexpected(next, 'else');
      variables.length = scope;
      return { kind, pipe, body, otherwise, line: start };
    });

  const parseDefinition = (name: Token | undefined): void => {
    if (name?.kind !== 'text' || peek() !== undefined) throw fault('unexpected text in define');
    const outer = variables.splice(1);
    const outerDepth = rangeDepth;
    rangeDepth = 0;
    const { body } = nested(() => parseList('end'));
    if (peek() !== undefined) throw fault('unexpected text in end');
    rangeDepth = outerDepth;
    variables.splice(1, variables.length, ...outer);
    const key = String(name.value);
    // An empty definition does not replace another.
    const isEmpty = body.every((node) => node.kind === 'text' && node.text.trim() === '');
    if (!isEmpty || !defined.has(key)) defined.set(key, body);
  };

  /** Parses the rest of the current action. */
  const parsePipeline = (isRange = false): Pipeline => {
    const pipe = readPipeline(isRange);
    const next = peek();
    if (next !== undefined) throw unexpected(next, 'command');
    return pipe;
  };

  const readPipeline = (isRange: boolean): Pipeline => {
    const { names, isAssignment } = readDeclaration(isRange);
    if (isAssignment) names.forEach(requireVariable);
    const commands: Operand[][] = [];
    for (;;) {
      const command = readCommand();
      if (command.length === 0)
        throw fault(commands.length === 0 ? 'missing value for command' : 'missing value after |');
      commands.push(command);
      if (!isSymbol(peek(), '|')) break;
      position++;
    }
    if (commands.slice(1).some(([first]) => ['dot', 'nil', 'literal'].includes((first as Operand).kind)))
      throw fault('non executable command in pipeline');
    if (!isAssignment) variables.push(...names);
    return { variables: names, isAssignment, commands };
  };

  /** Reads `$x :=`, `$x =` and, in a range, `$i, $x :=`. */
  const readDeclaration = (isRange: boolean): { names: string[]; isAssignment: boolean } => {
    const names: string[] = [];
    for (let i = position; ; i += 2) {
      const [token, mark] = tokens.slice(i, i + 2);
      if (token?.kind !== 'variable' || mark?.kind !== 'symbol') break;
      names.push(token.text);
      if (mark.text === ':=' || mark.text === '=') {
        position = i + 2;
        return { names, isAssignment: mark.text === '=' };
      }
      if (mark.text !== ',' || !isRange || names.length > 1) break;
    }
    return { names: [], isAssignment: false };
  };

  const readCommand = (): Operand[] => {
    const operands: Operand[] = [];
    for (;;) {
      const token = peek();
      if (token === undefined || isSymbol(token, '|') || isSymbol(token, ')')) return operands;
      if (operands.length > 0 && !token.hasSpaceBefore) throw unexpected(token, 'operand');
      position++;
      operands.push(token.kind === 'dot' ? { kind: 'dot' } : withFields(readTerm(token), token));
    }
  };

  const readTerm = (token: Token): Operand => {
    const { kind, text, value } = token;
    if (value !== undefined) return { kind: 'literal', value };
    if (kind === 'field') return { kind, names: [text] };
    if (kind === 'variable') {
      requireVariable(text);
      return { kind, name: text, names: [] };
    }
    if (kind === 'word') {
      if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
      if (text === 'nil') return { kind: 'nil' };
      if (!isFunction(text)) throw fault(`function ${JSON.stringify(text)} not defined`);
      return { kind: 'function', name: text };
    }
    if (text !== '(') throw unexpected(token, 'operand');
    const pipe = nested(() => readPipeline(false));
    if (!isSymbol(take(), ')')) throw fault('unclosed left paren');
    return { kind: 'pipeline', pipe };
  };

  /** Adds the fields that follow a term without a space. */
  const withFields = (term: Operand, { text }: Token): Operand => {
    const names: string[] = [];
    for (let next = peek(); next?.kind === 'field' && !next.hasSpaceBefore; next = peek()) {
      names.push(next.text);
      position++;
    }
    if (names.length === 0) return term;
    if (term.kind === 'literal' || term.kind === 'nil')
      throw fault(`unexpected . after term ${JSON.stringify(text)}`);
    if (term.kind === 'field' || term.kind === 'variable')
      return { ...term, names: [...term.names, ...names] };
    return { kind: 'chain', of: term, names };
  };

  const requireVariable = (name: string): void => {
    if (!variables.includes(name)) throw fault(`undefined variable ${JSON.stringify(name)}`);
  };

  return { body: parseList('').body, defined };
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
function scan(text: string, template: string): Piece[] {
  const pieces: Piece[] = [];
  let position = 0;
  let counted = 0;
  let line = 1;
  let trimsNext = false;
  const fault = (message: string): TemplateFault => new TemplateFault('syntax', message, { template, line });

  /** Reads what a sticky pattern matches; undefined for no match. */
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = position;
    const match = pattern.exec(text)?.[0];
    position += match?.length ?? 0;
    return match;
  };

  const scanToken = (): Omit<Token, 'hasSpaceBefore'> => {
    const number = take(numberPattern);
    if (number !== undefined) {
      const value = toNumber(number);
      if (value === undefined || /\w/.test(text[position] ?? ''))
        throw fault(`bad number syntax: ${JSON.stringify(number)}`);
      return { kind: 'number', text: number, value };
    }
    for (const [kind, pattern] of tokenPatterns) {
      const match = take(pattern);
      if (match !== undefined) return { kind, text: kind === 'field' ? match.slice(1) : match };
    }
    const raw = take(/`[^`]*`/y);
    if (raw !== undefined) return { kind: 'text', text: raw, value: raw.slice(1, -1).replaceAll('\r', '') };
    const quoted = take(/"(?:[^"\\\n]|\\[^\n])*"/y);
    if (quoted !== undefined) {
      const value = unquote(quoted.slice(1, -1));
      if (value === undefined) throw fault(`invalid string ${quoted}`);
      return { kind: 'text', text: quoted, value };
    }
    const first = text[position];
    const character = take(/'(?:[^'\\\n]|\\[^\n])+'/uy) ?? '';
    const [code, ...rest] = unquote(character.slice(1, -1)) ?? '';
    if (code === undefined || rest.length > 0) throw fault(`unexpected ${JSON.stringify(first)} in command`);
    return { kind: 'number', text: character, value: BigInt(code.codePointAt(0) as number) };
  };

  const scanAction = (): Token[] => {
    const tokens: Token[] = [];
    for (;;) {
      const hasSpaceBefore = take(/[ \t\r\n]+/y) !== undefined;
      trimsNext = hasSpaceBefore && take(/-\}\}/y) !== undefined;
      if (trimsNext || take(/\}\}/y) !== undefined) return tokens;
      if (position >= text.length) throw fault('unclosed action');
      tokens.push({ ...scanToken(), hasSpaceBefore });
    }
  };

  for (;;) {
    const open = text.indexOf('{{', position);
    const trimsBefore = open >= 0 && /^-[ \t\r\n]/.test(text.slice(open + 2, open + 4));
    let part = text.slice(position, open < 0 ? text.length : open);
    if (trimsNext) part = part.replace(/^[ \t\r\n]+/, '');
    if (trimsBefore) part = trimEnd(part);
    if (part !== '') pieces.push({ kind: 'text', text: part });
    if (open < 0) return pieces;
    for (; counted < open; counted++) if (text[counted] === '\n') line++;
    position = open + (trimsBefore ? 3 : 2);
    if (take(trimsBefore ? /[ \t\r\n]?\/\*/y : /\/\*/y) === undefined) {
      pieces.push({ kind: 'action', tokens: scanAction(), line });
      continue;
    }
    const close = text.indexOf('*/', position);
    if (close < 0) throw fault('unclosed comment');
    position = close + 2;
    const end = take(/(?:[ \t\r\n]+-)?\}\}/y);
    if (end === undefined) throw fault('comment ends before closing delimiter');
    trimsNext = end !== '}}';
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
