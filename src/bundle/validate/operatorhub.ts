import { quoteGo } from '../../document/go-json.js';
import { compareVersions, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Csv } from '../../kube/csv-types.js';
import { checkMinKubeVersion } from './csv.js';
import { mailAddressFault } from './mail-address.js';
import { checkRemovedApis } from './removed-apis.js';
import { type Tell, prefixed, warning } from './report.js';
import { parseRequestUri } from './uri.js';

const iconTypes: ReadonlySet<string> = new Set(['image/gif', 'image/jpeg', 'image/png', 'image/svg+xml']);

const capabilityLevels: ReadonlySet<string> = new Set([
  'Basic Install',
  'Seamless Upgrades',
  'Full Lifecycle',
  'Deep Insights',
  'Auto Pilot',
]);

const standardCategories: ReadonlySet<string> = new Set([
  'AI/Machine Learning',
  'Application Runtime',
  'Big Data',
  'Cloud Provider',
  'Developer Tools',
  'Database',
  'Integration & Delivery',
  'Logging & Tracing',
  'Monitoring',
  'Modernization & Migration',
  'Networking',
  'OpenShift Optional',
  'Security',
  'Storage',
  'Streaming & Messaging',
  'Observability',
]);

/**
 * Checks the requirements of operatorhub.io for a ClusterServiceVersion. As in `opm`, does not check removed APIs; see
 * `alpha-deprecated-apis`. (Source: validator `operatorhub` of operator-framework/api.)
 */
export function checkOperatorHub(
  content: BundleContent,
  tell: Tell,
  categories: ReadonlySet<string> | undefined,
): void {
  if (content.csv === undefined) return;
  checkSpec(content.csv, tell);
  checkCapabilities(content, tell);
  checkCategories(content, tell, categories);
  // Without objects this checks the minimum version of Kubernetes only.
  checkRemovedApis({ ...content, objects: [], crds: [] }, tell, undefined);
}

/** Checks like `checkOperatorHub` without capabilities and categories, but with removed APIs. */
export function checkOperatorHubV2(content: BundleContent, tell: Tell, k8sVersion: string | undefined): void {
  if (content.csv === undefined) return;
  checkSpec(content.csv, tell);
  checkRemovedApis(content, tell, k8sVersion);
}

/** Checks the capability level. */
export function checkCapabilities({ csv, name }: BundleContent, tell: Tell): void {
  const level = csv?.metadata.annotations?.['capabilities'];
  if (level === undefined || capabilityLevels.has(level)) return;
  const problem = `csv.Metadata.Annotations.Capabilities ${quoteGo(level)} is not a valid capabilities level`;
  tell(['metadata', 'annotations', 'capabilities'], `(${name}) ${problem}`);
}

/** Checks the categories, by default those of operatorhub.io. */
export function checkCategories(
  { csv, name }: BundleContent,
  tell: Tell,
  custom: ReadonlySet<string> | undefined,
): void {
  const known = custom ?? standardCategories;
  const set = custom === undefined ? 'standard' : 'custom';
  for (const category of csv?.metadata.annotations?.['categories']?.split(',') ?? []) {
    if (known.has(category.trim())) continue;
    const problem = `value ${quoteGo(category)} is not in the set of ${set} categories`;
    const path = ['metadata', 'annotations', 'categories'];
    tell(path, `(${name}) csv.Metadata.Annotations["categories"] ${problem}`);
  }
}

function checkSpec(csv: Csv, tellOf: Tell): void {
  const tellNamed = prefixed(tellOf, `(${csv.metadata.name ?? ''}) `);
  const tell: Tell = (path, problem, details) => tellNamed(['spec', ...path], `csv.Spec.${problem}`, details);
  const { provider, maintainers = [], links = [], icon, version } = csv.spec;
  if ((provider?.name ?? '').trim() === '') tell(['provider', 'name'], 'Provider.Name not specified');
  for (const [index, { name: maintainer = '', email = '' }] of maintainers.entries()) {
    if (maintainer === '' || email === '') {
      tell(['maintainers', index], 'Maintainers elements should contain both name and email');
    }
    const fault = email === '' ? undefined : mailAddressFault(email);
    if (fault === undefined) continue;
    tell(['maintainers', index, 'email'], `Maintainers email ${email} is invalid: ${fault}`);
  }
  for (const [index, { name: title = '', url = '' }] of links.entries()) {
    if (title === '' || url === '') tell(['links', index], 'Links elements should contain both name and url');
    const uri = url === '' ? {} : parseRequestUri(url);
    if ('fault' in uri) tell(['links', index, 'url'], `Links url ${url} is invalid: ${uri.fault}`);
  }
  if (version === undefined || compareVersions(parseTolerantVersion(version), zeroVersion) === 0) {
    tell(['version'], 'Version must be set');
  }
  const [first] = icon ?? [];
  if (icon === undefined) tell(['icon'], 'Icon not specified', warning);
  else if (icon.length !== 1) tell(['icon'], 'Icon should only have one element');
  if (first?.mediatype === '' || first?.base64data === '') {
    tell(['icon', 0], 'Icon elements should contain both data and mediatype');
  }
  if (first !== undefined && first.mediatype !== '' && !iconTypes.has(first.mediatype)) {
    tell(['icon', 0, 'mediatype'], `Icon ${first.mediatype} does not have a valid mediatype`);
  }
  checkMinKubeVersion(csv, tellNamed);
}

const zeroVersion = parseTolerantVersion('0.0.0');
