import { getObject } from '../../../document/json-fields.js';
import type { BundleFiles } from '../../read.js';
import { type CertificateProvider, certificateObjects, injectAuthority } from './certificates.js';
import { type DeploymentConfig, readInstallConfig } from './config.js';
import { deploymentObjects } from './deployments.js';
import { checkDuplicates } from '../duplicates.js';
import type { Report } from '../../report.js';
import { defaultTargets, supportedModes, targetsFault } from './install-modes.js';
import { type Manifest, locateIn } from '../../../kube/manifests.js';
import { labelFault } from '../../../kube/names.js';
import { type PlainObject, sortObjects, toPlainObject } from '../../../kube/object.js';
import { permissionObjects } from '../rights/permissions.js';
import {
  type RegistryV1,
  definitionVersion,
  loadCrd,
  readRegistryV1,
  supportedKinds,
} from './registry-v1.js';
import { checkRegistryV1 } from './validate.js';
import { findConversion, webhookConfigurations, webhookDeployments, webhookServices } from './webhooks.js';

export interface InstallOptions {
  installNamespace: string;
  /** Namespaces to watch, an empty name for all; by default those of the configuration or the operator. */
  watchNamespaces?: readonly string[] | undefined;
  provider?: CertificateProvider | undefined;
  config?: { text: string; file: string } | undefined;
}

/**
 * Converts a registry+v1 bundle to the objects that operator-controller applies when it installs it, sorted by kind,
 * namespace and name; none if there are findings, which prevent installing it. Objects of the bundle are loaded when
 * they are written. Throws LimitError.
 */
export function convertRegistryV1(
  files: BundleFiles,
  options: InstallOptions & {
    keepBelow?: number | undefined;
    /** Read custom resource definitions of v1beta1 as v1, as operator-controller does; clusters refuse them. */
    acceptOldDefinitions?: boolean | undefined;
  },
): Pick<Report, 'findings' | 'warnings'> & { objects: PlainObject[]; bundle: RegistryV1 | undefined } {
  const { bundle, report } = readRegistryV1(files, options);
  const { findings, warnings } = report;
  if (bundle === undefined) return { objects: [], findings, warnings, bundle };
  checkRegistryV1(bundle, report);
  const { installNamespace, provider = 'none' } = options;
  const { targets, deploymentConfig: config } = chooseTargets(bundle, options, report);
  for (const namespace of new Set([installNamespace, ...targets])) {
    if (namespace === '' && namespace !== installNamespace) continue;
    const fault = namespace === '' ? 'empty' : labelFault(namespace);
    if (fault !== undefined) {
      report.fault('invalid-name', fault, { subject: `namespace "${namespace}"` });
    }
  }
  const others = bundle.others.map((other) => otherObject(other, installNamespace));
  const crds = bundle.crds.map((crd) => definitionObject(bundle, crd, provider, installNamespace, report));
  if (findings.length > 0) {
    checkDuplicates(others, report);
    return { objects: [], findings, warnings, bundle };
  }
  const webhookOptions = { installNamespace, targets, provider };
  const objects = [
    ...permissionObjects(bundle, installNamespace, targets),
    ...crds,
    ...others,
    ...deploymentObjects(bundle, { ...webhookOptions, config }),
    ...webhookConfigurations(bundle, webhookOptions),
    ...webhookServices(bundle, webhookOptions),
    ...webhookDeployments(bundle).flatMap((name) => certificateObjects(provider, name, installNamespace)),
  ];
  checkAccounts(bundle, objects, report);
  checkDuplicates(objects, report);
  return { objects: findings.length === 0 ? sortObjects(objects) : [], findings, warnings, bundle };
}

