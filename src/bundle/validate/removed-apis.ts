import { compareBytes } from '../../core/order.js';
import { quoteGo } from '../../document/go-json.js';
import { compareVersions, parseTolerantVersion, tryParse } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Permission, ApiDescription } from '../../kube/csv-types.js';
import { type CheckDiagnostic, errorAt } from './diagnostic.js';

/** Kinds that Kubernetes removed, by release and `apiVersion`. */
const removed: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  '1.22': {
    'scheduling.k8s.io/v1beta1': ['PriorityClass'],
    'rbac.authorization.k8s.io/v1beta1': ['Role', 'ClusterRoleBinding', 'RoleBinding', 'ClusterRole'],
    'apiregistration.k8s.io/v1beta1': ['APIService'],
    'authentication.k8s.io/v1beta1': ['TokenReview'],
    'authorization.k8s.io/v1beta1': [
      'LocalSubjectAccessReview',
      'SelfSubjectAccessReview',
      'SubjectAccessReview',
    ],
    'admissionregistration.k8s.io/v1beta1': [
      'MutatingWebhookConfiguration',
      'ValidatingWebhookConfiguration',
    ],
    'coordination.k8s.io/v1beta1': ['Lease'],
    'extensions/v1beta1': ['Ingress'],
    'networking.k8s.io/v1beta1': ['Ingress', 'IngressClass'],
    'storage.k8s.io/v1beta1': ['CSIDriver', 'CSINode', 'StorageClass', 'VolumeAttachment'],
    'certificates.k8s.io/v1beta1': ['CertificateSigningRequest'],
  },
  '1.25': {
    'batch/v1beta1': ['CronJob'],
    'discovery.k8s.io/v1beta1': ['EndpointSlice'],
    'events.k8s.io/v1beta1': ['Event'],
    'autoscaling/v2beta1': ['HorizontalPodAutoscaler'],
    'policy/v1beta1': ['PodDisruptionBudget', 'PodSecurityPolicy'],
    'node.k8s.io/v1beta1': ['RuntimeClass'],
  },
  '1.26': { 'autoscaling/v2beta2': ['HorizontalPodAutoscaler'] },
};

/** Names of objects by kind, with the file of the first. */
class Uses {
  readonly #names = new Map<string, string[]>();
  file: string | undefined;

  add(kind: string, name: string, file: string): void {
    this.file ??= file;
    const names = this.#names.get(kind);
    if (names === undefined) this.#names.set(kind, [name]);
    else names.push(name);
  }

  get isEmpty(): boolean {
    return this.#names.size === 0;
  }

