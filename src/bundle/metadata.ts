import { type Diagnostic, type DocumentPath, type TextPosition, createFault } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { diagnoseDuplicates, diagnoseSyntax, requireUtf8 } from '../document/document.js';
import { describeKind } from '../document/field.js';
import { formatGoFloat } from '../document/go-float.js';
import { encodeGoJson, sortKeysDeep } from '../document/go-json.js';
import { findField, findFieldKeys, foldFieldName } from '../document/go-json-fold.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { rawElements, rawFields } from '../document/raw-json.js';
import { parseYamlWithPlaces } from '../document/yaml.js';
import { type FirstDocument, readFirstDocument } from './manifest.js';
import type { BundleFile } from './read.js';

/** A property or dependency. */
export interface RawProperty {
  type: string;
  /** Value as JSON; undefined if missing. */
  text: string | undefined;
}

/**
 * Reads the first document of each file of `metadata/`, of which the content, not the name, determines the roles. `error`
 * is a syntax error. `annotations` are undefined unless an object; lists are empty if missing or if an item has a wrong
 * type.
 */
export function readMetadataFiles(files: readonly BundleFile[]) {
  return files.map(({ name, content }) => {
    const document = readFirstDocument(content);
    const { value, error } = document;
    const root = error === undefined && isJsonObject(value) ? value : undefined;
    const annotations = root && getLastField(root, 'annotations');
    return {
      file: `metadata/${name}`,
      error,
      annotations: isJsonObject(annotations) ? annotations : undefined,
      dependencies: root === undefined ? [] : typedValuesIn(document as FirstDocument, 'dependencies'),
      properties: root === undefined ? [] : typedValuesIn(document as FirstDocument, 'properties'),
    };
  });
}

/** Reports whether an object has a field of `metadata/` files. */
export function isMetadata(value: JsonObject): boolean {
  return ['annotations', 'dependencies', 'properties'].some((name) => getLastField(value, name) !== null);
}

/**
 * Reads a YAML document of `metadata/`. Syntax errors and duplicate keys are findings about `file`. `root` is undefined
 * if it does not parse or is not an object; an empty file is an empty object.
 */
export function readPlacedMetadata(
  content: Buffer,
  file: string,
): {
  root: JsonObject | undefined;
  findings: Diagnostic[];
  placeOf(path: DocumentPath): Partial<TextPosition>;
} {
  try {
    requireUtf8(content);
    const placed = parseYamlWithPlaces(content.toString());
    const findings = diagnoseDuplicates(placed, file);
    const value = placed.value ?? {};
    const root = isJsonObject(value) ? value : undefined;
    if (root === undefined) {
      const problem = `expected an object, got ${describeKind(value)}`;
      findings.push(createFault('wrong-type', problem, { file, line: 1, column: 1 }));
    }
    return { root, findings, placeOf: (path) => placed.findPlace(path) ?? {} };
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { root: undefined, findings: [diagnoseSyntax(error, file)], placeOf: () => ({}) };
  }
}

/** Returns the last non-null field with a key, ignoring case; otherwise null. */
export function getLastField(object: JsonObject, name: string): JsonValue {
  const key = findFieldKeys(object, name).findLast((candidate) => object[candidate] !== null);
  return key === undefined ? null : (object[key] as JsonValue);
}

/** Converts a scalar to a string as Kubernetes' YAML reader does; undefined for lists and objects. */
export function scalarText(value: JsonValue): string | undefined {
  switch (typeof value) {
    case 'string':
      return value;
    case 'boolean':
    case 'bigint':
      return String(value);
    case 'number':
      return Number.isInteger(value) ? String(value) : formatGoFloat(value);
    default:
      return value === null ? '' : undefined;
  }
}

/** Converts values with `scalarText`; undefined unless all are scalars. */
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

/** Returns the typed values of a list; none if it is missing or an item has a wrong type. */
function typedValuesIn(document: FirstDocument, name: string): RawProperty[] {
  const list = getLastField(document.value as JsonObject, name);
  if (!Array.isArray(list)) return [];
  // opm parses JSON with other types than strings again as YAML, which reorders values.
  const isTyped = list.every((item) => !isJsonObject(item) || isText(getLastField(item, 'type')));
  const texts = document.json === undefined || !isTyped ? undefined : rawListIn(document.json, name);
  const out: RawProperty[] = [];
  for (const [index, item] of list.entries()) {
    if (item !== null && !isJsonObject(item)) return [];
    const type = item === null ? '' : scalarText(getLastField(item, 'type'));
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

/** Returns the value of a property as written; undefined if missing. */
export function rawValue(json: string): string | undefined {
  if (json === 'null') return undefined;
  return rawFields(json).findLast(([key]) => foldFieldName(key) === 'value')?.[1];
}

/** Returns the value of a property from YAML, which opm passes through Go's JSON writer. */
function valueText(item: JsonObject | null): string | undefined {
  if (item === null) return undefined;
  const value = findField(item, 'value');
  return value === undefined ? undefined : encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}
