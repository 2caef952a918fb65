import { describe, expect, it } from 'vitest';
import { installerRoles } from '../../../../src/bundle/plain/installer.js';
import { type PlainObject, generated } from '../../../../src/bundle/plain/object.js';
import { rightsBeyond, rightsOf } from '../../../../src/bundle/plain/rights.js';
import { risksOf } from '../../../../src/bundle/plain/risks.js';
import type { JsonObject, JsonValue } from '../../../../src/core/json.js';

const apiVersion = 'rbac.authorization.k8s.io/v1';
const subject = { kind: 'ServiceAccount', name: 'widget', namespace: 'here' };

function object(kind: string, name: string, namespace: string, more: JsonObject = {}): PlainObject {
  const metadata: JsonObject = namespace === '' ? { name } : { name, namespace };
  return generated({ apiVersion, kind, metadata, ...more }, 'a.yaml');
}

/** A role and its binding, in a namespace or in the whole cluster. */
function granted(name: string, namespace: string, rules: JsonValue): PlainObject[] {
  const kind = namespace === '' ? 'ClusterRole' : 'Role';
  return [
    object(kind, name, namespace, { rules }),
    object(`${kind}Binding`, name, namespace, { roleRef: { kind, name }, subjects: [subject] }),
  ];
}

const rule = (
  group: string,
  resources: string[],
  verbs: string[],
  resourceNames: string[] = [],
): JsonObject => ({
  apiGroups: [group],
  resources,
  verbs,
  ...(resourceNames.length > 0 && { resourceNames }),
});

describe('bundle/plain/rights', () => {
  it('adds up what an account holds, by scope, resource and names', () => {
    const rights = rightsOf([
      ...granted('a', '', [rule('', ['pods', 'secrets'], ['get']), rule('', ['pods'], ['list', 'get'])]),
      ...granted('b', '', [rule('', ['pods'], ['watch']), { nonResourceURLs: ['/metrics'], verbs: ['get'] }]),
      ...granted('c', 'there', [rule('apps', ['deployments'], ['*', 'get'], ['x', 'b', 'x'])]),
    ]);
    expect(
      rights.map(({ namespace, group, resource, names, verbs }) => [
        namespace,
        group,
        resource,
        names,
        verbs,
      ]),
    ).toEqual([
      ['', '', '/metrics', [], ['get']],
      ['', '', 'pods', [], ['get', 'list', 'watch']],
      ['', '', 'secrets', [], ['get']],
      ['there', 'apps', 'deployments', ['b', 'x'], ['*']],
    ]);
    expect(rights[2]).toMatchObject({ account: 'widget', accountNamespace: 'here', risks: ['secrets'] });
  });

  it('tells roles that are only named, accounts of bindings without namespace, and passes over users', () => {
    const rights = rightsOf([
      object('RoleBinding', 'a', 'there', {
        roleRef: { kind: 'ClusterRole', name: 'view' },
        subjects: [{ kind: 'ServiceAccount', name: 'own' }, { kind: 'User', name: 'me' }, null],
      }),
      object('ClusterRoleBinding', 'b', '', {
        roleRef: { kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [subject],
      }),
      object('RoleBinding', 'c', 'there'),
    ]);
    expect(rights).toMatchObject([
      {
        account: 'widget',
        namespace: '',
        resource: 'ClusterRole/cluster-admin',
        verbs: [],
        risks: ['cluster-admin', 'unknown'],
      },
      {
        account: 'own',
        accountNamespace: 'there',
        namespace: 'there',
        resource: 'ClusterRole/view',
        risks: ['unknown'],
      },
    ]);
  });

  it('tells what one bundle adds to another, down to the verb', () => {
    const old = rightsOf(
      granted('a', '', [rule('', ['pods'], ['get']), rule('apps', ['deployments'], ['*'])]),
    );
    const next = rightsOf(
      granted('b', '', [
        rule('', ['pods'], ['get', 'create']),
        rule('apps', ['deployments'], ['delete']),
        rule('', ['secrets'], ['list']),
      ]),
    );
    expect(rightsBeyond(next, old)).toMatchObject([
      { resource: 'pods', verbs: ['create'], risks: ['workloads'] },
      { resource: 'secrets', verbs: ['list'], risks: ['secrets'] },
    ]);
    expect(rightsBeyond(old, next)).toMatchObject([{ resource: 'deployments', verbs: ['*'] }]);
    expect(rightsBeyond(next, next)).toEqual([]);
  });

  it.each([
    [
      '',
      '*',
      '*',
      ['*'],
      [
        'cluster-admin',
        'wildcard',
        'secrets',
        'escalate',
        'exec',
        'tokens',
        'workloads',
        'webhooks',
        'crds',
        'csr',
        'scc',
      ],
    ],
    ['ns', '', 'secrets', ['create'], []],
    ['ns', '', 'secrets', ['*'], ['wildcard', 'secrets']],
    ['', 'example.com', '*', ['get'], ['wildcard']],
    ['', 'rbac.authorization.k8s.io', 'clusterroles', ['bind'], ['escalate']],
    ['', 'rbac.authorization.k8s.io', 'clusterroles', ['get'], []],
    ['', '', 'users', ['impersonate'], ['escalate']],
    ['ns', 'apps', 'deployments', ['create'], []],
    ['', 'apps', 'deployments', ['create'], ['workloads']],
    ['', '', 'pods/exec', ['create'], ['exec']],
    ['', '', 'serviceaccounts/token', ['create'], ['tokens']],
    ['', 'security.openshift.io', 'securitycontextconstraints', ['use'], ['scc']],
    ['', '', '/healthz', ['get'], []],
  ])('knows the risks of %j %s/%s %j', (namespace, group, resource, verbs, risks) => {
    expect(risksOf({ namespace, group, resource, verbs })).toEqual(risks);
  });

  it('makes the roles of an installer: for the objects, and for what the roles grant', () => {
    const secrets = rule('', ['secrets'], ['get']);
    const roles = installerRoles('widget-installer', [
      ...granted('a', 'here', [secrets]),
      generated({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'here' } }, ''),
      object('ClusterRoleBinding', 'b', '', { roleRef: { kind: 'ClusterRole', name: 'view' }, subjects: [] }),
      generated(
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingWebhookConfiguration',
          metadata: { name: 'w', namespace: 'here' },
        },
        '',
      ),
    ]).map((one) => one.load());
    expect(roles.map(({ kind, metadata }) => [kind, metadata])).toEqual([
      ['ClusterRole', { name: 'widget-installer' }],
      ['Role', { name: 'widget-installer', namespace: 'here' }],
    ]);
    expect(roles[0]?.['rules']).toEqual([
      rule('admissionregistration.k8s.io', ['validatingwebhookconfigurations'], ['create', 'list', 'watch']),
      rule(
        'admissionregistration.k8s.io',
        ['validatingwebhookconfigurations'],
        ['delete', 'get', 'patch', 'update'],
        ['w'],
      ),
      rule('rbac.authorization.k8s.io', ['clusterrolebindings'], ['create', 'list', 'watch']),
      rule('rbac.authorization.k8s.io', ['clusterrolebindings'], ['delete', 'get', 'patch', 'update'], ['b']),
      rule('rbac.authorization.k8s.io', ['clusterroles'], ['bind'], ['view']),
    ]);
    expect(roles[1]?.['rules']).toContainEqual(secrets);
    expect(roles[1]?.['rules']).toContainEqual(
      rule('', ['configmaps'], ['delete', 'get', 'patch', 'update'], ['c']),
    );
  });
});
