import { OpmateError } from '../core/errors.js';
import {
  CallFault,
  Float,
  type FunctionEntry,
  type ImageTemplateData,
  type Value,
  functions,
  isData,
  isTrue,
  nil,
  show,
  typeName,
} from './template-functions.js';

/** Makes the pull specification of a bundle. Throws OpmateError INVALID when the template fails on it. */
export type ImageTemplate = (data: ImageTemplateData) => string;

const templateName = 'image-ref-template';

/**
 * Parses a template in the language of Go's text/template: fields, literals, variables, pipelines,
 * comments, trim markers, `if`, `else`, `with`, and the functions and, or, not, eq, ne, lt, le, gt, ge,
 * len, slice, print, printf, println, html, js and urlquery. `range`, `define`, `block`, `template`, `index`
 * and `call` are refused: nothing in a bundle's name needs them. Throws OpmateError USAGE,
 * `invalid image reference template: …`.
 */
export function parseImageTemplate(text: string): ImageTemplate {
  const nodes = new Parser(splitActions(text)).parse();
  return (data) => {
    const scope: Scope = { dot: data, variables: new Map<string, Value>([['$', data]]), parent: undefined };
    return run(nodes, scope);
  };
}

function invalid(problem: string, line: number): OpmateError {
  return new OpmateError(
    'USAGE',
    `invalid image reference template: template: ${templateName}:${line}: ${problem}`,
    { hint: 'an example is "quay.io/example/{{.Package}}-bundle:v{{.Version}}"' },
  );
}

interface Piece {
  kind: 'text' | 'action';
  text: string;
  line: number;
}

/** Parts text and actions; trim markers and comments are dealt with here. */
function splitActions(text: string): Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  let line = 1;
  let trimNext = false;
  for (;;) {
    const open = text.indexOf('{{', at);
    let literal = text.slice(at, open < 0 ? text.length : open);
    const newlines = countLines(literal);
    if (trimNext) literal = literal.trimStart();
    if (open < 0) {
      if (literal !== '') pieces.push({ kind: 'text', text: literal, line });
      return pieces;
    }
    let from = open + 2;
    if (/^-\s/.test(text.slice(from, from + 2))) {
      literal = literal.trimEnd();
      from += 2;
    }
    if (literal !== '') pieces.push({ kind: 'text', text: literal, line });
    line += newlines;
    const end = endOfAction(text, from, line);
    const body = text.slice(from, end);
    trimNext = /\s-$/.test(body);
    if (!body.startsWith('/*')) {
      pieces.push({ kind: 'action', text: trimNext ? body.slice(0, -2) : body, line });
    }
    line += countLines(body);
    at = end + 2;
  }
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}

function endOfAction(text: string, from: number, line: number): number {
  if (text.startsWith('/*', from)) {
    const end = text.indexOf('*/', from);
    if (end < 0) throw invalid('unclosed comment', line);
    const close = /^(\s-)?\}\}/.exec(text.slice(end + 2));
    if (close === null) throw invalid('comment ends before closing delimiter', line);
    return end + 2 + (close[1]?.length ?? 0);
  }
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string;
    if (text.startsWith('}}', at)) return at;
    if (character === '"' || character === '`' || character === "'") at = endOfQuote(text, at, line);
  }
  throw invalid('unclosed action', line);
}

function endOfQuote(text: string, from: number, line: number): number {
  const quote = text[from] as string;
  for (let at = from + 1; at < text.length; at++) {
    if (text[at] === quote) return at;
    if (text[at] === '\n' && quote !== '`') break;
    if (text[at] === '\\' && quote !== '`') at++;
  }
  const what = quote === '`' ? 'raw quoted string' : quote === '"' ? 'quoted string' : 'character constant';
  throw invalid(`unterminated ${what}`, line);
}

interface Token {
  kind: 'space' | 'field' | 'variable' | 'word' | 'string' | 'number' | 'mark';
  text: string;
}

const numberPattern = /[+-]?(?:0[xX][\da-fA-F]+|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)|'(?:[^'\\]|\\.)'/;
const tokenPattern = new RegExp(
  [
    /(?<space>\s+)/,
    /(?<field>\.[\p{L}_][\p{L}\p{N}_]*)/u,
    /(?<variable>\$[\p{L}\p{N}_]*)/u,
    new RegExp(`(?<number>${numberPattern.source})`),
    /(?<word>[\p{L}_][\p{L}\p{N}_]*)/u,
    /(?<string>"(?:[^"\\]|\\.)*"|`[^`]*`)/,
    /(?<mark>:=|[.=|(),])/,
  ]
    .map((part) => part.source)
    .join('|'),
  'uy',
);

