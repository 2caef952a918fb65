import { quoteGo } from '../../../document/go-json.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { WebhookDescription } from '../../../kube/csv-types.js';
import { type Diagnostic, createFault } from '../../../core/diagnostic.js';
import { supportedModes } from './install-modes.js';
import { getTitle } from '../../../kube/manifests.js';
import { objectNameFault, subdomainFault } from '../../../kube/names.js';
import type { RegistryV1 } from './registry-v1.js';

/**
 * What is wrong with a bundle before it is rendered, every rule of operator-controller: names of deployments
 * and definitions, definitions that are owned but not there, webhooks that conflict or belong to nothing. (The name
 * of the package, and kinds that no bundle may hold, are checked when the bundle is read.) Also names that it leaves
 * to the cluster to refuse, when half of the objects are applied.
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

type Path = readonly (string | number)[];

const deploymentsPath = ['spec', 'install', 'spec', 'deployments'] as const;
const webhooksPath = ['spec', 'webhookdefinitions'] as const;
const ownedPath = ['spec', 'customresourcedefinitions', 'owned'] as const;

function inCsv({ csvManifest }: RegistryV1, path: Path, message: string, hint?: string): Diagnostic {
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
    if (seen.has(name)) {
      findings.push(inCsv(bundle, path, `deployment ${quoteGo(name)}: another deployment has this name`));
    }
    seen.add(name);
    const fault = subdomainFault(name);
    if (fault !== undefined) {
      findings.push(inCsv(bundle, path, `deployment ${quoteGo(name)}: its name is ${fault}`));
    }
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
      findings.push(
        createFault('duplicate-object', `the bundle has this definition twice, first in ${first}`, {
          subject: getTitle(crd),
          file: crd.file,
          line: crd.lineOf(['metadata', 'name']),
        }),
      );
    }
  }
  for (const [index, { name }] of (bundle.csv.spec.customresourcedefinitions?.owned ?? []).entries()) {
    if (files.has(name)) continue;
    findings.push(
      inCsv(
        bundle,
        [...ownedPath, index, 'name'],
        `owned definition ${quoteGo(name)} is not in the bundle`,
        `add the CustomResourceDefinition to manifests/, or fix ${ownedPath.join('.')}`,
      ),
    );
  }
  return findings;
}

/** A webhook with its place in the list. */
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

function titleOfWebhook({ type, generateName }: WebhookDescription): string {
  return `${type} ${quoteGo(generateName)}`;
}

function webhookFindings(bundle: RegistryV1): Diagnostic[] {
  const webhooks = (bundle.csv.spec.webhookdefinitions ?? []).map((webhook, index) => ({ webhook, index }));
  const findings: Diagnostic[] = [];
  const tell = ({ webhook, index }: PlacedWebhook, field: Path, problem: string, hint?: string): void => {
    const message = `${titleOfWebhook(webhook)}: ${problem}`;
    findings.push(inCsv(bundle, [...webhooksPath, index, ...field], message, hint));
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
      tell(
        placed,
        ['deploymentName'],
        `deployment ${quoteGo(deploymentName)} not found`,
        `use a name from ${deploymentsPath.join('.')}`,
      );
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

type Tell = (placed: PlacedWebhook, field: Path, problem: string, hint?: string) => void;

function checkConversions(bundle: RegistryV1, webhooks: readonly PlacedWebhook[], tell: Tell): void {
  const conversions = webhooks.filter(({ webhook }) => webhook.type === 'ConversionWebhook');
  const modes = supportedModes(bundle.csv);
  const owned = new Set((bundle.csv.spec.customresourcedefinitions?.owned ?? []).map(({ name }) => name));
  const users = new Map<string, string[]>();
  for (const placed of conversions) {
    if (modes.length !== 1 || modes[0] !== 'AllNamespaces') {
      tell(
        placed,
        [],
        `a conversion webhook needs AllNamespaces as the only supported install mode, found [${modes.join(' ')}]`,
      );
    }
    for (const crd of sortedByBytes(new Set(placed.webhook.conversionCRDs ?? []))) {
      users.set(crd, [...(users.get(crd) ?? []), placed.webhook.generateName]);
      if (!owned.has(crd)) {
        tell(
          placed,
          ['conversionCRDs'],
          `converts ${quoteGo(crd)}, which the bundle does not own`,
          `list it in ${ownedPath.join('.')}`,
        );
      }
    }
  }
  for (const placed of conversions) {
    for (const crd of sortedByBytes(new Set(placed.webhook.conversionCRDs ?? []))) {
      const names = users.get(crd) ?? [];
      // Told once, at the last of them.
      if (names.length < 2 || placed !== lastUser(conversions, crd)) continue;
      tell(
        placed,
        ['conversionCRDs'],
        `${quoteGo(crd)} is converted by several webhooks: ${sortedByBytes(names).join(', ')}`,
      );
    }
  }
}

function lastUser(conversions: readonly PlacedWebhook[], crd: string): PlacedWebhook | undefined {
  return conversions.findLast(({ webhook }) => webhook.conversionCRDs?.includes(crd));
}

/** Webhooks may not watch over what OLM itself, or the cluster's admission, depends on. */
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
          const what = resource === '*' ? 'all resources' : resource;
          tell(placed, ['rules', index, 'resources'], `its rules must not cover ${what} of ${group}`);
        }
      }
    }
  }
}

function apiServiceFindings(bundle: RegistryV1): Diagnostic[] {
  const owned = bundle.csv.spec.apiservicedefinitions?.owned ?? [];
  return owned.map(({ name, group, version }, index) =>
    inCsv(
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
    const { file } = manifest;
    const line = manifest.lineOf(['metadata', 'name']);
    findings.push(
      createFault('invalid-name', `its name is ${fault}`, { subject: getTitle(manifest), file, line }),
    );
  }
  const { permissions, clusterPermissions } = bundle.csv.spec.install.spec ?? {};
  for (const [field, list] of Object.entries({ clusterPermissions, permissions })) {
    for (const [index, { serviceAccountName = '' }] of (list ?? []).entries()) {
      const fault = serviceAccountName === '' ? undefined : subdomainFault(serviceAccountName);
      if (fault === undefined) continue;
      const path = ['spec', 'install', 'spec', field, index, 'serviceAccountName'];
      findings.push(
        inCsv(bundle, path, `service account ${quoteGo(serviceAccountName)}: its name is ${fault}`),
      );
    }
  }
  return findings;
}
