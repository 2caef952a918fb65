import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const olm = 'operators.coreos.com/v1alpha1';
const at = (name: string, namespace = 'app'): object => ({ name, namespace });
const list = (...items: object[]): object => ({ apiVersion: 'v1', kind: 'List', items });
const subscription = (name: string, csv: string, spec: object = {}): object => ({
  ...{ apiVersion: olm, kind: 'Subscription', metadata: at(name) },
  spec: { name, channel: 'stable', source: 'main', sourceNamespace: 'olm', ...spec },
  status: csv === '' ? {} : { installedCSV: csv, currentCSV: csv },
});
const csv = (name: string, version: string): object => ({
  ...{ apiVersion: olm, kind: 'ClusterServiceVersion', metadata: at(name) },
  spec: { version },
});
const surroundings = [
  { apiVersion: olm, kind: 'CatalogSource', metadata: at('main', 'olm'), spec: { image: 'x' } },
  { apiVersion: 'operators.coreos.com/v1', kind: 'OperatorGroup', metadata: at('all'), spec: {} },
];
const bundle = (name: string, version: string, requires?: object): object => {
  const packageName = name.replace(/\..*/, '');
  return {
    ...{ schema: 'olm.bundle', package: packageName, name, image: `quay.io/example/${name}` },
    properties: [
      { type: 'olm.package', value: { packageName, version } },
      ...(requires === undefined ? [] : [{ type: 'olm.package.required', value: requires }]),
    ],
  };
};
const channel = (packageName: string, name: string, entries: object[]): object => ({
  ...{ schema: 'olm.channel', package: packageName, name, entries },
});
const explain = (...args: string[]): ReturnType<typeof sandbox.run> =>
  sandbox.run(['cluster', 'explain', ...args, '--catalog', 'main=main']);

beforeAll(async () => {
  const blobs = [
    { schema: 'olm.package', name: 'demo', defaultChannel: 'stable' },
    channel('demo', 'stable', [
      { name: 'demo.v1' },
      { name: 'demo.v2', replaces: 'demo.v1' },
      { name: 'demo.v3', replaces: 'demo.v2' },
    ]),
    channel('demo', 'fast', [{ name: 'demo.v2' }, { name: 'demo.v4', replaces: 'demo.v2' }]),
    bundle('demo.v1', '1.0.0'),
    bundle('demo.v2', '2.0.0'),
    bundle('demo.v3', '3.0.0', { packageName: 'base', versionRange: '>=2.0.0' }),
    bundle('demo.v4', '4.0.0'),
    { schema: 'olm.package', name: 'base', defaultChannel: 'stable' },
    channel('base', 'stable', [{ name: 'base.v1' }]),
    bundle('base.v1', '1.4.0'),
  ];
  await sandbox.write({
    'main/catalog.json': blobs.map((blob) => `${JSON.stringify(blob)}\n`).join(''),
    'cluster.yaml': list(...surroundings, subscription('demo', 'demo.v1'), csv('demo.v1', '1.0.0')),
    'manual.yaml': list(
      ...surroundings,
      subscription('demo', 'demo.v1'),
      csv('demo.v1', '1.0.0'),
      subscription('base', 'base.v1', { installPlanApproval: 'Manual' }),
      csv('base.v1', '1.4.0'),
      {
        ...{ apiVersion: 'operators.coreos.com/v2', kind: 'OperatorCondition', metadata: at('demo.v1') },
        spec: { conditions: [{ type: 'Upgradeable', status: 'False', message: 'migrating data' }] },
      },
    ),
  });
});

