import { isDeepStrictEqual } from 'node:util';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { compileGoPattern } from '../go-pattern.js';
import { execWithin } from './limited-pattern.js';
import { embeddedResourceCauses } from './object-meta.js';
import {
  type CauseReason,
  childField,
  type FieldCause,
  isMapKey,
  propertySchema,
  type SchemaSource,
} from './schema.js';

/** Collects causes of one field. */
type Refuse = (reason: CauseReason, message: string) => void;

/**
 * Checks a value against a structural schema in the words of the API server, without CEL rules. Parts that equal the
 * stored `old` value are accepted.
 */
export function checkValue(
  value: JsonValue,
  schema: SchemaSource,
  field: string,
  old?: JsonValue | undefined,
): FieldCause[] {
  if (old !== undefined && isDeepStrictEqual(value, old)) return [];
  const causes: FieldCause[] = [];
  const refuse: Refuse = (reason, message) => causes.push({ field, reason, message });
  const mismatch = findTypeMismatch(value, schema);
  if (value === null && mismatch === undefined) return [];
  if (mismatch !== undefined) {
    const shown = typeName(value, schema);
    refuse(
      'FieldValueTypeInvalid',
      `Invalid value: "${shown}": ${field} in body must be of type ${mismatch}: "${shown}"`,
    );
    return causes;
  }
  checkEnum(value, schema, refuse);
  if (typeof value === 'string') checkText(value, schema, field, refuse);
  else if (typeof value === 'number' || typeof value === 'bigint') checkNumber(value, schema, field, refuse);
  else if (Array.isArray(value)) {
    checkItemCount(value, schema, field, refuse);
    causes.push(...checkItems(value, schema, field, old));
  } else if (isJsonObject(value)) {
    checkPropertyCount(value, schema, field, refuse);
    causes.push(...checkProperties(value, schema, field, old));
  }
  checkCombinations(value, schema, field, causes);
  return causes;
}

function typeName(value: JsonValue, schema: SchemaSource): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'bigint' || Number.isInteger(value)) return 'integer';
  if (typeof value === 'number') return schema.format?.startsWith('int') === true ? 'float64' : 'number';
  return typeof value;
}

/** Returns the expected type of a value that has another; undefined if it fits. */
function findTypeMismatch(value: JsonValue, schema: SchemaSource): string | undefined {
  if (value === null) return schema.nullable === true ? undefined : (schema.type ?? 'object');
  const name = typeName(value, schema);
  if (schema['x-kubernetes-int-or-string'] === true) {
    return name === 'integer' || name === 'string' ? undefined : 'integer,string';
  }
  const { type } = schema;
  if (type === undefined || type === name || (type === 'number' && name === 'integer')) return undefined;
  return name === 'float64' ? schema.format : type;
}

function show(value: JsonValue): string {
  return encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}

function checkEnum(value: JsonValue, { enum: values }: SchemaSource, refuse: Refuse): void {
  if (values === undefined || values.some((known) => isDeepStrictEqual(known, value))) return;
  const known = values.map((item) => show(item)).join(', ');
  refuse('FieldValueNotSupported', `Unsupported value: ${show(value)}: supported values: ${known}`);
}

function checkText(text: string, schema: SchemaSource, field: string, refuse: Refuse): void {
  const invalid = (problem: string): void =>
    refuse('FieldValueInvalid', `Invalid value: ${quoteGo(text)}: ${field} in body ${problem}`);
  const length = [...text].length;
  const { minLength = 0, maxLength = Infinity, pattern } = schema;
  if (length > maxLength) {
    refuse('FieldValueTooLong', `Too long: may not be more than ${maxLength} bytes`);
  }
  if (length < minLength) invalid(`should be at least ${minLength} chars long`);
  if (pattern !== undefined && execWithin(compileGoPattern(pattern), text) === null)
    invalid(`should match '${pattern}'`);
}

function checkNumber(value: number | bigint, schema: SchemaSource, field: string, refuse: Refuse): void {
  const invalid = (problem: string): void =>
    refuse('FieldValueInvalid', `Invalid value: ${value}: ${field} in body should be ${problem}`);
  const { minimum = -Infinity, maximum = Infinity, multipleOf } = schema;
  if (schema.exclusiveMinimum === true ? value <= minimum : value < minimum) {
    invalid(`greater than ${schema.exclusiveMinimum === true ? '' : 'or equal to '}${minimum}`);
  }
  if (schema.exclusiveMaximum === true ? value >= maximum : value > maximum) {
    invalid(`less than ${schema.exclusiveMaximum === true ? '' : 'or equal to '}${maximum}`);
  }
  if (multipleOf !== undefined && Number(value) % multipleOf !== 0) invalid(`a multiple of ${multipleOf}`);
  const bits = schema.format === 'int32' ? 31 : schema.format === 'int64' ? 63 : undefined;
  if (bits !== undefined && (value >= 2n ** BigInt(bits) || value < -(2n ** BigInt(bits)))) {
    invalid(`of format ${schema.format}`);
  }
}

