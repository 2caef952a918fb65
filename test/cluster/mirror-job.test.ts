/** The indexed Job of docs/examples with the real Job controller: its pods share only a registry. */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { loadAll } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { type DockerRegistry, hasDockerRegistry, startDockerRegistry } from '../support/docker-registry.js';
import { type FaultRegistry, startFaultRegistry } from '../support/fault-registry.js';
import { serveOperatorSet } from '../support/operator-set.js';
import { useCluster } from './world.js';

const sandbox = useSandbox();
const { kubectl, get, newNamespace } = useCluster();
let source: FaultRegistry;
let registry: DockerRegistry;
let lock = '';
const set = (catalog: string): string => `kind: ImageSetConfiguration
apiVersion: mirror.openshift.io/v2alpha1
mirror:
  operators:
  - catalog: ${catalog}
    full: true
`;

interface Job {
  spec: { template: { spec: { containers: { args: string[]; env: { name: string; value: string }[] }[] } } };
}

describe.runIf(hasDockerRegistry)('docs/examples/mirror-job.yaml on a cluster', () => {
  let configuration = '';
  beforeAll(async () => {
    source = await startFaultRegistry();
    registry = await startDockerRegistry();
    configuration = set((await serveOperatorSet(source)).catalog);
    await sandbox.write({ 'set.yaml': configuration });
    const to = `docker://${registry.host}/olm`;
    const planned = await sandbox.run([
      'mirror',
      'plan',
      to,
      '-c',
      'set.yaml',
      '--workspace=file://planned',
      '--use-http',
    ]);
    expect(planned.code).toBe(0);
    lock = await readFile(path.join(sandbox.work, 'planned/working-dir/opmate.lock.json'), 'utf8');
  });
  afterAll(async () => {
    await source.close();
    await registry.close();
  });

  /** Creates the objects of the example with this lock and plan. */
  function createJob(namespace: string, plan: string): void {
    const job = loadAll(readFileSync('docs/examples/mirror-job.yaml', 'utf8')).at(-1) as Job;
    const [container] = job.spec.template.spec.containers;
    if (container === undefined) throw new Error('no container');
    container.args = [
      ...container.args.map((arg) => arg.replace('mirror.example.com', registry.host)),
      '--use-http',
    ];
    container.env = container.env.map((item) =>
      item.name === 'OPMATE_PLAN' ? { ...item, value: plan } : item,
    );
    const data = { 'image-set.yaml': configuration, 'opmate.lock.json': lock };
    const auths = Buffer.from('{"auths":{}}').toString('base64');
    const secret = { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': auths } };
    const items = [
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'image-set', namespace }, data },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'mirror-credentials', namespace }, ...secret },
    ];
    kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items });
    kubectl(['apply', '-n', namespace, '-f', '-'], job);
  }

  it('completes all four pods', async () => {
    const namespace = newNamespace();
    createJob(namespace, (JSON.parse(lock) as { plan: string }).plan);
    // Pods read from a registry of this process, which kubectl wait would block.
    const succeeded = (): unknown => get('job', 'mirror', namespace)?.status?.['succeeded'];
    await expect.poll(succeeded, { timeout: 120_000, interval: 1000 }).toBe(4);
    const to = `docker://${registry.host}/olm`;
    const status = await sandbox.run([
      'mirror',
      'status',
      to,
      '--workspace=file://planned',
      '--use-http',
      '-o',
      'json',
    ]);
    expect(JSON.parse(status.stdout)).toMatchObject({ isComplete: true });
  });

  it('runs what mirror schedule writes: shards of a lock, then the CronJob, which prunes', async () => {
    const namespace = newNamespace();
    const to = `docker://${registry.host}/scheduled`;
    const image = 'registry.example.com/tools/opmate:latest';
    const flags = ['--use-http', '--prune', '--yes'].map((name) => `--run-flag=${name}`);
    const command = ['mirror', 'schedule', '-c', 'set.yaml', '--workspace=file://planned', '--shards=2'];
    const written = await sandbox.run([...command, '--image', image, '-n', namespace, ...flags, to]);
    expect(written).toMatchObject({ code: 0 });
    const auths = Buffer.from('{"auths":{}}').toString('base64');
    const secret = { type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': auths } };
    const metadata = { name: 'mirror-credentials', namespace };
    const items = [{ apiVersion: 'v1', kind: 'Secret', metadata, ...secret }, ...loadAll(written.stdout)];
    kubectl(['apply', '-f', '-'], { apiVersion: 'v1', kind: 'List', items });
    const succeeded = (name: string) => (): unknown => get('job', name, namespace)?.status?.['succeeded'];
    await expect.poll(succeeded('mirror-shards'), { timeout: 120_000, interval: 1000 }).toBe(2);
    kubectl(['create', 'job', 'now', '--from=cronjob/mirror', '-n', namespace]);
    await expect.poll(succeeded('now'), { timeout: 120_000, interval: 1000 }).toBe(1);
    const status = await sandbox.run(['mirror', 'status', to, '--workspace=file://planned', '--use-http']);
    expect(status).toMatchObject({ code: 0 });
  });

  it('fails at once with the lock of another plan', () => {
    const namespace = newNamespace();
    createJob(namespace, `sha256:${'0'.repeat(64)}`);
    kubectl(['wait', '--for=condition=Failed', 'job/mirror', '-n', namespace, '--timeout=120s']);
    expect(JSON.stringify(get('job', 'mirror', namespace)?.status)).toContain('PodFailurePolicy');
  });
});
