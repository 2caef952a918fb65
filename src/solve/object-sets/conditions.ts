import type { JsonObject } from '../../document/json.js';
import { getObject, getObjects } from '../../document/json-fields.js';
import { compareBytes } from '../../core/order.js';

/** Type, status, reason and message of a condition. */
export type Condition = readonly [type: string, status: string, reason: string, message: string];

/** Returns an object with these conditions in its status, sorted by type; others stay as they are. */
export function withConditions(object: JsonObject, ...conditions: readonly Condition[]): JsonObject {
  const byType = new Map(getConditions(object).map((condition) => [condition[0], condition]));
  for (const condition of conditions) byType.set(condition[0], condition);
  const sorted = [...byType.values()].sort((a, b) => compareBytes(a[0], b[0]));
  return withStatus(object, {
    conditions: sorted.map(([type, status, reason, message]) => ({ type, status, reason, message })),
  });
}

/** Returns an object with these fields in its status. */
export function withStatus(object: JsonObject, status: JsonObject): JsonObject {
  return { ...object, status: { ...getObject(object, 'status'), ...status } };
}

/** Returns the conditions of an object. */
export function getConditions(object: JsonObject): Condition[] {
  return getObjects(object, 'status', 'conditions').map(({ type, status, reason, message }) => [
    String(type),
    String(status),
    String(reason),
    String(message),
  ]);
}

/** Reports whether a condition of an object is true. */
export function hasCondition(object: JsonObject, wanted: string): boolean {
  return getConditions(object).some(([type, status]) => type === wanted && status === 'True');
}
