import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { approvalIn, configMap, definition, deploymentIn, workload } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, get, newNamespace } = useCluster();

describe('opmate deployment on a cluster', () => {
  it('installs, waits, reports the status, and changes nothing the second time', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const { crd, apiVersion, kind } = definition(namespace);
    const widget = { apiVersion, kind, metadata: { name: 'first', namespace }, spec: { size: 1 } };
    await write([
      widget,
      workload(namespace, 'widget'),
      configMap(namespace, 'settings', { value: '1' }),
      crd,
    ]);
    const plan = await onFile('plan');
    expect([plan.code, plan.stderr]).toEqual([3, '']);
    expect(plan.stdout).toContain('changes: 4 to add, of 4 objects');

    const applied = await onFile('apply', '--approve', approvalIn(plan), '--timeout', '60s');
    expect(applied.code).toBe(0);
    expect(applied.stdout).toContain('widget: revision 1 applied: 4 created');
    expect(get('deployment', 'widget', namespace)?.status?.['readyReplicas']).toBe(1);

    const status = await run('status', 'widget', '-n', namespace, '-o', 'json');
    expect([status.code, status.stderr]).toEqual([0, '']);
    const { conditions } = (
      JSON.parse(status.stdout) as { status: { conditions: { type: string; status: string }[] } }
    ).status;
    expect(conditions.map((condition) => `${condition.type}=${condition.status}`)).toEqual([
      'Installed=True',
      'Progressing=True',
      'Available=True',
      'Drifted=False',
    ]);

    const again = await onFile('plan');
    expect([again.code, again.stderr]).toEqual([0, '']);
    expect(again.stdout).toContain('changes: none');
    const second = await onFile('apply', '--yes');
    expect(second.stdout).toContain('widget: already applied: 4 unchanged');
  });

  it('says which object is not ready, and why', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([
      workload(namespace, 'widget', 'registry.example.com/unavailable:v1'),
      workload(namespace, 'none', 'registry.example.com/widget:v1', 0),
    ]);
    const applied = await onFile('apply', '--yes', '--wait', '--timeout', '3s');
    expect(applied.code).toBe(1);
    expect(applied.stderr).toContain('widget: not ready: 1 object\n');
    expect(applied.stderr).toMatch(/Deployment "widget" in namespace ".*": .*ImagePullBackOff/);
    const status = await run('status', 'widget', '-n', namespace);
    expect(status.code).toBe(3);
    expect(status.stdout).toMatch(/^Available +False +ProbeFailure /m);
  });

  it('waits for the health checks of the document, and reports them in the status', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const healthChecks = [
      {
        selector: { type: 'GroupKind', groupKind: { group: '', kind: 'ConfigMap' } },
        assertions: [{ type: 'FieldValue', fieldValue: { fieldPath: 'data.state', value: 'done' } }],
      },
    ];
    const objects = [configMap(namespace, 'settings', { value: '1' })];
    await write(objects, { spec: { healthChecks } });
    const applied = await onFile('apply', '--yes', '--timeout', '1s');
    expect(applied.code).toBe(1);
    expect(applied.stderr).toContain('widget: not ready: 1 object\n');
    expect(applied.stderr).toContain('data.state');
    expect((await run('status', 'widget', '-n', namespace)).code).toBe(3);
    const patch = JSON.stringify({ data: { state: 'done' } });
    kubectl(['patch', 'configmap', 'settings', '-n', namespace, '--type=merge', '-p', patch]);
    expect((await run('wait', 'widget', '-n', namespace, '--timeout', '60s')).code).toBe(0);
    expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);

    // Other checks of the same source are another revision.
    await write(objects);
    expect((await onFile('apply', '--yes')).stdout).toContain('revision 2 applied');
    await write(objects, { spec: { healthChecks: [{ ...healthChecks[0], assertions: [] }] } });
    const refused = await onFile('apply', '--yes');
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr).toContain('spec.healthChecks[0].assertions: ');
  });

  it('records a revision for a source whose objects are equal', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([configMap(namespace, 'settings', { value: '1' })], { comment: 'v1' });
    await onFile('apply', '--yes');
    await write([configMap(namespace, 'settings', { value: '1' })], { comment: 'v2' });
    const second = await onFile('apply', '--yes');
    expect(second.stdout).toContain('widget: revision 2 applied: 1 unchanged');
    const history = await run('history', 'widget', '-n', namespace, '-o', 'json');
    const { current, revisions } = JSON.parse(history.stdout) as {
      current: number;
      revisions: { pins: { content: string }[] }[];
    };
    expect(current).toBe(2);
    expect(new Set(revisions.map(({ pins }) => pins[0]?.content)).size).toBe(2);
  });

  it('upgrades, and rolls back only to what was reviewed', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([configMap(namespace, 'settings', { value: '1' }), configMap(namespace, 'old', {})]);
    await onFile('apply', '--yes');
    await write([configMap(namespace, 'settings', { value: '2' })]);
    const plan = await onFile('plan');
    expect(plan.stdout).toContain('      data.value: "1" -> "2"\n');
    expect(plan.stdout).toContain(`- ConfigMap "old" in namespace "${namespace}"`);
    const upgraded = await onFile('apply', '--yes');
    expect(upgraded.stdout).toContain('revision 2 applied: 1 changed, 1 removed');
    const refused = await run('rollback', 'widget', '-n', namespace, '--yes');
    expect(refused.code).toBe(2);
    const shown = await run('rollback', 'widget', '-n', namespace);
    expect([shown.code, get('configmap', 'settings', namespace)?.data]).toEqual([2, { value: '2' }]);
    const back = await run('rollback', 'widget', '-n', namespace, '--approve', approvalIn(shown));
    expect([back.code, back.stderr]).toEqual([0, '']);
    expect(get('configmap', 'settings', namespace)?.data).toEqual({ value: '1' });
    expect(get('configmap', 'old', namespace)).toBeDefined();
  });

  it('reports who changed which field, and heals by policy', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([
      configMap(namespace, 'settings', { value: '1', other: 'a' }),
      configMap(namespace, 'gone', {}),
    ]);
    await onFile('apply', '--yes');
    const patch = JSON.stringify({ data: { value: 'by hand', extra: 'x' } });
    kubectl(['patch', 'configmap', 'settings', '-n', namespace, '--type=merge', '-p', patch]);
    kubectl(['delete', 'configmap', 'gone', '-n', namespace]);
    const status = await run('status', 'widget', '-n', namespace);
    expect(status.code).toBe(3);
    expect(status.stdout).toMatch(/data\.value: "by hand" -> "1" \(managed by kubectl-patch at /);
    expect(status.stdout).toContain(`ConfigMap "gone" in namespace "${namespace}": missing`);

    const reported = await onFile('apply', '--yes');
    expect(reported.stdout).toContain(`left as it is: ConfigMap "settings"`);
    expect(get('configmap', 'gone', namespace)).toBeDefined();
    expect(get('configmap', 'settings', namespace)?.data?.['value']).toBe('by hand');
    const healed = await onFile('apply', '--yes', '--heal', 'own');
    expect(healed.stdout).toContain(`restored: ConfigMap "settings"`);
    // Fields of others that the deployment does not set stay.
    expect(get('configmap', 'settings', namespace)?.data).toEqual({ value: '1', other: 'a', extra: 'x' });
    expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);
  });

  it('refuses a new field that another manager has, with heal own too', async () => {
    const namespace = newNamespace();
    const { write, onFile } = deploymentIn(sandbox, namespace);
    await write([configMap(namespace, 'settings', { value: '1' })]);
    await onFile('apply', '--yes');
    const patch = JSON.stringify({ data: { extra: 'theirs' } });
    kubectl(['patch', 'configmap', 'settings', '-n', namespace, '--type=merge', '-p', patch]);
    await write([configMap(namespace, 'settings', { value: '2', extra: 'ours' })]);
    for (const policy of ['report', 'own']) {
      const refused = await onFile('apply', '--yes', '--heal', policy);
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain('conflict with "kubectl-patch"');
    }
    expect((await onFile('apply', '--yes', '--heal', 'all')).code).toBe(0);
    expect(get('configmap', 'settings', namespace)?.data).toEqual({ value: '2', extra: 'ours' });
  });

  it('takes over existing objects only if told, and releases them instead of deleting them', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    kubectl(['create', 'configmap', 'theirs', '-n', namespace, '--from-literal=value=0']);
    await write([configMap(namespace, 'theirs', { value: '1' }), configMap(namespace, 'ours', {})]);
    const refused = await onFile('apply', '--yes');
    expect(refused.code).toBe(3);
    expect(refused.stderr).toContain(`ConfigMap "theirs" in namespace "${namespace}": already exists`);
    const first = approvalIn(await onFile('plan', '--take-over'));
    const taken = await onFile('apply', '--take-over', '--approve', first);
    expect([taken.code, taken.stderr]).toEqual([0, '']);
    const uid = get('configmap', 'theirs', namespace)?.metadata.uid;

    await write([configMap(namespace, 'ours', {})]);
    const pruned = await onFile('apply', '--yes');
    expect(pruned.stdout).toContain('1 released');
    const left = get('configmap', 'theirs', namespace);
    expect([left?.metadata.uid, left?.data, left?.metadata.annotations]).toEqual([
      uid,
      { value: '1' },
      undefined,
    ]);
    const fields = kubectl([
      'get',
      'configmap',
      'theirs',
      '-n',
      namespace,
      '--show-managed-fields',
      '-o',
      'json',
    ]);
    expect(fields).not.toContain('"manager": "opmate"');
    expect((await run('delete', 'widget', '-n', namespace, '--yes')).code).toBe(0);
    expect(get('configmap', 'theirs', namespace)).toBeDefined();
  });

  it('approves identity and removals, not only the render', async () => {
    const [one, two] = [newNamespace(), newNamespace()];
    const first = deploymentIn(sandbox, one);
    await first.write([]);
    const { write, onFile } = deploymentIn(sandbox, two);
    const role = (name: string): object => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: `${two}-${name}` },
      rules: [],
    });
    await write([role('a'), role('b')]);
    await onFile('apply', '--yes');
    await write([role('a')]);
    const approval = approvalIn(await onFile('plan'));
    await write([role('a')], { name: 'other' });
    const other = await onFile('apply', '--approve', approval);
    expect(other.code).toBe(3);
    await write([role('a')]);
    expect((await onFile('apply', '--approve', approval)).code).toBe(0);
    // Without the removal the plan is another one.
    expect((await onFile('apply', '--approve', approval)).code).toBe(3);
  });

  it('refuses unsafe changes of definitions', async () => {
    const namespace = newNamespace();
    const { write, onFile } = deploymentIn(sandbox, namespace);
    const { crd } = definition(namespace);
    await write([crd]);
    await onFile('apply', '--yes');
    const changed = JSON.parse(JSON.stringify(crd).replace('"integer"', '"string"')) as object;
    await write([changed]);
    const refused = await onFile('apply', '--yes');
    expect([refused.code, refused.stdout]).toEqual([3, '']);
    expect(refused.stderr).toMatch(/unsafe upgrade: .*type/);
    expect((await onFile('plan', '--crd-upgrade-safety', 'None')).stdout).toContain('1 to change');
  });

  it('omits optional kinds that the cluster lacks', async () => {
    const namespace = newNamespace();
    const { write, onFile } = deploymentIn(sandbox, namespace);
    const monitor = {
      apiVersion: 'monitoring.coreos.com/v1',
      kind: 'ServiceMonitor',
      metadata: { name: 'm', namespace },
    };
    await write([monitor, configMap(namespace, 'settings', {})]);
    expect((await onFile('apply', '--yes')).stderr).toContain(
      'kind monitoring.coreos.com/v1 ServiceMonitor not found',
    );
    const applied = await onFile('apply', '--yes', '--optional-kinds=ServiceMonitor');
    expect(applied.stdout).toContain('omitted, kind not found in the cluster: ServiceMonitor "m"');
    expect(applied.code).toBe(0);
  });
});
