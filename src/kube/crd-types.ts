import { type JsonValue, isJsonObject } from '../document/json.js';
import {
  type ChoiceType,
  type Fields,
  type LaterType,
  type Of,
  type StructType,
  type TextType,
  type Type,
  fields,
  structList,
  optionalStruct,
  pointerTo,
  strings,
  struct,
} from './struct.js';
import { objectMeta, time } from './meta-types.js';

/** Types of custom resource definitions. (Source: Kubernetes 1.35, apiextensions/v1.) */

const schema: LaterType = { later: () => schemaStruct };

const schemaOrBool: ChoiceType = {
  choose: (value) => (typeof value === 'boolean' ? 'bool' : isJsonObject(value) ? schema : undefined),
  expected: 'a schema, true or false',
};

/** Go reads scalars in place of schemas as none, and writes none as null. */
const noSchemas: TextType = { read: () => null, zero: null, expected: 'a list' };

const schemaOrList: ChoiceType = {
  choose: (value) => {
    if (isJsonObject(value)) return schema;
    return isFilledList(value) ? { list: schema } : noSchemas;
  },
  expected: 'a schema or a list of schemas',
};

const schemaOrStrings: ChoiceType = {
  choose: (value) => {
    if (isJsonObject(value)) return schema;
    return isFilledList(value) ? strings : noSchemas;
  },
  expected: 'a schema or a list of names',
};

function isFilledList(value: JsonValue): boolean {
  return Array.isArray(value) && value.length > 0;
}

/** An OpenAPI v3 schema with the Kubernetes extensions. */
export const schemaStruct: StructType = struct({
  ...fields('string', 'id?', '$schema?'),
  '$ref?': pointerTo('string'),
  ...fields('string', 'description?', 'type?', 'format?', 'title?'),
  'default?': 'any',
  'maximum?': pointerTo('float'),
  'exclusiveMaximum?': 'bool',
  'minimum?': pointerTo('float'),
  'exclusiveMinimum?': 'bool',
  ...fields(pointerTo('int64'), 'maxLength?', 'minLength?'),
  'pattern?': 'string',
  ...fields(pointerTo('int64'), 'maxItems?', 'minItems?'),
  'uniqueItems?': 'bool',
  'multipleOf?': pointerTo('float'),
  'enum?': { list: 'any' },
  ...fields(pointerTo('int64'), 'maxProperties?', 'minProperties?'),
  'required?': strings,
  'items?': schemaOrList,
  ...fields({ list: schema }, 'allOf?', 'oneOf?', 'anyOf?'),
  'not?': pointerTo(schema),
  'properties?': { map: schema },
  'additionalProperties?': schemaOrBool,
  'patternProperties?': { map: schema },
  'dependencies?': { map: schemaOrStrings },
  'additionalItems?': schemaOrBool,
  'definitions?': { map: schema },
  'externalDocs?': optionalStruct({ 'description?': 'string', 'url?': 'string' }),
  'example?': 'any',
  'nullable?': 'bool',
  'x-kubernetes-preserve-unknown-fields?': pointerTo('bool'),
  ...fields('bool', 'x-kubernetes-embedded-resource?', 'x-kubernetes-int-or-string?'),
  'x-kubernetes-list-map-keys?': strings,
  ...fields(pointerTo('string'), 'x-kubernetes-list-type?', 'x-kubernetes-map-type?'),
  'x-kubernetes-validations?': structList({
    ...fields('string', 'rule', 'message?', 'messageExpression?'),
    'reason?': pointerTo('string'),
    'fieldPath?': 'string',
    'optionalOldSelf?': pointerTo('bool'),
  }),
});

/** Names of the resources of a definition. */
const crdNames = struct({
  ...fields('string', 'plural', 'singular?'),
  'shortNames?': strings,
  ...fields('string', 'kind', 'listKind?'),
  'categories?': strings,
});

/** `subresources` of a version. */
const subresources = optionalStruct({
  'status?': optionalStruct({}),
  'scale?': optionalStruct({
    ...fields('string', 'specReplicasPath', 'statusReplicasPath'),
    'labelSelectorPath?': pointerTo('string'),
  }),
});

/** Address of a conversion webhook. */
const clientConfig = optionalStruct({
  'url?': pointerTo('string'),
  'service?': optionalStruct({
    ...fields('string', 'namespace', 'name'),
    'path?': pointerTo('string'),
    'port?': pointerTo('int32'),
  }),
  'caBundle?': 'string',
});

/** Returns the fields of `status`, whose conditions have their transition time as `changed`. */
const statusFields = <const F extends Fields>(changed: F) =>
  struct({
    conditions: structList({
      ...fields('string', 'type', 'status'),
      ...changed,
      ...fields('string', 'reason?', 'message?'),
      'observedGeneration?': 'int64',
    }),
    acceptedNames: crdNames,
    storedVersions: strings,
    'observedGeneration?': 'int64',
  });

const columnFields = {
  ...fields('string', 'name', 'type', 'format?', 'description?'),
  'priority?': 'int32',
} as const satisfies Fields;
const columns = structList({ ...columnFields, jsonPath: 'string' });
const oldColumns = structList({ ...columnFields, JSONPath: 'string' });
const validation = optionalStruct({ 'openAPIV3Schema?': pointerTo(schema) });
const selectableFields = structList({ jsonPath: 'string' });

/** Returns the type of `versions`, whose printer columns differ. */
const versionsWith = <const C extends Type>(printerColumns: C) =>
  structList({
    name: 'string',
    ...fields('bool', 'served', 'storage', 'deprecated?'),
    'deprecationWarning?': pointerTo('string'),
    'schema?': validation,
    'subresources?': subresources,
    'additionalPrinterColumns?': printerColumns,
    'selectableFields?': selectableFields,
  });

/** A v1 custom resource definition. */
export const crdStruct = struct({
  ...fields('string', 'kind?', 'apiVersion?'),
  'metadata?': objectMeta,
  spec: struct({
    group: 'string',
    names: crdNames,
    scope: 'string',
    versions: versionsWith(columns),
    'conversion?': optionalStruct({
      strategy: 'string',
      'webhook?': optionalStruct({ 'clientConfig?': clientConfig, conversionReviewVersions: strings }),
    }),
    'preserveUnknownFields?': 'bool',
  }),
  'status?': statusFields({ 'lastTransitionTime?': time }),
});

export type Crd = Of<typeof crdStruct>;

/** A v1beta1 custom resource definition. (Source: apiextensions/v1beta1.) */
export const oldCrdStruct = struct({
  ...fields('string', 'kind?', 'apiVersion?'),
  'metadata?': objectMeta,
  spec: struct({
    ...fields('string', 'group', 'version?'),
    names: crdNames,
    scope: 'string',
    'validation?': validation,
    'subresources?': subresources,
    'versions?': versionsWith(oldColumns),
    'additionalPrinterColumns?': oldColumns,
    'selectableFields?': selectableFields,
    'conversion?': optionalStruct({
      strategy: 'string',
      'webhookClientConfig?': clientConfig,
      'conversionReviewVersions?': strings,
    }),
    'preserveUnknownFields?': pointerTo('bool'),
  }),
  status: statusFields({ lastTransitionTime: pointerTo(time) }),
});

export type OldCrd = Of<typeof oldCrdStruct>;
