import type { JsonObject } from '../../document/json.js';
import { getObject } from '../../document/json-fields.js';
import { type PlainObject, getGroup } from '../../kube/object.js';

/** Cluster-scoped kinds of Kubernetes and OpenShift. */
const clusterKinds: ReadonlySet<string> = new Set([
  'APIService',
  'CSIDriver',
  'CSINode',
  'CertificateSigningRequest',
  'ClusterIssuer',
  'ClusterRole',
  'ClusterRoleBinding',
  'ClusterTrustBundle',
  'ConsoleCLIDownload',
  'ConsoleLink',
  'ConsolePlugin',
  'ConsoleQuickStart',
  'ConsoleYAMLSample',
  'CustomResourceDefinition',
  'DeviceClass',
  'FlowSchema',
  'GatewayClass',
  'IngressClass',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
  'MutatingWebhookConfiguration',
  'Namespace',
  'Node',
  'PersistentVolume',
  'PodSecurityPolicy',
  'PriorityClass',
  'PriorityLevelConfiguration',
  'Project',
  'RuntimeClass',
  'SecurityContextConstraints',
  'StorageClass',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'ValidatingWebhookConfiguration',
  'VolumeAttachment',
  'VolumeSnapshotClass',
]);

/** Reports whether a kind of Kubernetes or OpenShift is cluster-scoped. */
export function isClusterKind(kind: string): boolean {
  return clusterKinds.has(kind);
}

/** Groups whose cluster-scoped kinds are all known, including those without a dot. */
const ownGroups = /^(?:|[a-z]+|(?:[a-z.]+\.)?k8s\.io|monitoring\.coreos\.com|cert-manager\.io)$/;

/**
 * Sets the namespace of namespaced objects without one, as applying them with that namespace would. Leaves objects of
 * unknown kinds unchanged: neither of Kubernetes nor defined by other objects.
 */
export function placeInNamespace(objects: readonly PlainObject[], namespace: string): PlainObject[] {
  const scopes = new Map<string, string>();
  for (const object of objects) {
    if (object.kind !== 'CustomResourceDefinition') continue;
    const { group, names, scope } = getObject(object.load()['spec']);
    scopes.set(`${String(group)}/${String(getObject(names)['kind'])}`, String(scope));
  }
  return objects.map((object) => {
    if (object.namespace !== '' || !isNamespaced(object, scopes)) return object;
    const load = (): JsonObject => {
      const value = object.load();
      return { ...value, metadata: { ...getObject(value['metadata']), namespace } };
    };
    return { ...object, namespace, load };
  });
}

function isNamespaced({ apiVersion, kind }: PlainObject, scopes: ReadonlyMap<string, string>): boolean {
  const group = getGroup(apiVersion);
  const scope = scopes.get(`${group}/${kind}`);
  if (scope !== undefined) return scope === 'Namespaced';
  return ownGroups.test(group) && !isClusterKind(kind);
}
