/**
 * Fields of a catalog's blobs by schema, for its GraphQL schema. A field has the type of the first blob that has it.
 * (Source: catalogd, internal/catalogd/graphql.)
 */
import { takeTurn } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import type { ContentBlob, Section } from '../catalogs/content-index.js';
import { type ContentReader, type StoredContent, readSection } from '../catalogs/stored-content.js';
import { toFieldName } from './names.js';

/** Elements of an array that determine its type. */
const sampledElements = 10;
/** Maximum fields of all schemas; catalogs of real operators have about thirty. */
const maxFields = 20_000;
/** Bytes of blobs per read. */
const readBytes = 1024 * 1024;

export type ScalarName = 'String' | 'Int' | 'Float' | 'Boolean';

export interface FieldShape {
  name: string;
  /** Keys with this name, in order of appearance. */
  keys: string[];
  scalar: ScalarName;
  isList: boolean;
  /** Fields of the objects in an array, by name. */
  nested: Map<string, FieldShape>;
}

export interface SchemaShape {
  name: string;
  /** Number of blobs. */
  count: number;
  fields: Map<string, FieldShape>;
}

/** Schemas, sorted by name. */
export type CatalogShape = readonly SchemaShape[];

/** Reads the shape of a catalog from all its blobs. Throws OpmateError LIMIT for too many fields. */
export async function readCatalogShape(content: StoredContent, reader: ContentReader): Promise<CatalogShape> {
  const schemas = new Map<string, SchemaShape>();
  let fieldCount = 0;
  const countField = (): void => {
    if (++fieldCount <= maxFields) return;
    throw new OpmateError('LIMIT', `the catalog has more than ${maxFields} fields`);
  };
  /** Adds the fields of a blob or, where `isNested`, of an object in one of its arrays. */
  const addFields = (fields: Map<string, FieldShape>, object: JsonObject, isNested: boolean): void => {
    for (const [key, value] of Object.entries(object)) {
      const name = toFieldName(key);
      let field = fields.get(name);
      if (field === undefined) {
        countField();
        fields.set(name, (field = { name, keys: [key], ...getType(value, !isNested), nested: new Map() }));
      } else if (!field.keys.includes(key)) {
        countField();
        field.keys.push(key);
      }
      if (isNested || !Array.isArray(value)) continue;
      for (const element of value.slice(0, sampledElements)) {
        if (isJsonObject(element)) addFields(field.nested, element, true);
      }
    }
  };
  for (const group of groupedBlobs(content)) {
    const buffer = await readSection(reader, group);
    for (const { schema, section } of group.blobs) {
      if (schema === '') continue;
      await takeTurn();
      const start = section.offset - group.offset;
      const value = parseGoJson(buffer.toString('utf8', start, start + section.length));
      if (!isJsonObject(value)) continue;
      let shape = schemas.get(schema);
      if (shape === undefined) {
        countField();
        schemas.set(schema, (shape = { name: schema, count: 0, fields: new Map() }));
      }
      shape.count++;
      addFields(shape.fields, value, false);
    }
  }
  return [...schemas.values()].sort((a, b) => compareBytes(a.name, b.name));
}

interface BlobGroup extends Section {
  blobs: ContentBlob[];
}

/** Groups adjacent blobs for a common read; there are no gaps. */
function* groupedBlobs(content: StoredContent): Generator<BlobGroup, void, undefined> {
  let group: BlobGroup | undefined;
  for (const blob of content.blobs()) {
    const { offset, length } = blob.section;
    if (group !== undefined && group.length + length > readBytes) {
      yield group;
      group = undefined;
    }
    group ??= { offset, length: 0, blobs: [] };
    group.length += length;
    group.blobs.push(blob);
  }
  if (group !== undefined) yield group;
}

/** Returns the type of a value; of a nested array, upstream samples the first element only. */
function getType(value: JsonValue, samples: boolean): { scalar: ScalarName; isList: boolean } {
  if (!Array.isArray(value)) return { scalar: getScalar(value), isList: false };
  const sampled = value.slice(0, samples ? sampledElements : 1).filter((element) => element !== null);
  const [first] = sampled;
  if (first === undefined) return { scalar: 'String', isList: true };
  const isMixed = sampled.some((element) => getKind(element) !== getKind(first));
  const hasObjects = sampled.some(isJsonObject);
  return { scalar: isMixed && !hasObjects ? 'String' : getScalar(first), isList: true };
}

function getKind(value: JsonValue): string {
  return Array.isArray(value) ? 'array' : typeof value === 'bigint' ? 'number' : typeof value;
}

function getScalar(value: JsonValue): ScalarName {
  switch (typeof value) {
    case 'boolean':
      return 'Boolean';
    case 'number':
    case 'bigint': {
      const number = Number(value);
      return Number.isInteger(number) && number >= -(2 ** 63) && number < 2 ** 63 ? 'Int' : 'Float';
    }
    default:
      return 'String';
  }
}
