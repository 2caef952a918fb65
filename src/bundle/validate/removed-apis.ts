import { groupBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { quoteGo } from '../../document/go-json.js';
import { compareVersions, parseTolerantVersion, tryParse } from '../../core/semver.js';
import { removedApis } from '../plain/object-warnings.js';
import type { BundleContent } from './content.js';
import type { Permission, ApiDescription } from '../../kube/csv-types.js';
import { type Reporter, prefixed, warning } from './report.js';

/** Releases whose removed APIs upstream knows, except some, and some further ones. */
const releases = ['1.22', '1.25', '1.26'];
const unknown =
  /^(?:apiextensions|flowcontrol\.apiserver)\.k8s\.io\/|^rbac\.authorization\.k8s\.io\/v1alpha1$/;
const further = [
  ['authentication.k8s.io/v1beta1', 'TokenReview', '1.22'],
  [
    'authorization.k8s.io/v1beta1',
    'LocalSubjectAccessReview SelfSubjectAccessReview SubjectAccessReview',
    '1.22',
  ],
] as const;
const removed = [...removedApis.filter(([apiVersion]) => !unknown.test(apiVersion)), ...further];

/** An object, or a place that names a kind. */
interface Use {
  kind: string;
  name: string;
  file: string;
}

/** Returns `CRD: (["a" "b"]),Role: (["c"])`. */
function describeUses(uses: readonly Use[]): string {
  return [...groupBy(uses, ({ kind }) => kind)]
    .sort(([a], [b]) => compareBytes(a, b))
    .map(([kind, same]) => `${kind}: ([${same.map(({ name }) => quoteGo(name)).join(' ')}])`)
    .join(',');
}

/**
 * Checks for removed APIs: an error if the minimum version of the bundle or `k8sVersion` lacks them, otherwise a
 * warning. (Source: validator `alpha-deprecated-apis` of operator-framework/api.)
 */
export function checkRemovedApis(
  content: BundleContent,
  reportAny: Reporter,
  k8sVersion: string | undefined,
): void {
  const { csv, name } = content;
  if (csv === undefined) return;
  const report = prefixed(reportAny, `Value ${name}: `);
  const target = k8sVersion === undefined ? undefined : tryParse(parseTolerantVersion, k8sVersion);
  if (k8sVersion !== undefined && target === undefined) {
    report([], `invalid value informed via the k8s key option : ${k8sVersion}`);
  }
  const { minKubeVersion = '' } = csv.spec;
  const minimum = minKubeVersion === '' ? undefined : tryParse(parseTolerantVersion, minKubeVersion);
  if (minKubeVersion !== '' && minimum === undefined) {
    const problem =
      'unable to use csv.Spec.MinKubeVersion to verify the CRD/Webhook apis because it has an invalid value: ';
    report(['spec', 'minKubeVersion'], problem + minKubeVersion);
  }
  for (const release of releases) {
    const since = parseTolerantVersion(release);
    const isError = [target, minimum].some((item) => item !== undefined && compareVersions(item, since) >= 0);
    const { uses, granted } = getUses(content, release);
    for (const [apis, details] of [
      [uses, isError ? {} : warning],
      [granted, warning],
    ] as const) {
      const [first] = apis;
      if (first === undefined) continue;
      const problem =
        `this bundle is using APIs which were deprecated and removed in v${release}. More info: ` +
        `https://kubernetes.io/docs/reference/using-api/deprecation-guide/#v${release.replace('.', '-')}. ` +
        `Migrate the API(s) for ${describeUses(apis)}`;
      report([], problem, { ...details, file: first.file });
    }
  }
}

/** Describes the APIs of a bundle that Kubernetes 1.22 removed; undefined if there are none. */
export function removedIn122(content: BundleContent): string | undefined {
  const { uses } = getUses(content, '1.22');
  return uses.length === 0 ? undefined : describeUses(uses);
}

function getUses(
  { objects, crds, csv, csvObject }: BundleContent,
  release: string,
): { uses: Use[]; granted: Use[] } {
  const isRemoved = (apiVersion: string, kind: string): boolean =>
    removed.some(
      ([version, kinds, since]) =>
        since === release && version === apiVersion && kinds.split(' ').includes(kind),
    );
  const uses: Use[] = objects.filter(({ apiVersion, kind }) => isRemoved(apiVersion, kind));
  const granted: Use[] = [];
  if (release === '1.22') {
    for (const { isV1, name, file } of crds) if (!isV1) uses.push({ kind: 'CRD', name, file });
  }
  if (release !== '1.25' || csv === undefined || objects.length === 0) return { uses, granted };
  if (csvObject?.apiVersion !== 'operators.coreos.com/v1alpha1') return { uses, granted };
  const { file } = csvObject;
  const named = new Set<string>();
  const { owned = [], required = [] } = csv.spec.customresourcedefinitions ?? {};
  const describe = (field: string, apis: readonly ApiDescription[]): void => {
    for (const [index, { resources = [] }] of apis.entries()) {
      for (const [position, { kind, version }] of resources.entries()) {
        named.add(`${kind.toLowerCase()}s`);
        const name = `ClusterServiceVersion.Spec.CustomResourceDefinitions.${field}[${index}].Resource[${position}]`;
        if (isRemoved(version, kind)) uses.push({ kind, name, file });
      }
    }
  };
  describe('Owned', owned);
  describe('Required', required);
  // The only resource without a later version.
  const kind = 'podsecuritypolicies';
  const grants = (field: string, permissions: readonly Permission[] = []): void => {
    for (const [index, { rules }] of permissions.entries()) {
      for (const [position, { apiGroups, resources }] of (rules ?? []).entries()) {
        if (!apiGroups?.includes('policy') || !resources?.includes(kind) || named.has(kind)) continue;
        const name = `ClusterServiceVersion.Spec.InstallStrategy.StrategySpec.${field}[${index}].Rules[${position}]`;
        granted.push({ kind, name, file });
      }
    }
  };
  grants('ClusterPermissions', csv.spec.install.spec?.clusterPermissions);
  grants('Permissions', csv.spec.install.spec?.permissions);
  return { uses, granted };
}
