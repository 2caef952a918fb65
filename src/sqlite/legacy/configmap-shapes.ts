import { OpmateError } from '../../core/errors.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { isJsonObject } from '../../document/json.js';
import type { ApiKey } from '../../model/csv.js';
import { type Shape, readShape, struct } from '../../kube/shape.js';
import { describeKind } from '../../document/field.js';

/**
 * Manifests as Kubernetes' types hold them: what reads a ConfigMap of manifests takes them through these, so
 * unknown fields go, and fields that are always written come. (Source: apiextensions.k8s.io/v1beta1 and
 * metav1.ObjectMeta.)
 */

/** A field that is written whenever it is there, be it empty; null, which would be kept, goes in `withoutNulls`. */
const given: Shape = 'any';
const givenBool: Shape = {
  check: (value) => (typeof value === 'boolean' ? undefined : wanted('true or false', value)),
};
const givenString: Shape = {
  check: (value) => (typeof value === 'string' ? undefined : wanted('a string', value)),
};
const givenNumber: Shape = {
  check: (value) =>
    typeof value === 'number' || typeof value === 'bigint' ? undefined : wanted('a number', value),
};
const strings: Shape = { list: 'string' };

function wanted(expected: string, value: JsonValue): string {
  return `expected ${expected}, found ${describeKind(value)}`;
}

const objectMeta = struct({
  'name?': 'string',
  'generateName?': 'string',
  'namespace?': 'string',
  'selfLink?': 'string',
  'uid?': 'string',
  'resourceVersion?': 'string',
  'generation?': 'int64',
  'creationTimestamp?': givenString,
  'deletionTimestamp?': givenString,
  'deletionGracePeriodSeconds?': givenNumber,
  'labels?': { map: 'string' },
  'annotations?': { map: 'string' },
  'ownerReferences?': {
    list: struct({
      apiVersion: 'string',
      kind: 'string',
      name: 'string',
      uid: 'string',
      'controller?': givenBool,
      'blockOwnerDeletion?': givenBool,
    }),
  },
  'finalizers?': strings,
  'managedFields?': {
    list: struct({
      'manager?': 'string',
      'operation?': 'string',
      'apiVersion?': 'string',
      'time?': givenString,
      'fieldsType?': 'string',
      'fieldsV1?': given,
      'subresource?': 'string',
    }),
  },
});

const csvShape = struct({
  'apiVersion?': 'string',
  'kind?': 'string',
  metadata: objectMeta,
  spec: 'any',
});

/** Reads a ClusterServiceVersion, and leaves its status out. Throws OpmateError INVALID. */
export function readTypedCsv(value: JsonObject): JsonObject {
  const csv = readShape(value, csvShape, '') as JsonObject;
  if (csv['kind'] !== 'ClusterServiceVersion') {
    const problem = `csv name not found: kind is ${JSON.stringify(csv['kind'] ?? '')}, not ClusterServiceVersion`;
    throw new OpmateError('INVALID', problem);
  }
  if (csv['spec'] === null && fieldIn(value, 'spec') === undefined) {
    throw new OpmateError('INVALID', 'spec: not found');
  }
  return csv;
}

const names = struct({
  plural: 'string',
  'singular?': 'string',
  'shortNames?': strings,
  kind: 'string',
  'listKind?': 'string',
  'categories?': strings,
});

const validation = struct({ 'openAPIV3Schema?': given });
const subresources = struct({
  'status?': struct({}),
  'scale?': struct({
    specReplicasPath: 'string',
    statusReplicasPath: 'string',
    'labelSelectorPath?': givenString,
  }),
});
const columns: Shape = {
  list: struct({
    name: 'string',
    type: 'string',
    'format?': 'string',
    'description?': 'string',
    'priority?': 'int32',
    JSONPath: 'string',
  }),
};
const selectable: Shape = { list: struct({ jsonPath: 'string' }) };

const crdShape = struct({
  'apiVersion?': 'string',
  'kind?': 'string',
  metadata: objectMeta,
  spec: struct({
    group: 'string',
    'version?': 'string',
    names,
    scope: 'string',
    'validation?': validation,
    'subresources?': subresources,
    'versions?': {
      list: struct({
        name: 'string',
        served: 'bool',
        storage: 'bool',
        'deprecated?': 'bool',
        'deprecationWarning?': givenString,
        'schema?': validation,
        'subresources?': subresources,
        'additionalPrinterColumns?': columns,
        'selectableFields?': selectable,
      }),
    },
    'additionalPrinterColumns?': columns,
    'selectableFields?': selectable,
    'conversion?': struct({
      strategy: 'string',
      'webhookClientConfig?': struct({
        'url?': givenString,
        'service?': struct({
          namespace: 'string',
          name: 'string',
          'path?': givenString,
          'port?': givenNumber,
        }),
        'caBundle?': 'string',
      }),
      'conversionReviewVersions?': strings,
    }),
    'preserveUnknownFields?': givenBool,
  }),
  status: struct({
    conditions: {
      list: struct({
        type: 'string',
        status: 'string',
        lastTransitionTime: given,
        'reason?': 'string',
        'message?': 'string',
        'observedGeneration?': 'int64',
      }),
    },
    acceptedNames: names,
    storedVersions: strings,
    'observedGeneration?': 'int64',
  }),
});

const listOfObjects: Shape = { list: given };
const mapOfObjects: Shape = { map: given };

