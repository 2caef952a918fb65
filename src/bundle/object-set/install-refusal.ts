import type { JsonValue } from '../../document/json.js';
import type { PlainObject } from '../../kube/object.js';
import type { CertificateProvider } from '../plain/registry-v1/certificates.js';
import { supportedModes } from '../plain/registry-v1/install-modes.js';
import type { RegistryV1 } from '../plain/registry-v1/registry-v1.js';
import { findConfigFaults } from './config-faults.js';

/** Feature gates of operator-controller that change what it installs; absent ones are off. */
export interface FeatureGates {
  SingleOwnNamespaceInstallSupport?: boolean | undefined;
  DeploymentConfig?: boolean | undefined;
}

/** Reason why operator-controller does not install a bundle, in its words. */
export interface InstallRefusal {
  message: string;
  /** Reason of the condition `Progressing`; undefined for failures that it retries. */
  reason?: 'InvalidConfiguration';
}

interface InstallFacts {
  provider: CertificateProvider;
  gates: FeatureGates;
  installNamespace: string;
  /** `spec.config.inline` of the ClusterExtension. */
  config: JsonValue | undefined;
}

/** Returns why operator-controller refuses to render a bundle for a ClusterExtension; undefined if it does not. */
export function findInstallRefusal({ csv }: RegistryV1, facts: InstallFacts): InstallRefusal | undefined {
  const { provider, gates, installNamespace, config } = facts;
  const unsupported = (problem: string): InstallRefusal => ({ message: `unsupported bundle: ${problem}` });
  if ((csv.spec.apiservicedefinitions?.owned ?? []).length > 0) {
    return unsupported('apiServiceDefintions are not supported');
  }
  if ((csv.spec.webhookdefinitions ?? []).length > 0 && provider === 'none') {
    return unsupported('webhookDefinitions are not supported');
  }
  const modes = supportedModes(csv);
  const hasNamespaceGate = gates.SingleOwnNamespaceInstallSupport === true;
  if (!hasNamespaceGate && !modes.includes('AllNamespaces')) {
    return unsupported('bundle does not support AllNamespaces install mode');
  }
  const usable = ['AllNamespaces', 'SingleNamespace', 'OwnNamespace'];
  if (!usable.some((mode) => modes.includes(mode))) {
    return unsupported(`bundle must support at least one of [${usable.join(' ')}] install modes`);
  }
  if (!hasNamespaceGate && config === undefined) return undefined;
  const hasDeploymentConfig = gates.DeploymentConfig === true;
  const faults = findConfigFaults(config ?? {}, { modes, installNamespace, hasDeploymentConfig });
  if (faults.length === 0) return undefined;
  const listed =
    faults.length === 1 ? faults.join('') : `multiple errors found:\n  - ${faults.join('\n  - ')}`;
  const message = `invalid ClusterExtension configuration: invalid configuration: ${listed}`;
  return { message, reason: 'InvalidConfiguration' };
}

/** Returns why operator-controller cannot make a set of rendered objects; undefined if it can. */
export function findObjectRefusal(objects: readonly PlainObject[]): InstallRefusal | undefined {
  return objects.some(({ apiVersion }) => apiVersion === '')
    ? { message: "Object 'apiVersion' is missing in 'unstructured object has no version'" }
    : undefined;
}
