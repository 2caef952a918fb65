import { load } from 'js-yaml';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { rawTar } from '../support/tar.js';
import { smallCluster } from '../unit/solve/migration/small-cluster.js';

const sandbox = useSandbox();

const further = [
  {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'key', namespace: 'op', labels: { 'olm.owner': 'demo.v1' } },
  },
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'other', namespace: 'op' } },
  {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: {
      name: 'demo',
      namespace: 'op',
      labels: { 'olm.owner': 'demo.v1' },
      managedFields: [{ manager: 'x' }],
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
    },
  },
  {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'ClusterServiceVersion',
    metadata: { name: 'demo.v1', namespace: 'else', labels: { 'olm.copiedFrom': 'op' } },
  },
];

const wanted = [
  'CatalogSource',
  'ClusterCatalog',
  'ClusterServiceVersion',
  'CustomResourceDefinition',
  'OperatorGroup',
  'ServiceAccount',
  'Subscription',
];

beforeAll(async () => {
  const objects = smallCluster({}, further);
  const files = objects.map(
    (object, index) => [`quay/cluster/${index}.yaml`, JSON.stringify(object)] as const,
  );
  const entries = files.map(([name, text]) => ({ name, content: Buffer.from(text) }));
  await sandbox.write({
    'objects.json': JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    ...Object.fromEntries(files.map(([name, text]) => [`must-gather/${name}`, text])),
    'must-gather.tar.gz': gzipSync(
      rawTar([...entries, { name: 'quay/readme.txt', content: Buffer.from('x') }]),
    ),
    'empty.tar.gz': gzipSync(rawTar([{ name: 'readme.txt', content: Buffer.from('x') }])),
  });
});

describe('opmate cluster capture', () => {
  it.each(['objects.json', 'must-gather', 'must-gather.tar.gz'])(
    'keeps the objects of operators from %s, without Secrets, copies and managed fields',
    async (place) => {
      const { code, stderr } = await sandbox.run(['cluster', 'capture', place, '--to', 'snapshot.yaml']);
      expect([code, stderr]).toEqual([0, expect.stringContaining('wrote 7 objects to snapshot.yaml')]);
      const text = await readFile(path.join(sandbox.work, 'snapshot.yaml'), 'utf8');
      const { items } = load(text) as { items: { kind: string; metadata: object }[] };
      expect(items.map(({ kind }) => kind)).toEqual(wanted);
      expect(items.find(({ kind }) => kind === 'ServiceAccount')?.metadata).toEqual({
        name: 'demo',
        namespace: 'op',
        labels: { 'olm.owner': 'demo.v1' },
      });
    },
  );

  it('writes a snapshot that other commands read', async () => {
    const { stdout } = await sandbox.run(['cluster', 'capture', 'objects.json']);
    await sandbox.write({ 'captured.yaml': stdout });
    const { stdout: plan } = await sandbox.run(['cluster', 'migrate', 'captured.yaml']);
    expect(plan).toContain('op/demo: demo 1.0.0: blocked\n  C7 Catalog availability');
  });

  it('writes the image set that mirror capture writes', async () => {
    const args = ['--to', 'with-set.yaml', '--image-set', 'imageset.yaml'];
    const { code, stderr } = await sandbox.run(['cluster', 'capture', 'objects.json', ...args]);
    expect(code).toBe(0);
    expect(stderr).toContain('wrote the image set to imageset.yaml');
    const own = await readFile(path.join(sandbox.work, 'imageset.yaml'), 'utf8');
    const { stdout } = await sandbox.run(['mirror', 'capture', 'objects.json']);
    expect(stdout).toContain('- name: demo');
    expect(own).toBe(stdout);
  });

  it('fails for an archive without objects', async () => {
    const { code, stderr } = await sandbox.run(['cluster', 'capture', 'empty.tar.gz']);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('empty.tar.gz: no .yaml, .yml or .json file'),
    ]);
  });
});
