import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/document/json.js';
import { type DefinitionSet, findOlmV1Schema } from '../../../../src/kube/definitions/olm-v1.js';
import type { SchemaSource } from '../../../../src/kube/schema/schema.js';
import { validateObject } from '../../../../src/kube/schema/validate-object.js';

function extension(spec: JsonObject = {}, catalog: JsonObject = {}): JsonObject {
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterExtension',
    metadata: { name: 'ext' },
    spec: {
      namespace: 'op-system',
      source: { sourceType: 'Catalog', catalog: { packageName: 'demo', ...catalog } },
      ...spec,
    },
  };
}

function validate(document: JsonObject, options: { old?: JsonObject; set?: DefinitionSet } = {}) {
  const schema = findOlmV1Schema(String(document['kind']), options.set ?? 'experimental');
  return validateObject(document, schema as SchemaSource, options.old);
}

function fieldsOf(document: JsonObject, old?: JsonObject): string[] {
  return validate(document, old && { old }).causes.map(({ field }) => field);
}

describe('validation of custom resources', () => {
  it('stores defaults and drops nulls', () => {
    const { object } = validate(extension({ install: null }));
    expect(object).toMatchObject({
      spec: { source: { catalog: { upgradeConstraintPolicy: 'CatalogProvided' } } },
    });
    expect(object?.['spec']).not.toHaveProperty('install');
  });

  it('refuses unknown fields by path, also in metadata and embedded objects', () => {
    const document = extension({ unknown: 1 }, { image: 'x' });
    (document['metadata'] as JsonObject)['bogus'] = 1;
    expect(validate(document).unknownFields.sort()).toEqual([
      'metadata.bogus',
      'spec.source.catalog.image',
      'spec.unknown',
    ]);
    expect(validate(extension({ progressDeadlineMinutes: 10 }), { set: 'standard' }).unknownFields).toEqual([
      'spec.progressDeadlineMinutes',
    ]);
  });

  it('evaluates CEL rules only if nothing blocks them', () => {
    expect(validate(extension({ namespace: 'a.b' })).causes).toEqual([
      {
        field: 'spec.namespace',
        reason: 'FieldValueInvalid',
        message: 'Invalid value: "a.b": namespace must be a valid DNS1123 label',
      },
    ]);
    expect(fieldsOf(extension({ namespace: 'a.b' }, { version: 1 }))).toEqual([
      '<nil>',
      'spec.source.catalog.version',
    ]);
    expect(fieldsOf(extension({ serviceAccount: {}, namespace: 'a.b' }))).toEqual([
      'spec.serviceAccount',
      'spec.namespace',
    ]);
  });

  it('evaluates rules about a change against the stored object', () => {
    const old = validate(extension({ serviceAccount: { name: 'a' } })).object;
    expect(fieldsOf(extension({ namespace: 'other' }), old)).toEqual(['spec.namespace']);
    expect(fieldsOf(extension(), old)).toEqual([]);
    expect(fieldsOf(extension({ serviceAccount: { name: 'b' } }), old)).toEqual(['spec.serviceAccount.name']);
  });

  it('refuses more than 50 objects in a phase and duplicate names of phases', () => {
    const object = { object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } } };
    const phase = (name: string, count: number) => ({
      name,
      objects: Array(count).fill(object) as JsonObject[],
    });
    const set = (phases: JsonObject[]): JsonObject => ({
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterObjectSet',
      metadata: { name: 'ext-1' },
      spec: { lifecycleState: 'Active', revision: 1, collisionProtection: 'Prevent', phases },
    });
    expect(validate(set([phase('a', 51)])).causes.at(-1)).toMatchObject({
      field: 'spec.phases[0].objects',
      message: 'Too many: 51: must have at most 50 items',
    });
    expect(fieldsOf(set([phase('a', 1), phase('a', 1)]))).toEqual(['spec.phases[1]']);
    expect(fieldsOf(set([phase('a.b', 1)]))).toEqual(['spec.phases[0].name']);
  });

  it('matches items of map lists by their keys when it looks for changes', () => {
    const schema: SchemaSource = {
      type: 'object',
      properties: {
        spec: {
          type: 'array',
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
          items: {
            type: 'object',
            properties: {
              name: { type: 'string' },
              size: {
                type: 'integer',
                'x-kubernetes-validations': [{ rule: 'self >= oldSelf', message: 'shrinks' }],
              },
            },
          },
        },
      },
    };
    const document = (spec: JsonObject[]): JsonObject => ({ metadata: { name: 'x' }, spec });
    const old = document([
      { name: 'a', size: 1 },
      { name: 'b', size: 5 },
    ]);
    const next = document([
      { name: 'b', size: 4 },
      { name: 'a', size: 2 },
    ]);
    expect(validateObject(next, schema, old).causes).toEqual([
      { field: 'spec[0].size', reason: 'FieldValueInvalid', message: 'Invalid value: 4: shrinks' },
    ]);
  });

  it('reads names that CEL cannot write', () => {
    const rule = "self.__namespace__ == 'a' && self.x__dash__y == 2 && size(self.map) == 1";
    const schema: SchemaSource = {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: {
            namespace: { type: 'string' },
            'x-y': { type: 'integer' },
            map: { type: 'object', additionalProperties: { type: 'string' } },
          },
          'x-kubernetes-validations': [{ rule }],
        },
      },
    };
    const document = { metadata: { name: 'x' }, spec: { namespace: 'a', 'x-y': 2, map: { in: 'b' } } };
    expect(validateObject(document, schema).causes).toEqual([]);
  });
});
