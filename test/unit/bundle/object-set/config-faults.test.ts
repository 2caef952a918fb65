import { describe, expect, it } from 'vitest';
import { findConfigFaults } from '../../../../src/bundle/object-set/config-faults.js';
import type { JsonValue } from '../../../../src/document/json.js';

function faults(config: JsonValue, modes: readonly string[], hasDeploymentConfig = true): string[] {
  return findConfigFaults(config, { modes, installNamespace: 'op-system', hasDeploymentConfig });
}

const all = ['AllNamespaces'];

describe('configuration of a ClusterExtension', () => {
  it('needs a watch namespace where the bundle cannot watch all', () => {
    expect(faults({}, ['OwnNamespace'])).toEqual(['required field "watchNamespace" is missing']);
    expect(faults({}, ['AllNamespaces', 'OwnNamespace'])).toEqual([]);
    expect(faults({ watchNamespace: null }, ['AllNamespaces', 'OwnNamespace'])).toEqual([]);
    expect(faults({ watchNamespace: 'a' }, all)).toEqual(['unknown field "watchNamespace"']);
  });

  it('names all alternatives where null is one of them', () => {
    expect(faults({ watchNamespace: 'a,b' }, ['AllNamespaces', 'OwnNamespace', 'SingleNamespace'])).toEqual([
      'invalid value for field "watchNamespace"',
      'invalid type for field "watchNamespace": got string, want null',
      'field "watchNamespace" must match pattern "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"',
    ]);
  });

  it('checks the namespace against the only supported mode before its syntax', () => {
    const [fault] = faults({ watchNamespace: 'UPPER' }, ['OwnNamespace']);
    expect(fault).toBe(
      `invalid format for field "watchNamespace": 'UPPER' is not valid ownNamespaceInstallMode: invalid value "UPPER": must be "op-system" (the namespace where the operator is installed) because this operator only supports OwnNamespace install mode`,
    );
    expect(faults({ watchNamespace: 'op-system' }, ['SingleNamespace'])[0]).toContain(
      'must be different from',
    );
    expect(faults({ watchNamespace: 'op-system' }, ['SingleNamespace', 'OwnNamespace'])).toEqual([]);
  });

  it('names fields of deploymentConfig, but only says that its objects are invalid', () => {
    expect(faults({ deploymentConfig: { replicas: 2 } }, all)).toEqual(['unknown field "replicas"']);
    expect(faults({ deploymentConfig: { env: 'x' } }, all)).toEqual([
      'invalid type for field "deploymentConfig.env": got string, want array',
    ]);
    expect(faults({ deploymentConfig: { nodeSelector: { n: 1 } } }, all)).toEqual([
      'invalid type for field "deploymentConfig.nodeSelector.n": got number, want string',
    ]);
    expect(faults({ deploymentConfig: { env: [{ value: 'x' }] } }, all)).toEqual(['validation failed']);
    expect(faults({ deploymentConfig: { env: [{ name: 'A', value: 'x' }] } }, all)).toEqual([]);
    expect(faults({ deploymentConfig: null }, all)).toEqual(['required field "deploymentConfig" is missing']);
    expect(faults({ deploymentConfig: {} }, all, false)).toEqual(['unknown field "deploymentConfig"']);
  });

  it('groups several faults of one object', () => {
    expect(faults({ deploymentConfig: { replicas: 2, env: 'x' } }, all)).toEqual([
      'unknown field "replicas"',
      'invalid type for field "deploymentConfig.env": got string, want array',
    ]);
    expect(faults({ other: 1, deploymentConfig: { replicas: 2, env: 'x' } }, all)).toEqual([
      'unknown field "other"',
      'validation failed',
      'unknown field "replicas"',
      'invalid type for field "deploymentConfig.env": got string, want array',
    ]);
  });
});
