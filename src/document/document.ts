import { isUtf8 } from 'node:buffer';
import {
  type Diagnostic,
  type DocumentPath,
  type TextPosition,
  compareDiagnostics,
  createFault,
  formatPath,
  formatLocation,
  withSubject,
} from '../core/diagnostic.js';
import { DiagnosticsError } from '../core/diagnostics-error.js';
import { type ErrorCode, OpmateError } from '../core/errors.js';
import { GoJsonError, parseGoJson } from './go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from './json.js';
import { findPlaces, nearestPlace } from './places.js';
import { findDuplicateKey } from './raw-json.js';
import { YamlError, parseYaml, parseYamlWithPlaces } from './yaml.js';
import type { PlacedYaml } from './yaml/full.js';
import { Field, type FieldReport, quoteShort } from './field.js';

/** Maximum number of diagnostics kept per document; further ones are counted only. */
const maxKept = 1000;

/** Collects the diagnostics of one or several documents. */
export class DiagnosticList {
  readonly #kept: Diagnostic[] = [];
  #dropped = 0;

  add(diagnostic: Diagnostic): void {
    if (this.#kept.length < maxKept) this.#kept.push(diagnostic);
    else this.#dropped++;
  }

  /** Returns all diagnostics by file, line and column. */
  get all(): readonly Diagnostic[] {
    return [...this.#kept].sort(compareDiagnostics);
  }

  get errors(): readonly Diagnostic[] {
    return this.all.filter(({ severity }) => severity === 'error');
  }

  get warnings(): readonly Diagnostic[] {
    return this.all.filter(({ severity }) => severity !== 'error');
  }

  /**
   * Throws DiagnosticsError with the first `max` errors and the number of further ones; returns if there are no
   * errors.
   */
  throwIfErrors(max = maxKept): void {
    const errors = this.errors;
    if (errors.length === 0) return;
    const shown = errors.slice(0, max);
    const others = errors.length - shown.length + this.#dropped;
    if (others > 0) {
      shown.push(createFault('more', `and ${others} more`, { file: shown[0]?.file }));
    }
    throw new DiagnosticsError(shown);
  }
}

interface DocumentOptions extends Omit<FieldReport, 'report'> {
  /** Start of every message: the file as the user named it, or the reference of fetched content. */
  name: string;
  /** Kind of `name`: `reference` for content that is not a file of the user. */
  kind?: 'file' | 'reference';
  /** Receives the diagnostics; if missing, the first error is thrown. */
  diagnostics?: DiagnosticList | undefined;
  /** Name of an object among several of a file: `BundleDeployment "widget"`. */
  subject?: string | undefined;
  /** Code of thrown errors; default: that of the diagnostic. */
  failureCode?: ErrorCode | undefined;
}

/** Returns the text of a file. Throws OpmateError SYNTAX with the line of the first bytes that are not UTF-8. */
export function decodeFile(bytes: Buffer, file: string): string {
  requireUtf8(bytes, file);
  return bytes.toString();
}

/** Throws OpmateError SYNTAX with the line of the first bytes that are not UTF-8. */
export function requireUtf8(bytes: Buffer, file?: string): void {
  if (isUtf8(bytes)) return;
  let [line, start] = [1, 0];
  for (;;) {
    const end = bytes.indexOf(0x0a, start);
    if (end < 0 || !isUtf8(bytes.subarray(start, end))) break;
    [line, start] = [line + 1, end + 1];
  }
  throw new OpmateError('SYNTAX', 'invalid UTF-8', { subject: formatLocation({ file, line }), file, line });
}

/** Returns a diagnostic for a file that does not parse, at the line of the error unless it is known. */
export function diagnoseSyntax(error: OpmateError, file: string, line = error.line): Diagnostic {
  const problem = error instanceof YamlError ? error.withoutLine : error.message;
  return createFault('syntax', problem, { file, line });
}

/** Parses JSON as Go does. Throws OpmateError SYNTAX with the line of the error. */
function parseNamedJson(text: string, name: string, kind: 'file' | 'reference'): JsonValue {
  try {
    return parseGoJson(text);
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    const line = text.slice(0, error.offset).split('\n').length;
    const place = kind === 'file' ? { subject: `${name}:${line}`, file: name, line } : { subject: name };
    throw new OpmateError('SYNTAX', `invalid JSON: ${error.message}`, place);
  }
}

/** Maximum length of a JSON text in which the lines of its fields are found. */
const maxPlacedLength = 16 * 1024 * 1024;

/**
 * Opens JSON that a program writes and people may edit: the first error is thrown, and so is a duplicate key; those of a
 * file have their line. Throws OpmateError SYNTAX.
 */
export function openJsonFile(text: string, name: string, kind: 'file' | 'reference' = 'file'): Field<never> {
  const json = text.startsWith('\ufeff') ? text.slice(1) : text;
  const value = parseNamedJson(json, name, kind);
  let placed: PlacedYaml | undefined;
  const getPlaces = (): PlacedYaml | undefined =>
    kind === 'reference' || json.length > maxPlacedLength ? undefined : (placed ??= findPlaces(json));
  const findPlace = (path: DocumentPath): Partial<TextPosition> => {
    const places = getPlaces();
    return places === undefined ? {} : (nearestPlace(places, path) ?? { line: 1, column: 1 });
  };
  const root = openValue(value, { name, kind, findPlace });
  const duplicate = findDuplicateKey(json);
  if (duplicate === undefined) return root;
  const diagnostics = diagnoseDuplicates(getPlaces(), name);
  if (diagnostics.length > 0) throw new DiagnosticsError(diagnostics);
  return root.fail(`duplicate key ${quoteShort(duplicate)}`, { code: 'duplicate-key' });
}

/** Parses the YAML of a file as Go does. Throws OpmateError SYNTAX with the file and line of the error. */
export function parseYamlFile(text: string, file: string, hint?: string): JsonValue {
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw locateYamlError(error, file, hint);
  }
}

/** Returns the error for a file; the line in Go's message is one short for some errors. */
export function locateYamlError({ withoutLine, line }: YamlError, file: string, hint?: string): OpmateError {
  return new OpmateError('SYNTAX', withoutLine, {
    subject: formatLocation({ file, line }),
    file,
    line,
    hint,
  });
}

interface JsonOptions extends DocumentOptions {
  /** Of the error for what is not JSON. */
  code?: ErrorCode;
  hint?: string;
}

/**
 * Opens JSON that a program wrote; its first error is thrown. Throws OpmateError SYNTAX unless `code` is another; its
 * message has none of the text.
 */
export function openJson(bytes: Uint8Array, options: JsonOptions): Field<never> {
  const { name, kind = 'file', failureCode, code = failureCode ?? 'SYNTAX', hint } = options;
  let value: JsonValue;
  try {
    value = JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()) as JsonValue;
  } catch (cause) {
    const place = { subject: name, ...(kind === 'file' && { file: name }) };
    throw new OpmateError(code, 'invalid JSON', { ...place, hint, cause });
  }
  return openValue(value, options);
}

