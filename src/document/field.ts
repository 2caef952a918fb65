import {
  type Diagnostic,
  type DocumentPath,
  type TextPosition,
  createFault,
  createWarning,
  formatPath,
} from '../core/diagnostic.js';
import { isDigest } from '../core/digest.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../core/go-json-quote.js';
import { isSecretName } from '../core/redact.js';
import { type JsonObject, type JsonValue, isJsonObject, setJsonKey } from './json.js';
import { getValue } from './json-fields.js';
import { NameIndex, suggestOneOf } from '../core/suggest.js';

/** Receiver of the reports of a field: its document. */
export interface FieldReport {
  /** Receives a diagnostic without its place. Collecting documents return; others throw at the first error. */
  report(path: DocumentPath, diagnostic: Omit<Diagnostic, 'file' | 'line' | 'column' | 'path'>): void;
  /** Returns the plain scalar at a path as written, if it is to be read as a string with a warning. */
  textAsWritten?: ((path: DocumentPath) => string | undefined) | undefined;
  /** Returns the place of a path, or of its nearest parent. */
  findPlace?: ((path: DocumentPath) => Partial<TextPosition>) | undefined;
}

/** Treatment of unknown keys of an object. */
interface ObjectOptions {
  /** Reports an error by default. */
  unknown?: 'refuse' | 'warn' | 'ignore';
  /** Hints by key, instead of the nearest known key. */
  hints?: Readonly<Record<string, string>>;
}

/** Warns of unknown fields; those with names similar to known ones are errors. */
export const warnOfUnknown = { unknown: 'warn' } as const satisfies ObjectOptions;

interface ReportDetails {
  hint?: string | undefined;
  code?: string;
}

/** Default maximum length of a text, in UTF-16 units. */
const defaultMaxLength = 4096;

/** Maximum characters of an input value in a message. */
const maxShown = 100;

/** Returns an input value for a message: quoted, shortened, on one line. */
export function quoteShort(text: string): string {
  return quoteGo(text.length > maxShown ? `${text.slice(0, maxShown)}…` : text);
}

/** Returns the kind of a JSON value for messages: `a string`, `the number 1`. */
export function describeKind(value: JsonValue): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return 'a string';
  return `the ${typeof value === 'boolean' ? 'boolean' : 'number'} ${String(value)}`;
}

/**
 * A value of a document with its path. Readers check the value, report problems, and return it typed. An absent or
 * null field is missing, which readers named `optional…` accept and others report.
 *
 * `Failure` is the return type of readers that reported a problem: `undefined` in a document that collects, `never`
 * in one that throws.
 */
export class Field<Failure extends undefined = undefined> {
  readonly value: JsonValue | undefined;
  readonly #report: FieldReport;
  readonly #parent: Field<Failure> | undefined;
  readonly #key: string | number;

  /** `parent` and `key` locate the field; the root of a document has neither. */
  constructor(
    value: JsonValue | undefined,
    report: FieldReport,
    parent?: Field<Failure>,
    key: string | number = '',
  ) {
    this.value = value ?? undefined;
    this.#report = report;
    this.#parent = parent;
    this.#key = key;
  }

  /** Keys and indexes from the root; built on demand, as large documents have many fields. */
  get path(): DocumentPath {
    return this.#parent === undefined ? [] : [...this.#parent.path, this.#key];
  }