function tokenize(text: string, line: number): Token[] {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.length) {
    const at = tokenPattern.lastIndex;
    const groups = tokenPattern.exec(text)?.groups;
    if (groups === undefined) {
      const code = text.codePointAt(at) ?? 0;
      const name = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
      throw invalid(`bad character ${name} '${String.fromCodePoint(code)}'`, line);
    }
    const [kind, matched] = Object.entries(groups).find(([, value]) => value !== undefined) as [
      string,
      string,
    ];
    tokens.push({ kind: kind as Token['kind'], text: matched });
  }
  return tokens;
}

/** One word of a command: a value, a function, or a pipeline in parentheses, and the fields taken of it. */
type Operand =
  | { kind: 'value'; value: Value }
  | { kind: 'dot' }
  | { kind: 'variable'; name: string; fields: string[] }
  | { kind: 'field'; fields: string[] }
  | { kind: 'function'; name: string }
  | { kind: 'pipeline'; pipeline: Pipeline; fields: string[] };

interface Pipeline {
  variable: { name: string; declares: boolean } | undefined;
  commands: Operand[][];
  line: number;
}

type Node =
  | { kind: 'text'; text: string }
  | { kind: 'action'; pipeline: Pipeline }
  | { kind: 'if' | 'with'; pipeline: Pipeline; body: Node[]; otherwise: Node[] };

/** Nested parentheses and blocks are refused beyond this depth. */
const maxDepth = 100;

class Parser {
  readonly #pieces: Piece[];
  #next = 0;
  #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #depth = 0;
  #variables = ['$'];

  constructor(pieces: Piece[]) {
    this.#pieces = pieces;
  }

  parse(): Node[] {
    const { nodes, end } = this.#block();
    if (end !== undefined) throw this.#fail(`unexpected {{${end}}}`);
    return nodes;
  }

  /** Nodes up to `end`, `else` or the end of the template; tells which, and leaves the rest of an `else`. */
  #block(): { nodes: Node[]; end: 'end' | 'else' | undefined } {
    const nodes: Node[] = [];
    while (this.#next < this.#pieces.length) {
      const piece = this.#pieces[this.#next++] as Piece;
      this.#line = piece.line;
      if (piece.kind === 'text') {
        nodes.push({ kind: 'text', text: piece.text });
        continue;
      }
      this.#tokens = tokenize(piece.text, piece.line);
      this.#at = 0;
      const word = this.#peek();
      if (word?.kind === 'word' && word.text === 'end') {
        this.#take();
        this.#expectEnd('end');
        return { nodes, end: 'end' };
      }
      if (word?.kind === 'word' && word.text === 'else') {
        this.#take();
        return { nodes, end: 'else' };
      }
      nodes.push(this.#action());
    }
    return { nodes, end: undefined };
  }

  #action(): Node {
    const word = this.#peek();
    if (word?.kind === 'word') {
      if (word.text === 'if' || word.text === 'with') {
        this.#take();
        return this.#branch(word.text);
      }
      if (word.text === 'break' || word.text === 'continue') {
        throw this.#fail(`{{${word.text}}} outside {{range}}`);
      }
      if (['range', 'define', 'template', 'block'].includes(word.text)) {
        throw this.#fail(`{{${word.text}}} is not supported in an image reference`);
      }
    }
    return { kind: 'action', pipeline: this.#pipeline('command') };
  }

  #branch(kind: 'if' | 'with'): Node {
    const outside = this.#variables.length;
    this.#descend();
    const pipeline = this.#pipeline(kind);
    const { nodes: body, end } = this.#block();
    let otherwise: Node[] = [];
    if (end === 'else') {
      const word = this.#peek();
      if (word?.kind === 'word' && word.text === kind) {
        // `else if` opens a branch that the same `end` closes; so does `else with` after `with`.
        this.#take();
        otherwise = [this.#branch(kind)];
      } else {
        this.#expectEnd('else');
        const rest = this.#block();
        if (rest.end === 'else') throw this.#fail('expected end; found {{else}}');
        if (rest.end === undefined) throw this.#fail('unexpected EOF');
        otherwise = rest.nodes;
      }
    } else if (end === undefined) {
      throw this.#fail('unexpected EOF');
    }
    this.#variables.length = outside;
    this.#depth--;
    return { kind, pipeline, body, otherwise };
  }

