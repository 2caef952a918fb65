import { quoteGo } from '../../core/go-json-quote.js';
import { joinNames } from '../../core/suggest.js';
import { type Version, compareVersions, parseVersion, tryParse } from '../../core/semver.js';
import {
  type OpenShiftVersion,
  compareOpenShiftNames as compareOpenShift,
  formatOpenShift,
  getKubernetesMinor,
  openShiftVersionsLabel as versionsLabel,
  readOpenShiftVersion,
} from '../../core/openshift-version.js';
import { getText, getValue } from '../../document/json-fields.js';
import { evaluateVersionsLabel, readVersionsLabel } from '../../core/openshift-limits.js';
import { type CheckedBundle, getBundleAnnotation } from './bundle-model.js';
import { type Check, type CheckContext, type CheckedOperator, type ReportFinding, placeIn } from './check.js';
import { getReplacedVersion } from './update-graph.js';

function checkDirectoryName(bundle: CheckedBundle, _operator: CheckedOperator, report: ReportFinding): void {
  const csv = bundle.getCsv();
  const value = getValue(csv.value, 'spec', 'version');
  const version = typeof value === 'number' ? String(value) : getText(value);
  if (version === bundle.version) return;
  const problem = `spec.version ${quoteGo(version)} differs from the directory ${quoteGo(bundle.version)}`;
  report('error', problem, placeIn(csv, ['spec', 'version'], 'rename the directory to spec.version'));
}

function checkReplaces(
  bundle: CheckedBundle,
  operator: CheckedOperator,
  report: ReportFinding,
  context: CheckContext,
): void {
  const csv = bundle.getCsv();
  const replaces = getText(csv.value, 'spec', 'replaces');
  if (replaces === '') return;
  const version = getReplacedVersion(bundle, replaces);
  const place = placeIn(csv, ['spec', 'replaces']);
  if (version === bundle.getCsvName().version) {
    report('error', 'the bundle replaces itself', { ...place, hint: 'set spec.replaces to another version' });
    return;
  }
  const replaced = operator.bundles.find((other) => other.getCsvName().version === version);
  if (replaced === undefined) {
    const known = joinNames(operator.bundles.map((other) => other.getCsvName().version));
    const problem = `spec.replaces names version ${quoteGo(version)}, which the operator lacks; it has ${known}`;
    report('error', problem, { ...place, hint: 'replace one of these versions' });
    return;
  }
  const own = listVersions(bundle, context);
  const theirs = new Set(listVersions(replaced, context));
  const missing = own.filter((item) => !theirs.has(item));
  if (missing.length === 0) return;
  const problem = `the replaced bundle ${replaced.version} is not published for OpenShift ${missing.join(', ')}`;
  const hint = `set the same ${versionsLabel} in metadata/annotations.yaml`;
  report('error', problem, { ...placeIn(bundle.annotations, ['annotations', versionsLabel]), hint });
}

/** Returns the supported OpenShift versions whose indexes a bundle is published in; all without a label. */
function listVersions(bundle: CheckedBundle, { supported }: CheckContext): string[] {
  const text = getBundleAnnotation(bundle, versionsLabel);
  if (text === '') return [...supported];
  const label = readVersionsLabel(text);
  return supported.filter((version) => evaluateVersionsLabel(label, version).isIncluded);
}

/** OpenShift versions with a known version of Kubernetes: 4.1 to 4.17. (Source: operator-pipelines.) */
const knownOpenShift: readonly OpenShiftVersion[] = Array.from({ length: 17 }, (_, index) => ({
  major: 4,
  minor: index + 1,
}));

/** Returns the minor version of Kubernetes 1; 4.1 and 4.2 precede the known ones. */
function kubernetesOf(version: OpenShiftVersion): number {
  return getKubernetesMinor(version) ?? version.minor + 12;
}