/** Returns the root of a document that collects what is wrong with it in `diagnostics`. */
export function openValue(
  value: JsonValue | undefined,
  options: DocumentOptions & { diagnostics: DiagnosticList },
): Field;
/** Returns the root of a document whose first error is thrown as DiagnosticsError. */
export function openValue(value: JsonValue | undefined, options: DocumentOptions): Field<never>;
export function openValue(
  value: JsonValue | undefined,
  { name, kind = 'file', subject, diagnostics, findPlace, textAsWritten, failureCode }: DocumentOptions,
): Field {
  const outer = kind === 'file' ? subject : name;
  const report: FieldReport = {
    report(path, diagnostic) {
      const placed = { ...diagnostic, path, ...(kind === 'file' && { file: name }), ...findPlace?.(path) };
      const full = outer === undefined ? placed : withSubject(placed, outer);
      if (diagnostics !== undefined) diagnostics.add(full);
      else if (full.severity === 'error')
        throw new DiagnosticsError([full], failureCode && { code: failureCode });
    },
    textAsWritten,
    findPlace,
  };
  return new Field(value, report);
}

/** A hand-written YAML or JSON document with the places of its fields. */
export interface WrittenDocument {
  name: string;
  root: Field;
  diagnostics: DiagnosticList;
  findPlace(path: DocumentPath): TextPosition;
}

/**
 * Reads one hand-written YAML or JSON document of at most `maxLength` characters. Reports duplicate keys and further
 * documents; `noun` is the content of a file for that message: `configuration`. With `isJson`, text that starts with a
 * brace must be JSON. Throws OpmateError SYNTAX or LIMIT.
 */
