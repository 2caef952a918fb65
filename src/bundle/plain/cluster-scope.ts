import type { JsonObject } from '../../document/json.js';
import { getObject } from '../../document/json-fields.js';
import { type PlainObject, getGroup } from '../../kube/object.js';

/** Kinds of Kubernetes and OpenShift whose objects are in no namespace. */
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

/** Whether objects of a kind of Kubernetes or OpenShift are in no namespace. */
export function isClusterKind(kind: string): boolean {
  return clusterKinds.has(kind);
}

/** Groups whose kinds are all known, in addition to those without a dot. */
const ownGroups = /^(?:|[a-z]+|(?:[a-z.]+\.)?k8s\.io|monitoring\.coreos\.com|cert-manager\.io)$/;

/**
 * Puts objects that name no namespace where applying them with that namespace would: those of kinds that have one.
 * Of kinds that are neither of Kubernetes nor defined among the objects, nobody knows, and they stay as they are.
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
