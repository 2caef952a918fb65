import type { JsonValue } from '../../document/json.js';
import { getTitle } from '../../kube/manifests.js';
import type { PlainObject } from '../../kube/object.js';
import { type Diagnostic, createWarning } from '../../core/diagnostic.js';

/** Maximum size of an object in etcd, as Kubernetes configures it, less some reserve. */
const maxStored = 1024 * 1024;

/** APIs that Kubernetes removed: `apiVersion`, kinds, and release. */
export const removedApis = [
  ['extensions/v1beta1', 'Ingress', '1.22'],
  ['extensions/v1beta1', 'Deployment DaemonSet ReplicaSet NetworkPolicy PodSecurityPolicy', '1.16'],
  ['apps/v1beta1', 'Deployment StatefulSet', '1.16'],
  ['apps/v1beta2', 'Deployment DaemonSet ReplicaSet StatefulSet', '1.16'],
  ['admissionregistration.k8s.io/v1beta1', 'MutatingWebhookConfiguration', '1.22'],
  ['admissionregistration.k8s.io/v1beta1', 'ValidatingWebhookConfiguration', '1.22'],
  ['apiextensions.k8s.io/v1beta1', 'CustomResourceDefinition', '1.22'],
  ['apiregistration.k8s.io/v1beta1', 'APIService', '1.22'],
  ['certificates.k8s.io/v1beta1', 'CertificateSigningRequest', '1.22'],
  ['coordination.k8s.io/v1beta1', 'Lease', '1.22'],
  ['networking.k8s.io/v1beta1', 'Ingress IngressClass', '1.22'],
  ['rbac.authorization.k8s.io/v1beta1', 'Role RoleBinding ClusterRole ClusterRoleBinding', '1.22'],
  ['rbac.authorization.k8s.io/v1alpha1', 'Role RoleBinding ClusterRole ClusterRoleBinding', '1.22'],
  ['scheduling.k8s.io/v1beta1', 'PriorityClass', '1.22'],
  ['storage.k8s.io/v1beta1', 'CSIDriver CSINode StorageClass VolumeAttachment', '1.22'],
  ['batch/v1beta1', 'CronJob', '1.25'],
  ['batch/v2alpha1', 'CronJob', '1.21'],
  ['discovery.k8s.io/v1beta1', 'EndpointSlice', '1.25'],
  ['events.k8s.io/v1beta1', 'Event', '1.25'],
  ['policy/v1beta1', 'PodDisruptionBudget PodSecurityPolicy', '1.25'],
  ['node.k8s.io/v1beta1', 'RuntimeClass', '1.25'],
  ['autoscaling/v2beta1', 'HorizontalPodAutoscaler', '1.25'],
  ['autoscaling/v2beta2', 'HorizontalPodAutoscaler', '1.26'],
  ['flowcontrol.apiserver.k8s.io/v1beta1', 'FlowSchema PriorityLevelConfiguration', '1.26'],
  ['storage.k8s.io/v1beta1', 'CSIStorageCapacity', '1.27'],
  ['flowcontrol.apiserver.k8s.io/v1beta2', 'FlowSchema PriorityLevelConfiguration', '1.29'],
  ['flowcontrol.apiserver.k8s.io/v1beta3', 'FlowSchema PriorityLevelConfiguration', '1.32'],
] as const;
const releases: ReadonlyMap<string, string> = new Map(
  removedApis.flatMap(([apiVersion, kinds, release]) =>
    kinds.split(' ').map((kind) => [`${apiVersion} ${kind}`, release] as const),
  ),
);

/** An API that Kubernetes removed. */
export interface RemovedApi {
  apiVersion: string;
  kind: string;
  /** Kubernetes that has it no more, such as `1.22`. */
  release: string;
}

/** Returns the API of an object if Kubernetes removed it. */
export function findRemovedApi(apiVersion: string, kind: string): RemovedApi | undefined {
  const release = releases.get(`${apiVersion} ${kind}`);
  return release === undefined ? undefined : { apiVersion, kind, release };
}

/** Warns of objects with removed APIs, and of those too large to be stored. */
export function objectWarnings(objects: readonly PlainObject[]): Diagnostic[] {
  return objects.flatMap((object) => {
    const warnings: Diagnostic[] = [];
    const place = { subject: getTitle(object), file: object.isGenerated ? undefined : object.origin };
    const removed = findRemovedApi(object.apiVersion, object.kind);
    if (removed !== undefined) {
      const problem = `${removed.apiVersion} was removed in Kubernetes ${removed.release}`;
      warnings.push(createWarning('removed-api', problem, place));
    }
    if (estimateSize(object.load(), maxStored) > maxStored) {
      const problem = 'larger than 1 MiB: clusters may refuse to store it';
      warnings.push(createWarning('limit', problem, { ...place, hint: 'reduce its size, or split it' }));
    }
    return warnings;
  });
}

/** Returns the approximate length of a value as compact JSON; stops beyond `limit`. */
function estimateSize(value: JsonValue, limit: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  let size = 2;
  for (const key of Object.keys(value)) {
    if (!Array.isArray(value)) size += key.length + 3;
    size += 1 + estimateSize((value as Record<string, JsonValue>)[key] ?? null, limit);
    if (size > limit) return size;
  }
  return size;
}
