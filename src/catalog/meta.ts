import { OpmateError } from '../core/errors.js';
import { encodeGoJson, goKindOf, quoteGo, sortKeysDeep } from '../core/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../core/json.js';
import { compareBytes } from '../core/order.js';
import type { BlobOrigin } from '../model/facts.js';

/**
 * One blob of a catalog: its value as read, and the three names that say what it is. Custom schemas are
 * carried in this form from input to output.
 */
export interface Meta {
  schema: string;
  package: string;
  name: string;
  value: JsonObject;
  origin: BlobOrigin;
  /** The blob as it is written at its origin, where it was just read from there. */
  text?: string | undefined;
}

/**
 * Makes a Meta of a parsed document, or throws OpmateError INVALID in the words of `opm`: not an object,
 * keys that differ in case only, `schema`, `package` or `name` that is not a string, no `schema`.
 */
export function toMeta(value: JsonValue, syntax: 'json' | 'yaml', origin: BlobOrigin): Meta {
  try {
    return checkedMeta(value, origin);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const prefix = syntax === 'yaml' && !(error instanceof MissingSchemaError) ? yamlPrefix : '';
    throw new OpmateError('INVALID', prefix + error.message, { file: origin.file, hint: error.hint });
  }
}

const yamlPrefix = 'error unmarshaling JSON: while decoding JSON: ';

class MissingSchemaError extends OpmateError {}

function checkedMeta(value: JsonValue, origin: BlobOrigin): Meta {
  if (value === null) throw missingSchema('');
  if (!isJsonObject(value)) throw notAnObject(value);
  const keys = Object.keys(value);
  let schema = '';
  let packageName = '';
  let name = '';
  let folded: Map<string, string[]> | undefined;
  for (const key of keys) {
    switch (key) {
      case 'schema':
        schema = expectString('schema', value[key] as JsonValue);
        break;
      case 'package':
        packageName = expectString('package', value[key] as JsonValue);
        break;
      case 'name':
        name = expectString('name', value[key] as JsonValue);
        break;
      default:
        if (folded === undefined && !isPlainLowerCase(key)) folded = new Map();
    }
  }
  if (folded !== undefined) {
    checkFoldedKeys(keys, folded);
    const found = (wanted: 'schema' | 'package' | 'name', otherwise: string): string => {
      const [key] = folded.get(wanted) ?? [];
      return key === undefined || key === wanted ? otherwise : expectString(wanted, value[key] as JsonValue);
    };
    schema = found('schema', schema);
    packageName = found('package', packageName);
    name = found('name', name);
  }
  if (schema === '') throw missingSchema(`${encodeGoJson(sortKeysDeep(value))}\n`);
  return { schema, package: packageName, name, value, origin };
}

function isPlainLowerCase(key: string): boolean {
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i);
    if ((code >= 0x41 && code <= 0x5a) || code >= 0x80) return false;
  }
  return true;
}

/** Folds case as Go compares JSON keys: character by character, one to one. */
export function foldKey(key: string): string {
  if (isPlainLowerCase(key)) return key;
  let folded = '';
  for (const character of key) {
    const upper = character.toUpperCase();
    const lower = (upper.length === character.length ? upper : character).toLowerCase();
    folded += lower.length === character.length ? lower : character;
  }
  return folded;
}

function checkFoldedKeys(keys: string[], folded: Map<string, string[]>): void {
  for (const key of keys) {
    const fold = foldKey(key);
    const same = folded.get(fold);
    if (same === undefined) folded.set(fold, [key]);
    else same.push(key);
  }
  const faults = [...folded]
    .filter(([, same]) => same.length > 1)
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([fold, same]) => `duplicate keys for key ${quoteGo(fold)}: [${same.sort(compareBytes).join(' ')}]`);
  if (faults.length > 0) {
    throw new OpmateError('INVALID', faults.length > 1 ? `[${faults.join(', ')}]` : (faults[0] as string), {
      hint: 'keep one of the keys; they differ in case only',
    });
  }
}

function expectString(key: string, value: JsonValue): string {
  if (typeof value === 'string') return value;
  const text = `expected value for key ${quoteGo(key)} to be a string, got ${goVerb(value)}: ${encodeGoJson(value)}`;
  throw new OpmateError('INVALID', text, { hint: `quote the value of ${key}` });
}

/** A value as the reference implementation formats it with its wrong verb `%t`, which users grep for. */
function goVerb(value: JsonValue): string {
  if (value === null) return '%!t(<nil>)';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return `%!t(string=${value})`;
  if (typeof value === 'number' || typeof value === 'bigint') return `%!t(float64=${goFloat(Number(value))})`;
  if (Array.isArray(value)) return `[${value.map(goVerb).join(' ')}]`;
  const keys = Object.keys(value).sort(compareBytes);
  return `map[${keys.map((key) => `${key}:${goVerb(value[key] as JsonValue)}`).join(' ')}]`;
}

function goFloat(value: number): string {
  if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e21)) {
    return value.toExponential().replace(/e([+-])(\d)$/, 'e$10$2');
  }
  return String(value);
}

function missingSchema(blob: string): OpmateError {
  return new MissingSchemaError('INVALID', `object '${blob}' is missing root schema field`, {
    hint: 'every document of a catalog needs a schema; put files that are no catalog into .indexignore',
  });
}

function notAnObject(value: JsonValue): OpmateError {
  const pretty = encodeGoJson(value, { indent: 4 });
  const kind = goKindOf(value);
  const offset = kind === 'array' ? 1 : encodeGoJson(value).length;
  const marker = ' <== ';
  const marked = kind === 'array' ? `[${marker}${pretty.slice(1)}` : pretty + marker.trimEnd();
  return new OpmateError(
    'INVALID',
    `json: cannot unmarshal ${kind} into Go value of type map[string]interface {} at offset ${offset} ` +
      `(indicated by <==)\n${marked}`,
    { hint: 'each document must be an object with a schema' },
  );
}