/** A schema; those within it are read by `readSchema`, one level after the other. */
const schemaShape = struct({
  'id?': 'string',
  '$schema?': 'string',
  '$ref?': givenString,
  'description?': 'string',
  'type?': 'string',
  'format?': 'string',
  'title?': 'string',
  'default?': given,
  'maximum?': givenNumber,
  'exclusiveMaximum?': 'bool',
  'minimum?': givenNumber,
  'exclusiveMinimum?': 'bool',
  'maxLength?': givenNumber,
  'minLength?': givenNumber,
  'pattern?': 'string',
  'maxItems?': givenNumber,
  'minItems?': givenNumber,
  'uniqueItems?': 'bool',
  'multipleOf?': givenNumber,
  'enum?': listOfObjects,
  'maxProperties?': givenNumber,
  'minProperties?': givenNumber,
  'required?': strings,
  'items?': given,
  'allOf?': listOfObjects,
  'oneOf?': listOfObjects,
  'anyOf?': listOfObjects,
  'not?': given,
  'properties?': mapOfObjects,
  'additionalProperties?': given,
  'patternProperties?': mapOfObjects,
  'dependencies?': mapOfObjects,
  'additionalItems?': given,
  'definitions?': mapOfObjects,
  'externalDocs?': struct({ 'description?': 'string', 'url?': 'string' }),
  'example?': given,
  'nullable?': 'bool',
  'x-kubernetes-preserve-unknown-fields?': givenBool,
  'x-kubernetes-embedded-resource?': 'bool',
  'x-kubernetes-int-or-string?': 'bool',
  'x-kubernetes-list-map-keys?': strings,
  'x-kubernetes-list-type?': givenString,
  'x-kubernetes-map-type?': givenString,
  'x-kubernetes-validations?': {
    list: struct({
      rule: 'string',
      'message?': 'string',
      'messageExpression?': 'string',
      'reason?': givenString,
      'fieldPath?': 'string',
      'optionalOldSelf?': givenBool,
    }),
  },
});

/**
 * Reads a custom resource definition, and which APIs it defines: those of `spec.versions`, or where there is
 * no such list, of `spec.version`, which then becomes that list. Throws ShapeError.
 */
export function readTypedCrd(value: JsonObject): { crd: JsonObject; apis: ApiKey[] } {
  const crd = readShape(value, crdShape, '') as JsonObject;
  const spec = crd['spec'] as JsonObject;
  // An empty list is one, so what is left out when it is empty must be looked up.
  const hasList = Array.isArray(fieldIn(fieldIn(value, 'spec'), 'versions'));
  if (!hasList && typeof spec['version'] === 'string') {
    spec['versions'] = [{ name: spec['version'], served: true, storage: true }];
  }
  readValidation(spec['validation'], 'spec.validation');
  const versions = (spec['versions'] ?? []) as JsonObject[];
  versions.forEach((version, index) => readValidation(version['schema'], `spec.versions[${index}].schema`));
  const { group, names: named } = spec as { group: string; names: { kind: string; plural: string } };
  const { kind, plural } = named;
  return {
    crd,
    apis: versions.map((version) => ({ group, version: version['name'] as string, kind, plural })),
  };
}

function fieldIn(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (!isJsonObject(value ?? null)) return undefined;
  const object = value as JsonObject;
  const key = Object.keys(object).find((candidate) => candidate.toLowerCase() === name);
  return key === undefined ? undefined : object[key];
}

function readValidation(validation: JsonValue | undefined, path: string): void {
  const holder = validation === undefined ? undefined : withoutNulls(validation as JsonObject);
  const schema = holder?.['openAPIV3Schema'];
  if (holder !== undefined && schema !== undefined)
    holder['openAPIV3Schema'] = readSchema(schema, `${path}.openAPIV3Schema`);
}

/** For Go null is the absence of what a pointer would lead to. Changes the object. */
function withoutNulls(object: JsonObject): JsonObject {
  for (const key of Object.keys(object)) if (object[key] === null) delete object[key];
  return object;
}

/** A schema and all within it. The YAML and JSON readers bound how deep that can be. */
function readSchema(value: JsonValue, path: string): JsonValue {
  const schema = withoutNulls(readShape(value, schemaShape, path) as JsonObject);
  for (const key of ['maximum', 'minimum', 'multipleOf']) {
    if (typeof schema[key] === 'bigint') schema[key] = Number(schema[key]);
  }
  const replace = (key: string, read: (value: JsonValue, path: string) => JsonValue): void => {
    if (schema[key] !== undefined) schema[key] = read(schema[key], `${path}.${key}`);
  };
  const each = (list: JsonValue, at: string): JsonValue =>
    (list as JsonValue[]).map((item, index) => readSchema(item, `${at}[${index}]`));
  const eachValue = (read: typeof readSchema) => (map: JsonValue, at: string) => {
    const object = map as JsonObject;
    for (const key of Object.keys(object)) object[key] = read(object[key] as JsonValue, `${at}.${key}`);
    return object;
  };
  replace('not', readSchema);
  // An empty list of schemas is written as null.
  replace('items', (items, at) =>
    !Array.isArray(items) ? readSchema(items, at) : items.length === 0 ? null : each(items, at),
  );
  for (const key of ['allOf', 'oneOf', 'anyOf']) replace(key, each);
  for (const key of ['properties', 'patternProperties', 'definitions']) replace(key, eachValue(readSchema));
  for (const key of ['additionalProperties', 'additionalItems']) {
    replace(key, (item, at) => (typeof item === 'boolean' ? item : readSchema(item, at)));
  }
  replace(
    'dependencies',
    eachValue((item, at) => (Array.isArray(item) ? item : readSchema(item, at))),
  );
  return schema;
}
