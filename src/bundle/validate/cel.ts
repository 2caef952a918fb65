/**
 * Returns the fault of an expression of the Common Expression Language over properties of bundles. Checks grammar and
 * names, not types. (Source: CEL specification; operator-framework/api, pkg/constraints.)
 */
export function celFault(text: string): string | undefined {
  if (text.length > maxLength) return `longer than ${maxLength} characters`;
  try {
    new Parser(getTokens(text)).parse();
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

class Parser {
  readonly #tokens: readonly Token[];
  readonly #names: string[] = ['properties', ...types];
  #next = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  parse(): void {
    this.#expression();
    if (this.#token.kind !== 'end') throw this.#unexpected();
  }

  get #token(): Token {
    return this.#tokens[this.#next] as Token;
  }

  #unexpected(): CelFault {
    const { text, at: position } = this.#token;
    return new CelFault(`Syntax error: mismatched input '${text}'`, position);
  }

  #take(text: string): boolean {
    const { kind, text: token } = this.#token;
    if (token !== text || kind === 'literal' || kind === 'end') return false;
    this.#next++;
    return true;
  }

  #expect(text: string): void {
    if (!this.#take(text)) throw this.#unexpected();
  }

  #name(): Token {
    const token = this.#token;
    if (token.kind !== 'name' || constants.has(token.text)) throw this.#unexpected();
    this.#next++;
    return token;
  }

  #expression(): void {
    if (++this.#depth > maxDepth) throw new CelFault('nested too deeply', this.#token.at);
    this.#binary(0);
    if (this.#take('?')) {
      this.#binary(0);
      this.#expect(':');
      this.#expression();
    }
    this.#depth--;
  }

  #binary(level: number): void {
    const signs = binary[level];
    if (signs === undefined) {
      this.#unary();
      return;
    }
    do this.#binary(level + 1);
    while (signs.some((sign) => this.#take(sign)));
  }

  #unary(): void {
    const sign = ['!', '-'].find((name) => this.#take(name));
    if (sign !== undefined) while (this.#take(sign));
    this.#primary();
    this.#members();
  }

  #primary(): void {
    const { kind, text, at: position } = this.#token;
    if (kind === 'literal' || (kind === 'name' && constants.has(text))) {
      this.#next++;
    } else if (this.#take('(')) {
      this.#expression();
      this.#expect(')');
    } else if (this.#take('[')) {
      this.#list(']', () => this.#expression());
    } else if (this.#take('{')) {
      this.#list('}', () => this.#entry());
    } else {
      this.#take('.');
      const name = this.#name();
      if (reserved.has(name.text))
        throw new CelFault(`Syntax error: reserved identifier: ${name.text}`, position);
      if (this.#take('(')) {
        if (!functions.has(name.text)) {
          throw new CelFault(`undeclared reference to '${name.text}' (in container '')`, position);
        }
        this.#list(')', () => this.#expression());
      } else if (!this.#names.includes(name.text)) {
        throw new CelFault(`undeclared reference to '${name.text}' (in container '')`, position);
      }
    }
  }

  #members(): void {
    for (;;) {
      if (this.#take('.')) {
        const name = this.#name();
        if (!this.#take('(')) continue;
        if (!methods.has(name.text)) {
          throw new CelFault(`undeclared reference to '${name.text}' (in container '')`, name.at);
        }
        if (macros.has(name.text)) this.#macro();
        else this.#list(')', () => this.#expression());
      } else if (this.#take('[')) {
        this.#expression();
        this.#expect(']');
      } else return;
    }
  }

  #macro(): void {
    const variable = this.#name();
    this.#expect(',');
    this.#names.push(variable.text);
    this.#list(')', () => this.#expression());
    this.#names.pop();
  }

  #entry(): void {
    this.#expression();
    this.#expect(':');
    this.#expression();
  }

  #list(end: string, item: () => void): void {
    if (this.#take(end)) return;
    do {
      if (end !== ')' && this.#take(end)) return;
      item();
    } while (this.#take(','));
    this.#expect(end);
  }
}