describe('opmate cluster explain', () => {
  it('names the next version, and what excludes the one after it', async () => {
    const { code, stdout, stderr } = await explain('demo', '--snapshot', 'cluster.yaml');
    expect({ code, stderr }).toEqual({ code: 3, stderr: '' });
    expect(stdout).toBe(`app/demo: demo.v1 (1.0.0): held-back
  why: Subscription demo, channel stable: demo.v2 can follow
  next: demo.v2: Subscription demo, channel stable: replaces demo.v1
  held back by bundle demo.v3: bundle demo.v3 requires an operator with package: base and with version in range: >=2.0.0: catalog olm/main has base 1.4.0
    remedy: add a catalog with a bundle that meets it
`);
  });

  it('is a command of its own name too', async () => {
    const own = await sandbox.run([
      ...['explain', 'demo', '--snapshot', 'cluster.yaml', '--catalog', 'main=main'],
    ]);
    expect(own).toEqual(await explain('demo', '--snapshot', 'cluster.yaml'));
  });

  it.each([
    ['demo.v2', 0, 'upgrades', []],
    ['demo.v4', 3, 'held-back', [['channel', 'set spec.channel of the Subscription to fast']]],
    ['demo.v3', 3, 'held-back', [['constraint', 'add a catalog with a bundle that meets it']]],
  ])('explains bundle %s', async (name, expected, state, obstacles) => {
    const { code, stdout } = await explain(name, '--snapshot', 'cluster.yaml', '-o', 'json');
    expect(code).toBe(expected);
    const { operators } = JSON.parse(stdout) as {
      operators: { state: string; heldBackBy: { code: string; remedy?: string }[] }[];
    };
    expect(operators[0]?.state).toBe(state);
    const released = operators[0]?.heldBackBy.filter(({ remedy }) => remedy !== undefined);
    expect(released?.map(({ code: id, remedy }) => [id, remedy])).toEqual(obstacles);
  });

  it('names a Subscription that makes all wait, and an operator that does not allow its upgrade', async () => {
    const { code, stdout } = await explain('demo.v1', '--snapshot', 'manual.yaml');
    expect(code).toBe(3);
    expect(stdout).toContain('held back by Subscription app/base: installPlanApproval is Manual');
    expect(stdout).toContain('held back by OperatorCondition app/demo.v1: Upgradeable=False: migrating data');
  });

  it('names a version without a Subscription, and one that another requires', async () => {
    await sandbox.write({
      'free.yaml': list(...surroundings, subscription('base', ''), csv('demo.v1', '1.0.0')),
    });
    const { stdout } = await explain('demo.v1', '--snapshot', 'free.yaml');
    expect(stdout).toContain('app/demo.v1: demo.v1 (1.0.0): current\n  why: it has no Subscription');
  });

  it('names the error or conflict that stops the namespace', async () => {
    await sandbox.write({
      'stopped.yaml': list(
        ...surroundings,
        subscription('demo', 'demo.v1'),
        csv('demo.v1', '1.0.0'),
        subscription('gone', '', { name: 'gone' }),
      ),
    });
    const { code, stdout } = await explain('demo', '--snapshot', 'stopped.yaml');
    expect(code).toBe(3);
    expect(stdout).toContain('demo.v1 (1.0.0): blocked');
    expect(stdout).toContain('remedy: delete Subscription gone');
  });

  it('names the newest bundle of another channel, which need not be one line of replacements', async () => {
    const blobs = [
      { schema: 'olm.package', name: 'demo', defaultChannel: 'stable' },
      channel('demo', 'stable', [{ name: 'demo.v1' }]),
      channel('demo', 'odd', [
        { name: 'demo.v3', replaces: 'demo.v1' },
        { name: 'demo.v2', replaces: 'demo.v1' },
      ]),
      ...['1', '2', '3'].map((version) => bundle(`demo.v${version}`, `${version}.0.0`)),
    ];
    await sandbox.write({ 'odd/catalog.json': blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('') });
    const { code, stdout } = await sandbox.run([
      ...['cluster', 'explain', 'demo', '--snapshot', 'cluster.yaml', '--catalog', 'main=odd'],
    ]);
    expect(code).toBe(0);
    expect(stdout).toContain('alternative: channel odd: leads on from demo.v1 to demo.v3');
  });

  it('suggests a name', async () => {
    const { code, stderr } = await explain('demi', '--snapshot', 'cluster.yaml');
    expect(code).toBe(1);
    expect(stderr).toContain('no operator or subscribed bundle has this name');
    expect(stderr).toContain('use demo');
  });
});
