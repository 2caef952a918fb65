/**
 * Returns the fault of an expression of the Common Expression Language over properties of bundles. Checks grammar and
 * names, not types. (Source: CEL specification; operator-framework/api, pkg/constraints.)
 */
export function celFault(text: string): string | undefined {
  if (text.length > maxLength) return `longer than ${maxLength} characters`;
  try {
    checkTokens(getTokens(text));
    return undefined;
  } catch (error) {
    if (error instanceof CelFault) return `${error.message} at character ${error.at + 1}`;
    throw error;
  }
}

const maxLength = 100_000;
const maxDepth = 250;

class CelFault extends Error {
  readonly at: number;
  constructor(message: string, position: number) {
    super(message);
    this.at = position;
  }
}

interface Token {
  kind: 'name' | 'literal' | 'sign' | 'end';
  text: string;
  at: number;
}

const tokenPattern = new RegExp(
  [
    String.raw`(?<space>(?:\s|//[^\n]*)+)`,
    String.raw`(?<literal>(?:[bB]?[rR]|[rR][bB])(?:"""[^]*?"""|'''[^]*?'''|"[^"\n]*"|'[^'\n]*')` +
      String.raw`|[bB]?(?:"""(?:\\[^]|[^\\])*?"""|'''(?:\\[^]|[^\\])*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')` +
      String.raw`|\d+\.\d+(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|0x[0-9a-fA-F]+u?|\d+[uU]?)`,
    String.raw`(?<name>[A-Za-z_]\w*)`,
    String.raw`(?<sign>==|!=|<=|>=|&&|\|\||[-+*/%!<>?:.,()[\]{}])`,
  ].join('|'),
  'y',
);

function getTokens(text: string): Token[] {
  const tokens: Token[] = [];
  let position = 0;
  while (position < text.length) {
    tokenPattern.lastIndex = position;
    const match = tokenPattern.exec(text);
    if (match === null) throw new CelFault(`token recognition error: '${text[position]}'`, position);
    const { space, literal, name } = match.groups as Record<string, string | undefined>;
    if (space === undefined) {
      const kind = literal !== undefined ? 'literal' : name !== undefined ? 'name' : 'sign';
      tokens.push({ kind, text: match[0], at: position });
    }
    position += match[0].length;
  }
  tokens.push({ kind: 'end', text: '<EOF>', at: text.length });
  return tokens;
}

const constants: ReadonlySet<string> = new Set(['true', 'false', 'null']);
const reserved: ReadonlySet<string> = new Set(
  'as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);
/** Types, which are also names. */
const types = 'bool bytes double dyn int list map null_type string type uint'.split(' ');
const functions: ReadonlySet<string> = new Set([
  ...types,
  ...'duration has matches semver_compare size timestamp'.split(' '),
]);
const methods: ReadonlySet<string> = new Set(
  (
    'contains endsWith matches size startsWith getDate getDayOfMonth getDayOfWeek getDayOfYear getFullYear getHours ' +
    'getMilliseconds getMinutes getMonth getSeconds all exists exists_one filter map'
  ).split(' '),
);
/** Methods that declare a variable for each element. */
const macros: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);
const binary: readonly (readonly string[])[] = [
  ['||'],
  ['&&'],
  ['==', '!=', '<', '<=', '>', '>=', 'in'],
  ['+', '-'],
  ['*', '/', '%'],
];

/** Throws CelFault unless tokens are one expression. */
function checkTokens(tokens: readonly Token[]): void {
  const names: string[] = ['properties', ...types];
  let next = 0;
  let depth = 0;
  const token = (): Token => tokens[next] as Token;
  const unexpected = (): CelFault =>
    new CelFault(`Syntax error: mismatched input '${token().text}'`, token().at);
  const undeclared = (name: string, position: number): CelFault =>
    new CelFault(`undeclared reference to '${name}' (in container '')`, position);

  function take(wanted: string): boolean {
    const { kind, text } = token();
    if (text !== wanted || kind === 'literal' || kind === 'end') return false;
    next++;
    return true;
  }

  function expect(wanted: string): void {
    if (!take(wanted)) throw unexpected();
  }

  function takeName(): Token {
    const name = token();
    if (name.kind !== 'name' || constants.has(name.text)) throw unexpected();
    next++;
    return name;
  }

  function expression(): void {
    if (++depth > maxDepth) throw new CelFault('nested too deeply', token().at);
    operation(0);
    if (take('?')) {
      operation(0);
      expect(':');
      expression();
    }
    depth--;
  }

  function operation(level: number): void {
    const signs = binary[level];
    if (signs === undefined) {
      const sign = ['!', '-'].find(take);
      if (sign !== undefined) while (take(sign));
      primary();
      members();
      return;
    }
    do operation(level + 1);
    while (signs.some(take));
  }

  function primary(): void {
    const { kind, text, at: position } = token();
    if (kind === 'literal' || (kind === 'name' && constants.has(text))) next++;
    else if (take('(')) {
      expression();
      expect(')');
    } else if (take('[')) list(']');
    else if (take('{')) list('}', entry);
    else {
      take('.');
      const name = takeName().text;
      if (reserved.has(name)) throw new CelFault(`Syntax error: reserved identifier: ${name}`, position);
      const isCall = take('(');
      if (isCall ? !functions.has(name) : !names.includes(name)) throw undeclared(name, position);
      if (isCall) list(')');
    }
  }

  function members(): void {
    for (;;) {
      if (take('.')) {
        const { text, at: position } = takeName();
        if (!take('(')) continue;
        if (!methods.has(text)) throw undeclared(text, position);
        const isMacro = macros.has(text);
        if (isMacro) {
          names.push(takeName().text);
          expect(',');
        }
        list(')');
        if (isMacro) names.pop();
      } else if (take('[')) {
        expression();
        expect(']');
      } else return;
    }
  }

  function entry(): void {
    expression();
    expect(':');
    expression();
  }

  function list(end: string, item = expression): void {
    if (take(end)) return;
    do {
      if (end !== ')' && take(end)) return;
      item();
    } while (take(','));
    expect(end);
  }

  expression();
  if (token().kind !== 'end') throw unexpected();
}
