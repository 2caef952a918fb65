/** The part of a right that determines its risks. */
interface RiskyRight {
  namespace: string;
  group: string;
  resource: string;
  verbs: readonly string[];
  /** The row represents an aggregated role. */
  isAggregated?: boolean;
  /** The subject is a user, a group, or all service accounts of a namespace. */
  isShared?: boolean;
}

const rbac = 'rbac.authorization.k8s.io';
const read = ['get', 'list', 'watch'];
const write = ['create', 'update', 'patch'];

/** Tests for permissions with which an account can gain others. */
const tests = {
  'cluster-admin': ({ group, resource, verbs, namespace }) =>
    resource === 'ClusterRole/cluster-admin' ||
    (namespace === '' && group === '*' && resource === '*' && verbs.includes('*')),
  wildcard: ({ group, resource, verbs }) => [group, resource, ...verbs].includes('*'),
  secrets: (right) => covers(right, '', ['secrets'], read),
  escalate: (right) =>
    covers(right, rbac, ['roles', 'clusterroles'], ['escalate', 'bind', ...write]) ||
    covers(right, rbac, ['rolebindings', 'clusterrolebindings'], write) ||
    covers(right, '', ['users', 'groups', 'serviceaccounts'], ['impersonate']) ||
    covers(right, 'authentication.k8s.io', ['uids'], ['impersonate']) ||
    (right.resource.startsWith('userextras/') &&
      covers(right, 'authentication.k8s.io', [right.resource], ['impersonate'])),
  exec: (right) =>
    covers(
      right,
      '',
      [
        'pods/exec',
        'pods/attach',
        'pods/portforward',
        'pods/ephemeralcontainers',
        'pods/proxy',
        'nodes/proxy',
      ],
      [...write, 'get'],
    ),
  tokens: (right) => covers(right, '', ['serviceaccounts/token'], ['create']),
  workloads: (right) =>
    right.namespace === '' &&
    (covers(right, '', ['pods'], write) ||
      covers(right, 'apps', ['deployments', 'daemonsets', 'statefulsets', 'replicasets'], write) ||
      covers(right, 'batch', ['jobs', 'cronjobs'], write)),
  webhooks: (right) =>
    covers(
      right,
      'admissionregistration.k8s.io',
      ['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'],
      write,
    ),
  crds: (right) => covers(right, 'apiextensions.k8s.io', ['customresourcedefinitions'], write),
  csr: (right) =>
    covers(
      right,
      'certificates.k8s.io',
      ['certificatesigningrequests/approval', 'signers'],
      [...write, 'approve'],
    ),
  scc: (right) =>
    covers(right, 'security.openshift.io', ['securitycontextconstraints'], ['use', ...write]) ||
    ['policy', 'extensions'].some((group) =>
      covers(right, group, ['podsecuritypolicies'], ['use', ...write]),
    ),
  urls: ({ resource }) => resource.startsWith('/'),
  subject: ({ isShared }) => isShared === true,
  aggregation: ({ isAggregated }) => isAggregated === true,
  unknown: ({ verbs }) => verbs.length === 0,
} satisfies Record<string, (right: RiskyRight) => boolean>;

type RiskName = keyof typeof tests;

/** Meanings of all risks of rights, for the reference. */
export const riskSummaries: Readonly<Record<RiskName, string>> = {
  'cluster-admin': 'Full access to all resources of the cluster',
  wildcard: 'All API groups, resources or verbs (`*`), also in cloud credentials',
  secrets: 'Read Secrets',
  escalate: 'Grant itself permissions: write or bind roles, write role bindings, impersonate others',
  exec: 'Run commands in pods or access them: exec, attach, port-forward, ephemeral containers, proxy',
  tokens: 'Create tokens of service accounts',
  workloads: 'Create or change workloads in all namespaces',
  webhooks: 'Create or change admission webhooks',
  crds: 'Create or change CustomResourceDefinitions',
  csr: 'Approve or sign certificate signing requests',
  scc: 'Use or change SecurityContextConstraints or PodSecurityPolicies',
  urls: 'Access non-resource URLs',
  subject: 'Granted to a user, a group, or all service accounts of a namespace or of the cluster',
  aggregation: 'Use an aggregated role, whose rules come from other roles',
  unknown: 'Use a role whose rules the bundle does not contain',
};

/** Names of all risks. */
export const riskNames: readonly string[] = Object.keys(tests);

/** Returns the risks of a right, in order of `riskNames`. */
export function findRisks(right: RiskyRight): string[] {
  return Object.entries(tests).flatMap(([name, test]) => (test(right) ? [name] : []));
}

function covers(
  right: RiskyRight,
  group: string,
  resources: readonly string[],
  verbs: readonly string[],
): boolean {
  return (
    (right.group === '*' || right.group === group) &&
    !right.resource.startsWith('/') &&
    resources.some((resource) => isResource(right.resource, resource)) &&
    right.verbs.some((verb) => verb === '*' || verbs.includes(verb))
  );
}

/**
 * Reports whether a rule for `named` includes a resource; `named` may also be all resources or a subresource of all, as
 * in `*` + `/exec`. (Source: RBAC of Kubernetes.)
 */
export function isResource(named: string, resource: string): boolean {
  if (named === '*' || named === resource) return true;
  return named.startsWith('*/') && resource.endsWith(named.slice(1));
}
