import { isJsonObject } from '../../../document/json.js';
import { sortedByBytes } from '../../../core/order.js';
import { describeKind } from '../../../document/field.js';
import { type Manifest, getTitle } from '../../../kube/manifests.js';
import { type Diagnostic, createFault } from '../../../core/diagnostic.js';

/**
 * Kinds that a bundle may hold in addition to its ClusterServiceVersion and custom resource definitions, and whether
 * objects of them are put into the install namespace. Their group does not matter. (Source: operator-controller;
 * VerticalPodAutoscaler counts as cluster-scoped there, so its namespace stays as it is written.)
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

/** What is wrong with a name that could not be taken. */
function nameProblem(manifest: Manifest): string {
  const { metadata } = manifest.load();
  const name = isJsonObject(metadata) ? (metadata['name'] ?? '') : '';
  return name === '' ? 'missing' : `expected a string, got ${describeKind(name)}`;
}

/** Objects that a bundle must not hold, or that have no name. */
export function unsupportedKinds(others: readonly Manifest[]): Diagnostic[] {
  const findings: Diagnostic[] = [];
  for (const other of others) {
    if (!supportedKinds.has(other.kind)) {
      findings.push(
        createFault('unsupported-kind', 'bundles must not hold objects of this kind', {
          subject: getTitle(other),
          file: other.file,
          line: other.lineOf(['kind']),
          hint: `use one of ${sortedByBytes(supportedKinds.keys()).join(', ')}`,
        }),
      );
    } else if (other.name === '') {
      findings.push(
        createFault('invalid-name', `metadata.name: ${nameProblem(other)}`, {
          subject: other.kind,
          file: other.file,
          line: other.lineOf(['metadata', 'name']),
        }),
      );
    }
  }
  return findings;
}
