/** What of a right decides how dangerous it is. */
interface RiskyRight {
  namespace: string;
  group: string;
  resource: string;
  verbs: readonly string[];
  /** Whether it stands for a role that takes up the rules of others. */
  isAggregated?: boolean;
}

const rbac = 'rbac.authorization.k8s.io';
const read = ['get', 'list', 'watch'];
const write = ['create', 'update', 'patch'];

/** Permissions by which an account may take over more than it seems to hold. */
const tests: Readonly<Record<string, (right: RiskyRight) => boolean>> = {
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
  aggregation: ({ isAggregated }) => isAggregated === true,
  unknown: ({ verbs }) => verbs.length === 0,
};

/** Names of all risks that are told apart. */
export const riskNames: readonly string[] = Object.keys(tests);

/** The risks of a right, in their order. */
export function findRisks(right: RiskyRight): string[] {
  return riskNames.filter((name) => tests[name]?.(right) === true);
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
 * Whether what a rule names is this resource: itself, all of them, or this part of all of them, as in
 * `*` + `/exec`. (Source: RBAC of Kubernetes.)
 */
export function isResource(named: string, resource: string): boolean {
  if (named === '*' || named === resource) return true;
  return named.startsWith('*/') && resource.endsWith(named.slice(1));
}