function checkConstraints(bundle: CheckedBundle, _operator: CheckedOperator, report: ReportFinding): void {
  const csv = bundle.getCsv();
  const minKube = getText(csv.value, 'spec', 'minKubeVersion');
  if (minKube === '') return;
  const kubePlace = placeIn(csv, ['spec', 'minKubeVersion']);
  const labelPlace = placeIn(bundle.annotations, ['annotations', versionsLabel]);
  const label = getBundleAnnotation(bundle, versionsLabel);
  if (label === '') {
    const problem = `spec.minKubeVersion is ${minKube}, but the annotation ${versionsLabel} is missing`;
    report('error', problem, { ...labelPlace, hint: `add ${versionsLabel} to metadata/annotations.yaml` });
    return;
  }
  const versions = selectKnown(label, (part) => {
    const problem = `invalid ${versionsLabel}: ${quoteGo(part)} is not a version`;
    report('error', problem, { ...labelPlace, hint: 'use v4.12, =v4.12 or v4.12-v4.15' });
  });
  if (versions === undefined) return;
  const isList = label.includes(',') && !label.includes('-');
  if (isList && label.replace(/\s/g, '') !== 'v4.5,v4.6') {
    const problem = `a list in ${versionsLabel} means its lowest version and later ones`;
    report('warning', problem, { ...labelPlace, hint: 'use a version or a range: v4.12-v4.15' });
  }
  const minimum = tryParse(parseVersion, minKube);
  if (minimum === undefined) {
    const hint = 'use a version such as 1.22.0';
    report('error', `invalid spec.minKubeVersion ${quoteGo(minKube)}`, { ...kubePlace, hint });
    return;
  }
  const conflicts = versions.filter((version) => isBelow(version, minimum));
  if (conflicts.length === 0) return;
  const names = conflicts.map(formatOpenShift).join(', ');
  const problem = `OpenShift ${names} of ${versionsLabel} is older than spec.minKubeVersion ${minKube}`;
  report('error', problem, {
    ...labelPlace,
    hint: 'raise the OpenShift version or lower spec.minKubeVersion',
  });
}

function isBelow(version: OpenShiftVersion, minimum: Version): boolean {
  const kubernetes = { major: 1, minor: kubernetesOf(version), patch: 0, pre: [], build: [] };
  return compareVersions(kubernetes, minimum) < 0;
}

/**
 * Returns the known OpenShift versions of a label as the community pipeline reads it; undefined after `fail` for a part
 * that is no version. An exact version that is unknown is the closest known one below it.
 */
function selectKnown(label: string, fail: (part: string) => void): OpenShiftVersion[] | undefined {
  const read = (text: string): OpenShiftVersion | undefined => {
    const version = readOpenShiftVersion(text);
    if (version === undefined) fail(text);
    return version;
  };
  if (label.includes('-')) {
    const [from = '', to = ''] = label.split('-');
    const first = read(from);
    const last = first === undefined ? undefined : read(to);
    if (first === undefined || last === undefined) return undefined;
    return knownOpenShift.filter((v) => compareOpenShift(v, first) >= 0 && compareOpenShift(v, last) <= 0);
  }
  if (label.startsWith('=')) {
    const exact = read(label.slice(1));
    if (exact === undefined) return undefined;
    return knownOpenShift.filter((version) => compareOpenShift(version, exact) <= 0).slice(-1);
  }
  const parts: OpenShiftVersion[] = [];
  for (const part of label.split(',')) {
    const version = read(part.trim());
    if (version === undefined) return undefined;
    parts.push(version);
  }
  const [lowest] = parts.sort(compareOpenShift);
  return knownOpenShift.filter((version) => compareOpenShift(version, lowest as OpenShiftVersion) >= 0);
}

export const versionChecks: readonly Check[] = [
  {
    name: 'check_operator_version_directory_name',
    suite: 'common',
    summary: 'the directory of a bundle is its version',
    of: 'bundle',
    run: checkDirectoryName,
  },
  {
    name: 'check_replaces_availability',
    suite: 'common',
    skipsFbc: true,
    summary: 'the replaced bundle is in the repository, and published for the same OpenShift versions',
    of: 'bundle',
    run: checkReplaces,
  },
  {
    name: 'check_api_version_constraints',
    suite: 'community',
    skipsFbc: true,
    summary: 'the minimum Kubernetes version agrees with the OpenShift versions',
    of: 'bundle',
    run: checkConstraints,
  },
];
