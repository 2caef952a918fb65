import type { JsonObject } from '../../document/json.js';
import { conform, struct } from '../../kube/struct.js';
import { intOrString, policyRule } from '../../kube/meta-types.js';
import type { BundleContent } from './content.js';
import { type Reporter, soundValue, warning } from './report.js';

/** Security context constraints of every OpenShift cluster. */
const defaultConstraints: ReadonlySet<string> = new Set([
  'privileged',
  'restricted',
  'anyuid',
  'hostaccess',
  'hostmount-anyuid',
  'hostnetwork',
  'node-exporter',
  'nonroot',
]);

const budget = struct({
  'spec?': struct({
    'maxUnavailable?': { pointer: intOrString },
    'minAvailable?': { pointer: intOrString },
  }),
});
const role = struct({ rules: { list: policyRule } });

const checks: Readonly<Record<string, (value: JsonObject, report: Reporter) => void>> = {
  PodDisruptionBudget: checkBudget,
  PriorityClass({ globalDefault }, report) {
    const path = ['globalDefault'];
    if (globalDefault === true) report(path, 'globalDefault field cannot be set to true');
    else if ((globalDefault ?? false) !== false) report(path, 'globalDefault: expected true or false');
  },
  Role: checkRole,
  ClusterRole: checkRole,
};

/**
 * Checks for objects that disturb a cluster: budgets that forbid all disruptions, global default priority classes, and
 * roles that may change default constraints. Upstream has these checks but never runs them. (Source:
 * operator-framework/api, validation of objects.)
 */
export function checkBundleObjects({ objects }: BundleContent, report: Reporter): void {
  for (const { kind, value, file } of objects) {
    if (!Object.hasOwn(checks, kind)) continue;
    checks[kind]?.(value, (path, problem, details) => report(path, problem, { file, ...details }));
  }
}

function checkBudget(value: JsonObject, report: Reporter): void {
  const { maxUnavailable, minAvailable } = soundValue(conform(value, budget), report)?.spec ?? {};
  if (maxUnavailable === 0 || maxUnavailable === '0%') {
    report(['spec', 'maxUnavailable'], 'maxUnavailable field cannot be set to 0 or 0%');
  }
  if (minAvailable === '100%') report(['spec', 'minAvailable'], 'minAvailable field cannot be set to 100%');
}

function checkRole(value: JsonObject, report: Reporter): void {
  for (const [index, rule] of (soundValue(conform(value, role), report)?.rules ?? []).entries()) {
    const { apiGroups = [], resources = [], resourceNames = [], verbs } = rule;
    const may = (group: string, resource: string, ...wanted: string[]): boolean =>
      apiGroups.includes(group) &&
      resources.includes(resource) &&
      (verbs ?? []).some((verb) => wanted.includes(verb));
    const could = 'which could impact cluster stability';
    if (may('policy', 'poddisruptionbudgets', '*', 'create', 'update', 'patch')) {
      const problem = `RBAC includes permission to create/update poddisruptionbudgets, ${could}`;
      report(['rules', index], problem, warning);
    }
    if (
      may('security.openshift.io', 'securitycontextconstraints', '*', 'delete', 'update', 'patch') &&
      resourceNames.some((name) => defaultConstraints.has(name))
    ) {
      const problem = `RBAC includes permission to modify default securitycontextconstraints, ${could}`;
      report(['rules', index], problem);
    }
  }
}
