import { addContext, diagnosticsFrom } from '../../../core/diagnostics-error.js';
import type { Diagnostic } from '../../../core/diagnostic.js';
import { OpmateError } from '../../../core/errors.js';
import { quoteGo } from '../../../document/go-json.js';
import { type WrittenDocument, readDocument } from '../../../document/document.js';
import type { Field } from '../../../document/field.js';
import { labelFault } from '../../../kube/names.js';
import { deploymentConfigFields } from '../../../kube/pod-types.js';
import { type Of, conform, struct, suggestKnownField } from '../../../kube/struct.js';

/** Settings for all deployments of an operator. (Source: `spec.config` of Subscriptions in OLM v0.) */
export type DeploymentConfig = Of<typeof deploymentConfigStruct>;

/** Configuration of an installation, as in `spec.config.inline` of a ClusterExtension. */
interface InstallConfig {
  watchNamespace: string | undefined;
  deploymentConfig: DeploymentConfig | undefined;
}

/** Facts about the operator and its installation that determine which settings are valid. */
interface ConfigRules {
  modes: readonly string[];
  installNamespace: string;
  /** Namespaces to watch are set elsewhere, so `watchNamespace` is optional. */
  hasTargets: boolean;
}

const deploymentConfigStruct = struct(deploymentConfigFields);

/** Maximum length in characters. */
const maxConfigLength = 16 * 1024 * 1024;

/**
 * Reads a configuration file by the rules that operator-controller derives from the install modes of an operator.
 * `config` is complete only if there are no findings.
 */
export function readInstallConfig(
  text: string,
  file: string,
  rules: ConfigRules,
): { config: InstallConfig; findings: readonly Diagnostic[]; warnings: readonly Diagnostic[] } {
  const config: InstallConfig = { watchNamespace: undefined, deploymentConfig: undefined };
  let document: WrittenDocument;
  try {
    document = readDocument(text, file, { maxLength: maxConfigLength, noun: 'configuration' });
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { config, findings: diagnosticsFrom(addContext(error, { file })), warnings: [] };
  }
  const { root, diagnostics } = document;
  const isWatching = rules.modes.includes('OwnNamespace') || rules.modes.includes('SingleNamespace');
  const watchHint = `remove it: install modes [${rules.modes.join(' ')}] have no watch namespace`;
  const isKnown = (): boolean =>
    (isWatching
      ? root.object(['watchNamespace', 'deploymentConfig'])
      : root.object(['deploymentConfig'], { hints: { watchNamespace: watchHint } })) !== undefined;
  if (!root.isPresent || isKnown()) {
    if (isWatching) {
      config.watchNamespace = readWatchNamespace(root.field('watchNamespace'), rules);
    }
    config.deploymentConfig = readDeploymentConfig(root);
  }
  return { config, findings: diagnostics.errors, warnings: diagnostics.warnings };
}

function readWatchNamespace(
  field: Field,
  { modes, installNamespace, hasTargets }: ConfigRules,
): string | undefined {
  const hint = `check the install modes of the operator: [${modes.join(' ')}]`;
  if (!field.isPresent) {
    if (!modes.includes('AllNamespaces') && !hasTargets) field.missing(`set watchNamespace: ${hint}`);
    return undefined;
  }
  const namespace = field.anyText();
  if (namespace === undefined) return undefined;
  const fault = namespace === '' ? 'empty' : labelFault(namespace);
  if (fault !== undefined) return field.fail(`invalid namespace ${quoteGo(namespace)}: ${fault}`);
  const isOwn = namespace === installNamespace;
  if (!isOwn && !modes.includes('SingleNamespace')) {
    const expected = quoteGo(installNamespace);
    field.fail(`must be the install namespace ${expected}, got ${quoteGo(namespace)}`, { hint });
  } else if (isOwn && !modes.includes('OwnNamespace')) {
    field.fail(`must not be the install namespace ${quoteGo(namespace)}`, { hint });
  }
  return namespace;
}

function readDeploymentConfig(root: Field): DeploymentConfig | undefined {
  const { value } = root.field('deploymentConfig');
  if (value === undefined) return undefined;
  const conformed = conform(value, deploymentConfigStruct, { path: ['deploymentConfig'] });
  const findField = (path: readonly (string | number)[]): Field =>
    path.reduce<Field>((field, key) => field.field(key), root);
  for (const { path, problem, hint } of conformed.faults)
    findField(path).fail(problem, { code: 'wrong-type', hint });
  for (const field of conformed.dropped) {
    const details = { code: 'unknown-field', hint: suggestKnownField(field) };
    // Kubernetes itself ignores unknown fields of nested objects.
    if (field.path.length === 2) findField(field.path).fail('unknown field', details);
    else findField(field.path).warn('unknown field, ignored', details);
  }
  return conformed.value;
}
