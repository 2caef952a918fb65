import {
  type DiagnosticList,
  diagnoseDuplicates,
  diagnoseSyntax,
  openValue,
  requireUtf8,
} from '../document/document.js';
import { decodeUtf8, parseGoJson, quoteGo } from '../document/go-json.js';
import { LimitError, OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { findPlaces, nearestPlace } from '../document/places.js';
import { parseYaml } from '../document/yaml.js';
import type { PlacedYaml } from '../document/yaml/full.js';
import { type Field, describeKind } from '../document/field.js';
import { endOfValue, skipSpace } from '../document/raw-json.js';
import { getObject, getValue } from '../document/json-fields.js';
import {
  type Diagnostic,
  type DocumentPath,
  type TextPosition,
  createFault,
  formatPath,
} from '../core/diagnostic.js';

/** A Kubernetes object in a file; large content is parsed again on demand. */
export interface Manifest {
  /** Place of the object: `manifests/service.yaml`. */
  file: string;
  apiVersion: string;
  kind: string;
  name: string;
  namespace: string;
  /** Returns the object, which callers must not change. */
  load(): JsonObject;
  /** Returns the place in the file of a path, or of its innermost existing part. */
  placeOf(path?: DocumentPath): Partial<TextPosition>;
}

interface ReadOptions {
  prefix: string;
  keepBelow?: number | undefined;
  isWritten?: boolean | undefined;
}

/** Maximum number of objects in the files of a directory. */
const maxObjects = 100_000;
const defaultKeepBelow = 32 * 1024 * 1024;
/** Maximum bytes of a document that is searched for duplicate keys: larger ones are written by programs. */
const maxWritten = 2 * 1024 * 1024;
/** Bytes of a file that Kubernetes' decoder searches for the brace of JSON. */
const lookAhead = 4096;

/**
 * Reads the objects in files as `kubectl` does: every document, lists expanded, empty documents skipped. Unreadable
 * documents are reported with file and line, and the others are still read. `prefix` is that of file names in messages:
 * `manifests/`. Parsed objects are kept unless the files have more than `keepBelow` bytes. Duplicate keys, of which
 * `kubectl` takes the last, are findings if people write the files (`isWritten`). Throws LimitError.
 */
export function readManifests(
  files: readonly { name: string; content: Buffer }[],
  { prefix, keepBelow = defaultKeepBelow, isWritten = false }: ReadOptions,
): { manifests: Manifest[]; findings: Diagnostic[] } {
  const size = files.reduce((sum, { content }) => sum + content.length, 0);
  const isKept = size <= keepBelow;
  const manifests: Manifest[] = [];
  const findings: Diagnostic[] = [];
  for (const { name, content } of files) {
    const file = prefix + name;
    try {
      // As apimachinery's YAMLOrJSONDecoder.
      const isJson = /^[ \t\n\v\f\r]*\{/.test(content.subarray(0, lookAhead).toString('latin1'));
      for (const document of isJson ? jsonDocuments(content) : yamlDocuments(content)) {
        const placed = { file, prefix, ...document };
        const before = manifests.length;
        addObjects(placed, isKept, manifests, findings);
        if (isWritten && manifests.length > before) findings.push(...findDuplicates(placed));
        if (manifests.length > maxObjects) {
          throw new LimitError(`more than ${maxObjects} objects`, {
            subject: file,
            hint: 'check that these are the manifests of one operator',
          });
        }
      }
    } catch (error) {
      if (!(error instanceof OpmateError) || error instanceof LimitError) throw error;
      findings.push(diagnoseSyntax(error, file));
    }
  }
  return { manifests, findings };
}

/** One document of a file. */
interface Document {
  bytes: Buffer;
  /** One-based line of its first byte. */
  line: number;
  isJson: boolean;
}

function jsonDocuments(content: Buffer): Document[] {
  // Braces and quotes are single bytes in UTF-8, so offsets can be counted in bytes.
  const text = content.toString('latin1');
  const documents: Document[] = [];
  let line = 1;
  let counted = 0;
  for (let position = skipSpace(text, 0); position < text.length;) {
    const end = Math.max(endOfValue(text, position), position + 1);
    line += lineBreaks(content, counted, position);
    counted = position;
    documents.push({ bytes: content.subarray(position, end), line, isJson: true });
    position = skipSpace(text, end);
  }
  return documents;
}

function yamlDocuments(content: Buffer): Document[] {
  requireUtf8(content);
  const documents: Document[] = [];
  let line = 1;
  let start = 0;
  while (start < content.length) {
    let from = start;
    if (content.toString('latin1', start, start + 3) === '---') {
      const end = endOfLine(content, start);
      checkSeparator(content.toString('utf8', start + 3, end), line);
      from = end;
    }
    const next = content.indexOf('\n---', from);
    const end = next < 0 ? content.length : next + 1;
    const separated = line + lineBreaks(content, start, from);
    documents.push({ bytes: content.subarray(from, end), line: separated, isJson: false });
    line = separated + lineBreaks(content, from, end);
    start = end;
  }
  return documents;
}

function endOfLine(content: Buffer, from: number): number {
  const end = content.indexOf(0x0a, from);
  return end < 0 ? content.length : end + 1;
}

/** Throws OpmateError SYNTAX unless the dashes are followed by a comment at most. */
export function checkSeparator(rest: string, line?: number): void {
  const text = rest.trim();
  if (text === '' || text.startsWith('#')) return;
  throw new OpmateError('SYNTAX', `invalid Yaml document separator: ${text}`, { line });
}

function lineBreaks(content: Buffer, from: number, to: number): number {
  let breaks = 0;
  for (
    let position = content.indexOf(0x0a, from);
    position >= 0 && position < to;
    position = content.indexOf(0x0a, position + 1)
  )
    breaks++;
  return breaks;
}

type PlacedDocument = Document & { file: string; prefix: string };

function addObjects(
  document: PlacedDocument,
  isKept: boolean,
  manifests: Manifest[],
  findings: Diagnostic[],
): void {
  const { file, prefix } = document;
  let value: JsonValue;
  try {
    value = isKept ? parseDocument(document) : parseLatest(document);
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code === 'LIMIT') throw error;
    const line = error.line === undefined ? document.line : document.line + error.line - 1;
    findings.push(diagnoseSyntax(error, file, line));
    return;
  }
  if (value === null) return;
  const whole = isKept ? keeping(value) : parsingAnew(document);
  for (const path of objectPaths(value, [])) {
    const object = valueAt(value, path);
    if (!isJsonObject(object)) {
      const problem = `expected an object, got ${describeKind(object)}`;
      const place = findPlaceIn(document, path);
      findings.push(createFault('invalid-object', problem, { file, ...place }));
      continue;
    }
    const { apiVersion, kind, metadata } = object;
    if (typeof kind !== 'string' || kind === '') {
      findings.push(
        createFault('missing-field', 'missing', {
          subject: 'kind',
          file,
          ...findPlaceIn(document, [...path, 'kind']),
          hint: `use Kubernetes objects only${prefix === '' ? '' : ` in ${prefix}`}`,
        }),
      );
      continue;
    }
    if (kind === 'List' && apiVersion === 'v1' && object['items'] !== undefined) {
      const problem = `expected a list, got ${describeKind(object['items'])}`;
      const place = findPlaceIn(document, [...path, 'items']);
      findings.push(
        createFault('wrong-type', problem, { subject: formatPath([...path, 'items']), file, ...place }),
      );
      continue;
    }
    const { name, namespace } = getObject(metadata);
    const texts = [apiVersion, kind, name, namespace].map((text) =>
      typeof text === 'string' ? ownText(text) : '',
    ) as [string, string, string, string];
    manifests.push(getManifest(document, whole, path, texts));
  }
}

/** Returns a fault for each duplicate key of a document that parses. */
function findDuplicates(document: PlacedDocument): Diagnostic[] {
  if (document.bytes.length > maxWritten) return [];
  const placed = findPlacesIn(document);
  return placed === undefined ? [] : diagnoseDuplicates(placed, document.file, document.line - 1);
}

/** Returns the subject, file and place of a diagnostic about a part of an object. */
export function locateIn(
  manifest: Manifest,
  path?: DocumentPath,
): Pick<Diagnostic, 'subject' | 'file' | 'line' | 'column'> {
  return { subject: getTitle(manifest), file: manifest.file, ...manifest.placeOf(path) };
}

/** Returns the root of an object for reading its fields, with diagnostics under its title. */
export function openManifest(
  manifest: Manifest,
  diagnostics: DiagnosticList,
  textAsWritten?: (path: DocumentPath) => string | undefined,
): Field {
  return openValue(manifest.load(), {
    name: manifest.file,
    subject: getTitle(manifest),
    diagnostics,
    findPlace: (path) => manifest.placeOf(path),
    textAsWritten,
  });
}

/** Copies a text: a parsed one may be a slice that keeps the whole document in memory. */
function ownText(text: string): string {
  return Buffer.from(text).toString();
}

// Created apart from any parsed value, which the functions of a manifest would keep in memory.
function getManifest(
  document: PlacedDocument,
  whole: Loader,
  path: readonly (string | number)[],
  [apiVersion, kind, name, namespace]: [string, string, string, string],
): Manifest {
  return {
    file: document.file,
    apiVersion,
    kind,
    name,
    namespace,
    load: () => valueAt(whole(), path) as JsonObject,
    placeOf: (more = []) => findPlaceIn(document, [...path, ...more]),
  };
}

function keeping(value: JsonValue): Loader {
  return () => value;
}

/** Last parsed value of each kind. More would need too much memory, and weak references live as long as a whole job. */
const latest: {
  document?: Document;
  value?: JsonValue;
  placedBytes?: Buffer;
  placed?: PlacedYaml | undefined;
} = {};

/** Returns a loader that parses on demand; consecutive items of a list share one parse. */
function parsingAnew(document: Document): Loader {
  return () => parseLatest(document);
}

function parseLatest(document: Document): JsonValue {
  if (latest.document !== document) {
    // Drops the previous one first, so that memory never holds two.
    delete latest.value;
    delete latest.document;
    latest.value = parseDocument(document);
    latest.document = document;
  }
  return latest.value as JsonValue;
}

type Loader = () => JsonValue;

function parseDocument({ bytes, isJson }: Document): JsonValue {
  const text = decodeUtf8(bytes);
  if (!isJson) return parseYaml(yamlText(text));
  try {
    return parseGoJson(text);
  } catch (error) {
    try {
      return parseYaml(text);
    } catch {
      throw error;
    }
  }
}

/** Adds a missing line break at the end, as upstream joins lines: block scalars keep it. */
export function yamlText(text: string): string {
  const joined = text.includes('\r\n') ? text.replaceAll('\r\n', '\n') : text;
  return joined.endsWith('\n') ? joined : `${joined}\n`;
}

/** Returns the paths of the objects in a document: its root, or the items of nested lists. */
function* objectPaths(value: JsonValue, path: (string | number)[]): Generator<(string | number)[]> {
  const items = getValue(value, 'items');
  if (!Array.isArray(items) || path.length > 20) {
    yield path;
    return;
  }
  for (const [index, item] of items.entries()) yield* objectPaths(item, [...path, 'items', index]);
}

function valueAt(value: JsonValue, path: readonly (string | number)[]): JsonValue {
  let place = value;
  for (const key of path) place = (place as Record<string | number, JsonValue>)[key] ?? null;
  return place;
}

/** Finds the line of a path; called for messages only, as it parses again. */
function findPlaceIn(document: Document, path: DocumentPath): Partial<TextPosition> {
  const placed = findPlacesIn(document);
  if (placed === undefined) return {};
  const { line, column } = nearestPlace(placed, path) ?? { line: 1 + leadingBlankLines(document), column: 1 };
  return { line: document.line + line - 1, column };
}

function findPlacesIn({ bytes }: Document): PlacedYaml | undefined {
  if (latest.placedBytes !== bytes) {
    delete latest.placed;
    latest.placed = findPlaces(decodeUtf8(bytes));
    latest.placedBytes = bytes;
  }
  return latest.placed;
}

function leadingBlankLines({ bytes }: Document): number {
  const text = bytes.toString('latin1');
  const start = /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*/.exec(text)?.[0] ?? '';
  return lineBreaks(bytes, 0, start.length);
}

/** Returns the name of an object in messages: `Service "name"`; without a name its kind. */
export function getTitle({ kind, name }: { kind: string; name: string }): string {
  return name === '' ? kind : `${kind} ${quoteGo(name)}`;
}
