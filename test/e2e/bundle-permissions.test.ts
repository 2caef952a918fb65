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

  it('shows that watching one namespace needs nothing of the cluster', async () => {
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
    const others = { webhooks: [], cloudCredentials: ['aws'], sources };
    expect(await run()).toEqual([
      [
        ['', 'namespaces'],
        ['', 'pods'],
      ],
      others,
    ]);
    expect(await run('--watch-namespace=here')).toEqual([[['here', 'pods']], others]);
  });

  it('shows what an upgrade adds, and nothing where it adds nothing', async () => {
    const same = await sandbox.run(['bundle', 'permissions', newer, ...here, '--diff', newer, '-o', 'json']);
    expect(JSON.parse(same.stdout)).toMatchObject({ permissions: [], removed: [] });
    const upgrade = await sandbox.run(['bundle', 'permissions', newer, ...here, '--diff', older]);
    expect([upgrade.code, upgrade.stderr]).toEqual([0, '']);
  });

  it('fails on permissions that are not wanted, in the words of an approver', async () => {
    const { code, stdout, stderr } = await sandbox.run([
      'bundle',
      'permissions',
      newer,
      ...here,
      '--fail-on=cluster-admin,secrets',
    ]);
    expect(code).toBe(3);
    expect(stdout).toContain('ACCOUNT');
    expect(stderr).toMatch(/^here\/[\w-]+: secrets: [\w,*]+ secrets in the whole cluster$/m);
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
    expect(await kinds('installer')).toEqual(new Set(['ClusterRole', 'Role']));
  });

  it.each([
    [['bundle', 'permissions', 'b'], 2, '--install-namespace is missing'],
    [['bundle', 'permissions', 'b', ...here, '-o', 'text'], 2, 'invalid --output value "text"'],
    [['bundle', 'permissions', 'b', ...here, '--fail-on=all'], 2, '--fail-on all: not known'],
    [['bundle', 'permissions', 'b', ...here, '-o', 'rbac', '--diff=b'], 2, '--diff: not with -o rbac'],
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
