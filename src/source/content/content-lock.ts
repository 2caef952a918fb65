import { readFileWithin } from '../../bundle/read.js';
import { isDigest } from '../../core/digest.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { encodeGoJson, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { sortedByBytes } from '../../core/order.js';
import { replaceFile } from '../../files/replace-file.js';
import type { Pin } from './content-types.js';

const maxSize = 4 * 1024 * 1024;
const maxPins = 10_000;
const maxText = 4096;
const maxRoots = 100;
const lockKind = 'opmate.bundle.lock';
const types: readonly string[] = [
  'directory',
  'archive',
  'image',
  'git',
  'http',
  'configMaps',
] satisfies Pin['type'][];

/**
 * Reads the pins in a lock file; undefined if missing. Throws OpmateError, with the path of what is wrong in
 * it.
 */
export async function readContentLock(file: string): Promise<Pin[] | undefined> {
  const bytes = await readFileWithin(file, (size) => {
    if (size > maxSize) throw new LimitError(`more than ${maxSize} bytes`, { subject: file, file });
  });
  return bytes === undefined ? undefined : parseContentLock(bytes.toString('utf8'), file);
}

/** Reads the pins in the text of a lock. Throws OpmateError. */
export function parseContentLock(text: string, file: string): Pin[] {
  const fail = (problem: string): OpmateError =>
    new OpmateError('INVALID', problem, {
      subject: file,
      file,
      hint: 'specify a bundle lock, or update the file with --update-lock',
    });
  let value: JsonValue;
  try {
    value = parseGoJson(text);
  } catch (error) {
    if (error instanceof OpmateError) throw fail(error.message);
    throw error;
  }
  if (!isJsonObject(value)) throw fail('expected an object');
  checkKeys(value, ['kind', 'version', 'sources'], '', fail);
  if (value['kind'] !== lockKind) throw fail(`kind: expected ${quoteGo(lockKind)}`);
  if (value['version'] !== 1) throw fail('version: expected 1');
  const { sources } = value;
  if (!Array.isArray(sources)) throw fail('sources: expected a list');
  if (sources.length > maxPins) throw new LimitError(`more than ${maxPins} sources`, { subject: file, file });
  const names = new Set<string>();
  return sources.map((source, index) => {
    const where = `sources[${index}]`;
    if (!isJsonObject(source)) throw fail(`${where}: expected an object`);
    checkKeys(source, ['name', 'type', 'source', 'ref', 'content', 'roots'], `${where}.`, fail);
    const toText = (key: string): string => {
      const value = source[key];
      if (typeof value === 'string' && value !== '' && value.length <= maxText) return value;
      throw fail(`${where}.${key}: expected a text`);
    };
    const [name, type, ref, content] = ['name', 'type', 'ref', 'content'].map(toText) as [
      string,
      string,
      string,
      string,
    ];
    if (names.has(name)) throw fail(`${where}.name: duplicate ${quoteGo(name)}`);
    names.add(name);
    if (!types.includes(type)) throw fail(`${where}.type: ${quoteGo(type)} is none of ${types.join(', ')}`);
    if (!isDigest(content)) throw fail(`${where}.content: expected sha256: and 64 hexadecimal digits`);
    const pin = { name, type: type as Pin['type'], ref, content, source: toText('source') };
    return source['roots'] === undefined ? pin : { ...pin, roots: getRoots(source['roots'], where, fail) };
  });
}

function getRoots(value: JsonValue, where: string, fail: (problem: string) => OpmateError): string[] {
  const isList = Array.isArray(value) && value.length > 0 && value.length <= maxRoots;
  if (!isList || !value.every((root) => typeof root === 'string' && root !== '' && root.length <= maxText)) {
    throw fail(`${where}.roots: expected a list of directories`);
  }
  return sortedByBytes(value as string[]);
}

function checkKeys(
  value: JsonObject,
  known: readonly string[],
  where: string,
  fail: (problem: string) => OpmateError,
): void {
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) throw fail(`${where}${unknown}: unknown field`);
}

/** The text of a lock: the same pins give the same bytes. */
export function encodeContentLock(pins: readonly Pin[]): string {
  const sources = pins.map(({ name, type, source, ref, content, roots }) => ({
    name,
    type,
    source: source ?? type,
    ref,
    content,
    ...(roots && { roots: [...roots] }),
  }));
  return `${encodeGoJson({ kind: lockKind, version: 1, sources }, { indent: 2 })}\n`;
}

/** Writes a lock, whole, in the place of what has that name. Throws OpmateError. */
export async function writeContentLock(file: string, pins: readonly Pin[]): Promise<void> {
  await replaceFile(file, encodeContentLock(pins));
}
