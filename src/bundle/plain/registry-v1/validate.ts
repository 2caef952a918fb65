import { quoteGo } from '../../../document/go-json.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { WebhookDescription } from '../../../kube/csv-types.js';
import { type Diagnostic, type DocumentPath, createFault } from '../../../core/diagnostic.js';
import { supportedModes } from './install-modes.js';
import { locateIn } from '../../../kube/manifests.js';
import { objectNameFault, subdomainFault } from '../../../kube/names.js';
import type { RegistryV1 } from './registry-v1.js';

/**
 * Checks a bundle by all rules of operator-controller: names of deployments and definitions, missing owned definitions,
 * conflicting and dangling webhooks. (`readRegistryV1` checks package name and kinds.) Also checks names that
 * operator-controller leaves to the cluster, which would reject them after half of the objects are applied.
 */
export function validateRegistryV1(bundle: RegistryV1): Diagnostic[] {
  return [
    ...deploymentFindings(bundle),
    ...definitionFindings(bundle),
    ...webhookFindings(bundle),
    ...apiServiceFindings(bundle),
    ...nameFindings(bundle),
  ];
}

const deploymentsPath = ['spec', 'install', 'spec', 'deployments'] as const;
const webhooksPath = ['spec', 'webhookdefinitions'] as const;
const ownedPath = ['spec', 'customresourcedefinitions', 'owned'] as const;

function createCsvFault(
  { csvManifest }: RegistryV1,
  path: DocumentPath,
  message: string,
  hint?: string,
): Diagnostic {
  return createFault('invalid-csv', message, {
    file: csvManifest.file,
    line: csvManifest.lineOf(path),
    hint,
  });
}

function deploymentFindings(bundle: RegistryV1): Diagnostic[] {
  const deployments = bundle.csv.spec.install.spec?.deployments ?? [];
  const seen = new Set<string>();
  return deployments.flatMap(({ name }, index) => {
    const path = [...deploymentsPath, index, 'name'];
    const findings: Diagnostic[] = [];
    const tell = (problem: string): number =>
      findings.push(createCsvFault(bundle, path, `deployment ${quoteGo(name)}: ${problem}`));
    if (seen.has(name)) tell('another deployment has this name');
    seen.add(name);
    const fault = subdomainFault(name);
    if (fault !== undefined) tell(`its name is ${fault}`);
    return findings;
  });
}

function definitionFindings(bundle: RegistryV1): Diagnostic[] {
  const findings: Diagnostic[] = [];
  const files = new Map<string, string>();
  for (const crd of bundle.crds) {
    const first = files.get(crd.name);
    if (first === undefined) files.set(crd.name, crd.file);
    else {
      const problem = `the bundle has this definition twice, first in ${first}`;
      findings.push(createFault('duplicate-object', problem, locateIn(crd, ['metadata', 'name'])));
    }
  }
  for (const [index, { name }] of (bundle.csv.spec.customresourcedefinitions?.owned ?? []).entries()) {
    if (files.has(name)) continue;
    findings.push(
      createCsvFault(
        bundle,
        [...ownedPath, index, 'name'],
        `owned definition ${quoteGo(name)} is not in the bundle`,
        `add the CustomResourceDefinition to manifests/, or fix ${ownedPath.join('.')}`,
      ),
    );
  }
  return findings;
}

/** A webhook with its index. */
interface PlacedWebhook {
  webhook: WebhookDescription;
  index: number;
}

const configurationKinds: ReadonlySet<string> = new Set([
  'mutatingwebhookconfiguration',
  'mutatingwebhookconfigurations',
  'validatingwebhookconfiguration',
  'validatingwebhookconfigurations',
]);
const webhookTypes: ReadonlySet<string> = new Set([
  'ConversionWebhook',
  'MutatingAdmissionWebhook',
  'ValidatingAdmissionWebhook',
]);

function webhookFindings(bundle: RegistryV1): Diagnostic[] {
  const webhooks = (bundle.csv.spec.webhookdefinitions ?? []).map((webhook, index) => ({ webhook, index }));
  const findings: Diagnostic[] = [];
  const tell: Tell = ({ webhook, index }, field, problem, hint) => {
    const message = `${webhook.type} ${quoteGo(webhook.generateName)}: ${problem}`;
    findings.push(createCsvFault(bundle, [...webhooksPath, index, ...field], message, hint));
  };
  checkConversions(bundle, webhooks, tell);
  const deployments = new Set((bundle.csv.spec.install.spec?.deployments ?? []).map(({ name }) => name));
  const names = new Set<string>();
  const sorted = [...webhooks].sort(
    (a, b) =>
      compareBytes(a.webhook.deploymentName ?? '', b.webhook.deploymentName ?? '') ||
      compareBytes(a.webhook.type, b.webhook.type) ||
      compareBytes(a.webhook.generateName, b.webhook.generateName),
  );
  for (const placed of sorted) {
    const { type, generateName, deploymentName = '' } = placed.webhook;
    if (!webhookTypes.has(type)) {
      tell(placed, ['type'], `unknown type`, `use one of ${[...webhookTypes].join(', ')}`);
    }
    if (!deployments.has(deploymentName)) {
      const problem = `deployment ${quoteGo(deploymentName)} not found`;
      tell(placed, ['deploymentName'], problem, `use a name from ${deploymentsPath.join('.')}`);
    }
    const key = `${type}\0${generateName}`;
    if (names.has(key)) {
      tell(placed, ['generateName'], 'another webhook of this type has this generateName');
    }
    names.add(key);
    const fault = subdomainFault(generateName);
    if (fault !== undefined) tell(placed, ['generateName'], `its generateName is ${fault}`);
    if (type !== 'ConversionWebhook') checkRules(placed, tell);
  }
  return findings;
}

