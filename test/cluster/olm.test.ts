import { type ChildProcess, spawn } from 'node:child_process';
import { createWriteStream, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { readGrpcPort, useSandbox } from '../support/command-line.js';
import { useOperatorRegistry } from '../support/operator-registry.js';
import { deploymentIn } from './deployments.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
useOperatorRegistry(sandbox);
const { kubectl, get, newNamespace } = useCluster();

/** Directory with the operators `catalog` and `olm` of OLM v0, and `crds/` of its API. */
const olm = process.env['OPMATE_OLM'] ?? '';
const group = 'operators.coreos.com';

/** Catalog whose bundles have their manifests in it, so that OLM needs no pod to unpack them. */
async function writeCatalog(): Promise<void> {
  const versions = ['1.0.0', '1.1.0'];
  const blobs: object[] = [
    { schema: 'olm.package', name: 'widget', defaultChannel: 'stable' },
    {
      schema: 'olm.channel',
      package: 'widget',
      name: 'stable',
      entries: versions.map((version, index) => ({
        name: `widget.v${version}`,
        ...(index > 0 && { replaces: `widget.v${versions[index - 1]}` }),
      })),
    },
  ];
  for (const version of versions) {
    const objects = await Promise.all(
      ['csv.yaml', 'definition.yaml'].map((name) =>
        readFile(path.join(sandbox.work, 'bundles/widget', version, 'manifests', name)),
      ),
    );
    blobs.push({
      schema: 'olm.bundle',
      package: 'widget',
      name: `widget.v${version}`,
      image: '',
      properties: [
        { type: 'olm.package', value: { packageName: 'widget', version } },
        ...objects.map((object) => ({
          type: 'olm.bundle.object',
          value: { data: object.toString('base64') },
        })),
      ],
    });
  }
  await sandbox.write({ 'served/catalog.json': blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('') });
}

describe.skipIf(olm === '')('OLM v0 with a catalog of opmate serve', () => {
  const operators: ChildProcess[] = [];
  let home = '';

  beforeAll(async () => {
    const crds = readdirSync(path.join(olm, 'crds')).filter((name) => name.endsWith('.yaml'));
    for (const name of crds)
      kubectl(['apply', '--server-side', '--force-conflicts', '-f', path.join(olm, 'crds', name)]);
    home = newNamespace();
    for (const program of ['catalog', 'olm']) {
      const args = ['--namespace', home, '--interval', '10s', '--writeStatusName', ''];
      const child = spawn(path.join(olm, program), args, {
        cwd: sandbox.work,
        env: { ...process.env, KUBECONFIG: inject('kubeconfig'), OPERATOR_NAMESPACE: home },
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const log = createWriteStream(path.join(sandbox.temporary, `${program}.log`));
      child.stdout?.pipe(log);
      child.stderr?.pipe(log);
      operators.push(child);
    }
    await writeCatalog();
  });
  afterAll(() => {
    for (const child of operators) child.kill('SIGKILL');
  });

  it(
    'installs and upgrades a Subscription, which opmate adopts and gives back',
    { timeout: 600_000 },
    async () => {
      const server = sandbox.start(['serve', 'served', '--host', '127.0.0.1', '--port', '0', '-v'], {
        timeoutMs: 300_000,
      });
      const address = `127.0.0.1:${await readGrpcPort(server)}`;
      const namespace = newNamespace();
      const { run } = deploymentIn(sandbox, namespace);
      const object = (kind: string, name: string, version: string, spec: object): object => ({
        apiVersion: `${group}/${version}`,
        kind,
        metadata: { name, namespace },
        spec,
      });
      const subscription = object('Subscription', 'widget', 'v1alpha1', {
        ...{ name: 'widget', channel: 'stable', source: 'opmate', sourceNamespace: namespace },
        ...{ startingCSV: 'widget.v1.0.0', installPlanApproval: 'Automatic' },
      });
      const documents = [
        object('CatalogSource', 'opmate', 'v1alpha1', { sourceType: 'grpc', address }),
        object('OperatorGroup', 'group', 'v1', { targetNamespaces: [namespace] }),
        subscription,
      ];
      kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items: documents });
      const installed = (): unknown =>
        get(`subscriptions.${group}`, 'widget', namespace)?.status?.['installedCSV'];
      await expect.poll(installed, { timeout: 200_000, interval: 1000 }).toBe('widget.v1.1.0');
      const deployed = (): unknown =>
        get('deployment', 'widget-manager', namespace)?.status?.['readyReplicas'];
      await expect.poll(deployed, { timeout: 60_000, interval: 1000 }).toBe(1);

      // What opmate renders for the same documents is what OLM has installed.
      const uid = get('deployment', 'widget-manager', namespace)?.metadata.uid;
      await sandbox.write({
        'subscription.yaml': [documents[1], subscription]
          .map((item) => `---\n${JSON.stringify(item)}\n`)
          .join(''),
      });
      const adopted = await run(
        ...(['adopt', '-f', 'subscription.yaml', '--catalog', 'opmate=operators'] as const),
        ...['--from', `olm:${namespace}/widget.v1.1.0`, '--yes', '--timeout', '60s'],
      );
      expect([adopted.code, adopted.stderr.replace(/^info: .*\n/gm, '')]).toEqual([0, '']);
      expect(get('deployment', 'widget-manager', namespace)?.metadata.uid).toBe(uid);
      expect(get(`clusterserviceversions.${group}`, 'widget.v1.1.0', namespace)).toBeUndefined();

      // Given back, OLM installs the operator again from the same catalog, around the same objects.
      expect((await run('delete', 'widget', '-n', namespace, '--cascade', 'orphan', '--yes')).code).toBe(0);
      kubectl(['apply', '-f', '-'], subscription);
      await expect.poll(installed, { timeout: 200_000, interval: 1000 }).toBe('widget.v1.1.0');
      expect(get('deployment', 'widget-manager', namespace)?.metadata.uid).toBe(uid);
    },
  );
});
