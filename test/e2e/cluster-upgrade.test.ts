import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';
import { graphText, payloadOf } from '../support/releases.js';

const sandbox = useSandbox();
const olm = 'operators.coreos.com/v1alpha1';

interface Entry {
  name: string;
  version: string;
  replaces?: string;
  /** Maximum OpenShift version. */
  max?: string;
  /** Package that it requires. */
  requires?: string;
}

/** Returns the blobs of a package with these channels. */
function packageOf(name: string, channels: Record<string, Entry[]>, more: object[] = []): object[] {
  const bundles = new Map(
    Object.values(channels).flatMap((entries) => entries.map((entry) => [entry.name, entry])),
  );
  return [
    { schema: 'olm.package', name, defaultChannel: Object.keys(channels)[0] },
    ...Object.entries(channels).map(([channel, entries]) => ({
      ...{ schema: 'olm.channel', package: name, name: channel },
      entries: entries.map(({ name: bundle, replaces }) => ({ name: bundle, ...(replaces && { replaces }) })),
    })),
    ...[...bundles.values()].map(({ name: bundle, version, max, requires }) => ({
      ...{ schema: 'olm.bundle', package: name, name: bundle, image: `quay.io/example/${name}:${version}` },
      properties: [
        { type: 'olm.package', value: { packageName: name, version } },
        ...(max === undefined ? [] : [{ type: 'olm.maxOpenShiftVersion', value: max }]),
        ...(requires === undefined
          ? []
          : [{ type: 'olm.package.required', value: { packageName: requires, versionRange: '>=1.0.0' } }]),
      ],
    })),
    ...more,
  ];
}

const subscription = (name: string, channel: string, csv: string, approval = 'Automatic'): object => ({
  ...{ apiVersion: olm, kind: 'Subscription', metadata: { name, namespace: 'app' } },
  spec: { name, channel, source: 'main', sourceNamespace: 'olm', installPlanApproval: approval },
  status: { installedCSV: csv, currentCSV: csv },
});
const csvOf = (name: string, properties: object[], version = '1.0.0'): object => ({
  ...{ apiVersion: olm, kind: 'ClusterServiceVersion' },
  metadata: {
    ...{ name, namespace: 'app' },
    annotations: { 'operatorframework.io/properties': JSON.stringify({ properties }) },
  },
  spec: { version },
});
const csv = (name: string, version: string, max?: string): object =>
  csvOf(name, max === undefined ? [] : [{ type: 'olm.maxOpenShiftVersion', value: max }], version);
const a1 = { name: 'a.v1', version: '1.0.0', max: '4.18' };
const a2 = { name: 'a.v2', version: '2.0.0', replaces: 'a.v1', max: '4.19' };
const a3 = { name: 'a.v3', version: '3.0.0', replaces: 'a.v2', max: '4.20' };
const b1 = { name: 'b.v1', version: '1.0.0' };
const upgrade = (...args: string[]): ReturnType<typeof sandbox.run> =>
  sandbox.run(['cluster', 'upgrade', 'cluster.yaml', ...args]);
const catalogs = ['v4.18=v4.18', 'v4.19=v4.19', 'v4.20=v4.20'].flatMap((value) => ['--catalog', value]);

