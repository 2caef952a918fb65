import type { JsonObject } from '../../../document/json.js';
import type { BundleFiles } from '../../read.js';
import { type CertificateProvider, certificateObjects, injectAuthority } from './certificates.js';
import { type DeploymentConfig, readInstallConfig } from './config.js';
import { deploymentObjects } from './deployments.js';
import { findDuplicates } from '../duplicates.js';
import { type Diagnostic, createFault, createWarning } from '../../../core/diagnostic.js';
import { defaultTargets, supportedModes, targetsFault } from './install-modes.js';
import { type Manifest, locateIn } from '../../../kube/manifests.js';
import { labelFault } from '../../../kube/names.js';
import { type PlainObject, sortObjects } from '../../../kube/object.js';
import { permissionObjects } from '../rights/permissions.js';
import { type RegistryV1, loadCrd, readRegistryV1 } from './registry-v1.js';
import { supportedKinds } from './supported-kinds.js';
import { validateRegistryV1 } from './validate.js';
import { findConversion, webhookConfigurations, webhookDeployments, webhookServices } from './webhooks.js';

export interface InstallOptions {
  installNamespace: string;
  /** Namespaces to watch, an empty name for all; by default those of the configuration or the operator. */
  watchNamespaces?: readonly string[] | undefined;
  provider?: CertificateProvider | undefined;
  config?: { text: string; file: string } | undefined;
}

interface Converted {
  /** Sorted by kind, namespace and name; empty if there are findings. */
  objects: PlainObject[];
  /** Faults that prevent installing the bundle. */
  findings: Diagnostic[];
  warnings: Diagnostic[];
  bundle: RegistryV1 | undefined;
  /** Watched namespaces; one empty name for all. */
  targets: readonly string[];
}

/**
 * Converts a registry+v1 bundle to the objects that operator-controller applies when it installs it. Objects of the
 * bundle are loaded when they are written. Throws LimitError.
 */
export function convertRegistryV1(
  files: BundleFiles,
  options: InstallOptions & { keepBelow?: number | undefined },
): Converted {
  const { bundle, findings, warnings } = readRegistryV1(files, options);
  if (bundle === undefined) return { objects: [], findings, warnings, bundle, targets: [] };
  findings.push(...validateRegistryV1(bundle));
  const { installNamespace, provider = 'none' } = options;
  const chosen = chooseTargets(bundle, options, findings, warnings);
  const { targets } = chosen;
  for (const namespace of new Set([installNamespace, ...targets])) {
    if (namespace === '' && namespace !== installNamespace) continue;
    const fault = namespace === '' ? 'empty' : labelFault(namespace);
    if (fault !== undefined)
      findings.push(createFault('invalid-name', fault, { subject: `namespace "${namespace}"` }));
  }
  const others = bundle.others.map((other) => otherObject(other, installNamespace));
  const own = [
    ...bundle.crds.map((crd) => definitionObject(bundle, crd, provider, installNamespace, findings)),
    ...others,
  ];
  if (findings.length > 0) {
    findings.push(...findDuplicates(others.filter(({ name }) => name !== '')).findings);
    return { objects: [], findings, warnings, bundle, targets };
  }
  const webhookOptions = { installNamespace, targets, provider };
  const deploymentOptions = { ...webhookOptions, config: chosen.deploymentConfig };
  const objects = [
    ...permissionObjects(bundle, installNamespace, targets),
    ...own,
    ...deploymentObjects(bundle, deploymentOptions),
    ...webhookConfigurations(bundle, webhookOptions),
    ...webhookServices(bundle, webhookOptions),
    ...webhookDeployments(bundle).flatMap((name) => certificateObjects(provider, name, installNamespace)),
  ];
  warnings.push(...accountWarnings(bundle, objects));
  const duplicates = findDuplicates(objects);
  warnings.push(...duplicates.warnings);
  const isGood = duplicates.findings.length === 0;
  return {
    objects: isGood ? sortObjects(objects) : [],
    findings: duplicates.findings,
    warnings,
    bundle,
    targets,
  };
}