  /** Returns `CRD: (["a" "b"]),Role: (["c"])`. */
  describe(): string {
    return [...this.#names]
      .sort(([a], [b]) => compareBytes(a, b))
      .map(([kind, names]) => `${kind}: ([${names.map(quoteGo).join(' ')}])`)
      .join(',');
  }
}

/**
 * Checks for removed APIs: an error if the minimum version of the bundle or `k8sVersion` lacks them, otherwise a
 * warning. (Source: validator `alpha-deprecated-apis` of operator-framework/api.)
 */
export function removedApiFaults(content: BundleContent, k8sVersion: string | undefined): CheckDiagnostic[] {
  const { csv, csvObject, name } = content;
  if (csv === undefined || csvObject === undefined) return [];
  const faults: CheckDiagnostic[] = [];
  const target = k8sVersion === undefined ? undefined : tryParse(parseTolerantVersion, k8sVersion);
  if (k8sVersion !== undefined && target === undefined) {
    const message = `Value ${name}: invalid value informed via the k8s key option : ${k8sVersion}`;
    faults.push({ severity: 'error', problem: message });
  }
  const { minKubeVersion = '' } = csv.spec;
  const minimum = minKubeVersion === '' ? undefined : tryParse(parseTolerantVersion, minKubeVersion);
  if (minKubeVersion !== '' && minimum === undefined) {
    const problem =
      'unable to use csv.Spec.MinKubeVersion to verify the CRD/Webhook apis because it has an invalid value: ';
    faults.push(errorAt(['spec', 'minKubeVersion'], `Value ${name}: ${problem}${minKubeVersion}`));
  }
  for (const version of Object.keys(removed)) {
    const { uses: removedUses, granted } = getUses(content, version);
    const tell = (uses: Uses, severity: CheckDiagnostic['severity']): void => {
      if (uses.isEmpty || uses.file === undefined) return;
      const message = `Value ${name}: ${removedText(version)}. Migrate the API(s) for ${uses.describe()}`;
      faults.push({ severity, problem: message, file: uses.file });
    };
    const since = parseTolerantVersion(version);
    const isError = [target, minimum].some((item) => item !== undefined && compareVersions(item, since) >= 0);
    tell(removedUses, isError ? 'error' : 'warning');
    tell(granted, 'warning');
  }
  return faults;
}

/** Returns upstream's message about APIs removed in a version. */
function removedText(version: string): string {
  const anchor = `v${version.replace('.', '-')}`;
  return (
    `this bundle is using APIs which were deprecated and removed in v${version}. More info: ` +
    `https://kubernetes.io/docs/reference/using-api/deprecation-guide/#${anchor}`
  );
}

/** Describes the APIs of a bundle that Kubernetes 1.22 removed; undefined if there are none. */
export function removedIn122(content: BundleContent): string | undefined {
  const { uses } = getUses(content, '1.22');
  return uses.isEmpty ? undefined : uses.describe();
}

function getUses(content: BundleContent, version: string): { uses: Uses; granted: Uses } {
  const uses = new Uses();
  const granted = new Uses();
  const kinds = removed[version] ?? {};
  const isRemoved = (apiVersion: string, kind: string): boolean =>
    Object.hasOwn(kinds, apiVersion) && (kinds[apiVersion] as readonly string[]).includes(kind);
  if (version === '1.22') {
    for (const crd of content.crds) if (!crd.isV1) uses.add('CRD', crd.name, crd.file);
  }
  for (const { apiVersion, kind, name, file } of content.objects) {
    if (isRemoved(apiVersion, kind)) uses.add(kind, name, file);
  }
  const { csv, csvObject } = content;
  if (
    version !== '1.25' ||
    csv === undefined ||
    csvObject?.apiVersion !== 'operators.coreos.com/v1alpha1' ||
    content.objects.length === 0
  ) {
    return { uses, granted };
  }
  const named = new Set<string>();
  const { owned = [], required = [] } = csv.spec.customresourcedefinitions ?? {};
  const describe = (field: string, apis: readonly ApiDescription[]): void => {
    for (const [index, { resources = [] }] of apis.entries()) {
      for (const [position, { kind, version: apiVersion }] of resources.entries()) {
        named.add(`${kind.toLowerCase()}s`);
        const place = `ClusterServiceVersion.Spec.CustomResourceDefinitions.${field}[${index}].Resource[${position}]`;
        if (isRemoved(apiVersion, kind)) uses.add(kind, place, csvObject.file);
      }
    }
  };
  describe('Owned', owned);
  describe('Required', required);
  const grants = (field: string, permissions: readonly Permission[]): void => {
    for (const [index, { rules }] of permissions.entries()) {
      for (const [position, { apiGroups = [], resources = [] }] of (rules ?? []).entries()) {
        // The only resource without a later version.
        if (named.has('podsecuritypolicies')) continue;
        const count =
          apiGroups.filter((group) => group === 'policy').length *
          resources.filter((resource) => resource === 'podsecuritypolicies').length;
        const place = `ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.${field}[${index}].Rules[${position}]`;
        if (count > 0) granted.add('podsecuritypolicies', place, csvObject.file);
      }
    }
  };
  grants('ClusterPermissions', csv.spec.install.spec?.clusterPermissions ?? []);
  grants('Permissions', csv.spec.install.spec?.permissions ?? []);
  return { uses, granted };
}
