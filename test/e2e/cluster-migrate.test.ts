import { readFile, readdir } from 'node:fs/promises';
import path from 'node:path';
import { load, loadAll } from 'js-yaml';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { smallCluster } from '../unit/solve/migration/small-cluster.js';

const sandbox = useSandbox();

const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'key', namespace: 'op', labels: { 'olm.owner': 'demo.v1' } },
  type: 'kubernetes.io/tls',
  data: {},
};
const statefulSet = {
  apiVersion: 'apps/v1',
  kind: 'StatefulSet',
  metadata: { name: 'store', namespace: 'op' },
  spec: {},
};
const operator = {
  apiVersion: 'operators.coreos.com/v1',
  kind: 'Operator',
  metadata: { name: 'demo.op' },
  status: {
    components: { refs: [{ apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'store', namespace: 'op' }] },
  },
};

beforeAll(async () => {
  const list = (items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const blobs = [
    { schema: 'olm.package', name: 'demo', defaultChannel: 'stable' },
    { schema: 'olm.channel', package: 'demo', name: 'stable', entries: [{ name: 'demo.v1' }] },
    {
      schema: 'olm.bundle',
      package: 'demo',
      name: 'demo.v1',
      image: 'registry.example.com/demo:v1',
      properties: [{ type: 'olm.package', value: { packageName: 'demo', version: '1.0.0' } }],
    },
  ];
  const scoped = { OperatorGroup: { spec: { targetNamespaces: ['a', 'b'] } } };
  await sandbox.write({
    'catalog/catalog.json': blobs.map((blob) => JSON.stringify(blob)).join('\n'),
    'ready.json': list(smallCluster({ ClusterCatalog: null }, [secret, statefulSet, operator])),
    'scoped.json': list(smallCluster(scoped)),
    'blocked.json': list(smallCluster({ CatalogSource: { spec: { image: '' } } })),
  });
});

function migrate(...args: string[]) {
  return sandbox.run(['cluster', 'migrate', ...args, '--catalog', 'src=catalog']);
}

describe('opmate cluster migrate', () => {
  it('warns of Secrets of an operator that the snapshot lacks, and of no others', async () => {
    const refs = [
      { apiVersion: 'v1', kind: 'Secret', name: 'key', namespace: 'op' },
      { apiVersion: 'v1', kind: 'Secret', name: 'gone', namespace: 'op' },
    ];
    const objects = smallCluster({}, [secret, { ...operator, status: { components: { refs } } }]);
    await sandbox.write({ 'secrets.json': { apiVersion: 'v1', kind: 'List', items: objects } });
    const { code, stdout } = await migrate('secrets.json');
    expect(code).toBe(0);
    expect(stdout).toContain('warning: Secret op/gone: not in the snapshot');
    expect(stdout).not.toContain('Secret op/key: not in the snapshot');
  });

  it('writes the documents of an operator that is ready, with what the migration library does not see', async () => {
    const { code, stdout } = await migrate('ready.json', '--to', 'migration');
    expect(code).toBe(0);
    expect(stdout).toContain('op/demo: demo 1.0.0: ready\n');
    expect(stdout).toContain('Secret op/key: type kubernetes.io/tls is kept');
    expect(stdout).toContain('StatefulSet store: has no condition Available');
    const files = await readdir(path.join(sandbox.work, 'migration'), { recursive: true });
    expect(files.sort()).toEqual(['00-catalogs.yaml', 'op_demo.yaml', 'rollback', 'rollback/op_demo.yaml']);
    const read = (name: string) => readFile(path.join(sandbox.work, 'migration', name), 'utf8');
    expect(load(await read('00-catalogs.yaml'))).toMatchObject({
      kind: 'ClusterCatalog',
      metadata: { name: 'src' },
    });
    expect(loadAll(await read('op_demo.yaml'))).toMatchObject([
      {
        kind: 'ClusterObjectSet',
        spec: { phases: [{ objects: [{ object: { type: 'kubernetes.io/tls' } }] }, {}] },
      },
      { kind: 'ClusterExtension', spec: { source: { catalog: { channels: ['stable'] } } } },
    ]);
    expect(load(await read('rollback/op_demo.yaml'))).toMatchObject({ kind: 'Subscription' });
  });

  it('lists the conditions to accept for an operator that is ready with changes', async () => {
    const { code, stdout } = await migrate('scoped.json', '-o', 'json');
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      operators: [
        {
          state: 'ready with changes',
          acknowledge: ['watch-scope-change'],
          blockers: [{ rule: 'C1', name: 'AllNamespaces mode' }],
        },
      ],
    });
  });

  it('names the rule and remedy of a blocked operator, and exits with 3', async () => {
    const { code, stdout } = await migrate('blocked.json');
    expect(code).toBe(3);
    expect(stdout).toContain('op/demo: demo 1.0.0: blocked\n  C10 CatalogSource type: subscription op/demo');
    expect(stdout).toContain('    remedy: serve its catalog from an image\n');
  });
});
