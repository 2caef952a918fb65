import { quoteGo } from '../../../document/go-json.js';
import { compareBytes, sortedByBytes } from '../../../core/order.js';
import type { WebhookDescription } from '../../../kube/csv-types.js';
import type { DocumentPath } from '../../../core/diagnostic.js';
import type { Report } from '../../report.js';
import { supportedModes } from './install-modes.js';
import { locateIn } from '../../../kube/manifests.js';
import { objectNameFault, subdomainFault } from '../../../kube/names.js';
import type { RegistryV1 } from './registry-v1.js';

/**
 * Checks a bundle by all rules of operator-controller: names of deployments and definitions, missing owned definitions,
 * conflicting and dangling webhooks. (`readRegistryV1` checks package name and kinds.) Also checks names that
 * operator-controller leaves to the cluster, which would reject them after half of the objects are applied.
 */
export function checkRegistryV1(bundle: RegistryV1, report: Report): void {
  const fail: FailCsv = (path, problem, hint) => {
    const { file, placeOf } = bundle.csvManifest;
    report.fault('invalid-csv', problem, { file, ...placeOf(path), hint });
  };
  checkDeployments(bundle, fail);
  checkDefinitions(bundle, fail, report);
  checkWebhooks(bundle, fail);
  for (const [index, { name, group, version }] of (
    bundle.csv.spec.apiservicedefinitions?.owned ?? []
  ).entries()) {
    const shown = quoteGo(name === '' ? `${version}.${group}` : name);
    const path = ['spec', 'apiservicedefinitions', 'owned', index];
    const hint = 'remove it: OLM v1 does not support aggregated API servers';
    fail(path, `owned API service ${shown}: not supported`, hint);
  }
  checkNames(bundle, fail, report);
}

/** Reports a fault at a path of the ClusterServiceVersion. */
type FailCsv = (path: DocumentPath, problem: string, hint?: string) => void;

const deploymentsPath = ['spec', 'install', 'spec', 'deployments'] as const;
const webhooksPath = ['spec', 'webhookdefinitions'] as const;
const ownedPath = ['spec', 'customresourcedefinitions', 'owned'] as const;

function checkDeployments({ csv }: RegistryV1, fail: FailCsv): void {
  const seen = new Set<string>();
  for (const [index, { name }] of (csv.spec.install.spec?.deployments ?? []).entries()) {
    const path = [...deploymentsPath, index, 'name'];
    const about = `deployment ${quoteGo(name)}`;
    if (seen.has(name)) fail(path, `${about}: another deployment has this name`);
    seen.add(name);
    const fault = subdomainFault(name);
    if (fault !== undefined) fail(path, `${about}: its name is ${fault}`);
  }
}

function checkDefinitions({ crds, csv }: RegistryV1, fail: FailCsv, report: Report): void {
  const files = new Map<string, string>();
  for (const crd of crds) {
    const first = files.get(crd.name);
    if (first === undefined) files.set(crd.name, crd.file);
    else {
      const problem = `the bundle has this definition twice, first in ${first}`;
      report.fault('duplicate-object', problem, locateIn(crd, ['metadata', 'name']));
    }
  }
  for (const [index, { name }] of (csv.spec.customresourcedefinitions?.owned ?? []).entries()) {
    if (files.has(name)) continue;
    const problem = `owned definition ${quoteGo(name)} is not in the bundle`;
    const hint = `add the CustomResourceDefinition to manifests/, or fix ${ownedPath.join('.')}`;
    fail([...ownedPath, index, 'name'], problem, hint);
  }
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

function checkWebhooks(bundle: RegistryV1, failCsv: FailCsv): void {
  const webhooks = (bundle.csv.spec.webhookdefinitions ?? []).map((webhook, index) => ({ webhook, index }));
  const fail: FailWebhook = ({ webhook, index }, field, problem, hint) => {
    const message = `${webhook.type} ${quoteGo(webhook.generateName)}: ${problem}`;
    failCsv([...webhooksPath, index, ...field], message, hint);
  };
  checkConversions(bundle, webhooks, fail);
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
      fail(placed, ['type'], `unknown type`, `use one of ${[...webhookTypes].join(', ')}`);
    }
    if (!deployments.has(deploymentName)) {
      const problem = `deployment ${quoteGo(deploymentName)} not found`;
      fail(placed, ['deploymentName'], problem, `use a name from ${deploymentsPath.join('.')}`);
    }
    const key = `${type}\0${generateName}`;
    if (names.has(key)) {
      fail(placed, ['generateName'], 'another webhook of this type has this generateName');
    }
    names.add(key);
    const fault = subdomainFault(generateName);
    if (fault !== undefined) fail(placed, ['generateName'], `its generateName is ${fault}`);
    if (type !== 'ConversionWebhook') checkRules(placed, fail);
  }
}

