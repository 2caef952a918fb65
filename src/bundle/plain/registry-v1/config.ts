import { diagnoseSyntax } from '../../../core/diagnostics-error.js';
import { OpmateError } from '../../../core/errors.js';
import { quoteGo } from '../../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../../document/json.js';
import { parseYamlWithPlaces } from '../../../document/yaml.js';
import type { PlacedYaml, YamlPath } from '../../../document/yaml-full.js';
import { diagnoseDuplicates } from '../../../document/document.js';
import { describeKind } from '../../../document/field.js';
import { type Of, conform, struct } from '../../../kube/struct.js';
import { labelFault } from '../../../kube/names.js';
import { deploymentConfigFields } from '../../../kube/pod-types.js';
import { type Diagnostic, createFault } from '../../../core/diagnostic.js';

/** What a user may set for all deployments of an operator. (Source: the Subscription of OLM v0, `spec.config`.) */
export type DeploymentConfig = Of<typeof deploymentConfigStruct>;

/** The configuration of one installation, as `spec.config.inline` of a ClusterExtension has it. */
interface InstallConfig {
  /** Undefined where it is not set, or null. */
  watchNamespace: string | undefined;
  deploymentConfig: DeploymentConfig | undefined;
}

/** What a configuration may say depends on the operator, and on where it is installed. */
interface ConfigRules {
  modes: readonly string[];
  installNamespace: string;
  /** The namespaces are told in another way, so that the configuration need not. */
  targetsGiven: boolean;
}

const deploymentConfigStruct = struct(deploymentConfigFields);

/**
 * Reads a configuration file, by the rules that operator-controller derives from the install modes of an
 * operator. All that is wrong is told together; `config` is complete only where there are no findings.
 */
export function readInstallConfig(
  text: string,
  file: string,
  rules: ConfigRules,
): { config: InstallConfig; findings: Diagnostic[]; warnings: Diagnostic[] } {
  const findings: Diagnostic[] = [];
  const warnings: Diagnostic[] = [];
  const config: InstallConfig = { watchNamespace: undefined, deploymentConfig: undefined };
  let placed: PlacedYaml;
  try {
    placed = parseYamlWithPlaces(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return { config, findings: [diagnoseSyntax(error, file)], warnings };
  }
  const finding = (path: YamlPath, message: string, hint?: string): Diagnostic =>
    createFault('invalid-value', message, { file, line: placed.findPlace(path)?.line ?? 1, hint });
  findings.push(...diagnoseDuplicates(placed, file));
  if (placed.furtherDocument !== undefined) {
    findings.push(
      createFault('second-document', 'unexpected second document', {
        file,
        line: placed.furtherDocument.line,
      }),
    );
  }
  const value = placed.value ?? {};
  if (!isJsonObject(value)) {
    findings.push(finding([], `expected an object, got ${describeKind(value)}`));
    return { config, findings, warnings };
  }
  for (const key of Object.keys(value)) {
    if (key === 'deploymentConfig' || (key === 'watchNamespace' && mayWatch(rules.modes))) continue;
    const hint =
      key === 'watchNamespace'
        ? `remove it: install modes [${rules.modes.join(' ')}] have no watch namespace`
        : 'use watchNamespace or deploymentConfig';
    findings.push(finding([key], `unknown field ${quoteGo(key)}`, hint));
  }
  readWatchNamespace(value, rules, config, (message, hint) =>
    findings.push(finding(['watchNamespace'], message, hint)),
  );
  const configured = value['deploymentConfig'];
  if (configured !== undefined && configured !== null) {
    const conformed = conform(configured, deploymentConfigStruct, { path: ['deploymentConfig'] });
    findings.push(...conformed.faults.map(({ path, message }) => finding(path, message)));
    for (const path of conformed.dropped) {
      const name = quoteGo(String(path.at(-1)));
      // Kubernetes itself ignores what it does not know deeper down.
      if (path.length === 2) findings.push(finding(path, `deploymentConfig: unknown field ${name}`));
      else {
        const told = finding(path, `${path.join('.')}: not a field of Kubernetes, and left out`);
        warnings.push({ ...told, severity: 'warning', code: 'unknown-field' });
      }
    }
    config.deploymentConfig = conformed.value;
  }
  return { config, findings, warnings };
}

function mayWatch(modes: readonly string[]): boolean {
  return modes.includes('OwnNamespace') || modes.includes('SingleNamespace');
}

function readWatchNamespace(
  value: JsonObject,
  { modes, installNamespace, targetsGiven }: ConfigRules,
  config: InstallConfig,
  tell: (message: string, hint?: string) => void,
): void {
  if (!mayWatch(modes)) return;
  const namespace = value['watchNamespace'] ?? null;
  const isForAll = modes.includes('AllNamespaces');
  if (namespace === null) {
    if (!isForAll && !targetsGiven) {
      tell(
        'watchNamespace is missing',
        `set watchNamespace: check the install modes of the operator: [${modes.join(' ')}]`,
      );
    }
    return;
  }
  if (typeof namespace !== 'string') {
    tell(`watchNamespace: expected a string, got ${describeKind(namespace)}`);
    return;
  }
  const fault = namespace === '' ? 'empty' : labelFault(namespace);
  if (fault !== undefined) {
    tell(`watchNamespace ${quoteGo(namespace)}: ${fault}`);
    return;
  }
  const hasOwn = modes.includes('OwnNamespace');
  const hasSingle = modes.includes('SingleNamespace');
  if (hasOwn && !hasSingle && namespace !== installNamespace) {
    tell(
      `watchNamespace ${quoteGo(namespace)}: must be the install namespace ${quoteGo(installNamespace)}`,
      `check the install modes of the operator: [${modes.join(' ')}]`,
    );
  } else if (hasSingle && !hasOwn && namespace === installNamespace) {
    tell(
      `watchNamespace ${quoteGo(namespace)}: must not be the install namespace`,
      `check the install modes of the operator: [${modes.join(' ')}]`,
    );
  }
  config.watchNamespace = namespace;
}
