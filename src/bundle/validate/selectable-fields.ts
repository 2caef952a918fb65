import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getValue } from '../../document/json-fields.js';
import type { CheckedField } from './report.js';

const maxFields = 8;

/** Checks fields for `kubectl get --field-selector`. (Source: apiextensions-apiserver.) */
export function checkSelectableFields(
  fields: readonly { jsonPath: string }[],
  schema: JsonObject | undefined,
  field: CheckedField,
): void {
  const known = new Set<string>();
  for (const [index, { jsonPath }] of fields.entries()) {
    const path = field.child(index).child('jsonPath');
    if (jsonPath === '') {
      path.required();
      continue;
    }
    const selected = followPath(jsonPath, schema);
    if (typeof selected === 'string') {
      path.invalid(jsonPath, `is an invalid path: ${selected}`);
      continue;
    }
    if (selected.steps[0] === 'metadata') path.invalid(jsonPath, 'must not point to fields in metadata');
    if (!['string', 'boolean', 'integer'].includes(getValue(selected.schema, 'type') as string)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats ' +
        'are allowed.';
      path.invalid(jsonPath, detail);
    }
    const key = selected.steps.join('.');
    if (known.has(key)) path.fail(`Duplicate value: ${quoteGo(jsonPath)}`);
    known.add(key);
  }
  if (known.size > maxFields) field.fail(`Too many: ${known.size}: must have at most ${maxFields} items`);
}

/** Follows a path such as `.spec.name` through a schema, or returns its fault in the words of API servers. */
function followPath(
  text: string,
  root: JsonObject | undefined,
): { steps: string[]; schema: JsonValue } | string {
  const tokens = text.match(/[.[\]]|'(?:[^']|(?<=\\)')*(?:'|$)|[^.[\]]+/g) ?? [];
  const steps: string[] = [];
  let schema: JsonValue | undefined = root;
  for (let index = 0; index < tokens.length; index += 2) {
    const [delimiter = '', name] = tokens.slice(index, index + 2);
    if (delimiter === '[') return 'array notation is not allowed';
    if (delimiter !== '.') return `expected [ or . but got: ${delimiter}`;
    if (name === undefined) return 'unexpected end of JSON path';
    const properties = getValue(schema, 'properties');
    schema = isJsonObject(properties) ? getValue(properties, name) : getValue(schema, 'additionalProperties');
    if (schema === undefined) return 'does not refer to a valid field';
    steps.push(name);
  }
  return { steps, schema: schema ?? null };
}