function checkItemCount(items: JsonValue[], schema: SchemaSource, field: string, refuse: Refuse): void {
  const { minItems = 0, maxItems = Infinity, uniqueItems = false } = schema;
  if (items.length > maxItems) {
    refuse('FieldValueTooMany', `Too many: ${items.length}: must have at most ${maxItems} items`);
  }
  if (items.length < minItems) {
    const problem = `${field} in body should have at least ${minItems} items`;
    refuse('FieldValueInvalid', `Invalid value: ${items.length}: ${problem}`);
  }
  if (uniqueItems && new Set(items.map(show)).size < items.length) {
    refuse('FieldValueInvalid', `Invalid value: ${field} in body shouldn't contain duplicates`);
  }
}

function checkItems(
  items: JsonValue[],
  schema: SchemaSource,
  field: string,
  old: JsonValue | undefined,
): FieldCause[] {
  const causes = duplicateCauses(items, schema, field);
  const { items: itemSchema } = schema;
  if (itemSchema === undefined) return causes;
  for (const [index, item] of items.entries()) {
    causes.push(...checkValue(item, itemSchema, `${field}[${index}]`, findOldItem(item, schema, old)));
  }
  return causes;
}

/** Returns the stored item with the keys of an item of a map list; undefined for items of other lists. */
export function findOldItem(
  item: JsonValue,
  schema: SchemaSource,
  old: JsonValue | undefined,
): JsonValue | undefined {
  const key = itemKey(item, schema);
  if (key === undefined || schema['x-kubernetes-list-type'] !== 'map' || !Array.isArray(old))
    return undefined;
  return old.find((other) => itemKey(other, schema) === key);
}

/** Returns a text that items of a set or map list must not share; undefined for other lists. */
function itemKey(item: JsonValue, schema: SchemaSource): string | undefined {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] === 'set') return show(item);
  if (schema['x-kubernetes-list-type'] !== 'map' || keys === undefined || !isJsonObject(item))
    return undefined;
  return show(Object.fromEntries(keys.map((key) => [key, item[key] ?? null])));
}

function duplicateCauses(items: JsonValue[], schema: SchemaSource, field: string): FieldCause[] {
  const seen = new Set<string>();
  return items.flatMap((item, index): FieldCause[] => {
    const key = itemKey(item, schema);
    if (key === undefined) return [];
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    const message = `Duplicate value: ${key}`;
    return [{ field: `${field}[${index}]`, reason: 'FieldValueDuplicate', message }];
  });
}

function checkPropertyCount(value: JsonObject, schema: SchemaSource, field: string, refuse: Refuse): void {
  const count = Object.keys(value).length;
  const { minProperties = 0, maxProperties = Infinity } = schema;
  if (count < minProperties) {
    const problem = `${field} in body should have at least ${minProperties} properties`;
    refuse('FieldValueInvalid', `Invalid value: ${count}: ${problem}`);
  }
  if (count > maxProperties) {
    refuse('FieldValueTooMany', `Too many: ${count}: must have at most ${maxProperties} items`);
  }
}

function checkProperties(
  value: JsonObject,
  schema: SchemaSource,
  field: string,
  old: JsonValue | undefined,
): FieldCause[] {
  const causes: FieldCause[] = [];
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true;
  if (isEmbedded) causes.push(...embeddedResourceCauses(value, field));
  for (const key of schema.required ?? []) {
    if (Object.hasOwn(value, key)) continue;
    causes.push({ field: childField(field, key), reason: 'FieldValueRequired', message: 'Required value' });
  }
  for (const [key, item] of Object.entries(value)) {
    const inner = propertySchema(schema, key);
    if (inner === undefined) continue;
    const oldItem = isJsonObject(old) && Object.hasOwn(old, key) ? old[key] : undefined;
    causes.push(...checkValue(item, inner, childField(field, key, isMapKey(schema, key)), oldItem));
  }
  return causes;
}

function checkCombinations(
  value: JsonValue,
  schema: SchemaSource,
  field: string,
  causes: FieldCause[],
): void {
  for (const part of schema.allOf ?? []) causes.push(...checkValue(value, part, field));
  const invalid = (problem: string): void => {
    causes.push({
      field,
      reason: 'FieldValueInvalid',
      message: `Invalid value: ${show(value)}: ${field} in body ${problem}`,
    });
  };
  const holds = (part: SchemaSource): boolean => checkValue(value, part, field).length === 0;
  if (schema.anyOf !== undefined && !schema.anyOf.some(holds)) {
    invalid('must validate at least one schema (anyOf)');
  }
  if (schema.oneOf !== undefined && schema.oneOf.filter(holds).length !== 1) {
    invalid('must validate one and only one schema (oneOf)');
  }
  if (schema.not !== undefined && holds(schema.not)) invalid('must not validate the schema (not)');
}
