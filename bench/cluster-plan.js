// Plans of OLM v0 from a snapshot: predictions of 40 and 400 Subscriptions, and the updates of a cluster.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { compare, opmate } from './support/measure.js';

export const summary =
  'plans of 40 and 400 Subscriptions, and of 40 operators over three updates, as ratios to validate of one catalog';

const packages = 450;
const bundles = 20;
/** Bytes of the description of a bundle: all catalogs have 110 MB, as the largest public one. */
const descriptionBytes = 12_000;
const versions = ['4.18', '4.19', '4.20', '4.21'];

export async function run() {
  const directory = createInputs();
  const catalog = path.join(directory, 'catalog');
  const snapshot = (count) => path.join(directory, `cluster-${count}.json`);
  const baseline = [opmate, ['validate', catalog]];
  let good = true;
  for (const { count, maxRatio } of [
    { count: 40, maxRatio: 3 },
    { count: 400, maxRatio: 6 },
  ]) {
    const args = ['cluster', 'predict', snapshot(count), '--catalog', `main=${catalog}`];
    const subject = [opmate, args];
    const name = `predict ${count} Subscriptions`;
    good = (await compare({ name, subject, baseline, runs: 3, maxRatio, maxMegabytes: 450 })) && good;
  }
  const catalogs = versions.flatMap((version) => ['--catalog', `v${version}=${catalog}`]);
  const subject = [opmate, ['cluster', 'upgrade', snapshot(40), '--to', '4.21', ...catalogs]];
  const name = 'upgrade 40 operators over 3 updates';
  return (await compare({ name, subject, baseline, runs: 3, maxRatio: 6, maxMegabytes: 700 })) && good;
}

/** Makes the catalog and snapshots once, and keeps them in the temporary directory. */
function createInputs() {
  const directory = path.join(tmpdir(), 'opmate-bench-cluster');
  if (existsSync(directory)) return directory;
  const staging = `${directory}.new`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(path.join(staging, 'catalog'), { recursive: true });
  for (let index = 0; index < packages; index++)
    writeFileSync(path.join(staging, 'catalog', `p${index}.json`), packageText(index));
  for (const count of [40, 400])
    writeFileSync(path.join(staging, `cluster-${count}.json`), snapshotText(count));
  renameSync(staging, directory);
  return directory;
}

const bundleName = (index, version) => `p${index}.v1.${version}.0`;

/** A package whose bundles replace one another and skip none; every fifth requires another. */
function packageText(index) {
  const name = `p${index}`;
  const numbers = Array.from({ length: bundles }, (_, version) => version);
  const blobs = [
    { schema: 'olm.package', name, defaultChannel: 'stable' },
    {
      ...{ schema: 'olm.channel', package: name, name: 'stable' },
      entries: numbers.map((version) => ({
        name: bundleName(index, version),
        ...(version > 0 && { replaces: bundleName(index, version - 1), skipRange: `<1.${version}.0` }),
      })),
    },
    ...numbers.map((version) => ({
      ...{ schema: 'olm.bundle', package: name, name: bundleName(index, version) },
      image: `quay.io/bench/${name}:v1.${version}.0`,
      properties: [
        { type: 'olm.package', value: { packageName: name, version: `1.${version}.0` } },
        { type: 'olm.gvk', value: { group: `${name}.example.com`, kind: 'Thing', version: 'v1' } },
        ...(index % 5 === 1
          ? [
              {
                type: 'olm.package.required',
                value: { packageName: `p${index - 1}`, versionRange: '>=1.0.0' },
              },
            ]
          : []),
        { type: 'olm.csv.metadata', value: { description: 'x'.repeat(descriptionBytes) } },
      ],
    })),
  ];
  return blobs.map((blob) => `${JSON.stringify(blob, null, 4)}\n`).join('');
}

/** A cluster with Subscriptions in namespaces of four, each installed in its first version. */
function snapshotText(count) {
  const olm = 'operators.coreos.com/v1alpha1';
  const sourceNamespace = 'openshift-marketplace';
  const namespaceOf = (index) => `team-${Math.floor(index / 4)}`;
  const indexes = Array.from({ length: count }, (_, index) => index);
  const items = [
    {
      ...{ apiVersion: 'config.openshift.io/v1', kind: 'ClusterVersion', metadata: { name: 'version' } },
      status: { desired: { version: '4.18.9' } },
    },
    {
      apiVersion: olm,
      kind: 'CatalogSource',
      metadata: { name: 'main', namespace: sourceNamespace },
      spec: {},
    },
    ...[...new Set(indexes.map(namespaceOf))].map((namespace) => ({
      ...{
        apiVersion: 'operators.coreos.com/v1',
        kind: 'OperatorGroup',
        metadata: { name: 'all', namespace },
      },
      spec: {},
    })),
    ...indexes.flatMap((index) => {
      const csv = bundleName(index, 0);
      const namespace = namespaceOf(index);
      return [
        {
          ...{ apiVersion: olm, kind: 'Subscription', metadata: { name: `p${index}`, namespace } },
          spec: { name: `p${index}`, channel: 'stable', source: 'main', sourceNamespace },
          status: { installedCSV: csv, currentCSV: csv },
        },
        {
          apiVersion: olm,
          kind: 'ClusterServiceVersion',
          metadata: { name: csv, namespace },
          spec: { version: '1.0.0' },
        },
      ];
    }),
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}
