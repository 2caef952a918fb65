import { isJsonObject } from '../document/json.js';
import { type GoStruct, type GoType, goStruct, listOf, pointerTo, strings } from './struct.js';
import { objectMeta, time } from './meta-types.js';

/** Custom resource definitions, field by field. (Source: Kubernetes 1.35, apiextensions/v1.) */

const schema: GoType = { later: () => schemaStruct };

const schemaOrBool: GoType = {
  choose: (value) => (typeof value === 'boolean' ? 'bool' : isJsonObject(value) ? schema : undefined),
  expected: 'a schema, true or false',
};

const schemaOrList: GoType = {
  choose: (value) => (Array.isArray(value) ? { list: schema } : isJsonObject(value) ? schema : undefined),
  expected: 'a schema or a list of schemas',
};

const schemaOrStrings: GoType = {
  choose: (value) => (Array.isArray(value) ? strings : isJsonObject(value) ? schema : undefined),
  expected: 'a schema or a list of names',
};

/** A schema of OpenAPI v3 with the extensions of Kubernetes. */
export const schemaStruct: GoStruct = goStruct({
  'id?': 'string',
  '$schema?': 'string',
  '$ref?': pointerTo('string'),
  'description?': 'string',
  'type?': 'string',
  'format?': 'string',
  'title?': 'string',
  'default?': 'any',
  'maximum?': pointerTo('float'),
  'exclusiveMaximum?': 'bool',
  'minimum?': pointerTo('float'),
  'exclusiveMinimum?': 'bool',
  'maxLength?': pointerTo('int64'),
  'minLength?': pointerTo('int64'),
  'pattern?': 'string',
  'maxItems?': pointerTo('int64'),
  'minItems?': pointerTo('int64'),
  'uniqueItems?': 'bool',
  'multipleOf?': pointerTo('float'),
  'enum?': { list: 'any' },
  'maxProperties?': pointerTo('int64'),
  'minProperties?': pointerTo('int64'),
  'required?': strings,
  'items?': schemaOrList,
  'allOf?': { list: schema },
  'oneOf?': { list: schema },
  'anyOf?': { list: schema },
  'not?': pointerTo(schema),
  'properties?': { map: schema },
  'additionalProperties?': schemaOrBool,
  'patternProperties?': { map: schema },
  'dependencies?': { map: schemaOrStrings },
  'additionalItems?': schemaOrBool,
  'definitions?': { map: schema },
  'externalDocs?': pointerTo(goStruct({ 'description?': 'string', 'url?': 'string' })),
  'example?': 'any',
  'nullable?': 'bool',
  'x-kubernetes-preserve-unknown-fields?': pointerTo('bool'),
  'x-kubernetes-embedded-resource?': 'bool',
  'x-kubernetes-int-or-string?': 'bool',
  'x-kubernetes-list-map-keys?': strings,
  'x-kubernetes-list-type?': pointerTo('string'),
  'x-kubernetes-map-type?': pointerTo('string'),
  'x-kubernetes-validations?': listOf({
    rule: 'string',
    'message?': 'string',
    'messageExpression?': 'string',
    'reason?': pointerTo('string'),
    'fieldPath?': 'string',
    'optionalOldSelf?': pointerTo('bool'),
  }),
});

/** What the resources of a definition are called. */
export const crdNames = goStruct({
  plural: 'string',
  'singular?': 'string',
  'shortNames?': strings,
  kind: 'string',
  'listKind?': 'string',
  'categories?': strings,
});

/** `subresources` of a version. */
export const subresources = pointerTo(
  goStruct({
    'status?': pointerTo(goStruct({})),
    'scale?': pointerTo(
      goStruct({
        specReplicasPath: 'string',
        statusReplicasPath: 'string',
        'labelSelectorPath?': pointerTo('string'),
      }),
    ),
  }),
);

/** How the webhook that converts resources is reached. */
export const clientConfig = pointerTo(
  goStruct({
    'url?': pointerTo('string'),
    'service?': pointerTo(
      goStruct({
        namespace: 'string',
        name: 'string',
        'path?': pointerTo('string'),
        'port?': pointerTo('int32'),
      }),
    ),
    'caBundle?': 'string',
  }),
);

/** A custom resource definition of the version v1. */
export const crdStruct: GoStruct = goStruct({
  'kind?': 'string',
  'apiVersion?': 'string',
  'metadata?': objectMeta,
  spec: goStruct({
    group: 'string',
    names: crdNames,
    scope: 'string',
    versions: listOf({
      name: 'string',
      served: 'bool',
      storage: 'bool',
      'deprecated?': 'bool',
      'deprecationWarning?': pointerTo('string'),
      'schema?': pointerTo(goStruct({ 'openAPIV3Schema?': pointerTo(schema) })),
      'subresources?': subresources,
      'additionalPrinterColumns?': listOf({
        name: 'string',
        type: 'string',
        'format?': 'string',
        'description?': 'string',
        'priority?': 'int32',
        jsonPath: 'string',
      }),
      'selectableFields?': listOf({ jsonPath: 'string' }),
    }),
    'conversion?': pointerTo(
      goStruct({
        strategy: 'string',
        'webhook?': pointerTo(
          goStruct({
            'clientConfig?': clientConfig,
            conversionReviewVersions: strings,
          }),
        ),
      }),
    ),
    'preserveUnknownFields?': 'bool',
  }),
  'status?': goStruct({
    conditions: listOf({
      type: 'string',
      status: 'string',
      'lastTransitionTime?': time,
      'reason?': 'string',
      'message?': 'string',
      'observedGeneration?': 'int64',
    }),
    acceptedNames: crdNames,
    storedVersions: strings,
    'observedGeneration?': 'int64',
  }),
});
