import { quoteGo } from '../core/go-json-quote.js';
import { getList, getObject, getText } from '../document/json-fields.js';
import type { JsonObject, JsonValue } from '../document/json.js';

/** Returns the labels of an object; values that are no strings are omitted. */
export function getLabels(object: JsonObject): Map<string, string> {
  const entries = Object.entries(getObject(object, 'metadata', 'labels'));
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

/** Reports whether labels match a Kubernetes selector; an empty one matches all, an unknown operator nothing. */
export function meetsSelector(labels: ReadonlyMap<string, string>, selector: JsonObject): boolean {
  const wanted = selector['matchLabels'];
  const isMatch = Object.entries(getObject(wanted)).every(([key, value]) => labels.get(key) === value);
  return isMatch && getList(selector, 'matchExpressions').every((item) => meetsExpression(labels, item));
}

/** Returns what is wrong with the operators of a selector; undefined if all are known. */
export function selectorFault(selector: JsonObject): string | undefined {
  const operators = getList(selector, 'matchExpressions').map((item) => getText(item, 'operator'));
  const unknown = operators.find((operator) => !Object.hasOwn(comparisons, operator));
  return unknown === undefined ? undefined : `${quoteGo(unknown)} is not a valid label selector operator`;
}

const comparisons: Readonly<
  Record<string, (value: string | undefined, values: readonly JsonValue[]) => boolean>
> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
};

function meetsExpression(labels: ReadonlyMap<string, string>, expression: JsonValue): boolean {
  const operator = getText(expression, 'operator');
  const compare = Object.hasOwn(comparisons, operator) ? comparisons[operator] : undefined;
  return compare?.(labels.get(getText(expression, 'key')), getList(expression, 'values')) ?? false;
}