/** Returns the namespaces to watch, from the options, the configuration and the install modes. */
function chooseTargets(
  { csv, csvManifest }: RegistryV1,
  { installNamespace, watchNamespaces = [], config }: InstallOptions,
  report: Report,
): { targets: readonly string[]; deploymentConfig: DeploymentConfig | undefined } {
  const modes = supportedModes(csv);
  let targets = watchNamespaces;
  let deploymentConfig: DeploymentConfig | undefined;
  let isConfigValid = true;
  if (config !== undefined) {
    const { text, file } = config;
    const rules = { modes, installNamespace, hasTargets: targets.length > 0 };
    const read = readInstallConfig(text, file, rules);
    report.add(read);
    isConfigValid = read.findings.length === 0;
    const { watchNamespace } = read.config;
    ({ deploymentConfig } = read.config);
    if (watchNamespace !== undefined && targets.length === 0) targets = [watchNamespace];
    else if (watchNamespace !== undefined && (targets.length > 1 || targets[0] !== watchNamespace)) {
      const subject = `watchNamespace "${watchNamespace}"`;
      report.fault('exclusive-fields', 'conflicts with options.watchNamespace', { subject, file });
    }
  }
  if (targets.length === 0) targets = defaultTargets(modes);
  const fault = targetsFault(modes, installNamespace, targets);
  // Faults of the configuration are more precise.
  if (fault !== undefined && isConfigValid) {
    report.fault('install-mode', fault, {
      file: csvManifest.file,
      ...csvManifest.placeOf(['spec', 'installModes']),
      hint: 'select the namespace to watch with options.watchNamespace',
    });
  }
  return { targets, deploymentConfig };
}

function definitionObject(
  bundle: RegistryV1,
  crd: Manifest,
  provider: CertificateProvider,
  installNamespace: string,
  report: Report,
): PlainObject {
  const converted = findConversion(bundle, crd.name, installNamespace);
  if (converted !== undefined && getObject(crd.load(), 'spec')['preserveUnknownFields'] === true) {
    report.fault('crd-conversion', 'preserveUnknownFields is true: webhooks cannot convert it', {
      ...locateIn(crd, ['spec', 'preserveUnknownFields']),
      hint: 'set spec.preserveUnknownFields to false',
    });
  }
  return toPlainObject(crd, {
    apiVersion: definitionVersion,
    load: () => {
      const loaded = loadCrd(crd);
      if (converted === undefined) return loaded;
      const { conversion, deployment } = converted;
      const object = {
        ...loaded,
        metadata: { ...getObject(loaded, 'metadata') },
        spec: { ...getObject(loaded, 'spec'), conversion },
      };
      injectAuthority(object, provider, deployment, installNamespace);
      return object;
    },
  });
}

/** Returns an object of the bundle in the install namespace if its kind is namespaced. */
function otherObject(other: Manifest, namespace: string): PlainObject {
  if (supportedKinds.get(other.kind)?.isNamespaced !== true) return toPlainObject(other);
  return toPlainObject(other, {
    namespace,
    load: () => {
      const object = other.load();
      return { ...object, metadata: { ...getObject(object, 'metadata'), namespace } };
    },
  });
}

/** Warns of deployments with a service account that is not created. */
function checkAccounts(
  { csv, csvManifest }: RegistryV1,
  objects: readonly PlainObject[],
  report: Report,
): void {
  const accounts = new Set(objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ name }) => name));
  for (const [index, { name, spec }] of (csv.spec.install.spec?.deployments ?? []).entries()) {
    const pod = spec.template.spec;
    const account = pod.serviceAccountName ?? pod.serviceAccount ?? 'default';
    if (account === 'default' || accounts.has(account)) continue;
    const path = ['spec', 'install', 'spec', 'deployments', index, 'spec', 'template', 'spec'];
    const problem = `its service account "${account}" is neither in the bundle nor among its permissions`;
    report.warn('missing-service-account', problem, {
      subject: `deployment "${name}"`,
      file: csvManifest.file,
      ...csvManifest.placeOf([...path, 'serviceAccountName']),
      hint: 'create the service account first, or its pods do not start',
    });
  }
}
