import { isUtf8 } from 'node:buffer';
import { GoJsonError, decodeUtf8, encodeGoJson, parseGoJson, sortKeysDeep } from '../document/go-json.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from '../document/json.js';
import { parseYaml } from '../document/yaml.js';
import { endOfValue, skipSpace } from '../document/raw-json.js';

/** The first document of a file. */
export interface FirstDocument {
  value: JsonValue;
  /** The document as it is written, when it is JSON. */
  json: string | undefined;
}

/** How far into a file Kubernetes' decoder looks for the brace that makes it JSON. */
const lookAhead = 30;

/**
 * Parses the first document of a file, as upstream reads manifests: JSON when a brace comes first, YAML
 * otherwise and where that JSON does not parse; documents after the first are ignored. Throws OpmateError
 * SYNTAX, or LIMIT for YAML beyond its caps.
 */
export function parseFirstDocument(content: Buffer): FirstDocument {
  const text = decodeUtf8(content);
  if (!/^[ \t\n\v\f\r]*\{/.test(text.slice(0, lookAhead))) {
    if (!isUtf8(content)) throw new OpmateError('SYNTAX', 'invalid UTF-8');
    return { value: parseYaml(firstYaml(text)), json: undefined };
  }
  const start = skipSpace(text, 0);
  const json = text.slice(start, endOfValue(text, start));
  try {
    return { value: parseGoJson(json), json };
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    try {
      return { value: parseYaml(firstYaml(text.slice(start))), json: undefined };
    } catch {
      throw error;
    }
  }
}

/**
 * The text up to the first line that begins with `---`, the very first line aside. A document that holds
 * nothing but comments counts, so a manifest after a license text and a separator is not seen.
 */
function firstYaml(text: string): string {
  const joined = text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text;
  // A last line without a line break gets one, as upstream joins lines: block scalars keep it.
  const lines = joined.endsWith('\n') ? joined : `${joined}\n`;
  if (lines.startsWith('---')) checkSeparator(lines, 0);
  const next = lines.indexOf('\n---') + 1;
  if (next === 0) return lines;
  checkSeparator(lines, next);
  return lines.slice(0, next);
}

/** Throws unless nothing but a comment follows the dashes, as upstream does. */
function checkSeparator(text: string, position: number): void {
  const end = text.indexOf('\n', position);
  const rest = text.slice(position + 3, end < 0 ? text.length : end).trim();
  if (rest === '' || rest.startsWith('#')) return;
  throw new OpmateError('SYNTAX', `invalid Yaml document separator: ${rest}`);
}

/**
 * A manifest as compact JSON: keys in byte order at every depth, HTML characters escaped, numbers as
 * Kubernetes holds them (64-bit integers exact, all others as doubles). Throws LimitError for a manifest
 * nested more than 1000 levels deep.
 */
export function manifestText(manifest: JsonObject): string {
  const state: Canonical = { special: false };
  const ordered = canonical(manifest, state, 0);
  if (!state.special) {
    const text = JSON.stringify(ordered);
    // What the native writer orders or writes otherwise than Go is left to the exact one.
    if (!/[\ud800-\udfff\u2028\u2029]|\\ud[89a-f]/.test(text)) {
      return /[<>&]/.test(text)
        ? text.replace(/[<>&]/g, (character) => htmlEscapes[character] as string)
        : text;
    }
  }
  return encodeGoJson(sortKeysDeep(kubernetesNumbers(manifest)), { escapeHtml: true });
}

const htmlEscapes: Record<string, string> = { '<': '\\u003c', '>': '\\u003e', '&': '\\u0026' };

interface Canonical {
  /** Whether something is in the value that the native JSON writer cannot write in Go's way. */
  special: boolean;
}

/** Levels that a manifest may have; the deepest schemas of real definitions have some sixty. */
const maxDepth = 1000;

/** The same value with sorted keys; parts that are sorted already are shared, not copied. */
function canonical(value: JsonValue, state: Canonical, depth: number): JsonValue {
  if (typeof value !== 'object' || value === null) {
    if (typeof value === 'bigint') state.special = true;
    return value;
  }
  if (depth > maxDepth) throw new LimitError(`nested more than ${maxDepth} levels deep`);
  if (Array.isArray(value)) {
    let copy: JsonValue[] | undefined;
    for (let i = 0; i < value.length; i++) {
      const item = value[i] as JsonValue;
      const ordered = canonical(item, state, depth + 1);
      if (copy === undefined && ordered !== item) copy = value.slice(0, i);
      copy?.push(ordered);
    }
    return copy ?? value;
  }
  const keys = Object.keys(value);
  let sorted = true;
  let changed = false;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i] as string;
    const code = key.charCodeAt(0);
    // Array indexes come first in JavaScript's order, and `__proto__` cannot be assigned.
    if ((code >= 0x30 && code <= 0x39) || key === '__proto__') state.special = true;
    if (i > 0 && (keys[i - 1] as string) > key) sorted = false;
  }
  const items: JsonValue[] = [];
  for (const key of keys) {
    const item = value[key] as JsonValue;
    const ordered = canonical(item, state, depth + 1);
    if (ordered !== item) changed = true;
    items.push(ordered);
  }
  if (sorted && !changed) return value;
  const out: JsonObject = {};
  if (sorted) {
    keys.forEach((key, index) => (out[key] = items[index] as JsonValue));
  } else {
    const order = keys
      .map((_, index) => index)
      .sort((a, b) => ((keys[a] as string) < (keys[b] as string) ? -1 : 1));
    for (const index of order) out[keys[index] as string] = items[index] as JsonValue;
  }
  return out;
}

