import { isJsonObject, setJsonKey, type JsonObject, type JsonValue } from '../../document/json.js';
import { objectMeta } from '../meta-types.js';
import { childField, isMapKey, propertySchema, type SchemaSource } from './schema.js';

/** Fields that every object has. */
const objectSchema: SchemaSource = {
  properties: { apiVersion: { type: 'string' }, kind: { type: 'string' }, metadata: { type: 'object' } },
};

/**
 * Returns a document as the API server decodes it: nulls of fields that are not nullable are dropped, and defaults are
 * set. `unknown` collects the paths of fields that strict field validation refuses.
 */
export function prepareObject(document: JsonObject, schema: SchemaSource, unknown: string[]): JsonObject {
  const root = { ...schema, properties: { ...objectSchema.properties, ...schema.properties } };
  const prepared = prepareFields(document, root, '', unknown);
  findUnknownMetadata(document['metadata'], 'metadata', unknown);
  return prepared;
}

/** Prepares a part of an object; adds the paths of unknown fields to `unknown`. */
export function preparePart(
  value: JsonValue,
  schema: SchemaSource,
  field: string,
  unknown: string[],
): JsonValue {
  if (Array.isArray(value)) {
    const { items } = schema;
    return items === undefined
      ? value
      : value.map((item, index) => preparePart(item, items, `${field}[${index}]`, unknown));
  }
  if (!isJsonObject(value)) return value;
  if (schema['x-kubernetes-embedded-resource'] === true) {
    findUnknownMetadata(value['metadata'], `${field}.metadata`, unknown);
  }
  return prepareFields(value, schema, field, unknown);
}

function prepareFields(
  value: JsonObject,
  schema: SchemaSource,
  field: string,
  unknown: string[],
): JsonObject {
  const result: JsonObject = {};
  const isOpen =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema.additionalProperties === true ||
    (schema.properties === undefined &&
      schema.additionalProperties === undefined &&
      schema.type === 'object' &&
      field === 'metadata');
  for (const [key, item] of Object.entries(value)) {
    const inner = propertySchema(schema, key);
    const path = childField(field, key);
    if (inner === undefined) {
      if (isOpen) setJsonKey(result, key, item);
      else unknown.push(path);
    } else if (item !== null || inner.nullable === true || isMapKey(schema, key)) {
      setJsonKey(result, key, preparePart(item, inner, path, unknown));
    }
  }
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    if (inner.default !== undefined && !Object.hasOwn(result, key)) {
      result[key] = preparePart(structuredClone(inner.default), inner, childField(field, key), unknown);
    }
  }
  return result;
}

/** Fields of metadata that are not in the table of rendered ones. */
const serverFields: ReadonlySet<string> = new Set(['managedFields', 'finalizers']);

function findUnknownMetadata(metadata: JsonValue | undefined, field: string, unknown: string[]): void {
  if (!isJsonObject(metadata)) return;
  for (const key of Object.keys(metadata)) {
    if (!objectMeta.fields.has(key) && !serverFields.has(key)) unknown.push(childField(field, key));
  }
}
