import type { JsonValue } from '../../document/json.js';
import { conform, struct } from '../../kube/struct.js';
import { intOrString, policyRule } from '../../kube/meta-types.js';
import type { BundleContent, BundleObject } from './content.js';
import { type CheckDiagnostic, errorAt, warningAt } from './diagnostic.js';

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

/**
 * Returns the faults of objects that disturb a cluster: budgets that forbid all disruptions, global default priority
 * classes, and roles that may change default constraints. Upstream has these checks but never runs them. (Source:
 * operator-framework/api, validation of objects.)
 */
export function bundleObjectFaults({ objects }: BundleContent): CheckDiagnostic[] {
  return objects.flatMap((object) =>
    objectFaults(object).map((fault): CheckDiagnostic => ({ ...fault, file: object.file })),
  );
}

function objectFaults({ kind, value }: BundleObject): CheckDiagnostic[] {
  switch (kind) {
    case 'PodDisruptionBudget':
      return budgetFaults(value);
    case 'PriorityClass': {
      const globalDefault = (value as Record<string, JsonValue | undefined>)['globalDefault'] ?? false;
      if (globalDefault === true) {
        return [errorAt(['globalDefault'], 'globalDefault field cannot be set to true')];
      }
      return globalDefault === false
        ? []
        : [errorAt(['globalDefault'], 'globalDefault: expected true or false')];
    }
    case 'Role':
    case 'ClusterRole':
      return roleFaults(value);
    default:
      return [];
  }
}

function budgetFaults(value: JsonValue): CheckDiagnostic[] {
  const { value: read, faults } = conform(value, budget);
  if (faults.length > 0) return faults.map(({ message, path }) => errorAt(path, message));
  const { maxUnavailable, minAvailable } = read.spec;
  const diagnostics: CheckDiagnostic[] = [];
  if (maxUnavailable === 0 || maxUnavailable === '0%') {
    diagnostics.push(errorAt(['spec', 'maxUnavailable'], 'maxUnavailable field cannot be set to 0 or 0%'));
  }
  if (minAvailable === '100%') {
    diagnostics.push(errorAt(['spec', 'minAvailable'], 'minAvailable field cannot be set to 100%'));
  }
  return diagnostics;
}

function roleFaults(value: JsonValue): CheckDiagnostic[] {
  const { value: read, faults } = conform(value, role);
  if (faults.length > 0) return faults.map(({ message, path }) => errorAt(path, message));
  const diagnostics: CheckDiagnostic[] = [];
  for (const [index, rule] of (read.rules ?? []).entries()) {
    const { apiGroups = [], resources = [], resourceNames = [], verbs } = rule;
    const may = (...wanted: string[]): boolean => (verbs ?? []).some((verb) => wanted.includes(verb));
    if (
      apiGroups.includes('policy') &&
      resources.includes('poddisruptionbudgets') &&
      may('*', 'create', 'update', 'patch')
    ) {
      const message =
        'RBAC includes permission to create/update poddisruptionbudgets, which could impact cluster stability';
      diagnostics.push(warningAt(['rules', index], message));
    }
    if (
      apiGroups.includes('security.openshift.io') &&
      resources.includes('securitycontextconstraints') &&
      may('*', 'delete', 'update', 'patch') &&
      resourceNames.some((name) => defaultConstraints.has(name))
    ) {
      const message =
        'RBAC includes permission to modify default securitycontextconstraints, which could impact cluster stability';
      diagnostics.push(errorAt(['rules', index], message));
    }
  }
  return diagnostics;
}
