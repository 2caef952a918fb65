import { describe, expect, it } from 'vitest';
import { crdStruct } from '../../../src/kube/crd-types.js';
import { conform, struct, suggestKnownField } from '../../../src/kube/struct.js';
import { deploymentSpec } from '../../../src/kube/pod-types.js';
import type { JsonObject, JsonValue } from '../../../src/document/json.js';

function podSpec(spec: JsonObject): JsonValue {
  const { value } = conform({ template: { spec } }, deploymentSpec);
  return ((value as JsonObject)['template'] as JsonObject)['spec'] as JsonValue;
}

function schema(openAPIV3Schema: JsonObject): JsonValue {
  const { value } = conform({ spec: { versions: [{ schema: { openAPIV3Schema } }] } }, crdStruct);
  const versions = ((value as JsonObject)['spec'] as JsonObject)['versions'] as JsonObject[];
  return (versions[0]?.['schema'] as JsonObject)['openAPIV3Schema'] as JsonValue;
}

describe('kube/struct', () => {
  it.each(['text', 3, true, []])('reads %j in place of schemas as none, as Go does', (value) => {
    const { faults } = conform(
      { spec: { versions: [{ schema: { openAPIV3Schema: { items: value } } }] } },
      crdStruct,
    );
    expect(faults).toEqual([]);
    expect(schema({ type: 'array', items: value })).toEqual({ type: 'array', items: null });
    expect(schema({ dependencies: { a: value, b: ['c'] } })).toEqual({ dependencies: { a: null, b: ['c'] } });
  });

  it('shows required fields with their zero value, and leaves out optional ones that are empty', () => {
    expect(conform({}, deploymentSpec).value).toEqual({
      selector: null,
      strategy: {},
      template: { metadata: {}, spec: { containers: null } },
    });
    expect(
      podSpec({
        containers: [{ name: 'a', env: [], args: null, tty: false, image: '' }],
        hostNetwork: false,
      }),
    ).toEqual({ containers: [{ name: 'a', resources: {} }] });
  });

  it('keeps what a pointer leads to, however empty', () => {
    expect(podSpec({ securityContext: {}, automountServiceAccountToken: false, containers: [] })).toEqual({
      securityContext: {},
      automountServiceAccountToken: false,
      containers: [],
    });
  });

  it('writes quantities in one form, and the divisor of a resource always', () => {
    const env = [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }];
    const containers = [{ name: 'a', env, resources: { limits: { cpu: 0.5, memory: '1024Mi' } } }];
    expect(podSpec({ containers })).toMatchObject({
      containers: [
        {
          env: [{ valueFrom: { resourceFieldRef: { divisor: '0', resource: 'limits.cpu' } } }],
          resources: { limits: { cpu: '500m', memory: '1Gi' } },
        },
      ],
    });
  });

  it('reports every value of the wrong type, and what it drops', () => {
    const given = {
      replicas: '3',
      template: { spec: { containers: [{ name: 1, image: 'a', memory: '1Gi' }], volumes: {} } },
    };
    const { faults, dropped } = conform(given, deploymentSpec, { path: ['spec'] });
    expect(faults.map(({ message }) => message)).toEqual([
      'spec.replicas: expected a 32-bit integer, got a string',
      'spec.template.spec.containers[0].name: expected a string, got the number 1',
      'spec.template.spec.volumes: expected a list, got an object',
    ]);
    expect(faults.map(({ hint }) => hint)).toEqual([undefined, 'quote the value', undefined]);
    const memory = ['spec', 'template', 'spec', 'containers', 0, 'memory'];
    expect(dropped).toEqual([{ path: memory, known: expect.arrayContaining(['name', 'image']) }]);
  });

  it('suggests the nearest field for an unknown one, else all fields', () => {
    const { dropped } = conform({ nmae: 'a', other: 1 }, struct({ name: 'string', image: 'string' }));
    expect(dropped.map(suggestKnownField)).toEqual(['use "name"', 'use one of name, image']);
  });

  it('keeps defaults and enumerations of a schema as they are', () => {
    const given = {
      type: 'object',
      properties: {
        a: { type: 'boolean', default: false },
        b: { enum: ['', null, 0] },
        c: { additionalProperties: false, items: [{ type: 'string' }] },
        d: { additionalProperties: { type: 'string' }, items: { type: 'string' }, maximum: 0 },
      },
    };
    expect(schema({ ...given, unknown: 1 })).toEqual(given);
  });

  it('reads deeply nested values, and an invalid schema', () => {
    const { faults } = conform({ spec: { versions: [{ schema: { openAPIV3Schema: [] } }] } }, crdStruct);
    expect(faults.map(({ message }) => message)).toEqual([
      'spec.versions[0].schema.openAPIV3Schema: expected an object, got a list',
    ]);
  });
});
