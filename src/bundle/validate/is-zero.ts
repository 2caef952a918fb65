import { isJsonObject, type JsonValue } from '../../document/json.js';
import { version } from '../../kube/csv-types.js';
import type { Type } from '../../kube/struct.js';

/**
 * Reports whether a value is the zero value of a type in Go; empty lists and maps are not. (Source:
 * reflect.Value.IsZero.)
 */
export function isZero(value: JsonValue | undefined, type: Type): boolean {
  if (value === null || value === undefined) return true;
  if (typeof type === 'string') return type !== 'any' && (value === '' || value === 0 || value === false);
  if ('read' in type) {
    if (type !== version) return false;
    return typeof value === 'string' && /^\s*v?0*(?:\.0*)?(?:\.0*)?\s*$/.test(value);
  }
  if (!('fields' in type) || !isJsonObject(value)) return false;
  for (const [name, field] of type.fields) {
    if (Object.hasOwn(value, name) && !isZero(value[name], field.type)) return false;
  }
  return true;
}
