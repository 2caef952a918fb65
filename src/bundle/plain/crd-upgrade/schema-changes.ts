import { isDeepStrictEqual } from 'node:util';
import { encodeGoJson, sortKeysDeep } from '../../../document/go-json.js';
import type { JsonObject, JsonValue } from '../../../document/json.js';
import { getList } from '../../../document/json-fields.js';

/** A change of a schema that may break existing objects. */
interface SchemaChange {
  /** Rule by the name of operator-controller. */
  check: string;
  detail: string;
}

/** Bounds that may be raised, and those that may be lowered; both may be removed. */
const upperBounds = ['maximum', 'maxItems', 'maxLength', 'maxProperties'] as const;
const lowerBounds = ['minimum', 'minItems', 'minLength', 'minProperties'] as const;

/** Keywords with a separate rule, or whose content is compared under its own path. */
const handled: ReadonlySet<string> = new Set([
  ...upperBounds,
  ...lowerBounds,
  'default',
  'description',
  'enum',
  'items',
  'nullable',
  'oneOf',
  'pattern',
  'properties',
  'required',
  'type',
]);

/** Returns the breaking changes of a schema, without nested schemas. (Source: crdify, as OLM configures it.) */
export function schemaChanges(old: JsonObject, next: JsonObject): SchemaChange[] {
  const changes: SchemaChange[] = [];
  const report = (check: string, detail: string): number => changes.push({ check, detail });
  compareDefault(old['default'], next['default'], report);
  compareEnum(old, next, report);
  const added = toTexts(next['required']).filter((name) => !toTexts(old['required']).includes(name));
  if (added.length > 0) report('required', `newly required: ${added.join(', ')}`);
  compareText(old, next, 'type', report);
  for (const bound of upperBounds) compareBound(old, next, bound, 'decreased', report);
  for (const bound of lowerBounds) compareBound(old, next, bound, 'increased', report);
  compareText(old, next, 'pattern', report);
  const [was, is] = [old['nullable'] === true, next['nullable'] === true];
  if (was !== is) report('nullable', is ? 'added' : 'removed');
  compareOne(old, next, report);
  const others = [...new Set([...Object.keys(old), ...Object.keys(next)])].sort();
  const unhandled = others.filter((key) => !handled.has(key) && !isDeepStrictEqual(old[key], next[key]));
  if (unhandled.length > 0) {
    report(
      'unhandled',
      unhandled.map((key) => `${key} ${shown(old[key])} -> ${shown(next[key])}`).join('; '),
    );
  }
  return changes;
}

type ReportChange = (check: string, detail: string) => void;

function compareDefault(old: JsonValue | undefined, next: JsonValue | undefined, report: ReportChange): void {
  if (isDeepStrictEqual(old, next)) return;
  if (old === undefined) report('default', `added: ${shown(next)}`);
  else if (next === undefined) report('default', `removed: ${shown(old)}`);
  else report('default', `changed: ${shown(old)} -> ${shown(next)}`);
}

function compareEnum(old: JsonObject, next: JsonObject, report: ReportChange): void {
  const [was, is] = [getList(old['enum']), getList(next['enum'])].map((values) => values.map(toText)) as [
    string[],
    string[],
  ];
  if (was.length === 0 && is.length > 0)
    report('enum', `added where any value was allowed: ${is.join(', ')}`);
  const removed = was.filter((value) => !is.includes(value));
  if (removed.length > 0) report('enum', `values removed: ${removed.join(', ')}`);
}

function compareText(old: JsonObject, next: JsonObject, key: string, report: ReportChange): void {
  if (old[key] === next[key]) return;
  const verb = old[key] === undefined ? 'added' : next[key] === undefined ? 'removed' : 'changed';
  report(key, `${verb}: ${shown(old[key])} -> ${shown(next[key])}`);
}

function compareBound(
  old: JsonObject,
  next: JsonObject,
  key: string,
  verb: 'increased' | 'decreased',
  report: ReportChange,
): void {
  const [was, is] = [old[key], next[key]];
  if (is === undefined || is === null) return;
  if (was === undefined || was === null) report(key, `added: ${shown(is)}`);
  else if (verb === 'increased' ? is > was : is < was) report(key, `${verb}: ${shown(was)} -> ${shown(is)}`);
}

/** Descriptive keywords, which do not distinguish schemas. */
const notes: ReadonlySet<string> = new Set(['description', 'title', 'example', 'externalDocs']);

function compareOne(old: JsonObject, next: JsonObject, report: ReportChange): void {
  const [was, is] = [old, next].map((schema) =>
    getList(schema['oneOf']).map((item) => toText(withoutNotes(item))),
  ) as [string[], string[]];
  if (was.length === 0) {
    if (is.length > 0) report('oneOf', `added where there was none: ${is.length} schemas`);
    return;
  }
  const removed = was.filter((name) => !is.includes(name));
  const added = is.filter((name) => !was.includes(name));
  if (removed.length > 0) report('oneOf', `schemas removed: ${removed.map(cut).join(', ')}`);
  if (added.length > 0) report('oneOf', `schemas added: ${added.map(cut).join(', ')}`);
}

function withoutNotes(schema: JsonValue): JsonValue {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
  return Object.fromEntries(Object.entries(schema).filter(([key]) => !notes.has(key)));
}

function toTexts(value: JsonValue | undefined): string[] {
  return getList(value).map(String);
}

function toText(value: JsonValue): string {
  return encodeGoJson(sortKeysDeep(value));
}

/** Maximum characters of a value in a message. */
const maxShown = 60;

function cut(text: string): string {
  return text.length > maxShown ? `${text.slice(0, maxShown)}…` : text;
}

function shown(value: JsonValue | undefined): string {
  return value === undefined ? 'none' : cut(toText(value));
}
