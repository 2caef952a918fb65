import { describe, expect, it } from 'vitest';
import { heldRules, missingRules } from '../../../../../src/bundle/plain/rights/can-install.js';
import { getImpacts } from '../../../../../src/bundle/plain/rights/impact.js';
import { installerObjects, neededRules } from '../../../../../src/bundle/plain/rights/installer.js';
import type { Manifest } from '../../../../../src/kube/manifests.js';
import { type PlainObject, generated } from '../../../../../src/kube/object.js';
import { rightsBeyond, getRights } from '../../../../../src/bundle/plain/rights/rights.js';
import { describeSubject } from '../../../../../src/cli/bundle/rights-table.js';
import { findRisks } from '../../../../../src/bundle/plain/rights/risks.js';
import type { JsonObject, JsonValue } from '../../../../../src/document/json.js';

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

describe('bundle/plain/rights/rights', () => {
  it('combines the rights of an account by scope, resource and names', () => {
    const rights = getRights([
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

  it('reports missing roles and accounts of bindings without namespace', () => {
    const rights = getRights([
      object('RoleBinding', 'a', 'there', {
        roleRef: { kind: 'ClusterRole', name: 'view' },
        subjects: [{ kind: 'ServiceAccount', name: 'own' }, null],
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

  it('reports users and groups, and accounts in the form of users and groups', () => {
    const subjects = [
      { kind: 'User', name: 'system:serviceaccount:here:widget' },
      { kind: 'Group', name: 'system:serviceaccounts:here' },
      { kind: 'Group', name: 'system:serviceaccounts' },
      { kind: 'Group', name: 'system:authenticated' },
      { kind: 'User', name: 'me' },
      { kind: 'Robot', name: 'r2' },
    ];
    const roleRef = { kind: 'ClusterRole', name: 'cluster-admin' };
    const binding = object('ClusterRoleBinding', 'b', '', { roleRef, subjects });
    const rights = getRights([binding]);
    expect(rights.map((right) => [describeSubject(right), right.risks.includes('subject')])).toEqual([
      ['User me', true],
      ['Robot r2', true],
      ['Group system:authenticated', true],
      ['*/*', true],
      ['here/*', true],
      ['here/widget', false],
    ]);
    expect(rights.every(({ risks }) => risks.includes('cluster-admin'))).toBe(true);
    // The same account in both forms has the same rights.
    const own = object('ClusterRoleBinding', 'b', '', { roleRef, subjects: [subject] });
    expect(rightsBeyond(rights, getRights([own]))).toHaveLength(5);
    expect(getImpacts([binding], 'there').map(({ detail }) => detail)).toEqual([
      'is for account widget of namespace here',
      'is for account * of namespace here',
      'is for account * of namespace *',
    ]);
  });

  it('reports the verbs that one bundle adds to another', () => {
    const old = getRights(
      granted('a', '', [rule('', ['pods'], ['get']), rule('apps', ['deployments'], ['*'])]),
    );
    const next = getRights(
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
    ['ns', '', '*/exec', ['create'], ['exec']],
    ['', 'policy', 'podsecuritypolicies', ['use'], ['scc']],
    ['', 'authentication.k8s.io', 'userextras/scopes', ['impersonate'], ['escalate']],
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
    ['', '', '/healthz', ['get'], ['urls']],
  ])('knows the risks of %j %s/%s %j', (namespace, group, resource, verbs, risks) => {
    expect(findRisks({ namespace, group, resource, verbs })).toEqual(risks);
  });

  it('creates the roles of an installer for objects and granted rules', () => {
    const secrets = rule('', ['secrets'], ['get']);
    const needed = neededRules(
      [
        ...granted('a', 'here', [secrets]),
        generated({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c', namespace: 'here' } }, ''),
        object('ClusterRoleBinding', 'b', '', {
          roleRef: { kind: 'ClusterRole', name: 'view' },
          subjects: [],
        }),
        generated(
          {
            apiVersion: 'admissionregistration.k8s.io/v1',
            kind: 'ValidatingWebhookConfiguration',
            metadata: { name: 'w', namespace: 'here' },
          },
          '',
        ),
      ],
      'widget',
    );
    const objects = installerObjects('widget-installer', 'here', needed).map((one) => one.load());
    expect(objects.map(({ kind }) => kind)).toEqual([
      'ServiceAccount',
      'ClusterRole',
      'ClusterRoleBinding',
      'Role',
      'RoleBinding',
    ]);
    expect(objects[4]).toMatchObject({
      metadata: { namespace: 'here' },
      roleRef: { kind: 'Role', name: 'widget-installer' },
      subjects: [{ kind: 'ServiceAccount', name: 'widget-installer', namespace: 'here' }],
    });
    const roles = objects.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
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
      rule('olm.operatorframework.io', ['clusterextensions/finalizers'], ['patch', 'update'], ['widget']),
      rule('rbac.authorization.k8s.io', ['clusterroles'], ['bind'], ['view']),
    ]);
    expect(roles[1]?.['rules']).toContainEqual(secrets);
    expect(roles[1]?.['rules']).toContainEqual(
      rule('', ['configmaps'], ['delete', 'get', 'patch', 'update'], ['c']),
    );
  });

  it('recognizes aggregated roles', () => {
    const [role, binding] = granted('a', '', []);
    const aggregated = generated({ ...role?.load(), aggregationRule: { clusterRoleSelectors: [] } }, '');
    expect(getRights([aggregated, binding as PlainObject])).toMatchObject([
      { resource: 'ClusterRole/a', verbs: [], risks: ['aggregation', 'unknown'] },
    ]);
    expect(neededRules([aggregated], 'widget').map(({ rule: needed }) => needed)).toContainEqual({
      nonResourceURLs: ['*'],
      verbs: ['*'],
    });
  });

  it('reports impacts other than permissions', () => {
    const pod = {
      hostNetwork: true,
      hostPID: false,
      volumes: [
        { name: 'a', hostPath: { path: '/var' } },
        { name: 'b', emptyDir: {} },
      ],
      initContainers: [{ name: 'i', securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }],
      containers: [{ name: 'c', securityContext: { privileged: true }, ports: [{ hostPort: 80 }, {}] }],
    };
    const impacts = getImpacts(
      [
        object('Deployment', 'd', 'here', { spec: { template: { spec: pod } } }),
        object('DaemonSet', 'odd', 'here', {
          spec: { template: { spec: { volumes: 'x', containers: [1] } } },
        }),
        object('PriorityClass', 'p', '', { value: 1000, globalDefault: true }),
        generated(
          {
            apiVersion,
            kind: 'ClusterRole',
            metadata: { name: 'r', labels: { 'rbac.authorization.k8s.io/aggregate-to-edit': 'true' } },
          },
          '',
        ),
        object('RoleBinding', 'b', 'here', {
          subjects: [
            subject,
            { ...subject, namespace: 'there' },
            { kind: 'User', name: 'me', namespace: 'x' },
          ],
        }),
        object('CustomResourceDefinition', 'widgets.example.com', '', {
          spec: {
            group: 'example.com',
            scope: 'Cluster',
            names: { kind: 'Widget' },
            versions: [{ name: 'v1' }, { name: 'v1beta1', served: false }],
          },
        }),
      ],
      'here',
    );
    expect(impacts.map(({ kind, object: what, detail }) => `${kind} ${what}: ${detail}`)).toEqual([
      'host Deployment/here/d: hostNetwork',
      'host Deployment/here/d: hostPath /var',
      'host Deployment/here/d: container i: capabilities SYS_ADMIN',
      'host Deployment/here/d: container c: privileged',
      'host Deployment/here/d: container c: hostPort 80',
      'priority PriorityClass/p: value 1000, the default of all pods',
      'aggregate ClusterRole/r: its rules are added to the role edit',
      'foreign-account RoleBinding/here/b: is for account widget of namespace there',
      'owned-crd CustomResourceDefinition/widgets.example.com: Widget of example.com (v1), Cluster',
    ]);
  });
});

describe('bundle/plain/can-install', () => {
  const objects = [
    ...granted('a', 'here', [rule('', ['secrets'], ['get', 'list'])]),
    object('ClusterRoleBinding', 'b', '', { roleRef: { kind: 'ClusterRole', name: 'view' }, subjects: [] }),
  ];
  const needed = neededRules(objects, 'widget');
  const held = (kind: string, namespace: string, rules: JsonObject[]) =>
    heldRules([object(kind, 'mine', namespace, { rules }) as unknown as Manifest]);
  const lacks = (...all: ReturnType<typeof heldRules>[]): string[] =>
    missingRules(needed, all.flat()).map(
      ({ namespace, resource, names, verbs }) =>
        `${namespace}:${resource}[${names.join(' ')}] ${verbs.join(',')}`,
    );
  const group = 'rbac.authorization.k8s.io';

  it('requires the Secrets of an inventory', () => {
    const withInventory = neededRules(objects, 'widget', 'here');
    const missing = missingRules(withInventory, heldRules(installerObjects('me', 'here', needed) as never));
    expect(missing).toEqual([
      {
        namespace: 'here',
        group: '',
        resource: 'secrets',
        names: [],
        verbs: ['create', 'delete', 'patch', 'update'],
      },
    ]);
    const own = installerObjects('me', 'here', withInventory) as unknown as Manifest[];
    expect(missingRules(withInventory, heldRules(own))).toEqual([]);
  });

  it('finds nothing missing for an installer or an administrator', () => {
    const own = installerObjects('me', 'here', needed) as unknown as Manifest[];
    expect(missingRules(needed, heldRules(own))).toEqual([]);
    expect(lacks(held('ClusterRole', '', [rule('*', ['*'], ['*'])]))).toEqual([]);
    expect(lacks(held('Role', 'here', [rule('*', ['*'], ['*'])]))).toEqual([
      ':clusterextensions/finalizers[widget] patch,update',
      ':clusterrolebindings[b] delete,get,patch,update',
      ':clusterrolebindings[] create,list,watch',
      ':clusterroles[view] bind',
    ]);
  });

  it('requires every verb on every name, in its namespace', () => {
    const cluster = held('ClusterRole', '', [
      rule('olm.operatorframework.io', ['*/finalizers'], ['*']),
      rule(group, ['clusterrolebindings', 'clusterroles', 'roles', 'rolebindings'], ['*']),
    ]);
    // Whoever may escalate and bind need not hold what he hands out.
    expect(lacks(cluster)).toEqual([]);
    const named = held('ClusterRole', '', [
      rule('olm.operatorframework.io', ['clusterextensions/finalizers'], ['patch', 'update']),
      rule(group, ['clusterrolebindings'], ['create', 'list', 'watch']),
      rule(group, ['clusterrolebindings'], ['delete', 'get', 'patch', 'update'], ['other']),
      rule(group, ['clusterroles'], ['bind'], ['view']),
      rule(group, ['roles', 'rolebindings'], ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']),
    ]);
    const secrets = held('Role', 'here', [rule('', ['secrets'], ['get'])]);
    expect(lacks(named, secrets)).toEqual([
      ':clusterrolebindings[b] delete,get,patch,update',
      'here:secrets[] list',
    ]);
    const elsewhere = held('Role', 'there', [rule('', ['secrets'], ['list'])]);
    expect(lacks(named, secrets, elsewhere)).toContain('here:secrets[] list');
  });
});
