import { describe, expect, it } from 'vitest';
import type { PolicyRule } from '../../../../../src/kube/meta-types.js';
import {
  certificateName,
  issuerName,
  nameWithSuffix,
  permissionName,
  webhookServiceName,
} from '../../../../../src/bundle/plain/registry-v1/generated-names.js';

const write = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'];
const read = ['get', 'list', 'watch'];
const rule = (apiGroup: string, resource: string, verbs: string[]): PolicyRule => ({
  verbs,
  apiGroups: [apiGroup],
  resources: [resource],
});

describe('bundle/plain/registry-v1/generated-names', () => {
  it('names permissions as operator-controller does', () => {
    const permission = {
      serviceAccountName: 'fence-agents-remediation-controller-manager',
      rules: [
        rule('', 'configmaps', write),
        rule('coordination.k8s.io', 'leases', write),
        rule('', 'events', ['create', 'patch']),
        rule('', 'secrets', read),
        rule('', 'namespaces', read),
      ],
    };
    expect(permissionName('fence-agents-remediation.v0.8.0', permission)).toBe(
      'fence-agents-remedi-t25lpug1vk5h2cd8fak6tnaa2o9jq7qqlott8clnv1s',
    );
  });

  it('treats an account without name as default, but hashes it as written', () => {
    const unnamed = permissionName('a.v1', { serviceAccountName: '', rules: null });
    const named = permissionName('a.v1', { serviceAccountName: 'default', rules: null });
    expect([unnamed, named].map((name) => name.slice(0, 13))).toEqual(['a.v1-default-', 'a.v1-default-']);
    expect(unnamed).not.toBe(named);
  });

  it('truncates the part before a suffix to 63 characters in total', () => {
    expect(
      nameWithSuffix('my.object.thing.has.a.really.really.really.really.really.long.name', 'suffix'),
    ).toBe('my.object.thing.has.a.really.really.really.really.really-suffix');
    expect(nameWithSuffix('a'.repeat(56), 'suffix')).toHaveLength(63);
    // Upstream does not count the dash.
    expect(nameWithSuffix('a'.repeat(57), 'suffix')).toHaveLength(64);
    expect(nameWithSuffix('a'.repeat(58), 'suffix')).toHaveLength(63);
  });

  it('names service, certificate and issuer after the deployment', () => {
    expect(webhookServiceName('widget.v1')).toBe('widget-v1-service');
    expect(certificateName('widget.v1')).toBe('widget-v1-service-cert');
    expect(issuerName('fence-agents-remediation-controller-manager')).toBe(
      'fence-agents-remediation-controller-manager-s-selfsigned-issuer',
    );
  });
});
