import {
  GraphQLBoolean,
  GraphQLError,
  type GraphQLFieldConfig,
  type GraphQLFieldConfigArgumentMap,
  GraphQLFloat,
  GraphQLInt,
  GraphQLList,
  GraphQLObjectType,
  type GraphQLResolveInfo,
  type GraphQLScalarType,
  GraphQLSchema,
  GraphQLString,
  validateSchema,
} from 'graphql';
import { OpmateError } from '../../core/errors.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { formatFloat } from '../../document/yaml/scalar.js';
import type { MetasQuery } from '../catalogs/content-index.js';
import type { CatalogShape, FieldShape, ScalarName, SchemaShape } from './catalog-shape.js';
import { toFieldName, toRootField, toTypeName } from './names.js';
import type { SchemaSize } from './query-limits.js';

/** Maximum objects of a root field. */
const maxLimit = 100;
/** Maximum elements of an array that is returned without checking the time. */
const smallList = 100;

const minInt = -(2 ** 31);
const maxInt = 2 ** 31 - 1;

/** Page of a list of blobs; the offset is zero-based. */
export interface Page {
  first: number;
  count: number;
}

/** Request of resolvers. */
export interface QueryContext {
  /** Reads the matching blobs, in stored order, each after the previous one has been written. */
  blobs(query: MetasQuery, page: Page, info: GraphQLResolveInfo): Promise<Iterable<Promise<JsonValue>>>;
  /** Yields the elements of a large array, with turns of other requests in between. */
  paced(elements: readonly JsonValue[]): Iterable<JsonValue | Promise<JsonValue>>;
  /** Reason for which the query has ended early; remaining values are null. */
  readonly failure: GraphQLError | undefined;
  /** Counts objects, or the value of a field. */
  spendObjects(count: number, info: GraphQLResolveInfo): void;
  spendValue(bytes: number, info: GraphQLResolveInfo): void;
  /** Returns null instead of throwing after too many errors. */
  report(error: GraphQLError): null;
}

export type CatalogSchema = ReturnType<typeof createCatalogSchema>;

const scalars: Record<ScalarName, GraphQLScalarType> = {
  String: GraphQLString,
  Int: GraphQLInt,
  Float: GraphQLFloat,
  Boolean: GraphQLBoolean,
};

/** Introspection without `includeDeprecated` returns the fields of catalogd. */
const extension = 'extension of opmate: catalogd does not have it';

type Fields = Record<string, GraphQLFieldConfig<JsonObject, QueryContext>>;

/**
 * Creates the GraphQL schema from the fields of a catalog's blobs. Throws OpmateError INVALID for colliding or invalid
 * names, as catalogd.
 */
export function createCatalogSchema(shape: CatalogShape) {
  checkNames(shape);
  try {
    const fields: Fields = Object.create(null) as Fields;
    for (const each of shape) fields[toRootField(each.name)] = rootField(each);
    fields['summary'] = summaryField(shape);
    const schema = new GraphQLSchema({ query: new GraphQLObjectType({ name: 'Query', fields }) });
    const [problem] = validateSchema(schema);
    if (problem !== undefined) throw problem;
    return { schema, size: getSize(schema) };
  } catch (cause) {
    const problem = cause instanceof Error ? cause.message : String(cause);
    throw new OpmateError('INVALID', `no GraphQL schema can be made of the catalog: ${problem}`, { cause });
  }
}

function checkNames(shape: CatalogShape): void {
  for (const [what, toName] of [
    ['type', toTypeName],
    ['root field', toRootField],
  ] as const) {
    const schemas = new Map<string, string>();
    for (const { name } of shape) {
      const other = schemas.get(toName(name));
      if (other !== undefined) {
        const both = `${JSON.stringify(other)} and ${JSON.stringify(name)}`;
        const problem = `schemas ${both} have the same ${what} ${toName(name)}`;
        throw new OpmateError('INVALID', `no GraphQL schema can be made of the catalog: ${problem}`);
      }
      schemas.set(toName(name), name);
    }
  }
}

function getSize(schema: GraphQLSchema): SchemaSize {
  const types = Object.values(schema.getTypeMap());
  const counts = types.map((type) => ('getFields' in type ? Object.keys(type.getFields()).length : 0));
  return { types: types.length, fieldsPerType: counts.reduce((a, b) => Math.max(a, b), 0) };
}

const rootArguments: GraphQLFieldConfigArgumentMap = {
  limit: { type: GraphQLInt, defaultValue: 100, description: 'Maximum number of objects; at most 100' },
  offset: { type: GraphQLInt, defaultValue: 0, description: 'Number of objects to skip' },
  name: { type: GraphQLString, description: 'Name of the objects', deprecationReason: extension },
  package: { type: GraphQLString, description: 'Package of the objects', deprecationReason: extension },
};

function rootField(shape: SchemaShape): GraphQLFieldConfig<JsonObject, QueryContext> {
  const type = new GraphQLObjectType<JsonObject, QueryContext>({
    name: toTypeName(shape.name),
    fields: getFields(shape.fields, toTypeName(shape.name)),
  });
  return {
    type: new GraphQLList(type),
    args: rootArguments,
    resolve: (_, { limit, offset, name, package: packageName }: Record<string, unknown>, context, info) => {
      const query = toQuery(shape.name, name ?? '', packageName ?? '');
      if (query === undefined) return [];
      const count = typeof limit === 'number' && limit > 0 && limit <= maxLimit ? limit : maxLimit;
      const first = typeof offset === 'number' ? Math.max(0, offset) : 0;
      return context.blobs(query, { first, count }, info);
    },
  };
}