/** Returns the namespaces to watch, from the options, the configuration and the install modes. */
function chooseTargets(
  bundle: RegistryV1,
  options: InstallOptions,
  findings: Diagnostic[],
  warnings: Diagnostic[],
): { targets: readonly string[]; deploymentConfig: DeploymentConfig | undefined } {
  const { installNamespace, watchNamespaces = [] } = options;
  const modes = supportedModes(bundle.csv);
  let targets = watchNamespaces;
  let deploymentConfig: DeploymentConfig | undefined;
  let isConfigValid = true;
  if (options.config !== undefined) {
    const { text, file } = options.config;
    const rules = { modes, installNamespace, hasTargets: targets.length > 0 };
    const read = readInstallConfig(text, file, rules);
    findings.push(...read.findings);
    warnings.push(...read.warnings);
    ({ deploymentConfig } = read.config);
    isConfigValid = read.findings.length === 0;
    const { watchNamespace } = read.config;
    if (watchNamespace !== undefined && targets.length === 0) targets = [watchNamespace];
    else if (watchNamespace !== undefined && (targets.length > 1 || targets[0] !== watchNamespace)) {
      findings.push(
        createFault('exclusive-fields', 'conflicts with --watch-namespace', {
          subject: `watchNamespace "${watchNamespace}"`,
          file,
        }),
      );
    }
  }
  if (targets.length === 0) targets = defaultTargets(modes);
  const fault = targetsFault(modes, installNamespace, targets);
  // Faults of the configuration are more precise.
  if (fault !== undefined && isConfigValid) {
    findings.push(
      createFault('install-mode', fault, {
        file: bundle.csvManifest.file,
        line: bundle.csvManifest.lineOf(['spec', 'installModes']),
        hint: 'select the namespace to watch with --watch-namespace',
      }),
    );
  }
  return { targets, deploymentConfig };
}

function definitionObject(
  bundle: RegistryV1,
  crd: Manifest,
  provider: CertificateProvider,
  installNamespace: string,
  findings: Diagnostic[],
): PlainObject {
  const converted = findConversion(bundle, crd.name, installNamespace);
  if (converted !== undefined && findSpec(crd.load())?.['preserveUnknownFields'] === true) {
    findings.push(
      createFault('crd-conversion', 'preserveUnknownFields is true, so that no webhook can convert it', {
        ...locateIn(crd, ['spec', 'preserveUnknownFields']),
        hint: 'set spec.preserveUnknownFields to false',
      }),
    );
  }
  return {
    ...getHead(crd),
    load: () => {
      const loaded = loadCrd(crd);
      if (converted === undefined) return loaded;
      const { conversion, deployment } = converted;
      const object = {
        ...loaded,
        metadata: { ...(loaded['metadata'] as JsonObject) },
        spec: { ...findSpec(loaded), conversion },
      };
      injectAuthority(object, provider, deployment, installNamespace);
      return object;
    },
  };
}

function findSpec(object: JsonObject): JsonObject | undefined {
  return object['spec'] as JsonObject | undefined;
}

function getHead({ apiVersion, kind, name, namespace, file }: Manifest): Omit<PlainObject, 'load'> {
  return { apiVersion, kind, name, namespace, origin: file, isGenerated: false };
}

/** Returns an object of the bundle in the install namespace if its kind is namespaced. */
function otherObject(other: Manifest, installNamespace: string): PlainObject {
  if (supportedKinds.get(other.kind)?.isNamespaced !== true) return { ...getHead(other), load: other.load };
  return {
    ...getHead(other),
    namespace: installNamespace,
    load: () => {
      const object = other.load();
      const metadata = object['metadata'] as JsonObject;
      return { ...object, metadata: { ...metadata, namespace: installNamespace } };
    },
  };
}

/** Warns of deployments with a service account that is not created. */
function accountWarnings(bundle: RegistryV1, objects: readonly PlainObject[]): Diagnostic[] {
  const accounts = new Set(objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ name }) => name));
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  return deployments.flatMap(({ name, spec }, index) => {
    const pod = spec.template.spec;
    const account = pod.serviceAccountName ?? pod.serviceAccount ?? 'default';
    if (account === 'default' || accounts.has(account)) return [];
    const path = ['spec', 'install', 'spec', 'deployments', index, 'spec', 'template', 'spec'];
    return [
      createWarning(
        'missing-service-account',
        `its service account "${account}" is neither in the bundle nor among its permissions`,
        {
          subject: `deployment "${name}"`,
          file: bundle.csvManifest.file,
          line: bundle.csvManifest.lineOf([...path, 'serviceAccountName']),
          hint: 'create the service account first, or its pods do not start',
        },
      ),
    ];
  });
}