type Tell = (placed: PlacedWebhook, field: DocumentPath, problem: string, hint?: string) => void;

function checkConversions(bundle: RegistryV1, webhooks: readonly PlacedWebhook[], tell: Tell): void {
  const conversions = webhooks.filter(({ webhook }) => webhook.type === 'ConversionWebhook');
  const modes = supportedModes(bundle.csv);
  const owned = new Set((bundle.csv.spec.customresourcedefinitions?.owned ?? []).map(({ name }) => name));
  const converters = new Map<string, PlacedWebhook[]>();
  for (const placed of conversions) {
    if (modes.length !== 1 || modes[0] !== 'AllNamespaces') {
      const required = 'a conversion webhook needs AllNamespaces as the only supported install mode';
      tell(placed, [], `${required}, found [${modes.join(' ')}]`);
    }
    for (const crd of sortedByBytes(new Set(placed.webhook.conversionCRDs ?? []))) {
      converters.set(crd, [...(converters.get(crd) ?? []), placed]);
      if (owned.has(crd)) continue;
      const problem = `converts ${quoteGo(crd)}, which the bundle does not own`;
      tell(placed, ['conversionCRDs'], problem, `list it in ${ownedPath.join('.')}`);
    }
  }
  for (const [crd, converting] of converters) {
    if (converting.length < 2) continue;
    const names = sortedByBytes(converting.map(({ webhook }) => webhook.generateName));
    const problem = `${quoteGo(crd)} is converted by several webhooks: ${names.join(', ')}`;
    tell(converting.at(-1) as PlacedWebhook, ['conversionCRDs'], problem);
  }
}

/** Refuses webhooks that intercept resources of OLM or of the cluster's admission. */
function checkRules(placed: PlacedWebhook, tell: Tell): void {
  for (const [index, rule] of (placed.webhook.rules ?? []).entries()) {
    for (const group of rule.apiGroups ?? []) {
      const path = ['rules', index, 'apiGroups'];
      if (group === '*') tell(placed, path, 'its rules must not cover all API groups');
      else if (group === 'olm.operatorframework.io') {
        tell(placed, path, `its rules must not cover the API group ${group}`);
      } else if (group === 'admissionregistration.k8s.io') {
        for (const resource of rule.resources ?? []) {
          if (resource !== '*' && !configurationKinds.has(resource.toLowerCase())) continue;
          const covered = resource === '*' ? 'all resources' : resource;
          tell(placed, ['rules', index, 'resources'], `its rules must not cover ${covered} of ${group}`);
        }
      }
    }
  }
}

function apiServiceFindings(bundle: RegistryV1): Diagnostic[] {
  const owned = bundle.csv.spec.apiservicedefinitions?.owned ?? [];
  return owned.map(({ name, group, version }, index) =>
    createCsvFault(
      bundle,
      ['spec', 'apiservicedefinitions', 'owned', index],
      `owned API service ${quoteGo(name === '' ? `${version}.${group}` : name)}: not supported`,
      'remove it: OLM v1 does not support aggregated API servers',
    ),
  );
}

function nameFindings(bundle: RegistryV1): Diagnostic[] {
  const findings: Diagnostic[] = [];
  const named = bundle.others.filter(({ name }) => name !== '');
  for (const manifest of [...bundle.crds, ...named]) {
    const fault = objectNameFault(manifest.kind, manifest.name);
    if (fault === undefined) continue;
    findings.push(
      createFault('invalid-name', `its name is ${fault}`, locateIn(manifest, ['metadata', 'name'])),
    );
  }
  const { permissions, clusterPermissions } = bundle.csv.spec.install.spec ?? {};
  for (const [field, list] of Object.entries({ clusterPermissions, permissions })) {
    for (const [index, { serviceAccountName = '' }] of (list ?? []).entries()) {
      const fault = serviceAccountName === '' ? undefined : subdomainFault(serviceAccountName);
      if (fault === undefined) continue;
      const path = ['spec', 'install', 'spec', field, index, 'serviceAccountName'];
      const problem = `service account ${quoteGo(serviceAccountName)}: its name is ${fault}`;
      findings.push(createCsvFault(bundle, path, problem));
    }
  }
  return findings;
}