/** An `olm.package` belongs to the package of its name. */
function toQuery(schema: string, name: unknown, packageName: unknown): MetasQuery | undefined {
  const query = { schema, name: String(name), package: String(packageName) };
  if (schema !== 'olm.package' || query.package === '') return query;
  if (query.name !== '' && query.name !== query.package) return undefined;
  return { schema, name: query.package, package: '' };
}

function getFields(shapes: ReadonlyMap<string, FieldShape>, typeName: string): Fields {
  const fields: Fields = Object.create(null) as Fields;
  for (const shape of shapes.values()) {
    fields[shape.name] = shape.nested.size > 0 ? objectsField(shape, typeName) : scalarField(shape);
  }
  for (const shape of shapes.values()) {
    const name = `${shape.name}Json`;
    // catalogd loses these values.
    const isLossy = shape.nested.size === 0 && (shape.isList || shape.scalar === 'Int');
    if (isLossy && !shapes.has(name)) fields[name] = jsonField(shape);
  }
  return fields;
}

function objectsField(shape: FieldShape, typeName: string): GraphQLFieldConfig<JsonObject, QueryContext> {
  const type = new GraphQLObjectType<JsonObject, QueryContext>({
    name: typeName + toTypeName(shape.name),
    fields: getFields(shape.nested, typeName + toTypeName(shape.name)),
  });
  return {
    type: new GraphQLList(type),
    resolve: (object, _, context, info) => {
      const value = getValue(object, shape);
      if (value === null) return null;
      if (!Array.isArray(value)) return context.report(notIterable(info));
      context.spendObjects(value.length, info);
      if (context.failure !== undefined) return null;
      return value.length <= smallList ? value : context.paced(value);
    },
  };
}

function scalarField(shape: FieldShape): GraphQLFieldConfig<JsonObject, QueryContext> {
  const type = scalars[shape.scalar];
  return {
    type: shape.isList ? new GraphQLList(type) : type,
    resolve: (object, _, context, info) => {
      if (context.failure !== undefined) return null;
      const value = getValue(object, shape);
      if (shape.isList && value !== null) {
        context.spendValue(8, info);
        return context.report(notIterable(info));
      }
      const scalar = toScalar(value, shape.scalar);
      context.spendValue(typeof scalar === 'string' ? scalar.length : 8, info);
      return scalar;
    },
  };
}

function jsonField(shape: FieldShape): GraphQLFieldConfig<JsonObject, QueryContext> {
  return {
    type: GraphQLString,
    description: `${shape.name} as JSON text`,
    deprecationReason: extension,
    resolve: (object, _, context, info) => {
      if (context.failure !== undefined) return null;
      const value = getValue(object, shape);
      const text = value === null ? null : toJsonText(value);
      context.spendValue(text?.length ?? 8, info);
      return text;
    },
  };
}

/** Returns the value of a field; null where an object has none, and for other values, which arrays may contain. */
function getValue(object: unknown, { name, keys }: FieldShape): JsonValue {
  if (!isJsonObject(object)) return null;
  const key =
    keys.find((known) => Object.hasOwn(object, known)) ??
    // Only the first elements of an array are sampled: later ones may spell the key differently.
    Object.keys(object).find((other) => toFieldName(other) === name);
  return key === undefined ? null : (object[key] ?? null);
}

/** catalogd passes lists of scalars to its library as text, which is not a list. */
function notIterable({ parentType, fieldName }: GraphQLResolveInfo): GraphQLError {
  const advice = parentType.getFields()[`${fieldName}Json`] === undefined ? '' : `; select ${fieldName}Json`;
  return new GraphQLError(
    `expected iterable, but did not find one for field ${parentType.name}.${fieldName}${advice}`,
  );
}

function summaryField(shape: CatalogShape): GraphQLFieldConfig<JsonObject, QueryContext> {
  const schemas = shape.map(({ name, count, fields }) => ({
    name,
    totalObjects: count,
    totalFields: fields.size,
  }));
  const schemaSummary = new GraphQLObjectType({
    name: 'SchemaSummary',
    fields: {
      name: { type: GraphQLString },
      totalObjects: { type: GraphQLInt },
      totalFields: { type: GraphQLInt },
    },
  });
  const type = new GraphQLObjectType({
    name: 'CatalogSummary',
    fields: { totalSchemas: { type: GraphQLInt }, schemas: { type: new GraphQLList(schemaSummary) } },
  });
  return { type, resolve: () => ({ totalSchemas: schemas.length, schemas }) };
}

/** Formats a value as Go's JSON text, with sorted keys. */
function toJsonText(value: JsonValue): string {
  return encodeGoJson(sortKeysDeep(value), { escapeHtml: true });
}

/**
 * Converts a value to a scalar; null where impossible. Objects and arrays become JSON text. (Source: graphql-go,
 * scalars.go.)
 */
function toScalar(value: JsonValue, scalar: ScalarName): string | number | boolean | null {
  if (value === null) return null;
  const plain = isJsonObject(value) || Array.isArray(value) ? toJsonText(value) : value;
  switch (scalar) {
    case 'String':
      return toText(plain);
    case 'Boolean':
      return typeof plain === 'string' ? plain !== '' && plain !== 'false' : Boolean(plain);
    case 'Float':
      return toNumber(plain);
    case 'Int': {
      const number = toNumber(plain);
      return number === null || number < minInt || number > maxInt ? null : Math.trunc(number) + 0;
    }
  }
}

function toText(value: string | number | bigint | boolean): string {
  return typeof value === 'number' ? formatFloat(value) : String(value);
}

/** Returns null for infinite numbers and NaN. */
function toNumber(value: string | number | bigint | boolean): number | null {
  if (typeof value === 'string' && !/^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/.test(value)) return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}