  /** Place of the field or its nearest parent; the start of the document if unknown. */
  get place(): TextPosition {
    return { line: 1, column: 1, ...this.#report.findPlace?.(this.path) };
  }

  /** Reports whether the field has a value other than null. */
  get isPresent(): boolean {
    return this.value !== undefined;
  }

  /**
   * Reports whether the field has a value other than null and the empty string, which many writers emit for "not
   * set".
   */
  get isSet(): boolean {
    return this.isPresent && this.value !== '';
  }

  /** Reports an error about this field. */
  fail(problem: string, { code = 'invalid-value', hint }: ReportDetails = {}): Failure {
    const { path } = this;
    const details = { subject: formatPath(path), hint: this.#withoutSecret(hint) };
    this.#report.report(path, createFault(code, this.#withoutSecret(problem), details));
    return undefined as Failure;
  }

  /** Reports a warning about this field. */
  warn(problem: string, { code = 'invalid-value', hint }: ReportDetails = {}): void {
    const { path } = this;
    const details = { subject: formatPath(path), hint: this.#withoutSecret(hint) };
    this.#report.report(path, createWarning(code, this.#withoutSecret(problem), details));
  }

  /** Returns a text without the value of this field, if its name is that of a secret. */
  #withoutSecret<T extends string | undefined>(text: T): T {
    const { value } = this;
    if (text === undefined || value === undefined || typeof value === 'object') return text;
    if (!isSecretName(String(this.#key))) return text;
    const written = this.#report.textAsWritten?.(this.path) ?? String(value);
    const forms = [quoteShort(String(value)), quoteGo(String(value)), String(value), written];
    // Short values are words of the message, too.
    const shown = forms.filter((form) => form.length > 2);
    return shown.reduce<string>((rest, form) => rest.replaceAll(form, '***'), text) as T;
  }

  /** Reports the field as missing. */
  missing(hint?: string): Failure {
    return this.fail('missing', { code: 'missing-field', hint });
  }

  /** Reports a type mismatch: `expected X, got Y`. */
  mismatch(expected: string, hint?: string): Failure {
    // Only fields with a name can be missing.
    if (!this.isPresent && this.#parent !== undefined && typeof this.#key === 'string')
      return this.missing(hint);
    const got = describeKind(this.value ?? null);
    return this.fail(`expected ${expected}, got ${got}`, { code: 'wrong-type', hint });
  }

  /** Returns the field `key` of this object; absent if this is no object. Does not check other keys. */
  field(key: string | number): Field<Failure> {
    const { value } = this;
    let child: JsonValue | undefined;
    if (typeof key === 'number') child = Array.isArray(value) ? value[key] : undefined;
    else child = getValue(value, key);
    return new Field<Failure>(child, this.#report, this, key);
  }

  /** Returns the fields of an object with these keys. Reports unknown keys with the nearest name. */
  object<K extends string>(
    keys: readonly K[],
    { unknown = 'refuse', hints = {} }: ObjectOptions = {},
  ): Readonly<Record<K, Field<Failure>>> | Failure {
    const object = this.jsonObject();
    if (object === undefined) return undefined as Failure;
    for (const key of unknown === 'ignore' ? [] : Object.keys(object)) {
      if ((keys as readonly string[]).includes(key)) continue;
      const near = findNearest<string>(key, keys);
      const hint = Object.hasOwn(hints, key) ? hints[key] : suggest(near, keys);
      const code = 'unknown-field';
      // A similar name indicates a typo, which must not be ignored.
      if (unknown === 'refuse' || near !== undefined) this.field(key).fail('unknown field', { code, hint });
      else this.field(key).warn('unknown field, ignored', { code, hint });
    }
    return Object.fromEntries(keys.map((key) => [key, this.field(key)])) as Record<K, Field<Failure>>;
  }

  /** Reads like `object`; undefined if absent. */
  optionalObject<K extends string>(
    keys: readonly K[],
    options?: ObjectOptions,
  ): Readonly<Record<K, Field<Failure>>> | undefined {
    return this.isPresent ? this.object(keys, options) : undefined;
  }

  /** Returns the object unchecked. */
  jsonObject(): JsonObject | Failure {
    return isJsonObject(this.value) ? this.value : this.mismatch('an object');
  }

  /** Returns the fields of an object with arbitrary keys. */
  entries(max: number): [key: string, field: Field<Failure>][] | Failure {
    const object = this.jsonObject();
    if (object === undefined) return undefined as Failure;
    const keys = Object.keys(object);
    if (keys.length > max) return this.#tooMany(max);
    return keys.map((key) => [key, this.field(key)]);
  }

  /** Returns an object of strings with arbitrary keys, in which null is empty as in Go; undefined if absent. */
  optionalTexts(max = 10_000): Record<string, string> | undefined {
    if (!this.isPresent) return undefined;
    const texts: Record<string, string> = {};
    for (const [key, field] of this.entries(max) ?? []) {
      const text = field.isPresent ? field.anyText(Infinity) : '';
      if (text !== undefined) setJsonKey(texts, key, text);
    }
    return texts;
  }

  /** Returns a list of strings; undefined if absent. */
  optionalTextList(max = 10_000): string[] | undefined {
    if (!this.isPresent) return undefined;
    return (this.list(max) ?? []).flatMap((item) => item.anyText(Infinity) ?? []);
  }

  /** Returns the items of a list. */
  list(max = Infinity): Field<Failure>[] | Failure {
    const { value } = this;
    if (!Array.isArray(value)) return this.mismatch('a list');
    if (value.length > max) return this.#tooMany(max);
    return value.map((_, index) => this.field(index));
  }

  /** Returns the items of a list; none if absent. */
  optionalList(max = Infinity): Field<Failure>[] {
    return this.isPresent ? (this.list(max) ?? []) : [];
  }

  #tooMany(max: number): Failure {
    return this.fail(`more than the maximum of ${max} entries`, { code: 'limit' });
  }

  /** Returns a nonempty string. */
  text(max = defaultMaxLength): string | Failure {
    return this.isSet || typeof this.value !== 'string' ? this.anyText(max) : this.missing();
  }

  /** Returns a nonempty string; undefined if absent or empty. */
  optionalText(max = defaultMaxLength): string | undefined {
    return this.isSet ? this.anyText(max) : undefined;
  }

  /** Returns a string, possibly empty. */
  anyText(max = defaultMaxLength): string | Failure {
    const { value } = this;
    if (typeof value !== 'string') {
      const isScalar = value !== undefined && typeof value !== 'object';
      const written = isScalar ? this.#report.textAsWritten?.(this.path) : undefined;
      if (written !== undefined) {
        const problem = `${written} is ${describeKind(value as JsonValue)} in YAML, read as a string`;
        this.warn(problem, { code: 'wrong-type', hint: `quote it: ${quoteGo(written)}` });
        return written;
      }
      return this.mismatch('a string', suggestQuotes(value));
    }
    if (value.length > max) {
      return this.fail(`longer than the maximum of ${max} characters`, { code: 'limit' });
    }
    return value;
  }

  /** Returns a string parsed by `parse`. Reports an OpmateError thrown by `parse`, hint included. */
  parsed<T>(parse: (text: string) => T, max = defaultMaxLength): T | Failure {
    const text = this.text(max);
    if (text === undefined) return undefined as Failure;
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      return this.fail(error.message, { hint: error.hint });
    }
  }

  /** Reads like `parsed`; undefined if absent or empty. */
  optionalParsed<T>(parse: (text: string) => T, max = defaultMaxLength): T | undefined {
    return this.isSet ? this.parsed(parse, max) : undefined;
  }

  /** Returns a string that matches; `expected` describes its form: `a tag`. */
  matching(isMatch: (text: string) => boolean, expected: string): string | Failure {
    const text = this.text();
    if (text === undefined || isMatch(text)) return text as string | Failure;
    return this.fail(`expected ${expected}, got ${quoteShort(text)}`);
  }

  /** Reads like `matching`; undefined if absent or empty. */
  optionalMatching(isMatch: (text: string) => boolean, expected: string): string | undefined {
    return this.isSet ? this.matching(isMatch, expected) : undefined;
  }

  /** Returns one of a set of strings. */
  choice<T extends string>(choices: readonly T[]): T | Failure {
    const text = this.text();
    if (text === undefined) return undefined as Failure;
    const chosen = choices.find((choice) => choice === text);
    if (chosen !== undefined) return chosen;
    const hint = suggest(findNearest(text, choices), choices);
    return this.fail(`unsupported value ${quoteShort(text)}`, { hint });
  }

  /** Reads like `choice`; undefined if absent or empty. */
  optionalChoice<T extends string>(choices: readonly T[]): T | undefined {
    return this.isSet ? this.choice(choices) : undefined;
  }

  /** Requires a constant, such as the `kind` of a document. */
  constant(expected: string): void {
    const hint = `use ${this.#key}: ${expected}`;
    if (!this.isSet) this.missing(hint);
    else if (typeof this.value !== 'string') this.mismatch(expected, hint);
    else if (this.value !== expected) {
      this.fail(`expected ${expected}, got ${quoteShort(this.value)}`, { hint });
    }
  }

  /** Requires the version of a format that opmate writes. */
  formatVersion(expected: number): void {
    const { value } = this;
    if (value === expected) return;
    const hint = `use the version of opmate that wrote it, or a newer one: this one reads version ${expected}`;
    if (typeof value !== 'number') this.mismatch(`the number ${expected}`, hint);
    else this.fail(`unsupported value ${value}`, { code: 'unsupported', hint });
  }

  /** Returns a boolean. */
  boolean(): boolean | Failure {
    return typeof this.value === 'boolean' ? this.value : this.mismatch('true or false');
  }

  /** Returns a boolean; false if absent. */
  optionalBoolean(): boolean {
    return this.isPresent && this.boolean() === true;
  }

  /** Returns an integer from `min` to `max`. */
  integer(min: number, max: number): number | Failure {
    const { value } = this;
    const expected = `an integer from ${min} to ${max}`;
    if (typeof value !== 'number') return this.mismatch(expected);
    if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
    return this.fail(`expected ${expected}, got ${value}`, { code: 'out-of-range' });
  }

  /** Reads like `integer`; undefined if absent. */
  optionalInteger(min: number, max: number): number | undefined {
    return this.isPresent ? this.integer(min, max) : undefined;
  }

  /** Returns a size in bytes. */
  size(max = Number.MAX_SAFE_INTEGER): number | Failure {
    const { value } = this;
    if (typeof value !== 'number') return this.mismatch('a size in bytes');
    if (!Number.isSafeInteger(value) || value < 0) return this.fail(`expected a size in bytes, got ${value}`);
    if (value > max) return this.fail(`more than the maximum of ${max} bytes`, { code: 'limit' });
    return value;
  }

  /** Returns a digest: an algorithm and hexadecimal digits. */
  digest(): string | Failure {
    const text = this.text();
    if (text === undefined || isDigest(text)) return text as string | Failure;
    return this.fail(`invalid digest ${quoteShort(text)}`);
  }

  /** Reports an error if more than one of these fields is set. */
  exclusive(keys: readonly string[]): void {
    const [first, ...others] = keys.filter((key) => this.field(key).isSet);
    for (const key of others) {
      const details = { code: 'exclusive-fields', hint: 'keep one of them' };
      this.field(key).fail(`cannot be combined with ${String(first)}`, details);
    }
  }
}

/** Returns the known name most similar to a misspelled one. */
export function findNearest<T extends string>(name: string, known: readonly T[]): T | undefined {
  const near = known.find((item) => item.toLowerCase() === name.toLowerCase());
  return near ?? (new NameIndex(known).nearest(name) as T | undefined);
}

/** Returns the hint for a value that is not a string, if quotes make it one. */
export function suggestQuotes(value: JsonValue | undefined): string | undefined {
  return value === undefined || value === null || typeof value === 'object' ? undefined : 'quote the value';
}

/** Returns the hint for an unknown field: the nearest name, else all names. */
export function suggestField(key: string, known: readonly string[]): string | undefined {
  return suggest(findNearest(key, known), known);
}

function suggest(near: string | undefined, known: readonly string[]): string | undefined {
  if (near !== undefined) return `use ${quoteGo(near)}`;
  if (known.length === 0) return undefined;
  return suggestOneOf(known);
}