  #pipeline(context: string): Pipeline {
    const line = this.#line;
    const variable = this.#declaration();
    const commands: Operand[][] = [];
    for (;;) {
      const command = this.#command(context);
      if (command.length === 0) {
        throw this.#fail(`missing value for ${context}`);
      }
      const first = command[0] as Operand;
      if (commands.length > 0 && (first.kind === 'value' || first.kind === 'dot')) {
        throw this.#fail(`non executable command in pipeline stage ${commands.length + 1}`);
      }
      commands.push(command);
      if (this.#peek()?.text !== '|') break;
      this.#take();
    }
    if (variable?.declares) this.#variables.push(variable.name);
    return { variable, commands, line };
  }

  #declaration(): Pipeline['variable'] {
    const start = this.#at;
    const name = this.#peek();
    if (name?.kind !== 'variable') return undefined;
    this.#take();
    const mark = this.#peek()?.text;
    if (mark !== ':=' && mark !== '=') {
      this.#at = start;
      return undefined;
    }
    this.#take();
    if (mark === '=') this.#checkVariable(name.text);
    return { name: name.text, declares: mark === ':=' };
  }

  #command(context: string): Operand[] {
    const operands: Operand[] = [];
    for (;;) {
      this.#peek();
      const token = this.#tokens[this.#at];
      if (token === undefined || token.text === '|' || token.text === ')') return operands;
      operands.push(this.#operand(token));
      const after = this.#tokens[this.#at];
      if (after === undefined || after.kind === 'space' || after.text === '|' || after.text === ')') continue;
      throw this.#fail(
        after.text === '.'
          ? 'unexpected <.> in operand'
          : `unexpected ${JSON.stringify(after.text)} in ${context === 'command' ? 'operand' : context}`,
      );
    }
  }

  #operand(token: Token): Operand {
    this.#at++;
    switch (token.kind) {
      case 'field':
        return { kind: 'field', fields: [token.text.slice(1), ...this.#fields()] };
      case 'variable':
        this.#checkVariable(token.text);
        return { kind: 'variable', name: token.text, fields: this.#fields() };
      case 'string':
        return {
          kind: 'value',
          value: token.text.startsWith('`') ? token.text.slice(1, -1) : this.#unquote(token.text),
        };
      case 'number':
        return { kind: 'value', value: this.#number(token.text) };
      case 'word':
        if (token.text === 'true' || token.text === 'false')
          return { kind: 'value', value: token.text === 'true' };
        if (token.text === 'nil') return { kind: 'value', value: nil };
        if (!Object.hasOwn(functions, token.text)) throw this.#fail(`function "${token.text}" not defined`);
        return { kind: 'function', name: token.text };
      default: {
        if (token.text === '.') return { kind: 'dot' };
        if (token.text !== '(') throw this.#fail(`unexpected ${JSON.stringify(token.text)} in command`);
        this.#descend();
        const pipeline = this.#pipeline('parenthesized pipeline');
        if (this.#peek()?.text !== ')') throw this.#fail('unclosed left paren');
        this.#take();
        this.#depth--;
        return { kind: 'pipeline', pipeline, fields: this.#fields() };
      }
    }
  }

  #fields(): string[] {
    const fields: string[] = [];
    while (this.#tokens[this.#at]?.kind === 'field')
      fields.push((this.#tokens[this.#at++] as Token).text.slice(1));
    return fields;
  }

  #number(text: string): Value {
    if (text.startsWith("'"))
      return this.#unquote(`"${text.slice(1, -1).replace('"', '\\"')}"`).codePointAt(0) ?? 0;
    if (/^[+-]?(0[xX]|\d+$)/.test(text)) return text.startsWith('-') ? -Number(text.slice(1)) : Number(text);
    return new Float(Number(text));
  }

  #unquote(text: string): string {
    const escapes: Record<string, string> = {
      a: '\x07',
      b: '\b',
      f: '\f',
      n: '\n',
      r: '\r',
      t: '\t',
      v: '\v',
    };
    return text
      .slice(1, -1)
      .replace(/\\(x[\da-fA-F]{2}|u[\da-fA-F]{4}|U[\da-fA-F]{8}|[0-7]{3}|.)/gs, (_, code: string) => {
        const digits = code.slice(1);
        if (/^[xuU]./.test(code) && Number.parseInt(digits, 16) <= 0x10ffff) {
          return String.fromCodePoint(Number.parseInt(digits, 16));
        }
        if (/^[0-7]{3}$/.test(code)) return String.fromCodePoint(Number.parseInt(code, 8));
        const plain = escapes[code] ?? (code === '\\' || code === '"' || code === "'" ? code : undefined);
        if (plain === undefined) throw this.#fail('invalid syntax');
        return plain;
      });
  }

  #checkVariable(name: string): void {
    if (!this.#variables.includes(name)) throw this.#fail(`undefined variable "${name}"`);
  }

  #descend(): void {
    if (++this.#depth > maxDepth) throw this.#fail(`nested more than ${maxDepth} deep`);
  }

  #expectEnd(word: string): void {
    const token = this.#peek();
    if (token !== undefined) throw this.#fail(`unexpected ${JSON.stringify(token.text)} in ${word}`);
  }

  /** The next token that is no white space. */
  #peek(): Token | undefined {
    while (this.#tokens[this.#at]?.kind === 'space') this.#at++;
    return this.#tokens[this.#at];
  }

  #take(): void {
    this.#peek();
    this.#at++;
  }

  #fail(problem: string): OpmateError {
    return invalid(problem, this.#line);
  }
}

interface Scope {
  dot: Value;
  variables: Map<string, Value>;
  parent: Scope | undefined;
}

function run(nodes: Node[], scope: Scope): string {
  let out = '';
  for (const node of nodes) {
    if (node.kind === 'text') {
      out += node.text;
    } else if (node.kind === 'action') {
      const value = evaluate(node.pipeline, scope);
      if (node.pipeline.variable === undefined) out += show(value);
    } else {
      const inner: Scope = { dot: scope.dot, variables: new Map(), parent: scope };
      const value = evaluate(node.pipeline, inner);
      if (isTrue(value)) out += run(node.body, node.kind === 'with' ? { ...inner, dot: value } : inner);
      else out += run(node.otherwise, inner);
    }
  }
  return out;
}

function evaluate(pipeline: Pipeline, scope: Scope): Value {
  let value: Value | undefined;
  for (const command of pipeline.commands) value = execute(command, value, scope, pipeline.line);
  const { variable } = pipeline;
  if (variable?.declares) scope.variables.set(variable.name, value as Value);
  else if (variable) holderOf(variable.name, scope).set(variable.name, value as Value);
  return value as Value;
}

function holderOf(name: string, scope: Scope): Map<string, Value> {
  for (let at: Scope | undefined = scope; at; at = at.parent) if (at.variables.has(name)) return at.variables;
  return scope.variables;
}

function execute(command: Operand[], piped: Value | undefined, scope: Scope, line: number): Value {
  const [first, ...rest] = command as [Operand, ...Operand[]];
  if (first.kind === 'function') {
    const { name } = first;
    const args = rest.map((operand) => () => valueOf(operand, scope, line));
    if (piped !== undefined) args.push(() => piped);
    return callFunction(name, args, line);
  }
  if (rest.length > 0 || piped !== undefined) {
    const what = 'fields' in first ? (first.fields.at(-1) ?? 'the value') : 'the value';
    throw failure(`${what} has arguments but cannot be invoked as function`, line);
  }
  if (first.kind === 'value' && first.value === nil) throw failure('nil is not a command', line);
  return valueOf(first, scope, line);
}

function valueOf(operand: Operand, scope: Scope, line: number): Value {
  switch (operand.kind) {
    case 'value':
      return operand.value;
    case 'dot':
      return scope.dot;
    case 'function':
      return callFunction(operand.name, [], line);
    case 'field':
      return takeFields(scope.dot, operand.fields, line);
    case 'variable':
      return takeFields(holderOf(operand.name, scope).get(operand.name) as Value, operand.fields, line);
    case 'pipeline':
      return takeFields(evaluate(operand.pipeline, scope), operand.fields, line);
  }
}

function takeFields(value: Value, fields: string[], line: number): Value {
  let current = value;
  for (const field of fields) {
    if (!isData(current)) throw failure(`can't evaluate field ${field} in type ${typeName(current)}`, line);
    if (field !== 'Package' && field !== 'Name' && field !== 'Version') {
      throw failure(`can't evaluate field ${field} in type action.imageReferenceTemplateData`, line);
    }
    current = current[field];
  }
  return current;
}

function failure(problem: string, line: number): OpmateError {
  return new OpmateError('INVALID', `template: ${templateName}:${line}: ${problem}`, {
    hint: 'a template can use {{.Package}}, {{.Name}} and {{.Version}}',
  });
}

function callFunction(name: string, args: (() => Value)[], line: number): Value {
  const { atLeast, atMost, call } = functions[name] as FunctionEntry;
  if (args.length < atLeast || args.length > atMost) {
    const want = atLeast === atMost ? String(atLeast) : `at least ${atLeast}`;
    throw failure(`wrong number of args for ${name}: want ${want} got ${args.length}`, line);
  }
  try {
    return call(args);
  } catch (error) {
    if (error instanceof CallFault) throw failure(`error calling ${name}: ${error.message}`, line);
    throw error;
  }
}
