import { describe, expect, it } from 'vitest';
import {
  computePhaseDigest,
  getCollisionProtection,
  groupByPhase,
} from '../../../../src/bundle/object-set/phases.js';

function identity(apiVersion: string, kind: string, name: string, namespace = '') {
  return { apiVersion, kind, name, namespace };
}

describe('phases of a ClusterObjectSet', () => {
  it('order kinds as operator-controller does, and leave out empty phases', () => {
    const phases = groupByPhase([
      identity('admissionregistration.k8s.io/v1', 'MutatingWebhookConfiguration', 'hook'),
      identity('apps/v1', 'Deployment', 'manager', 'ns'),
      identity('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'a.example.com'),
      identity('rbac.authorization.k8s.io/v1', 'RoleBinding', 'b', 'ns'),
      identity('v1', 'Namespace', 'ns'),
    ]);
    expect(phases.map(({ name }) => name)).toEqual(['namespaces', 'crds', 'bindings', 'deploy', 'admission']);
  });

  it('apply kinds of other groups and unknown kinds with the deployments', () => {
    const phases = groupByPhase([
      identity('extensions/v1beta1', 'Ingress', 'old'),
      identity('example.com/v1', 'Service', 'other'),
      identity('cert-manager.io/v1', 'ClusterIssuer', 'all'),
    ]);
    expect(phases.map(({ name, objects }) => [name, objects.map(({ name }) => name)])).toEqual([
      ['deploy', ['all', 'other', 'old']],
    ]);
  });

  it('sort objects by group, version, kind, namespace and name in byte order', () => {
    const [phase] = groupByPhase([
      identity('v1', 'Secret', 'b', 'ns'),
      identity('v1', 'Secret', 'a', 'ns'),
      identity('v1', 'Secret', 'Z', 'ns'),
      identity('v1', 'ConfigMap', 'z', 'ns'),
      identity('v1', 'Secret', 'z', 'a'),
    ]);
    expect(phase?.objects.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`)).toEqual([
      'ConfigMap ns/z',
      'Secret a/z',
      'Secret ns/Z',
      'Secret ns/a',
      'Secret ns/b',
    ]);
  });

  it('have a digest that does not depend on the order of keys', () => {
    const object = { kind: 'ConfigMap', apiVersion: 'v1', data: { b: '<>', a: '1' } };
    const other = { data: { a: '1', b: '<>' }, apiVersion: 'v1', kind: 'ConfigMap' };
    expect(computePhaseDigest('deploy', [object])).toBe(computePhaseDigest('deploy', [other]));
    expect(computePhaseDigest('deploy', [])).toBe(
      'sha256:5dba80e85c7d913b1e2153e7210fae65d8d4045f0e213bed493703b7b02e3a24',
    );
  });

  it('let the collision protection of an object take precedence over its phase and set', () => {
    expect(getCollisionProtection('None', 'IfNoController', 'Prevent')).toBe('Prevent');
    expect(getCollisionProtection('None', 'IfNoController', '')).toBe('IfNoController');
    expect(getCollisionProtection('None', undefined, undefined)).toBe('None');
    expect(getCollisionProtection('', '', '')).toBe('Prevent');
  });
});
