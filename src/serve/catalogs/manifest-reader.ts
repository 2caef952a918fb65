import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { type PlacedYaml, YamlError, type YamlPath, parseYamlWithPlaces } from '../../document/yaml.js';
import { describeKind } from '../../document/field.js';
import { NameIndex } from '../../core/suggest.js';

/** Something that is wrong with a manifest. */
export interface ManifestFault {
  file: string;
  line: number;
  message: string;
  hint?: string | undefined;
}

/** An object of a file, a part of a List included. */
export interface ManifestObject {
  file: string;
  value: JsonValue;
  /** Line of the file on which the value at a path is written, or the nearest thing above it. */
  lineOf(path: YamlPath): number;
}

/** The objects of a file: documents of YAML or JSON, Lists opened. Faults are added to `faults`. */
export function readManifestObjects(file: string, text: string, faults: ManifestFault[]): ManifestObject[] {
  const objects: ManifestObject[] = [];
  for (const { first, body } of documentsOf(text)) {
    let document: PlacedYaml;
    try {
      document = parseYamlWithPlaces(body, { maxDepth: 100 });
    } catch (error) {
      if (!(error instanceof YamlError)) throw error;
      faults.push({ file, line: first + (error.line ?? 1) - 1, message: withoutPlace(error.message) });
      continue;
    }
    const { value, duplicates, furtherDocument } = document;
    const lineOf = (path: YamlPath): number => {
      for (let length = path.length; length > 0; length--) {
        const place = document.placeOf(path.slice(0, length));
        if (place !== undefined) return first + place.line - 1;
      }
      return first + Math.max(0, /^(?:\s*(?:#.*)?\n)*/.exec(body)?.[0].split('\n').length ?? 1) - 1;
    };
    if (value === null) continue;
    if (furtherDocument !== undefined) {
      const message = 'another document begins here';
      faults.push({
        file,
        line: first + furtherDocument.line - 1,
        message,
        hint: 'put a line --- before it',
      });
    }
    for (const { path, place, first: earlier } of duplicates) {
      const hint = `it stands in line ${first + earlier.line - 1} already; keep one of them`;
      const message = `${shownPath(path)}: key is there twice`;
      faults.push({ file, line: first + place.line - 1, message, hint });
    }
    if (!isJsonObject(value)) {
      faults.push({ file, line: lineOf([]), message: `expected a manifest, found ${describeKind(value)}` });
      continue;
    }
    const { kind, items } = value;
    if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) {
      objects.push({ file, value, lineOf });
      continue;
    }
    for (const [index, item] of items.entries()) {
      objects.push({ file, value: item, lineOf: (path) => lineOf(['items', index, ...path]) });
    }
  }
  return objects;
}

/** The message of a YAML error names its line, which counts from the document. */
function withoutPlace(message: string): string {
  return message.replace(/^(yaml: )?line \d+: /, '$1');
}

function documentsOf(text: string): { first: number; body: string }[] {
  const documents: { first: number; body: string }[] = [];
  let first = 1;
  let lines: string[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    if (!/^---(?:\s|$)/.test(line)) {
      lines.push(line);
      continue;
    }
    documents.push({ first, body: lines.join('\n') });
    first = index + 1;
    // What stands on the line of the mark belongs to the document.
    lines = [`   ${line.slice(3)}`];
  }
  documents.push({ first, body: lines.join('\n') });
  return documents;
}

/** A path as people write it: `spec.source.image.ref`. */
function shownPath(path: YamlPath): string {
  const text = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('');
  return text.replace(/^\./, '');
}

/** Reads the fields of one object and notes what is wrong with them. */
export class FieldReader {
  readonly #object: ManifestObject;
  readonly #faults: ManifestFault[];

  constructor(object: ManifestObject, faults: ManifestFault[]) {
    this.#object = object;
    this.#faults = faults;
  }

  fail(path: YamlPath, problem: string, hint?: string): undefined {
    const { file, lineOf } = this.#object;
    const message = path.length === 0 ? problem : `${shownPath(path)}: ${problem}`;
    this.#faults.push({ file, line: lineOf(path), message, hint });
    return undefined;
  }

  lineOf(path: YamlPath): number {
    return this.#object.lineOf(path);
  }

  /** The object at field `key`; its keys must be among `keys` where these are given. */
  object(parent: JsonObject, path: YamlPath, key: string, keys?: readonly string[]): JsonObject | undefined {
    const value = fieldOf(parent, key);
    if (value === undefined) return undefined;
    const at = [...path, key];
    if (!isJsonObject(value)) return this.fail(at, `expected keys and values, found ${describeKind(value)}`);
    if (keys !== undefined) this.checkKeys(value, at, keys);
    return value;
  }

  checkKeys(value: JsonObject, path: YamlPath, keys: readonly string[]): void {
    for (const key of Object.keys(value)) {
      if (keys.includes(key)) continue;
      const near =
        keys.find((one) => one.toLowerCase() === key.toLowerCase()) ?? new NameIndex(keys).nearest(key);
      const hint = near === undefined ? `there is ${keys.join(', ')}` : `did you mean ${near}`;
      this.fail([...path, key], 'unknown field', hint);
    }
  }

  /** A text; one that is empty counts as absent. */
  text(parent: JsonObject, path: YamlPath, key: string, maxLength = 1000): string | undefined {
    const value = fieldOf(parent, key);
    if (value === undefined || value === '') return undefined;
    const at = [...path, key];
    if (typeof value !== 'string') {
      const hint = typeof value === 'object' ? undefined : 'write it in quotes';
      return this.fail(at, `expected a text, found ${describeKind(value)}`, hint);
    }
    if (value.length > maxLength) return this.fail(at, `longer than ${maxLength} characters`);
    return value;
  }

  requiredText(parent: JsonObject, path: YamlPath, key: string): string | undefined {
    const value = fieldOf(parent, key);
    if (value === undefined || value === '') return this.fail([...path, key], 'is missing');
    return this.text(parent, path, key);
  }

  /** A whole number from `least` to `most`. */
  integer(
    parent: JsonObject,
    path: YamlPath,
    key: string,
    [least, most]: readonly [number, number],
  ): number | undefined {
    const value = fieldOf(parent, key);
    if (value === undefined) return undefined;
    if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
    const found = typeof value === 'number' ? String(value) : describeKind(value);
    return this.fail([...path, key], `expected a whole number from ${least} to ${most}, found ${found}`);
  }

  boolean(parent: JsonObject, path: YamlPath, key: string): boolean | undefined {
    const value = fieldOf(parent, key);
    if (value === undefined || typeof value === 'boolean') return value;
    return this.fail([...path, key], `expected true or false, found ${describeKind(value)}`);
  }

  /** One of some texts. */
  choice<T extends string>(
    parent: JsonObject,
    path: YamlPath,
    key: string,
    choices: readonly T[],
  ): T | undefined {
    const value = this.text(parent, path, key);
    if (value === undefined) return undefined;
    const found = choices.find((one) => one === value);
    if (found !== undefined) return found;
    const near = choices.find((one) => one.toLowerCase() === value.toLowerCase());
    const hint = near === undefined ? `there is ${choices.join(', ')}` : `did you mean ${near}`;
    return this.fail([...path, key], `unknown value ${quoteGo(value)}`, hint);
  }
}

/** Field `key` of an object; undefined where it is absent or null. */
export function fieldOf(object: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined;
}

/** One error for all faults, in the order of files and lines. */
export function manifestError(faults: readonly ManifestFault[]): OpmateError {
  const errors = faults.map(({ file, line, message, hint }) => {
    return new OpmateError('INVALID', `${file}:${line}: ${message}`, { hint });
  });
  const [first] = errors as [OpmateError];
  if (errors.length === 1) return first;
  const lines = errors.map(({ message, hint }) => (hint === undefined ? message : `${message} (${hint})`));
  const cause = new AggregateError(lines.map((line) => new OpmateError('INVALID', line)));
  return new OpmateError('INVALID', lines.join('; '), { cause });
}
