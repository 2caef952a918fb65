import type { JsonObject, JsonValue } from '../document/json.js';
import { isJsonObject } from '../document/json.js';
import { getObjects, getText } from '../document/json-fields.js';
import { parseGoJson } from '../document/go-json.js';

/** Field manager of opmate in server-side apply. */
export const ownManager = 'opmate';

/** A manager of a field. */
export interface FieldManager {
  name: string;
  /** Time of its last change in RFC 3339; empty if unknown. */
  time: string;
}

/** Fields of one manager, as steps of paths: keys, and `[name=x]` or `[]` for items of lists. */
interface ManagedFields extends FieldManager {
  paths: string[][];
}

/** Maximum paths read per object: managers of further fields stay unknown. */
const maxPaths = 20_000;

/**
 * Returns a function that finds the managers other than opmate of a field of a live object, by its path as in
 * `FieldChange`. The object must include `metadata.managedFields`.
 */
export function openManagers(object: JsonObject): (path: string) => FieldManager[] {
  const managed = readManagedFields(object).filter(({ name }) => name !== ownManager);
  return (path) => {
    const steps = toSteps(path);
    return managed
      .filter(({ paths }) => paths.some((known) => overlaps(known, steps)))
      .map(({ name, time }) => ({ name, time }));
  };
}

function readManagedFields(object: JsonObject): ManagedFields[] {
  return getObjects(object, 'metadata', 'managedFields')
    .filter((entry) => getText(entry, 'subresource') !== 'status')
    .map((entry) => {
      const paths: string[][] = [];
      addPaths(entry['fieldsV1'], [], paths);
      return { name: getText(entry, 'manager'), time: getText(entry, 'time'), paths };
    });
}

function addPaths(fields: JsonValue | undefined, steps: string[], paths: string[][]): void {
  if (!isJsonObject(fields) || paths.length >= maxPaths) return;
  const keys = Object.keys(fields).filter((key) => key !== '.');
  if (keys.length === 0) {
    if (steps.length > 0) paths.push(steps);
    return;
  }
  for (const key of keys) {
    const step = toStep(key);
    if (step !== undefined) addPaths(fields[key], [...steps, step], paths);
  }
}

/** Returns the step of a key of `fieldsV1`: `f:NAME` of a field, `k:KEYS` or `v:VALUE` of an item. */
function toStep(key: string): string | undefined {
  if (key.startsWith('f:')) return key.slice(2);
  if (!key.startsWith('k:')) return key.startsWith('v:') ? '[]' : undefined;
  try {
    const name = getText(parseGoJson(key.slice(2)), 'name');
    return name === '' ? '[]' : `[name=${name}]`;
  } catch {
    return '[]';
  }
}

/** Splits a path of `FieldChange`: `spec.containers[name=x].image`, with quoted keys. */
function toSteps(path: string): string[] {
  return [...path.matchAll(/"(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^.[]+/g)].map(([step]) =>
    step.startsWith('"') ? (JSON.parse(step) as string) : step,
  );
}

/** Reports whether one path contains the other; an item without name may be any. */
function overlaps(known: readonly string[], steps: readonly string[]): boolean {
  const length = Math.min(known.length, steps.length);
  for (let index = 0; index < length; index++) {
    const [a = '', b = ''] = [known[index], steps[index]];
    if (a === b) continue;
    if (!a.startsWith('[') || !b.startsWith('[') || (a !== '[]' && b.startsWith('[name='))) return false;
  }
  return true;
}
