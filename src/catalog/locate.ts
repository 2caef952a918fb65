import { OpmateError } from '../core/errors.js';
import { foldFieldName } from '../core/go-json-fold.js';
import type { BlobOrigin } from '../model/facts.js';

/** Whoever can tell the line on which a blob begins. */
interface LineFinder {
  lineOf(origin: BlobOrigin): Promise<number | undefined>;
}

/** The same error with file and line of the blob that it is about; other throws come back unchanged. */
export async function locate(catalog: LineFinder, origin: BlobOrigin, error: unknown): Promise<unknown> {
  if (!(error instanceof OpmateError) || error.file !== undefined) return error;
  const line = await catalog.lineOf(origin);
  return new OpmateError(error.code, error.message, {
    file: origin.file,
    line,
    hint: error.hint,
    cause: error,
  });
}

/**
 * How many lines below the start of a blob's text the value at `path` begins. Follows the path as far as
 * it can; for a path that is not there, the answer is its deepest part that is.
 */
export function linesDownTo(
  text: string,
  syntax: 'json' | 'yaml',
  path: readonly (string | number)[],
): number {
  const offset = syntax === 'json' ? jsonOffset(text, path) : yamlOffset(text, path);
  let lines = 0;
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) lines++;
  return lines;
}

/** Character offset of the value at `path` in valid JSON. */
function jsonOffset(text: string, path: readonly (string | number)[]): number {
  let at = skipSpace(text, 0);
  for (const step of path) {
    const next = typeof step === 'number' ? elementOffset(text, at, step) : memberOffset(text, at, step);
    if (next === undefined) break;
    at = next;
  }
  return at;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && ' \t\r\n'.includes(text[at] as string)) at++;
  return at;
}

/** Offset of the key whose value is wanted is what a reader looks for; the value begins on the same line. */
function memberOffset(text: string, object: number, wanted: string): number | undefined {
  if (text[object] !== '{') return undefined;
  let at = skipSpace(text, object + 1);
  while (text[at] === '"') {
    const keyEnd = skipValue(text, at);
    const key: unknown = JSON.parse(text.slice(at, keyEnd));
    const value = skipSpace(text, skipSpace(text, keyEnd) + 1);
    if (typeof key === 'string' && foldFieldName(key) === foldFieldName(wanted)) return value;
    at = skipSpace(text, skipValue(text, value));
    if (text[at] !== ',') return undefined;
    at = skipSpace(text, at + 1);
  }
  return undefined;
}

function elementOffset(text: string, array: number, index: number): number | undefined {
  if (text[array] !== '[') return undefined;
  let at = skipSpace(text, array + 1);
  for (let i = 0; text[at] !== ']' && at < text.length; i++) {
    if (i === index) return at;
    at = skipSpace(text, skipValue(text, at));
    if (text[at] !== ',') return undefined;
    at = skipSpace(text, at + 1);
  }
  return undefined;
}

/** Offset just after the value at `from`. */
function skipValue(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const character = text[at] as string;
    if (character === '"') {
      at = stringEnd(text, at);
      if (depth === 0) return at + 1;
    } else if (character === '{' || character === '[') depth++;
    else if (character === '}' || character === ']') {
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (character === ',' || ' \t\r\n'.includes(character))) return at;
  }
  return text.length;
}

function stringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === '\\') backslashes++;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}

/** Character offset of the line of `path` in block-style YAML, found by indentation. */
function yamlOffset(text: string, path: readonly (string | number)[]): number {
  let from = 0;
  let indent = -1;
  let found = 0;
  for (const step of path) {
    const hit = yamlStep(text, from, indent, step);
    if (hit === undefined) break;
    found = hit.line;
    from = hit.content;
    indent = hit.indent;
  }
  return found;
}

interface YamlHit {
  /** Offset of the line, and of what is searched next. */
  line: number;
  content: number;
  indent: number;
}

function yamlStep(text: string, from: number, outer: number, step: string | number): YamlHit | undefined {
  let inner: number | undefined;
  let items = -1;
  for (let at = from; at < text.length;) {
    const end = text.indexOf('\n', at) < 0 ? text.length : text.indexOf('\n', at);
    const line = text.slice(at, end);
    const start = at === from ? columnOf(text, at) : line.length - line.trimStart().length;
    const body = line.trim();
    if (body !== '' && !body.startsWith('#') && !body.startsWith('---')) {
      const isItem = body === '-' || body.startsWith('- ');
      // A sequence may stand at the same indentation as the key that it belongs to.
      const left = start < outer || (start === outer && !(isItem && typeof step === 'number'));
      if (left) return undefined;
      inner ??= start;
      if (start === inner) {
        if (typeof step === 'number') {
          if (isItem && ++items === step) {
            const content = at + (line.length - line.trimStart().length) + 2;
            return { line: at, content: Math.min(content, end), indent: start };
          }
        } else if (keyOf(body) === step.toLowerCase()) {
          return { line: at, content: Math.min(end + 1, text.length), indent: start };
        }
      }
    }
    at = end + 1;
  }
  return undefined;
}

/** Column of an offset: where the content of a sequence item begins, its line has the item's dash too. */
function columnOf(text: string, offset: number): number {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const line = text.slice(offset, text.indexOf('\n', offset) < 0 ? text.length : text.indexOf('\n', offset));
  return offset - lineStart + (line.length - line.trimStart().length);
}

function keyOf(body: string): string | undefined {
  const colon = body.indexOf(':');
  return colon < 0
    ? undefined
    : body
        .slice(0, colon)
        .trim()
        .replace(/^["']|["']$/g, '')
        .toLowerCase();
}