export function readDocument(
  text: string,
  file: string,
  { maxLength, noun = 'document', isJson = false }: { maxLength: number; noun?: string; isJson?: boolean },
): WrittenDocument {
  if (text.length > maxLength) {
    const problem = `larger than the maximum of ${maxLength} characters`;
    throw new OpmateError('LIMIT', problem, { about: file });
  }
  if (isJson && /^\s*\{/.test(text)) parseNamedJson(text, file, 'file');
  let document: PlacedYaml;
  try {
    document = parseYamlWithPlaces(text);
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw locateYamlError(error, file);
  }
  const diagnostics = new DiagnosticList();
  const findPlace = (path: DocumentPath): TextPosition =>
    nearestPlace(document, path) ?? { line: 1, column: 1 };
  reportWriting(document, file, 0, diagnostics, noun);
  const root = openValue(document.value, { name: file, diagnostics, findPlace });
  return { name: file, root, diagnostics, findPlace };
}

/** Returns a fault for each duplicate key. `linesBefore` precede the document in its file. */
export function diagnoseDuplicates(
  document: PlacedYaml | undefined,
  file: string,
  linesBefore = 0,
): Diagnostic[] {
  return (document?.duplicates ?? []).map(({ path, place, first }) =>
    createFault('duplicate-key', `duplicate key, first defined on line ${linesBefore + first.line}`, {
      subject: formatPath(path),
      file,
      line: linesBefore + place.line,
      column: place.column,
      path,
      hint: 'keep one of them',
    }),
  );
}

/** Reports duplicate keys, and a further document. */
function reportWriting(
  document: PlacedYaml,
  file: string,
  linesBefore: number,
  diagnostics: DiagnosticList,
  noun: string,
): void {
  for (const duplicate of diagnoseDuplicates(document, file, linesBefore)) diagnostics.add(duplicate);
  const { furtherDocument } = document;
  if (furtherDocument === undefined) return;
  diagnostics.add(
    createFault('second-document', 'unexpected second document', {
      file,
      line: linesBefore + furtherDocument.line,
      column: furtherDocument.column,
      hint: noun === 'document' ? 'add a line --- before it' : `use one ${noun} per file`,
    }),
  );
}

/** Maximum nesting of a hand-written object. */
const maxObjectDepth = 100;

/**
 * Reads the objects of a file with several YAML or JSON documents, with Lists expanded; each has its own diagnostics
 * and paths from its own root. Reports syntax errors and documents other than objects in the diagnostics of the file,
 * with duplicate keys; skips empty documents.
 */
export function readObjects(
  text: string,
  file: string,
): { objects: WrittenDocument[]; diagnostics: DiagnosticList } {
  const diagnostics = new DiagnosticList();
  const objects: WrittenDocument[] = [];
  const open = (value: JsonValue, placeOf: WrittenDocument['findPlace']): void => {
    const own = new DiagnosticList();
    const root = openValue(value, { name: file, diagnostics: own, findPlace: placeOf });
    objects.push({ name: file, root, diagnostics: own, findPlace: placeOf });
  };
  for (const { linesBefore, body } of splitDocuments(text)) {
    let document: PlacedYaml;
    try {
      document = parseYamlWithPlaces(body, { maxDepth: maxObjectDepth });
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      const line = linesBefore + (error.line ?? 1);
      diagnostics.add(createFault('syntax', error.withoutLine, { file, line }));
      continue;
    }
    const { value } = document;
    if (value === null && isBlank(body)) continue;
    reportWriting(document, file, linesBefore, diagnostics, 'document');
    const start = { line: getFirstLine(body), column: 1 };
    const findPlace = (path: DocumentPath): TextPosition => {
      const { line, column } = nearestPlace(document, path) ?? start;
      return { line: linesBefore + line, column };
    };
    const items = isJsonObject(value) ? findItems(value) : undefined;
    if (!isJsonObject(value)) openValue(value, { name: file, diagnostics, findPlace }).mismatch('an object');
    else if (items === undefined) open(value, findPlace);
    else for (const [i, item] of items.entries()) open(item, (path) => findPlace(['items', i, ...path]));
  }
  return { objects, diagnostics };
}

/** Returns the items of a Kubernetes List; undefined for other objects. */
function findItems({ kind, items }: JsonObject): readonly JsonValue[] | undefined {
  return typeof kind === 'string' && kind.endsWith('List') && Array.isArray(items) ? items : undefined;
}

/** Reports whether a document has only blanks, comments and marks; a written `null` is a mistake. */
function isBlank(body: string): boolean {
  return body.split('\n').every((line) => /^\s*(?:#|%|\.\.\.|$)/.test(line));
}

/** Returns the one-based number of the first line that is neither empty nor a comment. */
function getFirstLine(body: string): number {
  return /^(?:\s*(?:#.*)?\n)*/.exec(body)?.[0].split('\n').length ?? 1;
}

function splitDocuments(text: string): { linesBefore: number; body: string }[] {
  const documents: { linesBefore: number; body: string }[] = [];
  let linesBefore = 0;
  let lines: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (!/^---(?:\s|$)/.test(line)) {
      lines.push(line);
      continue;
    }
    documents.push({ linesBefore, body: lines.join('\n') });
    linesBefore = index;
    // Content on the line of the separator belongs to the document.
    lines = [`   ${line.slice(3)}`];
  }
  documents.push({ linesBefore, body: lines.join('\n') });
  return documents;
}
