import { sortedByBytes } from '../../core/order.js';
import { getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../document/json.js';
import { getKey, getName, getNamespace, splitApiVersion } from '../../kube/object.js';
import { type ClusterIndex, kinds, type ObjectKind } from './cluster-index.js';
import type { InstalledSubscription } from './installed.js';

function kindsOf(apiVersion: string, ...names: readonly string[]): ObjectKind[] {
  return names.map((kind) => ({ apiVersion, kind }));
}

/** Kinds that bundles may contain, and OLM v0 makes of them. (Source: library-olm, migration.) */
export const objectKinds: readonly ObjectKind[] = [
  ...kindsOf('v1', 'Namespace', 'Secret', 'ConfigMap', 'ServiceAccount', 'Service'),
  ...kindsOf('apps/v1', 'Deployment'),
  ...kindsOf('rbac.authorization.k8s.io/v1', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding'),
  ...kindsOf('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
  ...kindsOf(
    'admissionregistration.k8s.io/v1',
    'ValidatingWebhookConfiguration',
    'MutatingWebhookConfiguration',
  ),
  ...kindsOf('monitoring.coreos.com/v1', 'PrometheusRule', 'ServiceMonitor', 'PodMonitor'),
  ...kindsOf('policy/v1', 'PodDisruptionBudget'),
  ...kindsOf('scheduling.k8s.io/v1', 'PriorityClass'),
  ...kindsOf('networking.k8s.io/v1', 'NetworkPolicy'),
  ...kindsOf('autoscaling.k8s.io/v1', 'VerticalPodAutoscaler'),
  ...kindsOf(
    'console.openshift.io/v1',
    'ConsoleYAMLSample',
    'ConsoleQuickStart',
    'ConsoleCLIDownload',
    'ConsoleLink',
    'ConsolePlugin',
  ),
];

const clusterScoped: ReadonlySet<string> = new Set([
  'Namespace',
  'ClusterRole',
  'ClusterRoleBinding',
  'CustomResourceDefinition',
  'PriorityClass',
  'ConsoleYAMLSample',
  'ConsoleQuickStart',
  'ConsoleCLIDownload',
  'ConsoleLink',
  'ConsolePlugin',
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
]);

/** Kinds of OLM v0 itself, which do not move to OLM v1. */
const managementKinds: ReadonlySet<string> = new Set([
  'ClusterServiceVersion',
  'Subscription',
  'InstallPlan',
  'Operator',
  'OperatorGroup',
  'OperatorCondition',
]);

/**
 * Returns the objects of an installed operator: components of its Operator, definitions of its package, objects that
 * its ClusterServiceVersion owns by label or reference, and steps of its InstallPlan.
 */
export function collectObjects(cluster: ClusterIndex, operator: InstalledSubscription): JsonObject[] {
  const { subscription, csv, installPlan, packageName } = operator;
  const namespace = getNamespace(subscription);
  const components = cluster.find(kinds.operator, `${packageName}.${namespace}`);
  const packageLabel = `operators.coreos.com/${packageName}.${namespace}`;
  const found = [
    ...getObjects(components, 'status', 'components', 'refs').map((reference) =>
      findReferenced(cluster, reference),
    ),
    ...cluster.list(kinds.crd, { labels: { 'olm.managed': 'true', [packageLabel]: '' } }),
    ...objectKinds.flatMap((kind) => cluster.list(kind, { labels: { 'olm.owner': getName(csv) } })),
    ...ownedObjects(cluster, namespace, getName(csv)),
    ...planObjects(cluster, installPlan, getName(csv)),
  ];
  const byIdentity = new Map<string, JsonObject>();
  for (const object of found) {
    if (object === undefined || managementKinds.has(getText(object, 'kind'))) continue;
    const { group } = splitApiVersion(getText(object, 'apiVersion'));
    const identity = `${group}/${getText(object, 'kind')}/${getKey(object)}`;
    if (!byIdentity.has(identity)) byIdentity.set(identity, object);
  }
  return [...byIdentity.values()];
}

/** Returns the Secrets that OLM made for an operator and the objects of the cluster lack, as `NAMESPACE/NAME`. */
export function listMissingSecrets(
  cluster: ClusterIndex,
  { subscription, csv, installPlan, packageName }: InstalledSubscription,
): string[] {
  const namespace = getNamespace(subscription);
  const components = cluster.find(kinds.operator, `${packageName}.${namespace}`);
  const referenced = getObjects(components, 'status', 'components', 'refs')
    .filter(({ kind }) => kind === 'Secret')
    .map((reference) => ({ name: getText(reference, 'name'), namespace: getText(reference, 'namespace') }));
  const planned = getObjects(installPlan, 'status', 'plan')
    .filter(({ resolving }) => resolving === getName(csv))
    .map((step) => getObject(step, 'resource'))
    .filter(({ kind }) => kind === 'Secret' || kind === 'BundleSecret')
    .map((resource) => ({ name: getText(resource, 'name'), namespace }));
  const missing = [...referenced, ...planned].filter(
    (secret) =>
      cluster.find({ apiVersion: 'v1', kind: 'Secret' }, secret.name, secret.namespace) === undefined,
  );
  return sortedByBytes(new Set(missing.map((secret) => `${secret.namespace}/${secret.name}`)));
}

function findReferenced(cluster: ClusterIndex, reference: JsonObject): JsonObject | undefined {
  const kind = { apiVersion: getText(reference, 'apiVersion'), kind: getText(reference, 'kind') };
  return cluster.find(kind, getText(reference, 'name'), getText(reference, 'namespace'));
}

function ownedObjects(cluster: ClusterIndex, namespace: string, csv: string): JsonObject[] {
  return objectKinds
    .filter(({ kind }) => !clusterScoped.has(kind))
    .flatMap((kind) => cluster.list(kind, { namespace }))
    .filter((object) =>
      getObjects(object, 'metadata', 'ownerReferences').some(
        (owner) => owner['kind'] === 'ClusterServiceVersion' && owner['name'] === csv,
      ),
    );
}

function planObjects(
  cluster: ClusterIndex,
  installPlan: JsonObject | undefined,
  csv: string,
): (JsonObject | undefined)[] {
  return getObjects(installPlan, 'status', 'plan')
    .filter((step) => step['resolving'] === csv)
    .map((step) => {
      const resource = getObject(step, 'resource');
      const [group, version] = [getText(resource, 'group'), getText(resource, 'version')];
      const kind = getText(resource, 'kind');
      const apiVersion = group === '' ? version : `${group}/${version}`;
      const namespace = clusterScoped.has(kind) ? '' : getNamespace(installPlan as JsonObject);
      return cluster.find({ apiVersion, kind }, getText(resource, 'name'), namespace);
    });
}

/** Prefixes of annotations that the cluster writes itself. */
const strippedPrefixes = [
  'kubectl.kubernetes.io/',
  'olm.operatorframework.io/installed-alongside',
  'deployment.kubernetes.io/',
];

/** Fields that the migration library keeps besides name, labels and annotations. */
const keptFields = ['spec', 'data', 'stringData', 'rules', 'roleRef', 'subjects', 'webhooks'] as const;

/** Fields that it loses, and opmate keeps. */
export const lostFields = [
  'type',
  'immutable',
  'binaryData',
  'aggregationRule',
  'automountServiceAccountToken',
  'secrets',
  'imagePullSecrets',
] as const;

/** Returns an object without what the cluster wrote, and with further fields that are to be kept. */
export function stripObject(object: JsonObject, further: readonly string[] = []): JsonObject {
  const namespace = getNamespace(object);
  const labels = getObject(object, 'metadata', 'labels');
  const annotations = withoutStripped(getObject(object, 'metadata', 'annotations'));
  const stripped: JsonObject = {
    apiVersion: getText(object, 'apiVersion'),
    kind: getText(object, 'kind'),
    metadata: {
      name: getName(object),
      ...(namespace !== '' && { namespace }),
      ...(Object.keys(labels).length > 0 && { labels }),
      ...(Object.keys(annotations).length > 0 && { annotations }),
    },
  };
  for (const field of [...keptFields, ...further]) {
    const value = getValue(object, field);
    if (value !== undefined) stripped[field] = field === 'spec' ? stripTemplate(value) : value;
  }
  return stripped;
}

function withoutStripped(annotations: JsonObject): JsonObject {
  const kept = Object.entries(annotations).filter(
    ([key]) => !strippedPrefixes.some((prefix) => key.startsWith(prefix)),
  );
  return Object.fromEntries(kept);
}

/** Removes such annotations of a pod template. */
function stripTemplate(spec: JsonValue): JsonValue {
  const annotations = getValue(spec, 'template', 'metadata', 'annotations');
  if (!isJsonObject(spec) || !isJsonObject(annotations)) return spec;
  const template = getObject(spec, 'template');
  const metadata = { ...getObject(template, 'metadata') };
  const kept = withoutStripped(annotations);
  if (Object.keys(kept).length > 0) metadata['annotations'] = kept;
  else delete metadata['annotations'];
  return { ...spec, template: { ...template, metadata } };
}
