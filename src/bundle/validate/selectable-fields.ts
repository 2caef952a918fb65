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
    const steps = findSteps(jsonPath);
    const selected = steps && schemaAt(schema, steps);
    if (steps === undefined || selected === undefined) {
      const problem =
        steps === undefined ? 'not a path such as .spec.name' : 'does not refer to a valid field';
      path.invalid(jsonPath, `is an invalid path: ${problem}`);
      continue;
    }
    if (steps[0] === 'metadata') path.invalid(jsonPath, 'must not point to fields in metadata');
    if (!['string', 'boolean', 'integer'].includes(selected['type'] as string)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats ' +
        'are allowed.';
      path.invalid(jsonPath, detail);
    }
    const key = steps.join('\0');
    if (known.has(key)) path.fail(`Duplicate value: ${quoteGo(jsonPath)}`);
    known.add(key);
  }
  if (known.size > maxFields) field.fail(`Too many: ${known.size}: must have at most ${maxFields} items`);
}

/** Splits a path such as `.a.b['c']`; undefined for other texts. */
function findSteps(text: string): string[] | undefined {
  const pattern = /\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)+)'\]/gy;
  const steps: string[] = [];
  let end = 0;
  for (const { 0: all, 1: name, 2: quoted } of text.matchAll(pattern)) {
    steps.push(name ?? (quoted as string));
    end += all.length;
  }
  return end === text.length && steps.length > 0 ? steps : undefined;
}

function schemaAt(schema: JsonValue | undefined, steps: readonly string[]): JsonObject | undefined {
  let place = schema;
  for (const step of steps) {
    const properties = getValue(place, 'properties');
    place = isJsonObject(properties) && Object.hasOwn(properties, step) ? properties[step] : undefined;
  }
  return isJsonObject(place) ? place : undefined;
}
