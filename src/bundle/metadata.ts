import { diagnoseSyntax } from '../core/diagnostics-error.js';
import { type Diagnostic, type DocumentPath, createFault } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { diagnoseDuplicates } from '../document/document.js';
import { describeKind } from '../document/field.js';
import { decodeUtf8, encodeGoJson, sortKeysDeep } from '../document/go-json.js';
import { findField, findFieldKeys, foldFieldName } from '../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { rawElements, rawFields } from '../document/raw-json.js';
import { parseYamlWithPlaces } from '../document/yaml.js';
import { formatShortest } from '../model/csv.js';
import { type FirstDocument, readFirstDocument } from './manifest.js';
import type { BundleFile } from './read.js';

/** A property or dependency with its value as JSON text; `text` is missing where it has no value. */
export interface RawProperty {
  type: string;
  text: string | undefined;
}

/** One file of `metadata/`. It may have several roles: they are known by what is in it, not by its name. */
interface MetadataFile {
  /** With its directory. */
  file: string;
  /** Why it does not parse. */
  error: OpmateError | undefined;
  /** Undefined where there are none, or they are not an object. */
  annotations: JsonObject | undefined;
  /** Empty if missing or any of it has a wrong type. */
  dependencies: RawProperty[];
  properties: RawProperty[];
}

const nothing = { annotations: undefined, dependencies: [], properties: [] };

/** Reads the files of `metadata/`, of each the first document. */
export function readMetadataFiles(files: readonly BundleFile[]): MetadataFile[] {
  return files.map(({ name, content }) => {
    const file = `metadata/${name}`;
    const document = readFirstDocument(content);
    const { value, error } = document;
    if (error !== undefined || !isJsonObject(value)) return { file, error, ...nothing };
    const annotations = getField(value, 'annotations');
    return {
      file,
      error,
      annotations: isJsonObject(annotations) ? annotations : undefined,
      dependencies: typedValuesIn(document, 'dependencies'),
      properties: typedValuesIn(document, 'properties'),
    };
  });
}

/** Whether an object has a field by which a file of `metadata/` is known. */
export function isMetadata(value: JsonObject): boolean {
  return ['annotations', 'dependencies', 'properties'].some((name) => getField(value, name) !== null);
}

/** A file of `metadata/` that is read by its name, with places. */
interface PlacedMetadata {
  /** Undefined where it does not parse or is not an object; an empty file is an empty object. */
  root: JsonObject | undefined;
  findings: Diagnostic[];
  lineOf(path: DocumentPath): number | undefined;
}

/** Reads one YAML document of `metadata/`. Syntax errors and duplicate keys are findings, which name it `file`. */
export function readPlacedMetadata(content: Buffer, file: string): PlacedMetadata {
  try {
    const placed = parseYamlWithPlaces(decodeUtf8(content));
    const findings = diagnoseDuplicates(placed, file);
    const value = placed.value ?? {};
    const root = isJsonObject(value) ? value : undefined;
    if (root === undefined) {
      const problem = `expected an object, got ${describeKind(value)}`;
      findings.push(createFault('wrong-type', problem, { file, line: 1 }));
    }
    return { root, findings, lineOf: (path) => placed.findPlace(path)?.line };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { root: undefined, findings: [diagnoseSyntax(error, file)], lineOf: () => undefined };
  }
}

/** Returns a field by its key, ignoring case: the last non-null one of several, otherwise null. */
export function getField(object: JsonObject, name: string): JsonValue {
  const key = findFieldKeys(object, name).findLast((candidate) => object[candidate] !== null);
  return key === undefined ? null : (object[key] as JsonValue);
}

/** A scalar as text, as Kubernetes' YAML reader makes it where text is wanted; undefined for all else. */
export function scalarText(value: JsonValue): string | undefined {
  switch (typeof value) {
    case 'string':
      return value;
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'number':
      return Number.isInteger(value) ? String(value) : formatShortest(value);
    default:
      return value === null ? '' : undefined;
  }
}

/** Returns values as `scalarText` makes them; undefined where one of them is not a scalar. */
export function toTexts(
  entries: Iterable<readonly [key: string, value: JsonValue]>,
): Map<string, string> | undefined {
  const texts = new Map<string, string>();
  for (const [key, value] of entries) {
    const text = scalarText(value);
    if (text === undefined) return undefined;
    texts.set(key, text);
  }
  return texts;
}

/** The list of typed values under `name`; empty if missing or any of it has a wrong kind. */
function typedValuesIn(document: FirstDocument, name: string): RawProperty[] {
  const list = getField(document.value as JsonObject, name);
  if (!Array.isArray(list)) return [];
  // JSON whose type is not a string is parsed again as YAML, which converts it and the values to strings.
  const isTyped = list.every((item) => !isJsonObject(item) || isText(getField(item, 'type')));
  const texts = document.json === undefined || !isTyped ? undefined : rawListIn(document.json, name);
  const out: RawProperty[] = [];
  for (const [index, item] of list.entries()) {
    if (item !== null && !isJsonObject(item)) return [];
    const type = item === null ? '' : scalarText(getField(item, 'type'));
    if (type === undefined) return [];
    const written = texts?.[index];
    out.push({ type, text: written === undefined ? valueText(item) : rawValue(written) });
  }
  return out;
}

function isText(value: JsonValue): boolean {
  return value === null || typeof value === 'string';
}

function rawListIn(json: string, name: string): string[] | undefined {
  const list = rawFields(json).findLast(([key, text]) => foldFieldName(key) === name && text !== 'null');
  return list && rawElements(list[1]);
}

/** Returns the value of a property as it is written; undefined where it has none. */
export function rawValue(json: string): string | undefined {
  if (json === 'null') return undefined;
  return rawFields(json).findLast(([key]) => foldFieldName(key) === 'value')?.[1];
}

/** Values from YAML have passed through a JSON writer that sorts keys and escapes HTML characters. */
function valueText(item: JsonObject | null): string | undefined {
  if (item === null) return undefined;
  const value = findField(item, 'value');
  return value === undefined ? undefined : encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}
