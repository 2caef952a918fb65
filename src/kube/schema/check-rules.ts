import { isDeepStrictEqual } from 'node:util';
import { getMessage } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { isJsonObject, type JsonValue } from '../../document/json.js';
import { type CelProgram, createCelCompiler } from '../cel.js';
import { compileGoPattern } from '../go-pattern.js';
import { execWithin } from './limited-pattern.js';
import { dns1035LabelFaults, dns1123LabelFaults, labelValueFaults, subdomainFaults } from '../names.js';
import { findOldItem } from './check-values.js';
import {
  type CauseReason,
  childField,
  type FieldCause,
  isMapKey,
  propertySchema,
  type SchemaRule,
  type SchemaSource,
} from './schema.js';

/**
 * Evaluates the CEL rules of a schema in the words of the API server. Rules about a change hold without `old`; other
 * rules are not evaluated for a value that equals its stored one.
 */
export function checkRules(
  value: JsonValue,
  schema: SchemaSource,
  field: string,
  old?: JsonValue | undefined,
): FieldCause[] {
  const causes = (schema['x-kubernetes-validations'] ?? []).flatMap((rule) =>
    checkRule(rule, value, schema, field, old),
  );
  if (Array.isArray(value) && schema.items !== undefined) {
    for (const [index, item] of value.entries()) {
      const oldItem = findOldItem(item, schema, old);
      causes.push(...checkRules(item, schema.items, `${field}[${index}]`, oldItem));
    }
  } else if (isJsonObject(value)) {
    for (const [key, item] of Object.entries(value)) {
      const inner = propertySchema(schema, key);
      if (inner === undefined) continue;
      const isAtomic = schema['x-kubernetes-map-type'] === 'atomic';
      const oldItem = isJsonObject(old) && !isAtomic && Object.hasOwn(old, key) ? old[key] : undefined;
      causes.push(...checkRules(item, inner, childField(field, key, isMapKey(schema, key)), oldItem));
    }
  }
  return causes;
}

function checkRule(
  rule: SchemaRule,
  value: JsonValue,
  schema: SchemaSource,
  field: string,
  old: JsonValue | undefined,
): FieldCause[] {
  const comparesOld = /\boldSelf\b/.test(rule.rule);
  if (comparesOld ? old === undefined : old !== undefined && isDeepStrictEqual(value, old)) return [];
  const problem = findProblem(rule, value, schema, old);
  if (problem === undefined) return [];
  const reason = (rule.reason ?? 'FieldValueInvalid') as CauseReason;
  const shown = showScalar(value);
  const at = rule.fieldPath === undefined ? field : `${field}${rule.fieldPath}`;
  return [{ field: at, reason, message: `Invalid value: ${shown === '' ? '' : `${shown}: `}${problem}` }];
}

/** The API server shows scalar values only. */
function showScalar(value: JsonValue): string {
  if (typeof value === 'string') return quoteGo(value);
  return typeof value === 'object' ? '' : String(value);
}

function findProblem(
  rule: SchemaRule,
  value: JsonValue,
  schema: SchemaSource,
  old: JsonValue | undefined,
): string | undefined {
  try {
    const self = toCel(value, schema);
    const oldSelf = old === undefined ? null : toCel(old, schema);
    if (compileRule(rule).evaluate({ self, oldSelf, format: {} }) === true) return undefined;
  } catch (error) {
    return `rule evaluation error: ${getMessage(error)}`;
  }
  return rule.message ?? `failed rule: ${rule.rule}`;
}

const programs = new WeakMap<SchemaRule, CelProgram>();

let compile: ReturnType<typeof createCelCompiler> | undefined;

function compileRule(rule: SchemaRule): CelProgram {
  const known = programs.get(rule);
  if (known !== undefined) return known;
  compile ??= createCelCompiler({
    variables: { self: 'dyn', oldSelf: 'dyn', format: 'map' },
    extensions: 'all',
    comparesAcrossTypes: true,
    functions: ruleFunctions,
  });
  const program = compile(rule.rule);
  programs.set(rule, program);
  return program;
}

/** Formats of `format.NAME()`, which returns the faults of a text. (Source: CEL library of the API server.) */
const formats: Readonly<Record<string, (text: string) => string[]>> = {
  dns1123Label: dns1123LabelFaults,
  dns1123Subdomain: subdomainFaults,
  dns1035Label: dns1035LabelFaults,
  labelValue: labelValueFaults,
};

/** Functions of the CEL libraries of the API server that the engine lacks. */
const ruleFunctions: Readonly<Record<string, (...args: never[]) => unknown>> = {
  'string.find(string): string': (text: string, pattern: string) => {
    const found = execWithin(compileGoPattern(pattern), text);
    return found?.[0] ?? '';
  },
  ...Object.fromEntries(Object.keys(formats).map((name) => [`map.${name}(): map`, () => ({ format: name })])),
  'map.validate(string): map': ({ format }: { format: string }, text: string) => ({
    faults: formats[format]?.(text) ?? [],
  }),
  'map.hasValue(): bool': ({ faults }: { faults: string[] }) => faults.length > 0,
};

/** Returns a value as CEL sees it: integers as bigint, declared fields with escaped names. */
function toCel(value: JsonValue, schema: SchemaSource | undefined): unknown {
  if (Array.isArray(value)) return value.map((item) => toCel(item, schema?.items));
  if (isJsonObject(value)) {
    const entries = Object.entries(value).map(([key, item]): [string, unknown] => {
      const inner = schema && propertySchema(schema, key);
      const isField = schema !== undefined && !isMapKey(schema, key);
      return [isField ? escapeName(key) : key, toCel(item, inner)];
    });
    return Object.fromEntries(entries);
  }
  if (typeof value === 'number' && Number.isInteger(value) && schema?.type !== 'number') return BigInt(value);
  return value;
}

const keywords: ReadonlySet<string> = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return var ' +
    'void while'
  ).split(' '),
);

/** Escapes a name that CEL cannot write. (Source: apiserver, cel/escaping.go.) */
function escapeName(name: string): string {
  if (keywords.has(name)) return `__${name}__`;
  return name
    .replaceAll('__', '__underscores__')
    .replaceAll('.', '__dot__')
    .replaceAll('-', '__dash__')
    .replaceAll('/', '__slash__');
}
