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
  const fault = (problem: string): OpmateError => {
    const hint = 'use the syntax of kubectl, such as {.spec.template.spec.containers[*].image}';
    return new OpmateError('INVALID', `invalid path ${quoteGo(text)}: ${problem}`, { hint });
  };
  if (text.length > maxLength) throw fault(`longer than ${maxLength} characters`);
  let position = 0;
  /** Reads what a sticky pattern matches; empty for no match. */
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = position;
    const match = pattern.exec(text)?.[0] ?? '';
    position += match.length;
    return match;
  };

  const parseAction = (): Step[] => {
    const steps: Step[] = [];
    for (;;) {
      take(/\s*/y);
      const next = text[position];
      if (next === undefined) throw fault('unclosed action');
      if (take(/\}/y) !== '') return steps;
      // A quoted text is not an image.
      if (next === '"' || next === "'") parseQuoted();
      else if (/^(?:range|end)\b/.test(text.slice(position)))
        throw new OpmateError('UNSUPPORTED', `invalid path ${quoteGo(text)}: range is not supported`);
      else {
        const before = position;
        steps.push(...parseStep());
        if (position === before) throw fault(`unrecognized character ${quoteGo(next)}`);
      }
    }
  };

  const parseStep = (): Step[] => {
    if (take(/\$/y) !== '') return [(_value, root) => [root]];
    if (take(/@/y) !== '') return [];
    // The next step reads the dot before a name.
    if (take(/\.\.(?=[[.])|\.(?=\.)/y) !== '') return [(value) => [value, ...descendants(value)]];
    take(/\./y);
    if (take(/\*/y) !== '') return [getChildren];
    if (take(/\[/y) !== '')
      return [/^\s*\?\s*\(/.test(text.slice(position, position + 20)) ? parseFilter() : parseList()];
    return parseName();
  };

  const parseName = (): Step[] => {
    const name = take(/(?:\\[\s\S]?|[^.[\]{}|,()"'*$@=!<>\s\\])*/y).replace(/\\([\s\S]?)/g, '$1');
    if (name !== '') return [getKey(name)];
    const next = text[position];
    if (next === '}' || next === undefined || next === ')') return [];
    throw fault(`unrecognized character ${quoteGo(next)}`);
  };

  const parseQuoted = (): string => {
    const quoted = take(/"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\[\s\S])*'/y);
    if (quoted === '') throw fault('unterminated quoted string');
    return unquote(quoted.slice(1, -1)) ?? quoted.slice(1, -1);
  };

  const parseIndexes = (): Step => {
    const match = /^(-?\d+)?(:)?(-?\d+)?(:)?(-?\d+)?/.exec(text.slice(position)) as RegExpExecArray;
    const [all, start, colon, end, , step = '1'] = match;
    if (all === '')
      throw fault(
        text.includes(']', position)
          ? `invalid array index ${text.slice(position - 1, text.indexOf(']', position) + 1)}`
          : 'unterminated array',
      );
    position += all.length;
    const from = start === undefined ? undefined : Number(start);
    const single = from === -1 ? undefined : (from ?? 0) + 1;
    return getSlice(
      from ?? 0,
      colon === undefined ? single : end === undefined ? undefined : Number(end),
      Number(step),
    );
  };

  const parseList = (): Step => {
    const steps: Step[] = [];
    for (;;) {
      take(/\s*/y);
      if (position >= text.length) throw fault('unterminated array');
      if (text[position] === "'") steps.push(getKey(parseQuoted()));
      else steps.push(take(/\*/y) === '' ? parseIndexes() : getChildren);
      take(/\s*/y);
      const next = text[position++];
      if (next === ']') return (value, root) => steps.flatMap((step) => step(value, root));
      if (next === undefined) throw fault('unterminated array');
      if (next !== ',') throw fault(`invalid array index ${quoteGo(next)}`);
    }
  };

  const parseFilter = (): Step => {
    take(/\s*\?\s*\(/y);
    const left = parseOperand();
    const operator = take(/\s*(?:==|!=|<=|>=|<|>|=)/y).trim();
    const right = operator === '' ? undefined : parseOperand();
    if (take(/\s*\)\s*\]/y) === '') throw fault('unterminated filter');
    return (value, root) =>
      getChildren(value).filter((item) => {
        const [a] = left(item, root);
        if (right === undefined) return a !== undefined;
        const [b] = right(item, root);
        return a !== undefined && b !== undefined && compare(a, operator, b);
      });
  };

  const parseOperand = (): Step => {
    take(/\s*/y);
    if (/["']/.test(text[position] ?? '')) {
      const value = parseQuoted();
      return () => [value];
    }
    const literal = take(/(?:-?\d+(?:\.\d+)?|true|false)(?=[\s)=!<>])/y);
    if (literal !== '') return () => [JSON.parse(literal) as JsonValue];
    const steps: Step[] = [];
    while (position < text.length && !/[\s)=!<>}]/.test(text[position] as string)) {
      const before = position;
      steps.push(...parseStep());
      if (position === before) break;
    }
    return (item, root) =>
      steps.reduce<JsonValue[]>((values, step) => values.flatMap((value) => step(value, root)), [item]);
  };

  const parts: ((root: JsonValue) => string[])[] = [];
  let hasPaths = false;
  while (position < text.length) {
    const literal = take(/[^{]+/y);
    if (literal !== '') parts.push(() => [literal]);
    if (position++ >= text.length) break;
    hasPaths = true;
    const steps = parseAction();
    parts.push((root) => {
      let values = [root];
      for (const step of steps) {
        values = values.flatMap((value) => step(value, root));
        if (values.length > maxResults)
          throw new OpmateError('LIMIT', `path ${quoteGo(text)}: more than ${maxResults} results`);
      }
      return values.map(print);
    });
  }
  return { text, hasPaths, find: (root) => parts.flatMap((part) => part(root)) };
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
