import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { catalogOf } from './catalogs.js';

const sandbox = useSandbox();
const olm = 'operators.coreos.com/v1alpha1';
const at = (name: string, namespace = 'app'): object => ({ name, namespace });
const subscription = (name: string, spec: object = {}, status: object = {}): object => ({
  ...{ apiVersion: olm, kind: 'Subscription', metadata: at(name) },
  spec: { name, channel: 'stable', source: 'main', sourceNamespace: 'olm', ...spec },
  status,
});
const catalogSource = (name: string): object => ({
  ...{ apiVersion: olm, kind: 'CatalogSource', metadata: at(name, 'olm') },
  spec: { sourceType: 'grpc', image: `mirror.example.com/olm/${name}:v1` },
});
const csv = (name: string, version: string): object => ({
  ...{ apiVersion: olm, kind: 'ClusterServiceVersion', metadata: at(name) },
  spec: { version },
  status: { phase: 'Succeeded' },
});
const group = (name: string, spec: object = {}): object => ({
  ...{ apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', metadata: at(name), spec },
});
const list = (...items: object[]): object => ({ apiVersion: 'v1', kind: 'List', items });
const installed = { installedCSV: 'demo.v1', currentCSV: 'demo.v1' };
const predict = (...args: string[]): ReturnType<typeof sandbox.run> =>
  sandbox.run(['cluster', 'predict', ...args]);

beforeAll(async () => {
  const entries = [
    { name: 'demo.v1' },
    { name: 'demo.v2', replaces: 'demo.v1' },
    { name: 'demo.v3', replaces: 'demo.v2' },
  ];
  await sandbox.write({
    'main/catalog.json': catalogOf('demo', entries) + catalogOf('other', [{ name: 'other.v1' }]),
    'cluster.yaml': list(
      ...[catalogSource('main'), group('all'), subscription('demo', {}, installed), csv('demo.v1', '1.0.0')],
    ),
  });
});

describe('opmate cluster predict', () => {
  it('lists the install plans until nothing changes', async () => {
    const { code, stdout, stderr } = await predict('cluster.yaml', '--catalog', 'main=main');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`namespace app: up to date after 2 plans
  plan 1, approval Automatic
    BUNDLE   REPLACES  CATALOG   REASON
    demo.v2  demo.v1   olm/main  Subscription demo, channel stable: replaces demo.v1
  plan 2, approval Automatic
    BUNDLE   REPLACES  CATALOG   REASON
    demo.v3  demo.v2   olm/main  Subscription demo, channel stable: replaces demo.v2
`);
  });

  it('prints plans as data, with proposed objects and a Manual approval that makes others wait', async () => {
    await sandbox.write({
      'other.yaml': subscription('other', { installPlanApproval: 'Manual' }),
    });
    const args = ['cluster.yaml', '--catalog', 'olm/main=main', '-f', 'other.yaml', '-o', 'json'];
    const { code, stdout } = await predict(...args);
    expect(code).toBe(0);
    const { namespaces } = JSON.parse(stdout) as {
      namespaces: { rounds: object[]; findings: { code: string; problem: string }[] }[];
    };
    expect(namespaces[0]?.rounds[0]).toMatchObject({
      outcome: 'resolved',
      installs: [
        { name: 'demo.v2' },
        { name: 'other.v1', reason: 'Subscription other, channel stable: head of the channel' },
      ],
      installPlan: 'Manual',
    });
    expect(namespaces[0]?.findings.map(({ code: id, problem }) => [id, problem])).toEqual([
      ['manual-approval', 'Manual approval of other also holds back demo'],
    ]);
  });

  it('exits with 3 and names the conflict and what would release it', async () => {
    await sandbox.write({
      'conflict.yaml': list(
        ...[catalogSource('main'), group('all')],
        subscription('demo', { channel: 'beta' }),
      ),
    });
    const { code, stdout } = await predict('conflict.yaml', '--catalog', 'main=main');
    expect(code).toBe(3);
    expect(stdout).toBe(`namespace app: constraints not satisfiable
  conflict:
    subscription demo exists
      remedy: delete Subscription demo
    no operators found in channel beta of package demo in the catalog referenced by subscription demo
      remedy: change catalog, package, channel or startingCSV of Subscription demo
`);
  });

  it('reports what is missing or contradictory in a snapshot, and predicts the rest', async () => {
    await sandbox.write({
      'gathered/namespaces/app/operators.coreos.com/subscriptions.yaml': list(
        subscription('demo', {}, installed),
      ),
      'gathered/namespaces/app/operators.coreos.com/subscriptions/demo.yaml': subscription('demo'),
      'gathered/namespaces/app/operators.coreos.com/csvs.yaml': list(
        csv('demo.v1', '1.0.0'),
        ...Array.from({ length: 500 }, (_, index) => ({
          ...csv(`copy.v${index}`, '1.0.0'),
          status: { reason: 'Copied' },
        })),
      ),
      'gathered/half.yaml': 'kind: Subscription\nmetadata: {name: "x',
      'gathered/rest.yaml': list(catalogSource('main'), catalogSource('unused'), group('a'), group('b')),
    });
    const { code, stdout } = await predict('gathered', '--catalog', 'mirror.example.com/olm/main:v1=main');
    expect(code).toBe(3);
    expect(stdout).toContain('warning: gathered/half.yaml:2: ');
    expect(stdout).toContain(
      'demo.yaml: Subscription app/demo: found in two states, used the newer, the other in ',
    );
    expect(stdout).toContain(
      'warning: CatalogSource olm/unused: content not specified: its bundles are left out',
    );
    expect(stdout).toContain('expected 1 OperatorGroup in the namespace, found 2');
    expect(stdout).toContain('error: namespace app: expected 1 OperatorGroup, found 2');
  });

  it('maps the image of a mirror back to its source', async () => {
    await sandbox.write({
      'mirrors.yaml': {
        ...{ apiVersion: 'config.openshift.io/v1', kind: 'ImageTagMirrorSet', metadata: { name: 'm' } },
        spec: { imageTagMirrors: [{ source: 'quay.io/catalogs', mirrors: ['mirror.example.com/olm'] }] },
      },
    });
    const args = ['cluster.yaml', 'mirrors.yaml', '--catalog', 'quay.io/catalogs/main:v1=main'];
    expect(await predict(...args)).toMatchObject({ code: 0, stderr: '' });
  });

  it.each([
    [['--catalog', 'main'], 2, '--catalog "main": not a catalog'],
    [['--catalog', 'mian=main'], 1, 'mian: no CatalogSource of the snapshot has this name or image'],
    [['-n', 'nowhere'], 1, 'namespace nowhere: no Subscription of the snapshot is in this namespace'],
  ])('refuses %j', async (args, code, message) => {
    const result = await predict('cluster.yaml', ...args);
    expect(result.code).toBe(code);
    expect(result.stderr).toContain(message);
  });
});

describe('opmate cluster diff', () => {
  it('exits with 3 for plans that changed since they were saved', async () => {
    const catalog = ['--catalog', 'main=main', '-o', 'json'];
    const before = await predict('cluster.yaml', ...catalog);
    await sandbox.write({ 'other-subscription.yaml': subscription('other') });
    const after = await predict('cluster.yaml', '-f', 'other-subscription.yaml', ...catalog);
    await sandbox.write({ 'before.json': before.stdout, 'after.json': after.stdout });
    expect(await sandbox.run(['cluster', 'diff', 'before.json', 'before.json'])).toMatchObject({
      ...{ code: 0, stdout: 'no differences\n' },
    });
    expect(await sandbox.run(['cluster', 'diff', 'before.json', 'after.json'])).toMatchObject({
      ...{ code: 3, stdout: 'NAMESPACE  PACKAGE  OLD  NEW\napp        other    -    other.v1\n' },
    });
  });

  it('refuses another document', async () => {
    await sandbox.write({ 'none.json': '[]' });
    const { code, stderr } = await sandbox.run(['cluster', 'diff', 'none.json', 'none.json']);
    expect(code).toBe(1);
    expect(stderr).toContain('none.json: neither a prediction nor a plan of updates');
  });
});
