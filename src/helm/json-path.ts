import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { sortedByBytes } from '../core/order.js';
import { type JsonValue, isJsonObject } from '../document/json.js';
import { unquote } from './template/parse.js';

/** A path in kubectl syntax: text, with expressions in braces. */
export interface JsonPath {
  text: string;
  /** The text has braces; otherwise it is literal. */
  hasPaths: boolean;
  /** Returns the results as text, in order; missing keys have none. Throws LIMIT. */
  find: (root: JsonValue) => string[];
}

type Step =
  | { kind: 'key'; name: string }
  | { kind: 'all' }
  | { kind: 'recursive' }
  | { kind: 'root' }
  | { kind: 'slice'; start: number | undefined; end: number | undefined; step: number }
  | { kind: 'union'; steps: Step[] }
  | { kind: 'filter'; left: Operand; operator: string; right: Operand | undefined };

type Operand = { steps: Step[] } | { value: JsonValue };

const maxLength = 4096;
const maxResults = 100_000;

/**
 * Parses a path in kubectl syntax: `{.a.b[*].c}`, `['a']`, `[0:2]`, `[0,1]`, `..`, `[?(@.name=="x")]`. Throws
 * OpmateError INVALID, and UNSUPPORTED for `range`. (Source: k8s.io/client-go/util/jsonpath.)
 */
export function parseJsonPath(text: string): JsonPath {
  if (text.length > maxLength) throw fault(text, `longer than ${maxLength} characters`);
  const parts: (string | Step[])[] = [];
  let position = 0;
  let hasPaths = false;
  while (position < text.length) {
    const open = text.indexOf('{', position);
    if (open < 0) {
      parts.push(text.slice(position));
      break;
    }
    if (open > position) parts.push(text.slice(position, open));
    const parser = new PathParser(text, open + 1);
    parts.push(parser.parse());
    hasPaths = true;
    position = parser.end;
  }
  return {
    text,
    hasPaths,
    find: (root) =>
      parts.flatMap((part) => (typeof part === 'string' ? [part] : evaluate(part, root, text).map(print))),
  };
}

function fault(text: string, problem: string): OpmateError {
  const hint = 'use the syntax of kubectl, such as {.spec.template.spec.containers[*].image}';
  return new OpmateError('INVALID', `invalid path ${quoteGo(text)}: ${problem}`, { hint });
}

class PathParser {
  readonly #text: string;
  #position: number;

  constructor(text: string, position: number) {
    this.#text = text;
    this.#position = position;
  }

  /** Offset after the closing brace. */
  get end(): number {
    return this.#position;
  }

