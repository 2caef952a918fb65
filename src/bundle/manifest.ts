import { addContext } from '../core/diagnostics-error.js';
import {
  GoJsonError,
  decodeUtf8,
  encodeGoJson,
  escapeHtmlCharacters,
  parseGoJson,
  sortKeysDeep,
} from '../document/go-json.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { findPlaces, nearestPlace } from '../document/places.js';
import { locateYamlError, requireUtf8 } from '../document/document.js';
import { YamlError, parseYaml } from '../document/yaml.js';
import { endOfValue, skipSpace } from '../document/raw-json.js';
import { checkSeparator, yamlText } from '../kube/manifests.js';
import { findMismatch } from '../kube/struct.js';

export interface FirstDocument {
  value: JsonValue;
  /** Text of the document if it is JSON. */
  json: string | undefined;
}

/** Bytes of a file that Kubernetes' decoder searches for the brace of JSON. */
const lookAhead = 30;

/**
 * Parses the first document of a file, as opm does: JSON if it starts with a brace, YAML otherwise or if the JSON does
 * not parse; ignores further documents. Throws OpmateError SYNTAX, or LIMIT for YAML beyond its limits.
 */
export function parseFirstDocument(content: Buffer): FirstDocument {
  const text = decodeUtf8(content);
  if (!/^[ \t\n\v\f\r]*\{/.test(text.slice(0, lookAhead))) {
    requireUtf8(content);
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

/** Parses like `parseFirstDocument`, and returns its errors. */
export function readFirstDocument(
  content: Buffer,
): (FirstDocument & { error?: undefined }) | { value?: undefined; json?: undefined; error: OpmateError } {
  try {
    return parseFirstDocument(content);
  } catch (error) {
    if (error instanceof OpmateError) return { error };
    throw error;
  }
}

/**
 * Returns the text before the first separator that is not the first line. Comments before a separator are a document,
 * so a manifest after a license text is ignored.
 */
function firstYaml(text: string): string {
  const lines = yamlText(text);
  const check = (position: number): void =>
    checkSeparator(lines.slice(position + 3, lines.indexOf('\n', position)));
  if (lines.startsWith('---')) check(0);
  const next = lines.indexOf('\n---') + 1;
  if (next === 0) return lines;
  check(next);
  return lines.slice(0, next);
}

/**
 * Returns a manifest as compact JSON: keys in byte order at every level, HTML characters escaped, numbers as in
 * Kubernetes (64-bit integers exact, all others as doubles). Throws LimitError beyond 1000 levels.
 */
export function manifestText(manifest: JsonObject): string {
  const state: Canonical = { special: false };
  const ordered = canonical(manifest, state, 0);
  if (!state.special) {
    const text = JSON.stringify(ordered);
    // The native writer escapes these differently from Go.
    if (!/[\ud800-\udfff\u2028\u2029]/.test(text) && !text.includes('\\ud'))
      return escapeHtmlCharacters(text);
  }
  return encodeGoJson(sortKeysDeep(kubernetesNumbers(manifest)), { escapeHtml: true });
}

interface Canonical {
  /** The value contains something that the native JSON writer writes differently from Go. */
  special: boolean;
}

/** Maximum nesting; the deepest schemas of real definitions have about 60 levels. */
const maxDepth = 1000;

/** Returns the value with sorted keys; sorted parts are shared, not copied. */
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

/** Converts integers beyond 64 bits to doubles, and minus zero to zero. */
function kubernetesNumbers(value: JsonValue): JsonValue {
  if (typeof value === 'bigint') return BigInt.asIntN(64, value) === value ? value : Number(value);
  if (typeof value === 'number') return value === 0 ? 0 : value;
  if (Array.isArray(value)) return value.map(kubernetesNumbers);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, kubernetesNumbers(item)]));
}

/**
 * Returns the error for the target of a link outside of the directory unless it is a manifest. Unlike errors of
 * parsers, it quotes nothing of the file.
 */
export function outsideManifestFault(content: Buffer, label: string): OpmateError | undefined {
  const { error } = readFirstDocument(content);
  if (error === undefined) return undefined;
  if (error.code !== 'SYNTAX') throw error;
  return new OpmateError('SYNTAX', 'not a manifest', { about: label, line: error.line });
}

/** Adds a file to an error and, if `content` is that file, the line of the value of the wrong type. */
export function locateFault(error: OpmateError, file: string, content?: Buffer): OpmateError {
  if (error instanceof YamlError) return locateYamlError(error, file);
  return addContext(error, { subject: file, file, line: findFaultLine(error, content) });
}

/** Returns the line of an error: its own, or that of the value of the wrong type in `content`. */
export function findFaultLine(error: OpmateError, content?: Buffer): number | undefined {
  const mismatch = findMismatch(error);
  if (error.line !== undefined || mismatch === undefined || content === undefined) return error.line;
  const places = findPlaces(decodeUtf8(content));
  return places && nearestPlace(places, mismatch.path)?.line;
}