beforeAll(async () => {
  const text = (blobs: object[]): string => blobs.map((blob) => `${JSON.stringify(blob)}\n`).join('');
  const lifecycle = {
    ...{ schema: 'io.openshift.operators.lifecycles.v1alpha1', package: 'b' },
    versions: [{ name: '1.0', phases: [{ name: 'full', startDate: '2020-01-01', endDate: '2021-01-01' }] }],
  };
  await sandbox.write({
    'v4.18/catalog.json': text([
      ...packageOf('a', { stable: [a1], fast: [a1, a2] }),
      ...packageOf('b', { stable: [b1] }),
    ]),
    'v4.19/catalog.json': text([
      ...packageOf('a', { fast: [a1, a2, a3] }),
      ...packageOf('b', { 'stable-1': [b1] }, [lifecycle]),
    ]),
    'v4.20/catalog.json': text(packageOf('a', { fast: [a2, a3].map((entry) => ({ ...entry })) })),
    'cluster.yaml': {
      ...{ apiVersion: 'v1', kind: 'List' },
      items: [
        {
          ...{ apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion', metadata: { name: 'version' } },
          status: { history: [{ state: 'Completed', version: '4.18.9' }] },
        },
        ...[subscription('a', 'stable', 'a.v1', 'Manual'), csv('a.v1', '1.0.0', '4.18')],
        ...[subscription('b', 'stable', 'b.v1'), csv('b.v1', '1.0.0')],
        {
          apiVersion: 'operators.coreos.com/v1',
          kind: 'OperatorGroup',
          metadata: { name: 'g', namespace: 'app' },
        },
      ],
    },
  });
});

describe('opmate cluster upgrade', () => {
  it('plans channels and versions before and after each update', async () => {
    const { code, stdout, stderr } = await upgrade('--to', '4.20', ...catalogs);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toBe(`OpenShift 4.18.9 to 4.20
Upgradeable=False now: ClusterServiceVersions blocking minor version upgrades to 4.23 or major version upgrades to 5.0:
  - maximum supported OCP version for app/a.v1 is 4.18

update 4.18 to 4.19: possible
  NAMESPACE  PACKAGE  STATUS  INSTALLED       BEFORE        AFTER             APPROVAL  REASON
  app        a        change  1.0.0 (stable)  2.0.0 (fast)  3.0.0 (fast)      Manual    a.v1: maximum supported OpenShift version is 4.18
  app        b        change  1.0.0 (stable)  -             1.0.0 (stable-1)  -         no channel stable in the catalogs of 4.19: change it to stable-1 after the update
  warning: app/a: change the channel to fast before the update
  warning: app/b: support of 1.0 ended on 2021-01-01
  steps:
    1. app: set the channel of Subscription a to fast (a.v1: maximum supported OpenShift version is 4.18)
    2. app: approve the install plans for a.v2 (a Subscription of the namespace is Manual)
    3. update the cluster to 4.19 (update graph not specified)
    4. use the catalogs of 4.19 (operators follow the catalogs of the version)
    5. app: set the channel of Subscription b to stable-1 (no channel stable in the catalogs of 4.19)
    6. app: approve the install plans for a.v3 (a Subscription of the namespace is Manual)

update 4.19 to 4.20: possible
  NAMESPACE  PACKAGE  STATUS  INSTALLED         BEFORE  AFTER                APPROVAL  REASON
  app        a        ready   3.0.0 (fast)      -       -                    -         neither blocks the update nor has a newer bundle in its channel
  app        b        ready   1.0.0 (stable-1)  -       not in the catalogs  -         no catalog of 4.20 has package b: OLM then resolves nothing in namespace app
  steps:
    1. update the cluster to 4.20 (update graph not specified)
    2. use the catalogs of 4.20 (operators follow the catalogs of the version)
`);
  });

  it('exits with 3 for an operator that blocks an update', async () => {
    const { code, stdout } = await upgrade('--to', '4.19', '--catalog', 'v4.19=v4.19', '-o', 'json');
    expect(code).toBe(3);
    const { hops } = JSON.parse(stdout) as {
      hops: { isBlocked: boolean; operators: { status: string; notes: object[] }[] }[];
    };
    expect(hops[0]?.isBlocked).toBe(true);
    expect(hops[0]?.operators.map(({ status }) => status)).toEqual(['blocked', 'change']);
    expect(hops[0]?.operators[0]?.notes[0]).toEqual({
      severity: 'error',
      code: 'max-openshift-version',
      text: 'a.v1: maximum supported OpenShift version is 4.18; its package is in no catalog of the version',
    });
  });

  it('writes an image set per update with what the plan needs', async () => {
    const { code, stderr } = await upgrade('--to', '4.20', ...catalogs, '--image-set', 'sets/upgrade.yaml');
    expect(code).toBe(0);
    expect(stderr).toContain('wrote sets/upgrade-4.19.yaml');
    const written = await readFile(path.join(sandbox.work, 'sets/upgrade-4.19.yaml'), 'utf8');
    expect(written).toContain(`  operators:
  - catalog: v4.18
    packages:
    - channels:
      - maxVersion: 2.0.0
        minVersion: 2.0.0
        name: fast
      name: a
    - channels:
      - maxVersion: 1.0.0
        minVersion: 1.0.0
        name: stable
      name: b
  - catalog: v4.19
    packages:
    - channels:
      - maxVersion: 3.0.0
        minVersion: 2.0.0
        name: fast
      name: a
    - channels:
      - maxVersion: 1.0.0
        minVersion: 1.0.0
        name: stable-1
      name: b
`);
  });

  describe('with an update graph', () => {
    const releases = ['4.18.9', '4.18.20', '4.19.3', '4.19.5'];
    beforeAll(async () => {
      await sandbox.write({
        'graphs/amd64-stable-4.19.json': graphText(
          releases,
          [
            ['4.18.9', '4.18.20'],
            ['4.18.20', '4.19.3'],
          ],
          { conditional: [{ from: '4.18.20', to: '4.19.5', risk: 'Slow' }] },
        ),
        'graphs/amd64-fast-4.19.json': graphText(releases.slice(1), [['4.18.20', '4.19.5']]),
        'graphs/amd64-stable-4.20.json': graphText(
          ['4.19.3', '4.19.7', '4.20.1'],
          [
            ['4.19.3', '4.19.7'],
            ['4.19.7', '4.20.1'],
          ],
        ),
      });
    });
    const plan = async (...args: string[]) => {
      const { code, stdout, stderr } = await upgrade(...catalogs, '--graph', 'graphs', '-o', 'json', ...args);
      expect(stderr).toBe('');
      const { hops } = JSON.parse(stdout) as {
        hops: {
          to: string;
          releases: { version: string; channel: string; image: string }[];
          notes: { code: string; text: string }[];
        }[];
      };
      return { code, hops };
    };

    it('names the releases of each update, with the fewest risks', async () => {
      const { code, hops } = await plan('--to', '4.20');
      expect(code).toBe(0);
      expect(
        hops.map(({ to, releases: list }) => [to, list.map(({ version, channel }) => [version, channel])]),
      ).toEqual([
        [
          '4.19',
          [
            ['4.18.20', 'stable-4.19'],
            ['4.19.3', 'stable-4.19'],
          ],
        ],
        [
          '4.20',
          [
            ['4.19.7', 'stable-4.20'],
            ['4.20.1', 'stable-4.20'],
          ],
        ],
      ]);
      expect(hops[0]?.releases[0]?.image).toBe(payloadOf('4.18.20'));
    });

    it('goes to a release by a conditional update, and says so', async () => {
      const { code, hops } = await plan('--to', '4.19.5');
      expect(code).toBe(0);
      expect(hops[0]?.releases.map(({ version }) => version)).toEqual(['4.18.20', '4.19.5']);
      expect(hops[0]?.notes).toContainEqual({
        ...{ severity: 'warning', code: 'conditional-update' },
        text: 'the update from 4.18.20 to 4.19.5 is conditional (Slow, https://example.com/Slow)',
      });
    });

    it.each([
      [
        ['--to', '4.20.9'],
        1,
        'no update leads to 4.20.9 in stable-4.19, stable-4.20: the newest reachable is 4.19.7',
      ],
      [['--to', '4.19', '--update-channel', 'fast'], 0, 'release 4.18.9 is not in fast-4.19'],
      [['--to', '4.19', '--architecture', 'arm64'], 0, 'no releases in stable-4.19'],
    ])('blocks where no release leads on: %j', async (args, index, text) => {
      const { code, hops } = await plan(...args);
      expect(code).toBe(3);
      expect(hops[index]?.notes).toContainEqual({ severity: 'error', code: 'no-update-path', text });
    });

    it('adds the releases to the image sets', async () => {
      await upgrade('--to', '4.19', ...catalogs, '--graph', 'graphs', '--image-set', 'graph-sets/set.yaml');
      expect(await readFile(path.join(sandbox.work, 'graph-sets/set-4.19.yaml'), 'utf8'))
        .toContain(`  platform:
    architectures:
    - amd64
    channels:
    - maxVersion: 4.19.3
      minVersion: 4.18.20
      name: stable-4.19
      shortestPath: true
      type: ocp
`);
    });
  });

  it('follows all operators of a namespace together, with dependencies', async () => {
    await sandbox.write({
      'with-dependencies/catalog.json': [
        ...packageOf('a', { fast: [a2, { ...a3, requires: 'c' }] }),
        ...packageOf('b', { stable: [b1] }),
        ...packageOf('c', { alpha: [{ name: 'c.v1', version: '1.0.0' }] }),
      ]
        .map((blob) => `${JSON.stringify(blob)}\n`)
        .join(''),
    });
    const { code, stdout } = await upgrade(
      ...['--to', '4.19', '--catalog', 'v4.18=v4.18', '--catalog', 'v4.19=with-dependencies', '-o', 'json'],
    );
    expect(code).toBe(0);
    const { hops } = JSON.parse(stdout) as { hops: { operators: object[] }[] };
    expect(hops[0]?.operators).toMatchObject([
      { package: 'a', after: { bundle: 'a.v3' } },
      { package: 'b', after: { bundle: 'b.v1' } },
      {
        ...{ package: 'c', subscription: 'c-alpha-main-olm', after: { bundle: 'c.v1', channel: 'alpha' } },
        reason: 'a.v3 requires an operator with package: c and with version in range: >=1.0.0',
      },
    ]);
  });

  it('is compared with an earlier plan', async () => {
    const later = await upgrade('--to', '4.20', ...catalogs, '-o', 'json');
    const earlier = await upgrade('--to', '4.19', ...catalogs.slice(0, 4), '-o', 'json');
    await sandbox.write({ 'earlier.json': earlier.stdout, 'later.json': later.stdout });
    const same = await sandbox.run(['cluster', 'diff', 'later.json', 'later.json']);
    expect(same).toMatchObject({ code: 0, stdout: 'no differences\n' });
    const { code, stdout } = await sandbox.run(['cluster', 'diff', 'earlier.json', 'later.json']);
    expect(code).toBe(3);
    expect(stdout).toContain('4.19 to 4.20: a  -    ready a.v3 (fast), a.v3 (fast)');
  });

  it('says which namespace the next catalogs cannot resolve', async () => {
    await sandbox.write({
      'unresolved/catalog.json': packageOf('a', { fast: [a2, { ...a3, requires: 'missing' }] })
        .concat(
          packageOf('b', {
            stable: [{ name: 'b.v2', version: '2.0.0', replaces: 'b.v1', requires: 'missing' }],
          }),
        )
        .map((blob) => `${JSON.stringify({ ...blob })}\n`)
        .join(''),
      'freestanding.yaml': csvOf('lonely.v1', [
        { type: 'olm.package.required', value: { packageName: 'missing', versionRange: '>=1.0.0' } },
      ]),
    });
    const { code, stdout } = await sandbox.run([
      ...['cluster', 'upgrade', 'cluster.yaml', 'freestanding.yaml', '--to', '4.19'],
      ...['--catalog', 'v4.18=v4.18', '--catalog', 'v4.19=unresolved'],
    ]);
    expect(code).toBe(3);
    expect(stdout).toContain('error: namespace app: constraints not satisfiable: ');
  });

  it.each([
    [{ status: 'False', message: 'migrating' }, 3, 'OperatorCondition Upgradeable=False: migrating'],
    [{ status: 'True' }, 0, ''],
  ])('reads the OperatorCondition %j', async (condition, expected, message) => {
    await sandbox.write({
      'condition.yaml': {
        ...{ apiVersion: 'operators.coreos.com/v2', kind: 'OperatorCondition' },
        ...{
          metadata: { name: 'a.v1', namespace: 'app' },
          spec: { conditions: [{ type: 'Upgradeable', ...condition }] },
        },
      },
    });
    const { code, stdout } = await sandbox.run([
      ...['cluster', 'upgrade', 'cluster.yaml', 'condition.yaml', '--to', '4.19', ...catalogs],
    ]);
    expect(code).toBe(expected);
    expect(stdout).toContain(message);
  });

  it('reports removed APIs of bundles that are installed after the update', async () => {
    const data = Buffer.from(JSON.stringify({ apiVersion: 'policy/v1beta1', kind: 'PodDisruptionBudget' }));
    const blobs = packageOf('a', { fast: [a2, a3] }).map((blob) =>
      'image' in blob && 'properties' in blob && Array.isArray(blob.properties)
        ? {
            ...blob,
            properties: [
              ...(blob.properties as object[]),
              { type: 'olm.bundle.object', value: { data: data.toString('base64') } },
            ],
          }
        : blob,
    );
    await sandbox.write({
      'removed/catalog.json': [...blobs, ...packageOf('b', { stable: [b1] })]
        .map((blob) => `${JSON.stringify(blob)}\n`)
        .join(''),
    });
    const { code, stdout } = await upgrade(
      ...['--to', '4.19', '--catalog', 'v4.18=v4.18', '--catalog', 'v4.19=removed'],
    );
    expect(code).toBe(3);
    expect(stdout).toContain(
      'a.v3 contains PodDisruptionBudget of policy/v1beta1, removed in Kubernetes 1.25',
    );
  });

  it.each([
    [['--to', '4.18'], 'no update leads from 4.18.9 to 4.18'],
    [['--to', 'x'], 'invalid OpenShift version "x"'],
    [['--to', '4.19', '--catalog', 'v4=a'], '--catalog "v4=a": not a catalog of a version'],
    [['--to', '4.19', '--catalog', '4.19=nowhere'], 'nowhere'],
  ])('refuses %j', async (args, message) => {
    const { code, stderr } = await upgrade(...args);
    expect(code).not.toBe(0);
    expect(stderr).toContain(message);
  });
});