type FailWebhook = (placed: PlacedWebhook, field: DocumentPath, problem: string, hint?: string) => void;

function checkConversions(bundle: RegistryV1, webhooks: readonly PlacedWebhook[], fail: FailWebhook): void {
  const conversions = webhooks.filter(({ webhook }) => webhook.type === 'ConversionWebhook');
  const modes = supportedModes(bundle.csv);
  const owned = new Set((bundle.csv.spec.customresourcedefinitions?.owned ?? []).map(({ name }) => name));
  const converters = new Map<string, PlacedWebhook[]>();
  for (const placed of conversions) {
    if (modes.length !== 1 || modes[0] !== 'AllNamespaces') {
      const required = 'a conversion webhook needs AllNamespaces as the only supported install mode';
      fail(placed, [], `${required}, found [${modes.join(' ')}]`);
    }
    for (const crd of sortedByBytes(new Set(placed.webhook.conversionCRDs ?? []))) {
      converters.set(crd, [...(converters.get(crd) ?? []), placed]);
      if (owned.has(crd)) continue;
      const problem = `converts ${quoteGo(crd)}, which the bundle does not own`;
      fail(placed, ['conversionCRDs'], problem, `list it in ${ownedPath.join('.')}`);
    }
  }
  for (const [crd, converting] of converters) {
    if (converting.length < 2) continue;
    const names = sortedByBytes(converting.map(({ webhook }) => webhook.generateName));
    const problem = `${quoteGo(crd)} is converted by several webhooks: ${names.join(', ')}`;
    fail(converting.at(-1) as PlacedWebhook, ['conversionCRDs'], problem);
  }
}

/** Refuses webhooks that intercept resources of OLM or of the cluster's admission. */
function checkRules(placed: PlacedWebhook, fail: FailWebhook): void {
  for (const [index, rule] of (placed.webhook.rules ?? []).entries()) {
    for (const group of rule.apiGroups ?? []) {
      const path = ['rules', index, 'apiGroups'];
      if (group === '*') fail(placed, path, 'its rules must not cover all API groups');
      else if (group === 'olm.operatorframework.io') {
        fail(placed, path, `its rules must not cover the API group ${group}`);
      } else if (group === 'admissionregistration.k8s.io') {
        for (const resource of rule.resources ?? []) {
          if (resource !== '*' && !configurationKinds.has(resource.toLowerCase())) continue;
          const covered = resource === '*' ? 'all resources' : resource;
          fail(placed, ['rules', index, 'resources'], `its rules must not cover ${covered} of ${group}`);
        }
      }
    }
  }
}

function checkNames({ crds, others, csv }: RegistryV1, fail: FailCsv, report: Report): void {
  for (const manifest of [...crds, ...others.filter(({ name }) => name !== '')]) {
    const fault = objectNameFault(manifest.kind, manifest.name);
    if (fault === undefined) continue;
    report.fault('invalid-name', `its name is ${fault}`, locateIn(manifest, ['metadata', 'name']));
  }
  const { permissions, clusterPermissions } = csv.spec.install.spec ?? {};
  for (const [field, list] of Object.entries({ clusterPermissions, permissions })) {
    for (const [index, { serviceAccountName: name = '' }] of (list ?? []).entries()) {
      const fault = name === '' ? undefined : subdomainFault(name);
      if (fault === undefined) continue;
      const path = ['spec', 'install', 'spec', field, index, 'serviceAccountName'];
      fail(path, `service account ${quoteGo(name)}: its name is ${fault}`);
    }
  }
}
