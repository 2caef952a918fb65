import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { approvalIn, configMap, definition, deploymentIn, workload } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, get, newNamespace } = useCluster();

describe('opmate deployment delete on a cluster', () => {
  it('leaves nothing of the deployment, and keeps definitions with their custom resources', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const { crd, name, apiVersion, kind } = definition(namespace);
    kubectl(['create', 'configmap', 'foreign', '-n', namespace]);
    await write([workload(namespace, 'widget'), configMap(namespace, 'settings', {}), crd]);
    await onFile('apply', '--yes');
    kubectl(['apply', '-f', '-'], { apiVersion, kind, metadata: { name: 'user', namespace } });

    const shown = await run('delete', 'widget', '-n', namespace);
    expect(shown.code).toBe(2);
    expect(shown.stdout).toContain(
      `= CustomResourceDefinition "${name}" (custom resources would be lost, 1 custom resource)`,
    );
    const deleted = await run('delete', 'widget', '-n', namespace, '--approve', approvalIn(shown));
    expect([deleted.code, deleted.stderr]).toEqual([0, '']);
    expect(deleted.stdout).toContain('widget: deleted: 2 removed, 1 kept');
    expect(kubectl(['get', 'deployments,secrets', '-n', namespace, '-o', 'name'])).toBe('');
    expect(kubectl(['get', 'configmaps', '-n', namespace, '-o', 'name'])).toBe(
      'configmap/foreign\nconfigmap/kube-root-ca.crt\n',
    );
    expect(get(name, 'user', namespace)).toBeDefined();
    expect((await run('status', 'widget', '-n', namespace)).stderr).toContain('no deployment of this name');

    // Installed again, the kept definition is still part of it; now it goes with its custom resources.
    expect((await onFile('apply', '--yes')).code).toBe(0);
    const all = await run('delete', 'widget', '-n', namespace, '--crds', '--yes');
    expect(all.stdout).toContain(`- Widget "user" in namespace "${namespace}"`);
    expect(get('crd', name)).toBeUndefined();
  });

  it('waits for finalizers, names them, and continues when run again', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([configMap(namespace, 'held', {}), workload(namespace, 'widget')]);
    await onFile('apply', '--yes');
    const finalizers = JSON.stringify({ metadata: { finalizers: ['example.com/hold'] } });
    kubectl(['patch', 'configmap', 'held', '-n', namespace, '--type=merge', '-p', finalizers]);
    const stuck = await run('delete', 'widget', '-n', namespace, '--yes', '--timeout', '2s');
    expect(stuck.code).toBe(1);
    expect(stuck.stderr).toContain(
      `ConfigMap "held" in namespace "${namespace}": waits for finalizer example.com/hold`,
    );
    expect((await run('status', 'widget', '-n', namespace)).stdout).toMatch(/^Progressing +True +Deleting/m);
    kubectl([
      'patch',
      'configmap',
      'held',
      '-n',
      namespace,
      '--type=merge',
      '-p',
      '{"metadata":{"finalizers":null}}',
    ]);
    expect((await run('delete', 'widget', '-n', namespace, '--yes')).code).toBe(0);
    expect(get('configmap', 'held', namespace)).toBeUndefined();
    const gone = await run('wait', 'widget', '-n', namespace, '--for', 'deleted', '--timeout', '1s');
    expect(gone.code).toBe(0);
  });

  it('leaves objects that belong to others', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([configMap(namespace, 'mine', {}), configMap(namespace, 'given', {})]);
    await onFile('apply', '--yes');
    kubectl([
      'annotate',
      'configmap',
      'given',
      '-n',
      namespace,
      '--overwrite',
      'opmate.dev/deployment=other/other',
    ]);
    const deleted = await run('delete', 'widget', '-n', namespace, '--yes');
    expect(deleted.stdout).toContain('(belongs to the deployment other/other)');
    expect([get('configmap', 'mine', namespace), get('configmap', 'given', namespace) === undefined]).toEqual(
      [undefined, false],
    );
  });

  it('deletes a namespace that it created once it is empty of others', async () => {
    const namespace = `${newNamespace()}-own`;
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    await write([
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
      configMap(namespace, 'settings', {}),
    ]);
    expect((await onFile('apply', '--yes')).code).toBe(0);
    kubectl(['create', 'configmap', 'foreign', '-n', namespace]);
    const kept = await run('delete', 'widget', '-n', namespace, '--yes');
    expect(kept.stdout).toContain(`kept: Namespace "${namespace}" (contains ConfigMap foreign)`);
    kubectl(['delete', 'configmap', 'foreign', '-n', namespace]);
    expect((await onFile('apply', '--yes')).code).toBe(0);
    expect((await run('delete', 'widget', '-n', namespace, '--yes')).code).toBe(0);
    expect(get('namespace', namespace)).toBeUndefined();
  });
});
