import { quoteGo } from '../../document/go-json.js';
import { compareVersions, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Csv } from '../../kube/csv-types.js';
import { checkMinKubeVersion } from './csv.js';
import { mailAddressFault } from './mail-address.js';
import { checkRemovedApis } from './removed-apis.js';
import { type Reporter, prefixed, warning } from './report.js';
import { parseRequestUri } from './uri.js';

const iconTypes: ReadonlySet<string> = new Set(['image/gif', 'image/jpeg', 'image/png', 'image/svg+xml']);

export const capabilityLevels: ReadonlySet<string> = new Set([
  'Basic Install',
  'Seamless Upgrades',
  'Full Lifecycle',
  'Deep Insights',
  'Auto Pilot',
]);

export const standardCategories: ReadonlySet<string> = new Set([
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
  report: Reporter,
  categories: ReadonlySet<string> | undefined,
): void {
  if (content.csv === undefined) return;
  checkSpec(content.csv, report);
  checkCapabilities(content, report);
  checkCategories(content, report, categories);
  // Without objects this checks the minimum version of Kubernetes only.
  checkRemovedApis({ ...content, objects: [], crds: [] }, report, undefined);
}

/** Checks like `checkOperatorHub` without capabilities and categories, but with removed APIs. */
export function checkOperatorHubV2(
  content: BundleContent,
  report: Reporter,
  k8sVersion: string | undefined,
): void {
  if (content.csv === undefined) return;
  checkSpec(content.csv, report);
  checkRemovedApis(content, report, k8sVersion);
}

/** Checks the capability level. */
export function checkCapabilities({ csv, name }: BundleContent, report: Reporter): void {
  const level = csv?.metadata.annotations?.['capabilities'];
  if (level === undefined || capabilityLevels.has(level)) return;
  const problem = `csv.Metadata.Annotations.Capabilities ${quoteGo(level)} is not a valid capabilities level`;
  report(['metadata', 'annotations', 'capabilities'], `(${name}) ${problem}`);
}

/** Checks the categories, by default those of operatorhub.io. */
export function checkCategories(
  { csv, name }: BundleContent,
  report: Reporter,
  custom: ReadonlySet<string> | undefined,
): void {
  const known = custom ?? standardCategories;
  const set = custom === undefined ? 'standard' : 'custom';
  for (const category of csv?.metadata.annotations?.['categories']?.split(',') ?? []) {
    if (known.has(category.trim())) continue;
    const problem = `value ${quoteGo(category)} is not in the set of ${set} categories`;
    const path = ['metadata', 'annotations', 'categories'];
    report(path, `(${name}) csv.Metadata.Annotations["categories"] ${problem}`);
  }
}

function checkSpec(csv: Csv, reportAny: Reporter): void {
  const reportNamed = prefixed(reportAny, `(${csv.metadata.name ?? ''}) `);
  const report: Reporter = (path, problem, details) =>
    reportNamed(['spec', ...path], `csv.Spec.${problem}`, details);
  const { provider, maintainers = [], links = [], icon, version } = csv.spec;
  if ((provider?.name ?? '').trim() === '') report(['provider', 'name'], 'Provider.Name not specified');
  for (const [index, { name: maintainer = '', email = '' }] of maintainers.entries()) {
    if (maintainer === '' || email === '') {
      report(['maintainers', index], 'Maintainers elements should contain both name and email');
    }
    const fault = email === '' ? undefined : mailAddressFault(email);
    if (fault === undefined) continue;
    report(['maintainers', index, 'email'], `Maintainers email ${email} is invalid: ${fault}`);
  }
  for (const [index, { name: title = '', url = '' }] of links.entries()) {
    if (title === '' || url === '')
      report(['links', index], 'Links elements should contain both name and url');
    const uri = url === '' ? {} : parseRequestUri(url);
    if ('fault' in uri) report(['links', index, 'url'], `Links url ${url} is invalid: ${uri.fault}`);
  }
  if (version === undefined || compareVersions(parseTolerantVersion(version), zeroVersion) === 0) {
    report(['version'], 'Version must be set');
  }
  const [first] = icon ?? [];
  if (icon === undefined) report(['icon'], 'Icon not specified', warning);
  else if (icon.length !== 1) report(['icon'], 'Icon should only have one element');
  if (first?.mediatype === '' || first?.base64data === '') {
    report(['icon', 0], 'Icon elements should contain both data and mediatype');
  }
  if (first !== undefined && first.mediatype !== '' && !iconTypes.has(first.mediatype)) {
    report(['icon', 0, 'mediatype'], `Icon ${first.mediatype} does not have a valid mediatype`);
  }
  checkMinKubeVersion(csv, reportNamed);
}

const zeroVersion = parseTolerantVersion('0.0.0');
