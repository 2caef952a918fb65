import { isJsonObject } from '../../../document/json.js';
import { sortedByBytes } from '../../../core/order.js';
import { describeKind } from '../../../document/field.js';
import { type Manifest, locateIn } from '../../../kube/manifests.js';
import { type Diagnostic, createFault } from '../../../core/diagnostic.js';

/**
 * Kinds that a bundle may contain in addition to its ClusterServiceVersion and custom resource definitions. Objects of
 * namespaced kinds are moved to the install namespace. (Source: operator-controller, which ignores groups and treats
 * VerticalPodAutoscaler as cluster-scoped.)
 */
export const supportedKinds: ReadonlyMap<string, { isNamespaced: boolean }> = new Map<
  string,
  { isNamespaced: boolean }
>([
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

function describeMissingName(manifest: Manifest): string {
  const { metadata } = manifest.load();
  const name = isJsonObject(metadata) ? (metadata['name'] ?? '') : '';
  return name === '' ? 'missing' : `expected a string, got ${describeKind(name)}`;
}

/** Returns the faults of objects that a bundle must not contain, or without name. */
export function unsupportedKinds(others: readonly Manifest[]): Diagnostic[] {
  const findings: Diagnostic[] = [];
  for (const other of others) {
    if (!supportedKinds.has(other.kind)) {
      findings.push(
        createFault('unsupported-kind', 'bundles must not hold objects of this kind', {
          ...locateIn(other, ['kind']),
          hint: `use one of ${sortedByBytes(supportedKinds.keys()).join(', ')}`,
        }),
      );
    } else if (other.name === '') {
      findings.push(
        createFault('invalid-name', `metadata.name: ${describeMissingName(other)}`, {
          ...locateIn(other, ['metadata', 'name']),
          subject: other.kind,
        }),
      );
    }
  }
  return findings;
}
