import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json.js';
import { formatShortest } from '../model/csv.js';

/** What a template may say of a bundle. */
export interface ImageTemplateData {
  Package: string;
  Name: string;
  Version: string;
}

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

/** An integer is a number; other numbers are wrapped, since Go tells them apart. */
type Value = string | number | boolean | Float | ImageTemplateData | Nil;

class Float {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

class Nil {}
const nil = new Nil();

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

function isData(value: Value): value is ImageTemplateData {
  return typeof value === 'object' && !(value instanceof Float) && !(value instanceof Nil);
}

function typeName(value: Value): string {
  if (value instanceof Float) return 'float64';
  if (value instanceof Nil) return 'nil';
  return { string: 'string', number: 'int', boolean: 'bool' }[typeof value as string] ?? 'struct';
}

function isTrue(value: Value): boolean {
  if (value instanceof Float) return value.value !== 0;
  if (value instanceof Nil) return false;
  return typeof value === 'object' || Boolean(value);
}

function show(value: Value): string {
  if (value instanceof Float) return formatShortest(value.value);
  if (value instanceof Nil) return '<nil>';
  if (isData(value)) return `{${value.Package} ${value.Name} ${value.Version}}`;
  return String(value);
}

/** Arguments are evaluated when they are asked for: `and` and `or` stop at the first that decides. */
type TemplateFunction = (args: (() => Value)[]) => Value;

/** Thrown by functions; becomes a message with the place. */
class CallFault extends Error {}

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

interface FunctionEntry {
  atLeast: number;
  atMost: number;
  call: TemplateFunction;
}

function entry(atLeast: number, atMost: number, call: (...values: Value[]) => Value): FunctionEntry {
  return { atLeast, atMost, call: (args) => call(...args.map((arg) => arg())) };
}

function shortCircuit(stopsAt: boolean): FunctionEntry {
  return {
    atLeast: 1,
    atMost: Infinity,
    call: (args) => {
      let value: Value = nil;
      for (const arg of args) {
        value = arg();
        if (isTrue(value) === stopsAt) break;
      }
      return value;
    },
  };
}

const functions: Record<string, FunctionEntry> = {
  and: shortCircuit(false),
  or: shortCircuit(true),
  not: entry(1, 1, (value) => !isTrue(value as Value)),
  eq: entry(1, Infinity, (first, ...others) => {
    if (others.length === 0) throw new CallFault('missing argument for comparison');
    return others.some((other) => compare(first as Value, other, true) === 0);
  }),
  ne: entry(2, 2, (a, b) => compare(a as Value, b as Value, true) !== 0),
  lt: entry(2, 2, (a, b) => compare(a as Value, b as Value) < 0),
  le: entry(2, 2, (a, b) => compare(a as Value, b as Value) <= 0),
  gt: entry(2, 2, (a, b) => compare(a as Value, b as Value) > 0),
  ge: entry(2, 2, (a, b) => compare(a as Value, b as Value) >= 0),
  len: entry(1, 1, (value) => {
    if (typeof value !== 'string') throw new CallFault(`len of type ${typeName(value as Value)}`);
    return Buffer.byteLength(value);
  }),
  slice: entry(1, 3, (value, ...bounds) => {
    if (typeof value !== 'string')
      throw new CallFault(`can't slice item of type ${typeName(value as Value)}`);
    const bytes = Buffer.from(value);
    const [from = 0, to = bytes.length] = bounds;
    for (const bound of [from, to]) {
      if (typeof bound !== 'number')
        throw new CallFault(`cannot index slice/array with type ${typeName(bound)}`);
      if (bound < 0 || bound > bytes.length) throw new CallFault(`index out of range: ${bound}`);
    }
    if (from > to) throw new CallFault(`invalid slice index: ${show(from)} > ${show(to)}`);
    return bytes.subarray(from as number, to as number).toString();
  }),
  print: entry(0, Infinity, (...values) => joinOperands(values)),
  println: entry(0, Infinity, (...values) => `${values.map(show).join(' ')}\n`),
  printf: entry(1, Infinity, (format, ...values) => {
    if (typeof format !== 'string')
      throw new CallFault(`wrong type for value; expected string; got ${typeName(format as Value)}`);
    return formatText(format, values);
  }),
  html: entry(0, Infinity, (...values) => replaceEach(joinOperands(values), htmlEscapes)),
  js: entry(0, Infinity, (...values) =>
    replaceEach(joinOperands(values), jsEscapes).replace(
      /[\x00-\x1f\x7f]/g,
      (character) => `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`,
    ),
  ),
  urlquery: entry(0, Infinity, (...values) =>
    encodeURIComponent(joinOperands(values))
      .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
      .replaceAll('%20', '+'),
  ),
};

const htmlEscapes: Record<string, string> = {
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '\0': '\ufffd',
};
const jsEscapes: Record<string, string> = {
  '\\': '\\\\',
  "'": "\\'",
  '"': '\\"',
  '<': '\\u003C',
  '>': '\\u003E',
  '&': '\\u0026',
  '=': '\\u003D',
};

function replaceEach(text: string, escapes: Record<string, string>): string {
  return Array.from(text, (character) => escapes[character] ?? character).join('');
}

function compare(a: Value, b: Value, equality = false): number {
  const [left, right] = [typeName(a), typeName(b)];
  if (left !== right) throw new CallFault(`incompatible types for comparison: ${left} and ${right}`);
  if (left === 'struct' || left === 'nil' || (left === 'bool' && !equality)) {
    throw new CallFault('invalid type for comparison');
  }
  const x = a instanceof Float ? a.value : a;
  const y = b instanceof Float ? b.value : b;
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Go's Sprint: a space stands between two operands of which neither is text. */
function joinOperands(values: Value[]): string {
  let out = '';
  values.forEach((value, index) => {
    if (index > 0 && typeof value !== 'string' && typeof values[index - 1] !== 'string') out += ' ';
    out += show(value);
  });
  return out;
}

/** Width and precision beyond this make no image reference, only a long text. */
const maxWidth = 1000;

function formatText(format: string, values: Value[]): string {
  let next = 0;
  const out = format.replace(
    /%([-+# 0]*)(\d*)(?:\.(\d*))?(.?)/gsu,
    (_, flags: string, width: string, precision: string | undefined, verb: string) => {
      if (verb === '%') return '%';
      if (verb === '') return '%!(NOVERB)';
      if (next >= values.length) return `%!${verb}(MISSING)`;
      const value = values[next++] as Value;
      const limit = precision === undefined ? undefined : Math.min(Number(precision), maxWidth);
      const text = formatOne(verb, value, flags, limit);
      if (text === undefined)
        return `%!${verb}(${value instanceof Nil ? '<nil>' : `${typeName(value)}=${show(value)}`})`;
      const columns = Math.min(Number(width), maxWidth);
      if (flags.includes('-')) return padded(text, columns, false);
      if (flags.includes('0') && typeof value !== 'object' && verb !== 'v') {
        const sign = typeof value === 'number' && /^[+-]/.test(text) ? (text[0] as string) : '';
        return sign + text.slice(sign.length).padStart(columns - sign.length, '0');
      }
      return padded(text, columns, true);
    },
  );
  const extra = values.slice(next).map((value) => `${typeName(value)}=${show(value)}`);
  return extra.length === 0 ? out : `${out}%!(EXTRA ${extra.join(', ')})`;
}

function padded(text: string, width: number, left: boolean): string {
  const fill = ' '.repeat(Math.max(0, width - Array.from(text).length));
  return left ? fill + text : text + fill;
}

function formatOne(
  verb: string,
  value: Value,
  flags: string,
  precision: number | undefined,
): string | undefined {
  if (verb === 'v') return show(value);
  if (verb === 'T') return isData(value) ? 'action.imageReferenceTemplateData' : typeName(value);
  if (typeof value === 'string') {
    const text = precision === undefined ? value : Array.from(value).slice(0, precision).join('');
    if (verb === 's') return text;
    if (verb === 'q') return quoteGo(text);
    if (verb === 'x') return Buffer.from(text).toString('hex');
    if (verb === 'X') return Buffer.from(text).toString('hex').toUpperCase();
    return undefined;
  }
  if (typeof value === 'boolean') return verb === 't' ? String(value) : undefined;
  if (typeof value === 'number') {
    const sign = flags.includes('+') && value >= 0 ? '+' : '';
    if (verb === 'd') return sign + String(value);
    if (verb === 'x' || verb === 'X') {
      const digits = value.toString(16);
      return verb === 'x' ? digits : digits.toUpperCase();
    }
    if (verb === 'o') return value.toString(8);
    if (verb === 'b') return value.toString(2);
    if (verb === 'c' && value >= 0 && value <= 0x10ffff) return String.fromCodePoint(value);
    return undefined;
  }
  if (value instanceof Float && (verb === 'f' || verb === 'g')) {
    return verb === 'g' ? formatShortest(value.value) : value.value.toFixed(Math.min(precision ?? 6, 100));
  }
  return undefined;
}
