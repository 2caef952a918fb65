import { computeDigest } from '../../core/digest.js';
import { compareBytes } from '../../core/order.js';
import { encodeGoJson, sortKeysDeep } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import { splitApiVersion } from '../../kube/object.js';

/** Kinds of each phase, as `KIND` or `KIND.GROUP`, in the order of application. (Source: operator-controller.) */
const phaseKinds = {
  namespaces: ['Namespace'],
  policies: [
    'NetworkPolicy.networking.k8s.io',
    'PodDisruptionBudget.policy',
    'PriorityClass.scheduling.k8s.io',
  ],
  identity: ['ServiceAccount'],
  configuration: ['Secret', 'ConfigMap'],
  storage: ['PersistentVolume', 'PersistentVolumeClaim', 'StorageClass.storage.k8s.io'],
  crds: ['CustomResourceDefinition.apiextensions.k8s.io'],
  roles: ['ClusterRole.rbac.authorization.k8s.io', 'Role.rbac.authorization.k8s.io'],
  bindings: ['ClusterRoleBinding.rbac.authorization.k8s.io', 'RoleBinding.rbac.authorization.k8s.io'],
  infrastructure: ['Service', 'Issuer.cert-manager.io', 'Certificate.cert-manager.io'],
  deploy: ['Deployment.apps'],
  scaling: ['VerticalPodAutoscaler.autoscaling.k8s.io'],
  publish: [
    'PrometheusRule.monitoring.coreos.com',
    'ServiceMonitor.monitoring.coreos.com',
    'PodMonitor.monitoring.coreos.com',
    'Ingress.networking.k8s.io',
    'Route.route.openshift.io',
    'ConsoleYAMLSample.console.openshift.io',
    'ConsoleQuickStart.console.openshift.io',
    'ConsoleCLIDownload.console.openshift.io',
    'ConsoleLink.console.openshift.io',
    'ConsolePlugin.console.openshift.io',
  ],
  admission: [
    'ValidatingWebhookConfiguration.admissionregistration.k8s.io',
    'MutatingWebhookConfiguration.admissionregistration.k8s.io',
  ],
} as const;

type PhaseName = keyof typeof phaseKinds;

/** Phases in the order of application. */
const phaseNames = Object.keys(phaseKinds) as PhaseName[];

const phasesByKind: ReadonlyMap<string, PhaseName> = new Map(
  phaseNames.flatMap((phase) => phaseKinds[phase].map((kind) => [kind, phase] as const)),
);

/** Identity of an object, as in its first fields. */
export interface PhasedObject {
  apiVersion: string;
  kind: string;
  name: string;
  /** Empty for cluster-scoped objects. */
  namespace: string;
}

/** Objects that are applied at the same time. */
export interface Phase<T> {
  name: PhaseName;
  objects: T[];
}

/** Returns the phase of a kind: `deploy` for kinds of no other phase. */
export function getPhase({ apiVersion, kind }: Pick<PhasedObject, 'apiVersion' | 'kind'>): PhaseName {
  const { group } = splitApiVersion(apiVersion);
  return phasesByKind.get(group === '' ? kind : `${kind}.${group}`) ?? 'deploy';
}

/**
 * Groups objects by phase as operator-controller does for a ClusterObjectSet: phases in the order of application
 * without empty ones, objects sorted by group, version, kind, namespace and name.
 */
export function groupByPhase<T extends PhasedObject>(objects: readonly T[]): Phase<T>[] {
  const groups = new Map<PhaseName, T[]>(phaseNames.map((name) => [name, []]));
  for (const object of objects) groups.get(getPhase(object))?.push(object);
  return [...groups]
    .filter(([, members]) => members.length > 0)
    .map(([name, members]) => ({ name, objects: members.sort(compareInPhase) }));
}

function compareInPhase(a: PhasedObject, b: PhasedObject): number {
  const first = splitApiVersion(a.apiVersion);
  const second = splitApiVersion(b.apiVersion);
  return (
    compareBytes(first.group, second.group) ||
    compareBytes(first.version, second.version) ||
    compareBytes(a.kind, b.kind) ||
    compareBytes(a.namespace, b.namespace) ||
    compareBytes(a.name, b.name)
  );
}

/** Returns the digest of a phase as in `status.observedPhases` of a ClusterObjectSet. */
export function computePhaseDigest(name: string, objects: readonly JsonObject[]): string {
  const phase = { name, objects: objects.map((object) => sortKeysDeep(object)) };
  return computeDigest(encodeGoJson(phase, { escapeHtml: true }));
}

type CollisionProtection = 'Prevent' | 'IfNoController' | 'None';

/** Returns the collision protection of an object: its own, else that of its phase, of its set, or `Prevent`. */
export function getCollisionProtection(
  set: CollisionProtection | '' | undefined,
  phase: CollisionProtection | '' | undefined,
  object: CollisionProtection | '' | undefined,
): CollisionProtection {
  return object || phase || set || 'Prevent';
}
