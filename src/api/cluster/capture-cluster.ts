import type { Kubectl } from '../../cluster/kubectl.js';
import { parseObjects } from '../../cluster/kubectl.js';
import { type ClusterText, readClusterFiles, readClusterManifests } from '../../cluster/snapshot-files.js';
import { createWarning, type Diagnostic } from '../../core/diagnostic.js';
import { compareBytes } from '../../core/order.js';
import { getObject, getObjects, getText } from '../../document/json-fields.js';
import type { JsonObject } from '../../document/json.js';
import { getLabels } from '../../kube/label-selector.js';
import { splitApiVersion } from '../../kube/object.js';
import { objectKinds } from '../../solve/migration/collect.js';
import type { Session } from '../../source/session.js';

/** Objects of a cluster that decide about its operators. */
export interface CapturedCluster {
  /** Sorted by kind, namespace and name; never Secrets. */
  objects: JsonObject[];
  /** Faults of files, and kinds that the cluster did not return. */
  findings: Diagnostic[];
}

/** Kinds that are captured whole, as `KIND.GROUP`. */
const wholeKinds: readonly string[] = [
  'Subscription.operators.coreos.com',
  'ClusterServiceVersion.operators.coreos.com',
  'InstallPlan.operators.coreos.com',
  'OperatorGroup.operators.coreos.com',
  'CatalogSource.operators.coreos.com',
  'Operator.operators.coreos.com',
  'OperatorCondition.operators.coreos.com',
  'ClusterExtension.olm.operatorframework.io',
  'ClusterCatalog.olm.operatorframework.io',
  'ClusterObjectSet.olm.operatorframework.io',
  'ClusterVersion.config.openshift.io',
  'ClusterOperator.config.openshift.io',
  'ImageDigestMirrorSet.config.openshift.io',
  'ImageTagMirrorSet.config.openshift.io',
  'ImageContentSourcePolicy.operator.openshift.io',
];

/** Kinds of which only objects of operators are captured. */
const partKinds: readonly string[] = objectKinds
  .map(({ apiVersion, kind }) => toKindName(apiVersion, kind))
  .filter((name) => name !== 'Secret');

const setDefinition = 'clusterobjectsets.olm.operatorframework.io';

function toKindName(apiVersion: string, kind: string): string {
  const { group } = splitApiVersion(apiVersion);
  return group === '' ? kind : `${kind}.${group}`;
}

/**
 * Captures a cluster from files, directories and archives as `kubectl get -o yaml`, must-gather and `oc adm inspect`
 * write them. Throws OpmateError for unreadable files, and LIMIT.
 */
export async function captureClusterFiles(
  places: readonly (string | ClusterText)[],
  { workingDirectory, signal }: Session,
): Promise<CapturedCluster> {
  const objects: JsonObject[] = [];
  const findings: Diagnostic[] = [];
  const names = [...wholeKinds, ...partKinds].map((name) => name.replace(/\..*/, ''));
  await readClusterFiles(places, names, { workingDirectory, signal }, (file) => {
    const read = readClusterManifests(file);
    findings.push(...read.findings);
    for (const manifest of read.manifests) {
      const name = toKindName(manifest.apiVersion, manifest.kind);
      if (wholeKinds.includes(name) || partKinds.includes(name)) objects.push(manifest.load());
    }
  });
  return { objects: select(objects), findings };
}

/** Captures a running cluster with kubectl. Kinds that it lacks are left out. Throws OpmateError if it is unreachable. */
export async function captureRunningCluster(kubectl: Kubectl): Promise<CapturedCluster> {
  const objects: JsonObject[] = [];
  const findings: Diagnostic[] = [];
  const requests = [
    ...wholeKinds.map((kind) => [kind]),
    ...partKinds
      .filter((kind) => !kind.startsWith('CustomResourceDefinition'))
      .map((kind) => [kind, '-l', 'olm.owner']),
    ['CustomResourceDefinition.apiextensions.k8s.io', '-l', 'olm.managed=true'],
    ['CustomResourceDefinition.apiextensions.k8s.io', setDefinition],
  ];
  for (const [kind = '', ...rest] of requests) {
    const scope = rest[0] === setDefinition ? [] : ['-A'];
    const args = ['get', kind, ...rest, ...scope, '-o', 'json', '--ignore-not-found'];
    const { stdout, errors } = await kubectl.run(args);
    if (errors.length === 0) objects.push(...parseObjects(stdout));
    else if (!errors.every((error) => error.includes("the server doesn't have a resource type"))) {
      findings.push(createWarning('not-captured', errors.join('; '), { subject: kind }));
    }
  }
  return { objects: select(objects), findings };
}

/** Keeps objects that matter, without what servers write for themselves, sorted. */
function select(objects: readonly JsonObject[]): JsonObject[] {
  const byName = new Map<string, JsonObject>();
  for (const object of objects) {
    const name = toKindName(getText(object, 'apiVersion'), getText(object, 'kind'));
    if (!wholeKinds.includes(name) && !isOfOperator(object)) continue;
    if (name.startsWith('ClusterServiceVersion') && getLabels(object).has('olm.copiedFrom')) continue;
    const { namespace, name: own } = getObject(object, 'metadata');
    byName.set(`${name} ${String(namespace ?? '')}/${String(own)}`, withoutNoise(object));
  }
  return [...byName].sort(([a], [b]) => compareBytes(a, b)).map(([, object]) => object);
}

/** Reports whether OLM v0 made an object for an operator, or a bundle contains it. */
function isOfOperator(object: JsonObject): boolean {
  const labels = [...getLabels(object).keys()];
  if (getText(object, 'metadata', 'name') === setDefinition) return true;
  if (labels.some((label) => label === 'olm.owner' || label.startsWith('operators.coreos.com/'))) return true;
  return getObjects(object, 'metadata', 'ownerReferences').some(
    ({ kind }) => kind === 'ClusterServiceVersion',
  );
}

function withoutNoise(object: JsonObject): JsonObject {
  const metadata = { ...getObject(object, 'metadata') };
  delete metadata['managedFields'];
  const annotations = { ...getObject(metadata, 'annotations') };
  delete annotations['kubectl.kubernetes.io/last-applied-configuration'];
  if (Object.keys(annotations).length > 0) metadata['annotations'] = annotations;
  else delete metadata['annotations'];
  return { ...object, metadata };
}

/** Returns a snapshot as one List, which all commands about clusters read. */
export function toSnapshotList({ objects }: CapturedCluster): JsonObject {
  return { apiVersion: 'v1', kind: 'List', items: objects };
}
