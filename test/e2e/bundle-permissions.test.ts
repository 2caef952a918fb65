import path from 'node:path';
import { loadAll } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { bundlesDirectory, useSandbox } from '../support/command-line.js';
import { inDirectory, smallBundle } from '../support/small-bundle.js';

const sandbox = useSandbox();
const newer = path.join(bundlesDirectory, 'skupper-operator/1.9.0');
const older = path.join(bundlesDirectory, 'skupper-operator/1.8.2');
const here = ['--install-namespace', 'here'];

interface Shown {
  permissions: { namespace: string; resource: string; verbs: string[]; risks: string[] }[];
  removed?: unknown[];
}

describe('opmate bundle permissions', () => {
  it('shows the same permissions as a table and as data', async () => {
    const table = await sandbox.run(['bundle', 'permissions', newer, ...here]);
    expect([table.code, table.stderr]).toEqual([0, '']);
    expect(table.stdout).toMatch(/^ACCOUNT +NAMESPACE +GROUP +RESOURCE +VERBS +RISKS\n/);
    const json = await sandbox.run(['bundle', 'permissions', newer, ...here, '-o', 'json']);
    const { permissions, removed } = JSON.parse(json.stdout) as Shown;
    expect(permissions.length).toBeGreaterThan(3);
    expect(removed).toBeUndefined();
    expect(table.stdout.split('\n').filter((line) => line.startsWith('here/'))).toHaveLength(
      permissions.length,
    );
  });

  it('shows that watching one namespace needs no cluster permissions', async () => {
    const rules = [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }];
    const install = {
      strategy: 'deployment',
      spec: { deployments: [], permissions: [{ serviceAccountName: 'widget', rules }] },
    };
    const installModes = ['AllNamespaces', 'OwnNamespace'].map((type) => ({ type, supported: true }));
    const annotations = { 'features.operators.openshift.io/token-auth-aws': 'true' };
    await sandbox.write(inDirectory('widget', smallBundle({ annotations, spec: { install, installModes } })));
    const run = async (...more: string[]): Promise<unknown> => {
      const { stdout } = await sandbox.run([
        'bundle',
        'permissions',
        'widget',
        ...here,
        '-o',
        'json',
        ...more,
      ]);
      const { permissions, ...others } = JSON.parse(stdout) as Shown;
      return [permissions.map(({ namespace, resource }) => [namespace, resource]), others];
    };
    const pinned = expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string;
    const ref = expect.stringMatching(/^directory@sha256:/) as string;
    const sources = [{ name: 'widget', ref, content: pinned }];
    const others = { webhooks: [], impact: [], cloudCredentials: ['aws'], cloudPermissions: [], sources };
    expect(await run()).toEqual([
      [
        ['', 'namespaces'],
        ['', 'pods'],
      ],
      others,
    ]);
    expect(await run('--watch-namespace=here')).toEqual([[['here', 'pods']], others]);
  });

  it('shows permissions that an upgrade adds, if any', async () => {
    const same = await sandbox.run(['bundle', 'permissions', newer, ...here, '--diff', newer, '-o', 'json']);
    expect(JSON.parse(same.stdout)).toMatchObject({ permissions: [], removed: [] });
    const upgrade = await sandbox.run(['bundle', 'permissions', newer, ...here, '--diff', older]);
    expect([upgrade.code, upgrade.stderr]).toEqual([0, '']);
  });

  it('fails on denied permissions, in the words of an approver', async () => {
    const { code, stdout, stderr } = await sandbox.run([
      'bundle',
      'permissions',
      newer,
      ...here,
      '--fail-on=cluster-admin,secrets',
    ]);
    expect(code).toBe(3);
    expect(stdout).toContain('ACCOUNT');
    expect(stderr).toMatch(/^error: here\/[\w-]+: secrets: [\w,*]+ secrets in the whole cluster$/m);
    expect(
      (await sandbox.run(['bundle', 'permissions', newer, ...here, '--fail-on=cluster-admin'])).code,
    ).toBe(0);
    const upgrade = ['bundle', 'permissions', newer, ...here, '--diff', newer, '--fail-on=secrets'];
    expect((await sandbox.run(upgrade)).code).toBe(0);
  });

  it('writes roles of the operator and of its installer', async () => {
    const kinds = async (output: string): Promise<Set<string>> => {
      const { stdout } = await sandbox.run(['bundle', 'permissions', newer, ...here, '-o', output]);
      return new Set((loadAll(stdout) as { kind: string }[]).map(({ kind }) => kind));
    };
    expect(await kinds('rbac')).toEqual(new Set(['ClusterRole', 'ClusterRoleBinding', 'ServiceAccount']));
    expect(await kinds('installer')).toEqual(
      new Set(['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']),
    );
  });

  it('lists the permissions that an installer with given roles lacks', async () => {
    const { stdout: roles } = await sandbox.run(['bundle', 'permissions', newer, ...here, '-o', 'installer']);
    await sandbox.write({
      'roles.yaml': roles,
      'none.yaml': '{kind: Role, apiVersion: v1, metadata: {name: a}}',
    });
    const can = (file: string, ...more: string[]) =>
      sandbox.run(['bundle', 'permissions', newer, ...here, '--can-i', file, ...more]);
    expect(await can('roles.yaml')).toEqual({
      code: 0,
      stdout: 'NAMESPACE  GROUP  RESOURCE  MISSING VERBS\n',
      stderr: '',
    });
    const lacking = await can('none.yaml', '-o', 'json');
    expect(lacking.code).toBe(3);
    expect((JSON.parse(lacking.stdout) as { missing: unknown[] }).missing).toContainEqual({
      namespace: '',
      group: 'olm.operatorframework.io',
      resource: 'clusterextensions/finalizers',
      names: ['skupper-operator'],
      verbs: ['patch', 'update'],
    });
    await sandbox.write({ 'service.yaml': '{kind: Service, apiVersion: v1, metadata: {name: a}}' });
    const { code, stderr } = await can('service.yaml');
    expect([code, stderr.split('\n')[0]]).toEqual([1, 'error: service.yaml: holds no Role or ClusterRole']);
  });

  it('reports roles that would be read as missing permissions', async () => {
    await sandbox.write({
      'wrong.yaml':
        'kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: a}\nrules:\n- verbs: [get]\n  resource: [pods]\n- verbs: [get]\n  resources: pods\n- resources: [pods]\n  resources: [services]\n  verbs: [get]\n',
    });
    const result = await sandbox.run(['bundle', 'permissions', newer, ...here, '--can-i', 'wrong.yaml']);
    expect(result).toEqual({
      code: 1,
      stdout: '',
      stderr: [
        'error: wrong.yaml:10:3: rules[2].resources: duplicate key, first defined on line 9 (keep one of them)',
        'error: wrong.yaml:6:3: ClusterRole "a": rules[0].resource: unknown field (use "resources")',
        'error: wrong.yaml:8:3: ClusterRole "a": rules[1].resources: expected a list, got a string',
        '',
      ].join('\n'),
    });
  });

  it('shows cloud credentials of an operator, and the privileges of its pods', async () => {
    const request = (name: string, providerSpec: object): object => ({
      apiVersion: 'cloudcredential.openshift.io/v1',
      kind: 'CredentialsRequest',
      metadata: { name },
      spec: { providerSpec, secretRef: { name: 'x', namespace: 'y' } },
    });
    const pod = {
      metadata: { labels: { app: 'w' } },
      spec: { hostNetwork: true, containers: [{ name: 'c', image: 'example.com/c' }] },
    };
    const deployment = { name: 'w', spec: { selector: { matchLabels: { app: 'w' } }, template: pod } };
    const install = { strategy: 'deployment', spec: { deployments: [deployment] } };
    const installModes = [{ type: 'AllNamespaces', supported: true }];
    await sandbox.write({
      ...inDirectory('cloudy', smallBundle({ spec: { install, installModes } })),
      'cloudy/manifests/aws.yaml': request('aws', {
        kind: 'AWSProviderSpec',
        statementEntries: [
          { effect: 'Allow', action: ['s3:*'], resource: 'arn:aws:s3:::bucket' },
          { effect: 'Deny', action: ['s3:DeleteBucket'], resource: '*' },
        ],
      }),
      'cloudy/manifests/gcp.yaml': request('gcp', {
        kind: 'GCPProviderSpec',
        predefinedRoles: ['roles/storage.admin'],
        permissions: 7,
      }),
    });
    const table = await sandbox.run(['bundle', 'permissions', 'cloudy', ...here, '--fail-on=wildcard,host']);
    expect(table.code).toBe(3);
    expect(table.stdout).toContain('host: Deployment/here/w: hostNetwork\n');
    expect(table.stdout).toContain(
      'cloud: CredentialsRequest/aws: aws: Allow s3:* on arn:aws:s3:::bucket\n' +
        'cloud: CredentialsRequest/aws: aws: Deny s3:DeleteBucket on *\n' +
        'cloud: CredentialsRequest/gcp: gcp: Allow roles roles/storage.admin\n',
    );
    expect(table.stderr).toBe(
      'error: Deployment/here/w: host: hostNetwork\n' +
        'error: CredentialsRequest/aws: wildcard: aws: Allow s3:* on arn:aws:s3:::bucket\n',
    );
    const same = ['bundle', 'permissions', 'cloudy', ...here, '--diff=cloudy', '-o', 'json'];
    expect(JSON.parse((await sandbox.run(same)).stdout)).toMatchObject({
      impact: [],
      removedImpact: [],
      cloudPermissions: [],
    });
  });

  it.each([
    [['bundle', 'permissions', 'b'], 2, '--install-namespace: missing'],
    [['bundle', 'permissions', 'b', ...here, '-o', 'text'], 2, 'invalid --output value "text"'],
    [
      ['bundle', 'permissions', 'b', ...here, '--fail-on=all'],
      2,
      'invalid --fail-on value "all", expected (cluster-admin|',
    ],
    [['bundle', 'permissions', 'b', ...here, '--fail-on=wildcrad'], 2, 'hint: did you mean "wildcard"?'],
    [['bundle', 'permissions', 'b', ...here, '--fail-on=UNKNOWN'], 2, 'invalid --fail-on value "UNKNOWN"'],
    [
      ['bundle', 'permissions', 'b', ...here, '-o', 'rbac', '--can-i=f'],
      2,
      '--can-i and --output rbac cannot be used together',
    ],
    [
      ['bundle', 'permissions', 'b', ...here, '-o', 'rbac', '--diff=b'],
      2,
      '--diff and --output rbac cannot be used together',
    ],
    [
      ['bundle', 'permissions', newer, ...here, '--watch-namespace=x'],
      3,
      'do not support target namespaces [x]',
    ],
  ])('refuses %j', async (args, wanted, said) => {
    const { code, stdout, stderr } = await sandbox.run(args);
    expect({ code, stdout }).toEqual({ code: wanted, stdout: '' });
    expect(stderr).toContain(said);
  });
});
