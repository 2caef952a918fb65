import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { useSandbox } from '../support/command-line.js';

const sandbox = useSandbox();
const olm = 'operators.coreos.com/v1alpha1';

interface Entry {
  name: string;
  version: string;
  replaces?: string;
  /** Maximum OpenShift version. */
  max?: string;
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
    ...[...bundles.values()].map(({ name: bundle, version, max }) => ({
      ...{ schema: 'olm.bundle', package: name, name: bundle, image: `quay.io/example/${name}:${version}` },
      properties: [
        { type: 'olm.package', value: { packageName: name, version } },
        ...(max === undefined ? [] : [{ type: 'olm.maxOpenShiftVersion', value: max }]),
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
const csv = (name: string, version: string, max?: string): object => ({
  ...{ apiVersion: olm, kind: 'ClusterServiceVersion' },
  metadata: {
    ...{ name, namespace: 'app' },
    annotations: {
      'operatorframework.io/properties': JSON.stringify({
        properties: max === undefined ? [] : [{ type: 'olm.maxOpenShiftVersion', value: max }],
      }),
    },
  },
  spec: { version },
});
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
  NAMESPACE  PACKAGE  STATUS  INSTALLED       BEFORE        AFTER             APPROVAL
  app        a        change  1.0.0 (stable)  2.0.0 (fast)  3.0.0 (fast)      Manual
  app        b        change  1.0.0 (stable)  -             1.0.0 (stable-1)  -
  notice: app/a: a.v1: maximum supported OpenShift version is 4.18
  warning: app/a: change the channel to fast before the update
  warning: app/b: no channel stable in the catalogs of 4.19: change it to stable-1 after the update
  warning: app/b: support of 1.0 ended on 2021-01-01

update 4.19 to 4.20: possible
  NAMESPACE  PACKAGE  STATUS  INSTALLED         BEFORE  AFTER                APPROVAL
  app        a        ready   3.0.0 (fast)      -       -                    -
  app        b        ready   1.0.0 (stable-1)  -       not in the catalogs  -
  warning: app/b: no catalog of 4.20 has package b
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
        minVersion: 1.0.0
        name: fast
      name: a
`);
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
