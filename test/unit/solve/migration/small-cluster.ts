import type { JsonObject } from '../../../../src/document/json.js';
import type { FindOffer } from '../../../../src/solve/migration/catalogs.js';

/** Changes of objects by kind: further or other fields of spec, status and metadata; null removes the object. */
export type Changes = Readonly<Record<string, { metadata?: object; spec?: object; status?: object } | null>>;

const olm = 'operators.coreos.com';

/** Objects of a cluster with one operator, `demo`, that can move to OLM v1. */
export function smallCluster(changes: Changes = {}, further: readonly JsonObject[] = []): JsonObject[] {
  const objects: JsonObject[] = [
    {
      apiVersion: `${olm}/v1alpha1`,
      kind: 'Subscription',
      metadata: { name: 'demo', namespace: 'op' },
      spec: { name: 'demo', channel: 'stable', source: 'src', sourceNamespace: 'olm' },
      status: { state: 'AtLatestKnown', installedCSV: 'demo.v1' },
    },
    {
      apiVersion: `${olm}/v1alpha1`,
      kind: 'ClusterServiceVersion',
      metadata: { name: 'demo.v1', namespace: 'op' },
      spec: { version: '1.0.0', installModes: [{ type: 'AllNamespaces', supported: true }] },
      status: { phase: 'Succeeded', reason: 'InstallSucceeded' },
    },
    { apiVersion: `${olm}/v1`, kind: 'OperatorGroup', metadata: { name: 'og', namespace: 'op' }, spec: {} },
    {
      apiVersion: `${olm}/v1alpha1`,
      kind: 'CatalogSource',
      metadata: { name: 'src', namespace: 'olm' },
      spec: { sourceType: 'grpc', image: 'registry.test/index:v1' },
    },
    {
      apiVersion: 'olm.operatorframework.io/v1',
      kind: 'ClusterCatalog',
      metadata: { name: 'src' },
      spec: { source: { type: 'Image', image: { ref: 'registry.test/index:v1' } } },
      status: { conditions: [{ type: 'Serving', status: 'True' }] },
    },
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'clusterobjectsets.olm.operatorframework.io' },
      status: { conditions: [{ type: 'Established', status: 'True' }] },
    },
  ];
  const changed = objects.flatMap((object): JsonObject[] => {
    const change = changes[String(object['kind'])];
    if (change === null) return [];
    const fields = Object.entries(change ?? {}).map(([field, value]) => [
      field,
      { ...(object[field] as object), ...value },
    ]);
    return [{ ...object, ...(Object.fromEntries(fields) as JsonObject) }];
  });
  return [...changed, ...further];
}

/** The catalog `src` with the installed version. */
export const findOffer: FindOffer = (catalog, packageName) =>
  catalog === 'src' && packageName === 'demo'
    ? { defaultChannel: 'stable', channels: new Set(['stable']), versions: new Set(['1.0.0']) }
    : undefined;
