import type { JsonValue } from '../document/json.js';
import {
  type Of,
  type TextType,
  fields,
  struct,
  structList,
  pointerTo,
  stringMap,
  strings,
} from './struct.js';
import { canonicalQuantity } from './quantity.js';

/** Types that all Kubernetes objects use. (Source: apimachinery, meta/v1 and api/resource.) */

/** A point in time in UTC, to the second. */
export const time: TextType<string, undefined> = {
  read: (value) => {
    if (typeof value !== 'string' || !timePattern.test(value)) return undefined;
    const parsed = new Date(value);
    return Number.isNaN(parsed.getTime()) ? undefined : `${parsed.toISOString().slice(0, 19)}Z`;
  },
  zero: undefined,
  expected: 'a time such as 2024-01-31T12:00:00Z',
};

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** An amount of CPU, memory and so on. */
export const quantity: TextType<string, string> = {
  read: (value) => {
    if (typeof value === 'string') return canonicalQuantity(value);
    return typeof value === 'number' || typeof value === 'bigint'
      ? canonicalQuantity(String(value))
      : undefined;
  },
  zero: '0',
  expected: 'a quantity such as 500m or 1Gi',
};

/** A number, or a string such as a percentage or port name. */
export const intOrString: TextType<string | number, number> = {
  read: (value: JsonValue) => {
    if (typeof value === 'string') return value;
    return typeof value === 'number' && (value | 0) === value ? value : undefined;
  },
  zero: 0,
  expected: 'an integer or a string',
};

export const quantities = { map: quantity } as const;

export const objectMeta = struct({
  ...fields('string', 'name?', 'generateName?', 'namespace?', 'selfLink?', 'uid?', 'resourceVersion?'),
  'generation?': 'int64',
  'creationTimestamp?': time,
  'deletionTimestamp?': pointerTo(time),
  'deletionGracePeriodSeconds?': pointerTo('int64'),
  ...fields(stringMap, 'labels?', 'annotations?'),
  'ownerReferences?': structList({
    ...fields('string', 'apiVersion', 'kind', 'name', 'uid'),
    ...fields(pointerTo('bool'), 'controller?', 'blockOwnerDeletion?'),
  }),
  'finalizers?': strings,
  'managedFields?': structList({
    ...fields('string', 'manager?', 'operation?', 'apiVersion?'),
    'time?': pointerTo(time),
    'fieldsType?': 'string',
    'fieldsV1?': 'any',
    'subresource?': 'string',
  }),
});

/** Metadata of an object. */
export type ObjectMeta = Of<typeof objectMeta>;

export const labelSelector = struct({
  'matchLabels?': stringMap,
  'matchExpressions?': structList({ key: 'string', operator: 'string', 'values?': strings }),
});

/** A rule of a Role or ClusterRole. (Source: api/rbac/v1.) */
export const policyRule = struct({
  ...fields(strings, 'verbs', 'apiGroups?', 'resources?', 'resourceNames?', 'nonResourceURLs?'),
});

export type PolicyRule = Of<typeof policyRule>;