/** Integers beyond 64 bits become doubles, and minus zero loses its sign. */
function kubernetesNumbers(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? value : Number(value);
  if (typeof value === 'number') return value === 0 ? 0 : value;
  if (Array.isArray(value)) return value.map(kubernetesNumbers);
  if (!isJsonObject(value)) return value;
  const out: JsonObject = {};
  for (const [key, item] of Object.entries(value)) setJsonKey(out, key, kubernetesNumbers(item));
  return out;
}

/** What is wrong with a file that does not parse; undefined for any other failure, caps included. */
export function parseFault(error: unknown): { reason: string; line: number | undefined } | undefined {
  if (!(error instanceof OpmateError) || error.code !== 'SYNTAX') return undefined;
  return { reason: error.message, line: error.line };
}

/**
 * Returns the error for a file outside of its directory that a link led to and that is not a manifest: unlike those of
 * parsers it quotes nothing of the file. Undefined for a manifest.
 */
export function outsideManifestFault(content: Buffer, label: string): OpmateError | undefined {
  try {
    parseFirstDocument(content);
    return undefined;
  } catch (error) {
    const fault = parseFault(error);
    if (fault === undefined) throw error;
    return new OpmateError('SYNTAX', 'not a manifest', { subject: label, file: label, line: fault.line });
  }
}

/**
 * The line, from 1, of the value at `path` in a YAML document in block style, or of the innermost part on
 * the way to it that can be told from the indentation. Only for messages.
 */
export function lineOfPath(text: string, path: readonly (string | number)[]): number | undefined {
  const lines = text.split('\n').map((line) => {
    const content = line.trimStart();
    return { indent: content === '' || content.startsWith('#') ? -1 : line.length - content.length, content };
  });
  let result: number | undefined;
  let outer = -1;
  let position = 0;
  for (const part of path) {
    const isItem = typeof part === 'number';
    let level: number | undefined;
    let seen = -1;
    let hit: number | undefined;
    for (let i = position; i < lines.length && hit === undefined; i++) {
      const { indent, content } = lines[i] as { indent: number; content: string };
      if (indent < 0 || content.startsWith('---')) continue;
      // The items of a list may stand as far left as the key that they belong to.
      if (indent < outer || (indent === outer && !(isItem && content.startsWith('-')))) break;
      level ??= indent;
      if (indent !== level) continue;
      if (isItem ? content.startsWith('-') && ++seen === part : startsWithKey(content, part)) hit = i;
    }
    if (hit === undefined) break;
    result = hit;
    outer = level as number;
    position = hit + 1;
    const line = lines[hit] as { indent: number; content: string };
    if (isItem) {
      // What follows the dash belongs to the item: look at the same line again, without the dash.
      const rest = line.content.slice(1).trimStart();
      lines[hit] = { indent: line.indent + line.content.length - rest.length, content: rest };
      position = hit;
    }
  }
  return result === undefined ? undefined : result + 1;
}

function startsWithKey(content: string, key: string | number): boolean {
  const match = /^(?:"([^"]*)"|'([^']*)'|([^\s:][^:]*?))\s*:(?:\s|$)/.exec(content);
  const name = match?.[1] ?? match?.[2] ?? match?.[3];
  return name?.toLowerCase() === String(key).toLowerCase();
}
