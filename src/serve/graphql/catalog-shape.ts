/**
 * Fields of a catalog's blobs by schema, for its GraphQL schema. A field has the type of the first blob that has it.
 * (Source: catalogd, internal/catalogd/graphql.)
 */
import { takeTurn } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import type { ContentReader, StoredContent } from '../catalogs/stored-content.js';
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
  const builder = new ShapeBuilder();
  for (const group of groupedBlobs(content)) {
    const buffer = Buffer.allocUnsafe(group.length);
    await reader.read(buffer, group.offset);
    let start = 0;
    for (const { schema, length } of group.blobs) {
      const text = buffer.toString('utf8', start, start + length);
      start += length;
      if (schema === '') continue;
      await takeTurn();
      const value = parseGoJson(text);
      if (isJsonObject(value)) builder.add(schema, value);
    }
  }
  return builder.finish();
}

interface BlobGroup {
  offset: number;
  length: number;
  blobs: { schema: string; length: number }[];
}

/** Groups adjacent blobs for a common read; there are no gaps. */
function* groupedBlobs(content: StoredContent): Generator<BlobGroup, void, undefined> {
  let group: BlobGroup | undefined;
  for (const { schema, section } of content.blobs({ schema: '', package: '', name: '' })) {
    if (group !== undefined && group.length + section.length > readBytes) {
      yield group;
      group = undefined;
    }
    group ??= { offset: section.offset, length: 0, blobs: [] };
    group.length += section.length;
    group.blobs.push({ schema, length: section.length });
  }
  if (group !== undefined) yield group;
}

/** Collects the shape of a catalog, blob by blob. */
class ShapeBuilder {
  readonly #schemas = new Map<string, SchemaShape>();
  #fields = 0;

  add(schema: string, blob: JsonObject): void {
    let shape = this.#schemas.get(schema);
    if (shape === undefined) {
      this.#count();
      this.#schemas.set(schema, (shape = { name: schema, count: 0, fields: new Map() }));
    }
    shape.count++;
    for (const key of Object.keys(blob)) this.#addField(shape.fields, key, blob[key] as JsonValue);
  }

  finish(): CatalogShape {
    return sortedByBytes([...this.#schemas.keys()]).map((name) => this.#schemas.get(name) as SchemaShape);
  }

  #addField(fields: Map<string, FieldShape>, key: string, value: JsonValue): void {
    const name = toFieldName(key);
    let field = fields.get(name);
    if (field === undefined) {
      this.#count();
      fields.set(name, (field = { name, keys: [key], ...getType(value, true), nested: new Map() }));
    } else if (!field.keys.includes(key)) {
      this.#count();
      field.keys.push(key);
    }
    if (!Array.isArray(value)) return;
    for (const element of value.slice(0, sampledElements)) {
      if (isJsonObject(element)) this.#addNested(field.nested, element);
    }
  }

  #addNested(fields: Map<string, FieldShape>, object: JsonObject): void {
    for (const key of Object.keys(object)) {
      const name = toFieldName(key);
      const field = fields.get(name);
      if (field === undefined) {
        this.#count();
        const type = getType(object[key] as JsonValue, false);
        fields.set(name, { name, keys: [key], ...type, nested: new Map() });
      } else if (!field.keys.includes(key)) {
        this.#count();
        field.keys.push(key);
      }
    }
  }

  #count(): void {
    if (++this.#fields <= maxFields) return;
    throw new OpmateError('LIMIT', `the catalog has more than ${maxFields} fields`);
  }
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
