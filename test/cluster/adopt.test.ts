import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { approvalIn, configMap, deploymentIn, workload } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, get, newNamespace } = useCluster();

/** Returns the UIDs of the pods of a namespace, once there is one. */
async function podsOf(namespace: string): Promise<string> {
  const list = (): string =>
    kubectl(['get', 'pods', '-n', namespace, '-o', 'jsonpath={.items[*].metadata.uid}']);
  await expect.poll(list, { timeout: 30_000 }).not.toBe('');
  return list();
}

describe('opmate deployment adopt on a cluster', () => {
  it('adopts objects of kubectl without restarting pods', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const objects = [workload(namespace, 'widget'), configMap(namespace, 'settings', { value: '1' })];
    kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items: objects });
    const pods = await podsOf(namespace);
    const uid = get('deployment', 'widget', namespace)?.metadata.uid;
    await write(objects);
    expect((await onFile('apply', '--yes')).stderr).toContain('already exists, managed by kubectl');
    const shown = await onFile('adopt', '--from', 'kubectl');
    expect(shown.code).toBe(2);
    expect(shown.stdout).toContain(`> Deployment "widget" in namespace "${namespace}" (kubectl `);
    const adopted = await onFile('adopt', '--from', 'kubectl', '--approve', approvalIn(shown));
    expect([adopted.code, adopted.stderr]).toEqual([0, '']);
    expect([get('deployment', 'widget', namespace)?.metadata.uid, await podsOf(namespace)]).toEqual([
      uid,
      pods,
    ]);
    expect(get('configmap', 'settings', namespace)?.metadata.annotations).toEqual({
      'opmate.dev/deployment': `${namespace}/widget`,
    });
    // Adopted objects are part of the deployment.
    await write([workload(namespace, 'widget')]);
    expect((await onFile('apply', '--yes')).stdout).toContain('1 removed');
    expect((await run('status', 'widget', '-n', namespace)).code).toBe(0);
  });

  it('adopts a Helm release, and names its objects that are not part of the deployment', async () => {
    const namespace = newNamespace();
    const { write, onFile } = deploymentIn(sandbox, namespace);
    const annotations = { 'meta.helm.sh/release-name': 'demo', 'meta.helm.sh/release-namespace': namespace };
    const asHelm = (object: object): object => {
      const { metadata, ...rest } = object as { metadata: object };
      return {
        ...rest,
        metadata: { ...metadata, annotations, labels: { 'app.kubernetes.io/managed-by': 'Helm' } },
      };
    };
    const own = [workload(namespace, 'widget'), configMap(namespace, 'settings', { value: '1' })];
    const released = [...own, configMap(namespace, 'extra', {})].map(asHelm);
    kubectl(['create', '-f', '-', '--field-manager=helm'], {
      apiVersion: 'v1',
      kind: 'List',
      items: released,
    });
    const manifest = released.map((object) => `---\n${JSON.stringify(object)}\n`).join('');
    const release = gzipSync(JSON.stringify({ name: 'demo', manifest })).toString('base64');
    kubectl(['create', '-f', '-'], {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'helm.sh/release.v1',
      metadata: {
        name: 'sh.helm.release.v1.demo.v1',
        namespace,
        labels: { owner: 'helm', name: 'demo', version: '1' },
      },
      data: { release: Buffer.from(release).toString('base64') },
    });
    const pods = await podsOf(namespace);
    const uid = get('configmap', 'settings', namespace)?.metadata.uid;
    await write(own);
    const adopted = await onFile('adopt', '--from', `helm:${namespace}/demo`, '--yes');
    expect([adopted.code, adopted.stderr]).toEqual([0, '']);
    expect(adopted.stdout).toContain('- Secret "sh.helm.release.v1.demo.v1"');
    expect(adopted.stdout).toContain(`? ConfigMap "extra" in namespace "${namespace}"`);
    expect(get('secret', 'sh.helm.release.v1.demo.v1', namespace)).toBeUndefined();
    expect([get('configmap', 'settings', namespace)?.metadata.uid, await podsOf(namespace)]).toEqual([
      uid,
      pods,
    ]);
    expect(get('configmap', 'extra', namespace)).toBeDefined();
  });

  it('adopts an operator of OLM v0: its ClusterServiceVersion goes, its objects stay', async () => {
    const namespace = newNamespace();
    const { write, onFile } = deploymentIn(sandbox, namespace);
    for (const [kind, plural] of [
      ['Subscription', 'subscriptions'],
      ['ClusterServiceVersion', 'clusterserviceversions'],
    ] as const) {
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
      kubectl(['apply', '-f', '-'], {
        apiVersion: 'apiextensions.k8s.io/v1',
        kind: 'CustomResourceDefinition',
        metadata: { name: `${plural}.operators.coreos.com` },
        spec: {
          group: 'operators.coreos.com',
          scope: 'Namespaced',
          names: { kind, plural },
          versions: [{ name: 'v1alpha1', served: true, storage: true, schema }],
        },
      });
      kubectl(['wait', '--for=condition=Established', `crd/${plural}.operators.coreos.com`, '--timeout=30s']);
    }
    const olm = (kind: string, name: string, more: object): object => ({
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind,
      metadata: { name, namespace },
      ...more,
    });
    kubectl(['apply', '-f', '-'], olm('ClusterServiceVersion', 'widget.v1.0.0', {}));
    kubectl(
      ['apply', '-f', '-'],
      olm('Subscription', 'widget', { status: { installedCSV: 'widget.v1.0.0' } }),
    );
    const csv = get('clusterserviceversions.operators.coreos.com', 'widget.v1.0.0', namespace);
    const owned = workload(namespace, 'widget') as { metadata: object };
    const metadata = {
      ...owned.metadata,
      labels: {
        'olm.owner': 'widget.v1.0.0',
        'olm.owner.namespace': namespace,
        'olm.owner.kind': 'ClusterServiceVersion',
      },
      ownerReferences: [
        {
          apiVersion: 'operators.coreos.com/v1alpha1',
          kind: 'ClusterServiceVersion',
          name: 'widget.v1.0.0',
          uid: csv?.metadata.uid,
        },
      ],
    };
    kubectl(['create', '-f', '-', '--field-manager=olm'], { ...owned, metadata });
    const pods = await podsOf(namespace);
    const uid = get('deployment', 'widget', namespace)?.metadata.uid;
    await write([workload(namespace, 'widget')]);
    const adopted = await onFile('adopt', '--from', `olm:${namespace}/widget.v1.0.0`, '--yes');
    expect([adopted.code, adopted.stderr]).toEqual([0, '']);
    expect(adopted.stdout).toContain('- Subscription "widget"');
    expect(get('clusterserviceversions.operators.coreos.com', 'widget.v1.0.0', namespace)).toBeUndefined();
    const deployment = get('deployment', 'widget', namespace);
    expect([deployment?.metadata.uid, await podsOf(namespace)]).toEqual([uid, pods]);
    expect(deployment?.metadata.ownerReferences).toBeUndefined();
    expect(deployment?.metadata.labels).toBeUndefined();
  });

  it('hands an operator over to another deployment in one command', async () => {
    const namespace = newNamespace();
    const { write, run, onFile } = deploymentIn(sandbox, namespace);
    const objects = [workload(namespace, 'widget'), configMap(namespace, 'settings', {})];
    await write(objects, { name: 'old' });
    await onFile('apply', '--yes');
    const pods = await podsOf(namespace);
    await write(objects, { name: 'new' });
    expect((await onFile('apply', '--yes')).stderr).toContain(`belongs to the deployment "${namespace}/old"`);
    const adopted = await onFile('adopt', '--from', `deployment:${namespace}/old`, '--yes');
    expect([adopted.code, adopted.stderr]).toEqual([0, '']);
    expect(adopted.stdout).toContain(`< deployment ${namespace}/old loses the adopted objects`);
    expect(await podsOf(namespace)).toBe(pods);
    expect((await run('history', 'old', '-n', namespace)).stderr).toContain('no deployment of this name');
    expect((await run('status', 'new', '-n', namespace, '-o', 'yaml')).code).toBe(0);
  });
});
