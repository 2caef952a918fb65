import { getValue } from '../../../document/json-fields.js';
import { sortedByBytes } from '../../../core/order.js';
import { describeKind } from '../../../document/field.js';
import { type Manifest, locateIn } from '../../../kube/manifests.js';
import type { Report } from '../../report.js';

/**
 * Kinds that a bundle may contain in addition to its ClusterServiceVersion and custom resource definitions. Objects of
 * namespaced kinds are moved to the install namespace. (Source: operator-controller, which ignores groups and treats
 * VerticalPodAutoscaler as cluster-scoped.)
 */
export const supportedKinds = new Map<string, { isNamespaced: boolean }>([
  ...[
    'ConfigMap',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'PodMonitor',
    'PrometheusRule',
    'Role',
    'RoleBinding',
    'Secret',
    'Service',
    'ServiceAccount',
    'ServiceMonitor',
  ].map((kind) => [kind, { isNamespaced: true }] as const),
  ...[
    'ClusterRole',
    'ClusterRoleBinding',
    'ConsoleCLIDownload',
    'ConsoleLink',
    'ConsolePlugin',
    'ConsoleQuickStart',
    'ConsoleYAMLSample',
    'PriorityClass',
    'VerticalPodAutoscaler',
  ].map((kind) => [kind, { isNamespaced: false }] as const),
]);

/** Reports objects that a bundle must not contain, or without name. */
export function checkKinds(others: readonly Manifest[], report: Report): void {
  for (const other of others) {
    if (!supportedKinds.has(other.kind)) {
      report.fault('unsupported-kind', 'bundles must not hold objects of this kind', {
        ...locateIn(other, ['kind']),
        hint: `use one of ${sortedByBytes(supportedKinds.keys()).join(', ')}`,
      });
    } else if (other.name === '') {
      const name = getValue(other.load(), 'metadata', 'name') ?? '';
      const problem = name === '' ? 'missing' : `expected a string, got ${describeKind(name)}`;
      const place = { ...locateIn(other, ['metadata', 'name']), subject: other.kind };
      report.fault('invalid-name', `metadata.name: ${problem}`, place);
    }
  }
}
