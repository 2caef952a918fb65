import { type JsonObject, type JsonValue, isJsonObject } from '../../../document/json.js';

/** A nested schema. */
export interface SchemaAt {
  schema: JsonObject;
  /** Path in its document. */
  place: (string | number)[];
}

/** Keywords with one schema. */
const single = ['items', 'additionalProperties', 'additionalItems', 'not'] as const;
const lists = ['allOf', 'anyOf', 'oneOf', 'items'] as const;
const maps = ['patternProperties', 'definitions', 'dependencies'] as const;

/**
 * Returns all schemas in a schema by their paths, as the preflight of operator-controller writes them: `^` is the root,
 * `^.spec.items` the items of its property `spec`.
 */
export function schemaPaths(root: JsonObject, place: readonly (string | number)[]): Map<string, SchemaAt> {
  const schemas = new Map<string, SchemaAt>();
  const visit = (value: JsonValue | undefined, path: string, where: (string | number)[]): void => {
    if (!isJsonObject(value)) return;
    schemas.set(path, { schema: value, place: where });
    for (const keyword of single) visit(value[keyword], `${path}.${keyword}`, [...where, keyword]);
    for (const keyword of lists) {
      const list = value[keyword];
      if (!Array.isArray(list)) continue;
      list.forEach((item, index) => visit(item, `${path}.${keyword}[${index}]`, [...where, keyword, index]));
    }
    for (const keyword of maps) {
      for (const [name, item] of getEntries(value[keyword])) {
        visit(item, `${path}.${keyword}[${name}]`, [...where, keyword, name]);
      }
    }
    for (const [name, item] of getEntries(value['properties'])) {
      visit(item, `${path}.${name}`, [...where, 'properties', name]);
    }
  };
  visit(root, '^', [...place]);
  return schemas;
}

function getEntries(value: JsonValue | undefined): [string, JsonValue][] {
  return isJsonObject(value) ? Object.entries(value) : [];
}
