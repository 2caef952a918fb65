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

/** Returns the results of one part of a path for a value; `root` is the document. */
type Step = (value: JsonValue, root: JsonValue) => JsonValue[];

const maxLength = 4096;
const maxResults = 100_000;

/**
 * Parses a path in kubectl syntax: `{.a.b[*].c}`, `['a']`, `[0:2]`, `[0,1]`, `..`, `[?(@.name=="x")]`. Throws
 * OpmateError INVALID, and UNSUPPORTED for `range`. (Source: k8s.io/client-go/util/jsonpath.)
 */
export function parseJsonPath(text: string): JsonPath {
  return new JsonPathParser(text);
}

/** A path, read part by part. */
class JsonPathParser implements JsonPath {
  readonly text: string;
  #position = 0;
  readonly #parts: ((root: JsonValue) => string[])[] = [];
  hasPaths = false;

  constructor(text: string) {
    this.text = text;
    if (this.text.length > maxLength) throw this.#fault(`longer than ${maxLength} characters`);
    while (this.#position < this.text.length) {
      const literal = this.#take(/[^{]+/y);
      if (literal !== '') this.#parts.push(() => [literal]);
      if (this.#position++ >= this.text.length) break;
      this.hasPaths = true;
      const steps = this.#parseAction();
      this.#parts.push((root) => {
        let values = [root];
        for (const step of steps) {
          values = values.flatMap((value) => step(value, root));
          if (values.length > maxResults)
            throw new OpmateError('LIMIT', `path ${quoteGo(this.text)}: more than ${maxResults} results`);
        }
        return values.map(print);
      });
    }
  }

  #fault(problem: string): OpmateError {
    const hint = 'use the syntax of kubectl, such as {.spec.template.spec.containers[*].image}';
    return new OpmateError('INVALID', `invalid path ${quoteGo(this.text)}: ${problem}`, { hint });
  }

  /** Reads what a sticky pattern matches; empty for no match. */
  #take(pattern: RegExp): string {
    pattern.lastIndex = this.#position;
    const match = pattern.exec(this.text)?.[0] ?? '';
    this.#position += match.length;
    return match;
  }

  #parseAction(): Step[] {
    const steps: Step[] = [];
    for (;;) {
      this.#take(/\s*/y);
      const next = this.text[this.#position];
      if (next === undefined) throw this.#fault('unclosed action');
      if (this.#take(/\}/y) !== '') return steps;
      // A quoted text is not an image.
      if (next === '"' || next === "'") this.#parseQuoted();
      else if (/^(?:range|end)\b/.test(this.text.slice(this.#position)))
        throw new OpmateError('UNSUPPORTED', `invalid path ${quoteGo(this.text)}: range is not supported`);
      else {
        const before = this.#position;
        steps.push(...this.#parseStep());
        if (this.#position === before) throw this.#fault(`unrecognized character ${quoteGo(next)}`);
      }
    }
  }

  #parseStep(): Step[] {
    if (this.#take(/\$/y) !== '') return [(_value, root) => [root]];
    if (this.#take(/@/y) !== '') return [];
    // The next step reads the dot before a name.
    if (this.#take(/\.\.(?=[[.])|\.(?=\.)/y) !== '') return [(value) => [value, ...descendants(value)]];
    this.#take(/\./y);
    if (this.#take(/\*/y) !== '') return [getChildren];
    if (this.#take(/\[/y) !== '')
      return [
        /^\s*\?\s*\(/.test(this.text.slice(this.#position, this.#position + 20))
          ? this.#parseFilter()
          : this.#parseList(),
      ];
    return this.#parseName();
  }

  #parseName(): Step[] {
    const name = this.#take(/(?:\\[\s\S]?|[^.[\]{}|,()"'*$@=!<>\s\\])*/y).replace(/\\([\s\S]?)/g, '$1');
    if (name !== '') return [getKey(name)];
    const next = this.text[this.#position];
    if (next === '}' || next === undefined || next === ')') return [];
    throw this.#fault(`unrecognized character ${quoteGo(next)}`);
  }

  #parseQuoted(): string {
    const quoted = this.#take(/"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'/y);
    if (quoted === '') throw this.#fault('unterminated quoted string');
    return unquote(quoted.slice(1, -1)) ?? quoted.slice(1, -1);
  }

  #parseIndexes(): Step {
    const match = /^(-?\d+)?(:)?(-?\d+)?(:)?(-?\d+)?/.exec(
      this.text.slice(this.#position),
    ) as RegExpExecArray;
    const [all, start, colon, end, , step = '1'] = match;
    if (all === '')
      throw this.#fault(
        this.text.includes(']', this.#position)
          ? `invalid array index ${this.text.slice(this.#position - 1, this.text.indexOf(']', this.#position) + 1)}`
          : 'unterminated array',
      );
    this.#position += all.length;
    const from = start === undefined ? undefined : Number(start);
    const single = from === -1 ? undefined : (from ?? 0) + 1;
    return getSlice(
      from ?? 0,
      colon === undefined ? single : end === undefined ? undefined : Number(end),
      Number(step),
    );
  }

  #parseList(): Step {
    const steps: Step[] = [];
    for (;;) {
      this.#take(/\s*/y);
      if (this.#position >= this.text.length) throw this.#fault('unterminated array');
      if (this.text[this.#position] === "'") steps.push(getKey(this.#parseQuoted()));
      else steps.push(this.#take(/\*/y) === '' ? this.#parseIndexes() : getChildren);
      this.#take(/\s*/y);
      const next = this.text[this.#position++];
      if (next === ']') return (value, root) => steps.flatMap((step) => step(value, root));
      if (next === undefined) throw this.#fault('unterminated array');
      if (next !== ',') throw this.#fault(`invalid array index ${quoteGo(next)}`);
    }
  }

  #parseFilter(): Step {
    this.#take(/\s*\?\s*\(/y);
    const left = this.#parseOperand();
    const operator = this.#take(/\s*(?:==|!=|<=|>=|<|>|=)/y).trim();
    const right = operator === '' ? undefined : this.#parseOperand();
    if (this.#take(/\s*\)\s*\]/y) === '') throw this.#fault('unterminated filter');
    return (value, root) =>
      getChildren(value).filter((item) => {
        const [a] = left(item, root);
        if (right === undefined) return a !== undefined;
        const [b] = right(item, root);
        return a !== undefined && b !== undefined && compare(a, operator, b);
      });
  }

  #parseOperand(): Step {
    this.#take(/\s*/y);
    if (/["']/.test(this.text[this.#position] ?? '')) {
      const value = this.#parseQuoted();
      return () => [value];
    }
    const literal = this.#take(/(?:-?\d+(?:\.\d+)?|true|false)(?=[\s)=!<>])/y);
    if (literal !== '') return () => [JSON.parse(literal) as JsonValue];
    const steps: Step[] = [];
    while (this.#position < this.text.length && !/[\s)=!<>}]/.test(this.text[this.#position] as string)) {
      const before = this.#position;
      steps.push(...this.#parseStep());
      if (this.#position === before) break;
    }
    return (item, root) =>
      steps.reduce<JsonValue[]>((values, step) => values.flatMap((value) => step(value, root)), [item]);
  }

  find(root: JsonValue): string[] {
    return this.#parts.flatMap((part) => part(root));
  }
}

function getKey(name: string): Step {
  return (value) => (isJsonObject(value) && Object.hasOwn(value, name) ? [value[name] as JsonValue] : []);
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

function getSlice(start: number, end: number | undefined, step: number): Step {
  return (value) => {
    if (!Array.isArray(value) || step <= 0) return [];
    const place = (index: number): number => (index < 0 ? index + value.length : index);
    const picked = value.slice(place(start), end === undefined ? undefined : place(end));
    return picked.filter((_, i) => i % step === 0);
  };
}

function compare(a: JsonValue, operator: string, b: JsonValue): boolean {
  if (operator === '==' || operator === '=') return a === b;
  if (operator === '!=') return a !== b;
  if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false;
  const [x, y] = [a, b as number | string];
  return operator === '<' ? x < y : operator === '<=' ? x <= y : operator === '>' ? x > y : x >= y;
}

function print(value: JsonValue): string {
  return typeof value === 'string' ? value : typeof value === 'object' && value !== null ? '' : String(value);
}
