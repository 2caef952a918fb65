import { addContext } from '../core/diagnostics-error.js';
import { OpmateError } from '../core/errors.js';
import { formatGoFloat } from '../document/go-float.js';
import { encodeGoJson, getGoKind, quoteGo, sortKeysDeep } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { groupBy } from '../core/groups.js';
import { compareBytes } from '../core/order.js';
import { withoutSecretFields } from '../core/redact.js';
import type { BlobOrigin } from '../model/facts.js';

/**
 * A blob of a catalog: its value as read, and its schema, package and name. Custom schemas keep this form from input
 * to output.
 */
export interface Meta {
  schema: string;
  package: string;
  name: string;
  value: JsonObject;
  origin: BlobOrigin;
  /** Text of the blob, if it was just read from its origin. */
  text?: string | undefined;
}

/**
 * Returns the Meta of a parsed document. Throws OpmateError INVALID in the words of `opm`: not an object, keys that
 * differ in case only, `schema`, `package` or `name` of another type than string, no `schema`.
 */
export function toMeta(value: JsonValue, syntax: 'json' | 'yaml', origin: BlobOrigin): Meta {
  try {
    return checkedMeta(value, origin);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const isDecoding = syntax === 'yaml' && !(error instanceof MissingSchemaError);
    throw addContext(error, { subject: isDecoding ? yamlDecoding : undefined, file: origin.file });
  }
}

const yamlDecoding = 'error unmarshaling JSON: while decoding JSON';

/** A document is an object or null without a schema. */
export class MissingSchemaError extends OpmateError {}

function checkedMeta(value: JsonValue, origin: BlobOrigin): Meta {
  if (value === null) throw missingSchema('', defaultHint);
  if (!isJsonObject(value)) throw notAnObject(value);
  const keys = Object.keys(value);
  const folded = keys.every(isPlainLowerCase) ? undefined : foldKeys(keys);
  const toText = (wanted: 'schema' | 'package' | 'name'): string => {
    const key = folded === undefined ? wanted : folded.get(wanted);
    return key === undefined || !Object.hasOwn(value, key) ? '' : expectString(key, value[key] as JsonValue);
  };
  const [schema, packageName, name] = [toText('schema'), toText('package'), toText('name')];
  if (schema === '')
    throw missingSchema(
      `${encodeGoJson(sortKeysDeep(withoutSecretFields(value)))}\n`,
      hintFor(value, origin.file),
    );
  return { schema, package: packageName, name, value, origin };
}

function isPlainLowerCase(key: string): boolean {
  for (let i = 0; i < key.length; i++) {
    const code = key.charCodeAt(i);
    if ((code >= 0x41 && code <= 0x5a) || code >= 0x80) return false;
  }
  return true;
}

/** Folds case fully as Unicode defines it, `ß` to `ss`: the reference compares these keys so. */
function foldKey(key: string): string {
  if (isPlainLowerCase(key)) return key;
  let folded = '';
  for (const character of key) {
    // Its capital is the letter I, but it folds to itself.
    if (character === 'ı') folded += character;
    else folded += character.toLowerCase().toUpperCase().toLowerCase();
  }
  return folded;
}

/** Returns the keys by folded form. Throws OpmateError INVALID for duplicates. */
function foldKeys(keys: string[]): Map<string, string> {
  const folded = groupBy(keys, foldKey);
  const faults = [...folded]
    .filter(([, same]) => same.length > 1)
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([fold, same]) => `duplicate keys for key ${quoteGo(fold)}: [${same.sort(compareBytes).join(' ')}]`);
  if (faults.length > 0) {
    throw new OpmateError('INVALID', faults.length > 1 ? `[${faults.join(', ')}]` : (faults[0] as string), {
      hint: 'keep one of the keys; they differ in case only',
    });
  }
  return new Map([...folded].map(([fold, [key]]) => [fold, key as string]));
}

function expectString(key: string, value: JsonValue): string {
  if (typeof value === 'string') return value;
  const shown = withoutSecretFields(value);
  const got = `${goFormat(shown, wrongVerb)}: ${goFormat(shown, (_type, text) => text)}`;
  const text = `expected value for key ${quoteGo(key)} to be a string, got ${got}`;
  throw new OpmateError('INVALID', text, { hint: `quote the value of ${key}` });
}

/** Returns a scalar as printed by the reference implementation's wrong verb `%t`; users search for it. */
function wrongVerb(type: string, text: string): string {
  return type === 'bool' ? text : type === '' ? `%!t(${text})` : `%!t(${type}=${text})`;
}

/** Formats a value as Go's fmt, scalars through `scalar`. */
function goFormat(value: JsonValue, scalar: (type: string, text: string) => string): string {
  if (value === null) return scalar('', '<nil>');
  if (typeof value === 'boolean') return scalar('bool', String(value));
  if (typeof value === 'string') return scalar('string', value);
  if (typeof value === 'number' || typeof value === 'bigint')
    return scalar('float64', formatGoFloat(Number(value)));
  // Within lists and maps, nil is nil for every verb.
  const inner = (item: JsonValue): string => (item === null ? '<nil>' : goFormat(item, scalar));
  if (Array.isArray(value)) return `[${value.map(inner).join(' ')}]`;
  const keys = Object.keys(value).sort(compareBytes);
  return `map[${keys.map((key) => `${inner(key)}:${inner(value[key] as JsonValue)}`).join(' ')}]`;
}

/** Maximum characters of a blob in a message. */
const maxShown = 2048;

function missingSchema(blob: string, hint: string): OpmateError {
  const shown = blob.length > maxShown ? `${blob.slice(0, maxShown).replace(/[\ud800-\udbff]$/, '')}…` : blob;
  return new MissingSchemaError('INVALID', `object '${shown}' is missing root schema field`, { hint });
}

const defaultHint = 'add a schema, or list files that are not part of the catalog in .indexignore';

/** Returns the likely reason for a missing schema: a directory of bundles was specified. */
function hintFor(value: JsonObject, file: string): string {
  const isManifest = typeof value['apiVersion'] === 'string' && typeof value['kind'] === 'string';
  if (!isManifest && !/(^|[/\\])(manifests|metadata)[/\\]/.test(file)) return defaultHint;
  return 'specify each bundle directory itself: this directory contains bundles or manifests, not a catalog';
}

function notAnObject(value: JsonValue): OpmateError {
  const pretty = encodeGoJson(value, { indent: 4 });
  const kind = getGoKind(value);
  const offset = kind === 'array' ? 1 : encodeGoJson(value).length;
  const marker = ' <== ';
  const marked = kind === 'array' ? `[${marker}${pretty.slice(1)}` : pretty + marker.trimEnd();
  return new OpmateError(
    'INVALID',
    `json: cannot unmarshal ${kind} into Go value of type map[string]interface {} at offset ${offset} ` +
      `(indicated by <==)\n${marked}`,
    { hint: 'use an object with a schema for each document' },
  );
}
