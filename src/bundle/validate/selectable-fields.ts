import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getValue } from '../../document/json-fields.js';
import { type Place, child, invalid, required } from './field-diagnostics.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

const maxFields = 8;

/** Returns the faults of fields for `kubectl get --field-selector`. (Source: apiextensions-apiserver.) */
export function selectableFieldFaults(
  fields: readonly { jsonPath: string }[],
  schema: JsonObject | undefined,
  place: Place,
): CheckDiagnostic[] {
  const faults: CheckDiagnostic[] = [];
  const known = new Set<string>();
  for (const [index, { jsonPath }] of fields.entries()) {
    const location = child(place, index, 'jsonPath');
    if (jsonPath === '') {
      faults.push(required(location));
      continue;
    }
    const steps = findSteps(jsonPath);
    const selected = steps && schemaAt(schema, steps);
    if (steps === undefined || selected === undefined) {
      const problem =
        steps === undefined ? 'not a path such as .spec.name' : 'does not refer to a valid field';
      faults.push(invalid(location, jsonPath, `is an invalid path: ${problem}`));
      continue;
    }
    if (steps[0] === 'metadata')
      faults.push(invalid(location, jsonPath, 'must not point to fields in metadata'));
    if (!isSelectable(selected)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats ' +
        'are allowed.';
      faults.push(invalid(location, jsonPath, detail));
    }
    const key = steps.join('\0');
    if (known.has(key)) {
      faults.push(errorAt(location.path, `${location.field}: Duplicate value: ${quoteGo(jsonPath)}`));
    }
    known.add(key);
  }
  if (known.size > maxFields) {
    const problem = `${place.field}: Too many: ${known.size}: must have at most ${maxFields} items`;
    faults.push(errorAt(place.path, problem));
  }
  return faults;
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

function isSelectable(schema: JsonObject): boolean {
  const type = schema['type'];
  return type === 'string' || type === 'boolean' || type === 'integer';
}
