import { quoteGo } from '../../document/go-json.js';
import { compareVersions, parseTolerantVersion } from '../../core/semver.js';
import type { BundleContent } from './content.js';
import type { Csv } from '../../kube/csv-types.js';
import { minKubeVersionFaults } from './csv.js';
import { type CheckDiagnostic, errorAt, warningAt } from './diagnostic.js';
import { mailAddressFault } from './mail-address.js';
import { removedApiFaults } from './removed-apis.js';
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
export function operatorHubFaults(
  content: BundleContent,
  categories: ReadonlySet<string> | undefined,
): CheckDiagnostic[] {
  const { csv } = content;
  if (csv === undefined) return [];
  return [
    ...specFaults(csv),
    ...capabilityFaults(content),
    ...categoryFaults(content, categories),
    // Without objects this checks the minimum version of Kubernetes only.
    ...removedApiFaults({ ...content, objects: [], crds: [] }, undefined),
  ];
}

/** Checks like `operatorHubFaults` without capabilities and categories, but with removed APIs. */
export function operatorHubV2Faults(
  content: BundleContent,
  k8sVersion: string | undefined,
): CheckDiagnostic[] {
  const { csv } = content;
  return csv === undefined ? [] : [...specFaults(csv), ...removedApiFaults(content, k8sVersion)];
}

/** Checks the capability level. */
export function capabilityFaults({ csv, name }: BundleContent): CheckDiagnostic[] {
  const level = csv?.metadata.annotations?.['capabilities'];
  if (level === undefined || capabilityLevels.has(level)) return [];
  const message = `csv.Metadata.Annotations.Capabilities ${quoteGo(level)} is not a valid capabilities level`;
  return [errorAt(['metadata', 'annotations', 'capabilities'], `(${name}) ${message}`)];
}

/** Checks the categories, by default those of operatorhub.io. */
export function categoryFaults(
  { csv, name }: BundleContent,
  custom: ReadonlySet<string> | undefined,
): CheckDiagnostic[] {
  const annotation = csv?.metadata.annotations?.['categories'];
  if (annotation === undefined) return [];
  const known = custom ?? standardCategories;
  const set = custom === undefined ? 'standard' : 'custom';
  return annotation
    .split(',')
    .filter((category) => !known.has(category.trim()))
    .map((category) => {
      const message = `value ${quoteGo(category)} is not in the set of ${set} categories`;
      const path = ['metadata', 'annotations', 'categories'];
      return errorAt(path, `(${name}) csv.Metadata.Annotations["categories"] ${message}`);
    });
}

function specFaults(csv: Csv): CheckDiagnostic[] {
  const name = csv.metadata.name ?? '';
  const faults: CheckDiagnostic[] = [];
  const tell = (path: (string | number)[], problem: string): void =>
    void faults.push(errorAt(['spec', ...path], `(${name}) csv.Spec.${problem}`));
  const { provider, maintainers = [], links = [], icon, version } = csv.spec;
  if ((provider?.name ?? '').trim() === '') tell(['provider', 'name'], 'Provider.Name not specified');
  for (const [index, { name: maintainer = '', email = '' }] of maintainers.entries()) {
    if (maintainer === '' || email === '') {
      tell(['maintainers', index], 'Maintainers elements should contain both name and email');
    }
    const fault = email === '' ? undefined : mailAddressFault(email);
    if (fault !== undefined)
      tell(['maintainers', index, 'email'], `Maintainers email ${email} is invalid: ${fault}`);
  }
  for (const [index, { name: title = '', url = '' }] of links.entries()) {
    if (title === '' || url === '') tell(['links', index], 'Links elements should contain both name and url');
    const uri = url === '' ? undefined : parseRequestUri(url);
    if (uri !== undefined && 'fault' in uri)
      tell(['links', index, 'url'], `Links url ${url} is invalid: ${uri.fault}`);
  }
  if (version === undefined || compareVersions(parseTolerantVersion(version), zeroVersion) === 0) {
    tell(['version'], 'Version must be set');
  }
  if (icon === undefined) faults.push(warningAt(['spec', 'icon'], `(${name}) csv.Spec.Icon not specified`));
  else {
    if (icon.length !== 1) tell(['icon'], 'Icon should only have one element');
    const [first] = icon;
    if (first !== undefined) {
      const { mediatype, base64data } = first;
      if (mediatype === '' || base64data === '') {
        tell(['icon', 0], 'Icon elements should contain both data and mediatype');
      }
      if (mediatype !== '' && !iconTypes.has(mediatype)) {
        tell(['icon', 0, 'mediatype'], `Icon ${mediatype} does not have a valid mediatype`);
      }
    }
  }
  return [...faults, ...minKubeVersionFaults(csv, name)];
}

const zeroVersion = parseTolerantVersion('0.0.0');