  parse(): Step[] {
    const steps: Step[] = [];
    for (;;) {
      const name = this.#text[this.#position];
      if (name === undefined) throw fault(this.#text, 'unclosed action');
      if (name === '}') {
        this.#position++;
        return steps;
      }
      if (/\s/.test(name)) this.#position++;
      else if (name === '"' || name === "'") {
        // A quoted text is not an image.
        this.#quoted();
      } else if (/^(?:range|end)\b/.test(this.#text.slice(this.#position)))
        throw new OpmateError('UNSUPPORTED', `invalid path ${quoteGo(this.#text)}: range is not supported`);
      else steps.push(...this.#step());
    }
  }

  #step(): Step[] {
    const text = this.#text;
    const name = text[this.#position] as string;
    if (name === '$') {
      this.#position++;
      return [{ kind: 'root' }];
    }
    if (name === '@') {
      this.#position++;
      return [];
    }
    if (text.startsWith('..', this.#position)) {
      // The next step reads the dot before a name.
      this.#position += /^\.\.[[.]/.test(text.slice(this.#position, this.#position + 3)) ? 2 : 1;
      return [{ kind: 'recursive' }];
    }
    if (name === '.') this.#position++;
    if (text[this.#position] === '*') {
      this.#position++;
      return [{ kind: 'all' }];
    }
    if (text[this.#position] === '[') return [this.#bracket()];
    return this.#name();
  }

  #name(): Step[] {
    let name = '';
    for (; this.#position < this.#text.length; this.#position++) {
      const text = this.#text[this.#position] as string;
      if (/[.[\]{}|,()"'*$@=!<>\s]/.test(text)) break;
      if (text === '\\') this.#position++;
      name += this.#text[this.#position] ?? '';
    }
    if (name === '') {
      const text = this.#text[this.#position];
      if (text === '}' || text === undefined || text === ')') return [];
      throw fault(this.#text, `unrecognized character ${quoteGo(text)}`);
    }
    return [{ kind: 'key', name }];
  }

  #quoted(): string {
    const quote = this.#text[this.#position] as string;
    const start = ++this.#position;
    for (; this.#position < this.#text.length; this.#position++) {
      if (this.#text[this.#position] === '\\') this.#position++;
      else if (this.#text[this.#position] === quote) {
        const inner = this.#text.slice(start, this.#position++);
        return unquote(inner) ?? inner;
      }
    }
    throw fault(this.#text, 'unterminated quoted string');
  }

  #bracket(): Step {
    this.#position++;
    if (/^\s*\?\s*\(/.test(this.#text.slice(this.#position, this.#position + 20))) return this.#filter();
    const steps: Step[] = [];
    for (;;) {
      this.#space();
      const text = this.#text[this.#position];
      if (text === undefined) throw fault(this.#text, 'unterminated array');
      if (text === "'") steps.push({ kind: 'key', name: this.#quoted() });
      else if (text === '*') {
        this.#position++;
        steps.push({ kind: 'all' });
      } else {
        const match = /^(-?\d+)?(:)?(-?\d+)?(:)?(-?\d+)?/.exec(
          this.#text.slice(this.#position),
        ) as RegExpExecArray;
        const [all, start, colon, end, , step] = match;
        if (all === '')
          throw fault(
            this.#text,
            this.#text.includes(']', this.#position)
              ? `invalid array index ${this.#text.slice(this.#position - 1, this.#text.indexOf(']', this.#position) + 1)}`
              : 'unterminated array',
          );
        this.#position += all.length;
        const from = start === undefined ? undefined : Number(start);
        const to =
          colon === undefined
            ? from === -1
              ? undefined
              : (from ?? 0) + 1
            : end === undefined
              ? undefined
              : Number(end);
        steps.push({ kind: 'slice', start: from, end: to, step: Number(step ?? 1) });
      }
      this.#space();
      const next = this.#text[this.#position++];
      if (next === ']') return steps.length === 1 ? (steps[0] as Step) : { kind: 'union', steps };
      if (next === undefined) throw fault(this.#text, 'unterminated array');
      if (next !== ',') throw fault(this.#text, `invalid array index ${quoteGo(next)}`);
    }
  }

  #filter(): Step {
    this.#position = this.#text.indexOf('(', this.#position) + 1;
    const left = this.#operand();
    this.#space();
    const operator = /^(?:==|!=|<=|>=|<|>|=)/.exec(this.#text.slice(this.#position))?.[0] ?? '';
    this.#position += operator.length;
    const right = operator === '' ? undefined : this.#operand();
    this.#space();
    const close = /^\)\s*\]/.exec(this.#text.slice(this.#position));
    if (close === null) throw fault(this.#text, 'unterminated filter');
    this.#position += close[0].length;
    return { kind: 'filter', left, operator: operator === '=' ? '==' : operator, right };
  }

  #operand(): Operand {
    this.#space();
    const name = this.#text[this.#position];
    if (name === '"' || name === "'") return { value: this.#quoted() };
    const literal = /^(?:-?\d+(?:\.\d+)?|true|false)(?=[\s)=!<>])/.exec(
      this.#text.slice(this.#position),
    )?.[0];
    if (literal !== undefined) {
      this.#position += literal.length;
      return { value: literal === 'true' || literal === 'false' ? literal === 'true' : Number(literal) };
    }
    const steps: Step[] = [];
    while (this.#position < this.#text.length && !/[\s)=!<>}]/.test(this.#text[this.#position] as string)) {
      const before = this.#position;
      steps.push(...this.#step());
      if (this.#position === before) break;
    }
    return { steps };
  }

  #space(): void {
    while (/\s/.test(this.#text[this.#position] ?? '')) this.#position++;
  }
}

function evaluate(steps: readonly Step[], root: JsonValue, text: string): JsonValue[] {
  return steps.reduce<JsonValue[]>(
    (values, step) => {
      const next = values.flatMap((value) => apply(step, value, root, text));
      if (next.length > maxResults)
        throw new OpmateError('LIMIT', `path ${quoteGo(text)}: more than ${maxResults} results`);
      return next;
    },
    [root],
  );
}

function apply(step: Step, value: JsonValue, root: JsonValue, text: string): JsonValue[] {
  switch (step.kind) {
    case 'root':
      return [root];
    case 'key':
      if (!isJsonObject(value) || !Object.hasOwn(value, step.name)) return [];
      return [value[step.name] as JsonValue];
    case 'all':
      return getChildren(value);
    case 'recursive':
      return [value, ...descendants(value)];
    case 'slice':
      return getSlice(value, step);
    case 'union':
      return step.steps.flatMap((item) => apply(item, value, root, text));
    case 'filter':
      return getChildren(value).filter((item) => holds(step, item, root, text));
  }
}

function getChildren(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value;
  return isJsonObject(value) ? sortedByBytes(Object.keys(value)).map((key) => value[key] as JsonValue) : [];
}

function descendants(value: JsonValue): JsonValue[] {
  const values: JsonValue[] = [];
  const walk = (item: JsonValue): void => {
    for (const child of getChildren(item)) {
      if (typeof child !== 'object' || child === null) continue;
      values.push(child);
      walk(child);
    }
  };
  walk(value);
  return values;
}

function getSlice(value: JsonValue, { start, end, step }: Step & { kind: 'slice' }): JsonValue[] {
  if (!Array.isArray(value) || step <= 0) return [];
  const place = (index: number): number => (index < 0 ? index + value.length : index);
  const picked = value.slice(place(start ?? 0), end === undefined ? undefined : place(end));
  return picked.filter((_, i) => i % step === 0);
}

function holds(
  { left, operator, right }: Step & { kind: 'filter' },
  item: JsonValue,
  root: JsonValue,
  text: string,
): boolean {
  const read = (operand: Operand): JsonValue[] =>
    'value' in operand
      ? [operand.value]
      : operand.steps.reduce<JsonValue[]>(
          (values, step) => values.flatMap((entry) => apply(step, entry, root, text)),
          [item],
        );
  const [a] = read(left);
  if (right === undefined) return a !== undefined;
  const [b] = read(right);
  if (a === undefined || b === undefined) return false;
  switch (operator) {
    case '==':
      return a === b;
    case '!=':
      return a !== b;
    default: {
      if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false;
      const [x, y] = [a, b as number | string];
      return operator === '<' ? x < y : operator === '<=' ? x <= y : operator === '>' ? x > y : x >= y;
    }
  }
}

function print(value: JsonValue): string {
  return typeof value === 'string' ? value : typeof value === 'object' && value !== null ? '' : String(value);
}
