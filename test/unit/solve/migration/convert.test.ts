import { describe, expect, it } from 'vitest';
import { migrateCatalogSources } from '../../../../src/solve/migration/catalog-sources.js';
import { ClusterIndex } from '../../../../src/solve/migration/cluster-index.js';
import { type ConvertOptions, convertSubscription } from '../../../../src/solve/migration/convert.js';
import { rollBackMigration } from '../../../../src/solve/migration/rollback.js';
import type { JsonObject } from '../../../../src/document/json.js';
import { type Changes, findOffer, smallCluster } from './small-cluster.js';

const secret: JsonObject = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 'key',
    namespace: 'op',
    uid: 'u',
    labels: { 'olm.owner': 'demo.v1' },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', note: 'n' },
  },
  type: 'kubernetes.io/tls',
  data: { a: 'Yg==' },
};

function convert(changes: Changes = {}, options: Partial<ConvertOptions> = {}) {
  const cluster = new ClusterIndex(smallCluster(changes, [secret]));
  const given = { subscription: 'demo', namespace: 'op', acknowledged: new Set<never>(), ...options };
  return convertSubscription(cluster, findOffer, given);
}

describe('documents of a migration to OLM v1', () => {
  it('pin the version of a Subscription with manual approval, and resolve its default channel', () => {
    const converted = convert({ Subscription: { spec: { channel: '', installPlanApproval: 'Manual' } } });
    expect(converted).toMatchObject({
      clusterExtension: { spec: { source: { catalog: { version: '1.0.0', channels: ['stable'] } } } },
      notes: [{ severity: 'note' }],
    });
  });

  it('write the settings of a Subscription with canonical quantities and without its selector', () => {
    const config = {
      selector: { matchLabels: {} },
      resources: { limits: { cpu: '1000m', memory: '1024Mi' } },
    };
    const converted = convert({ Subscription: { spec: { config } } });
    expect(converted).toMatchObject({
      clusterExtension: {
        spec: {
          config: { inline: { deploymentConfig: { resources: { limits: { cpu: '1', memory: '1Gi' } } } } },
        },
      },
      notes: [{ severity: 'warning' }],
    });
  });

  it('keep what the migration library loses only if told', () => {
    const objectOf = (options: Partial<ConvertOptions>): unknown => {
      const converted = convert({}, options);
      if ('error' in converted) throw new Error(converted.error);
      const { phases } = converted.clusterObjectSet['spec'] as {
        phases: { objects: { object: unknown }[] }[];
      };
      return phases[0]?.objects[0]?.object;
    };
    const kept = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: 'key',
        namespace: 'op',
        labels: { 'olm.owner': 'demo.v1' },
        annotations: { note: 'n' },
      },
      data: { a: 'Yg==' },
    };
    expect(objectOf({})).toEqual(kept);
    expect(objectOf({ keepsAllFields: true })).toEqual({ ...kept, type: 'kubernetes.io/tls' });
  });

  it('are refused in the words of the migration library', () => {
    expect(convert({ OperatorGroup: null })).toEqual({
      error: 'operator is not compatible with OLMv1 migration (1 issues found)',
    });
    expect(convert({ CatalogSource: null })).toEqual({
      error:
        'failed to get bundle info: subscription op/demo references CatalogSource olm/src: catalogsources.operators.coreos.com "src" not found',
    });
  });

  it('adopt a ClusterCatalog with the same image, and are named by namespace where images differ', () => {
    const source = (namespace: string, image: string): JsonObject => ({
      apiVersion: 'operators.coreos.com/v1alpha1',
      kind: 'CatalogSource',
      metadata: { name: 'other', namespace },
      spec: {
        sourceType: 'grpc',
        image,
        priority: 2 ** 40,
        updateStrategy: { registryPoll: { interval: '90s' } },
      },
    });
    const further = [source('a', 'registry.test/a:1'), source('b', 'registry.test/b:1')];
    const cluster = new ClusterIndex(smallCluster({}, further));
    const { results, clusterCatalogs } = migrateCatalogSources(cluster, { capsPriority: true });
    expect(results.map(({ clusterCatalog, status }) => [clusterCatalog, status])).toEqual([
      ['other-a', 'created'],
      ['other-b', 'created'],
      ['src', 'adopted'],
    ]);
    expect(clusterCatalogs[0]).toMatchObject({
      spec: { priority: 2 ** 31 - 1, source: { image: { pollIntervalMinutes: 1 } } },
    });
    expect(migrateCatalogSources(cluster, {}).results[0]).toMatchObject({ status: 'skipped' });
  });

  it('are taken back with the Subscription as it was', () => {
    const converted = convert();
    if ('error' in converted) throw new Error(converted.error);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'op' } };
    const cluster = new ClusterIndex([namespace, converted.clusterExtension, converted.clusterObjectSet]);
    expect(rollBackMigration(cluster, 'demo', false)).toEqual({
      subscription: {
        apiVersion: 'operators.coreos.com/v1alpha1',
        kind: 'Subscription',
        metadata: { name: 'demo', namespace: 'op' },
        spec: { name: 'demo', channel: 'stable', source: 'src', sourceNamespace: 'olm' },
      },
      deletedSets: ['demo-1'],
      remainingSets: [],
    });
    expect(rollBackMigration(new ClusterIndex([converted.clusterExtension]), 'demo', false)).toEqual({
      error:
        'source namespace "op" must exist before rollback can restore Subscription: namespaces "op" not found',
    });
  });
});
