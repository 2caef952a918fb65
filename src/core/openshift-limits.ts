/**
 * The OpenShift versions that bundles declare. The label `com.redhat.openshift.versions` selects the index images that a
 * bundle is published in. (Source: is_bundle_version_valid of release-engineering/iib.)
 */
import { quoteGo } from './go-json-quote.js';
import {
  type OpenShiftVersion,
  compareOpenShift,
  formatOpenShift,
  getKubernetesMinor,
  isAboveKubernetes,
  knownOpenShift,
} from './openshift-version.js';
import type { Version } from './semver.js';

/** Components of a version, compared as if the shorter one ended in zeros. */
type Components = readonly number[];

/** A label that was read: the versions that it selects, or why it selects none. */
type VersionsLabel =
  | { kind: 'from'; first: Components; text: string }
  | { kind: 'only'; version: Components; text: string }
  | { kind: 'range'; first: Components; last: Components; text: string }
  | { kind: 'any'; parts: readonly VersionsLabel[]; text: string }
  | { kind: 'none'; problem: string; text: string };

/** Verdict of an index about a bundle, with its reason. */
export interface VersionsVerdict {
  isIncluded: boolean;
  reason: string;
}

/** Reads a label. Never fails: an invalid label selects no index, as in IIB. */
export function readVersionsLabel(label: string): VersionsLabel {
  const text = label.trim();
  if (text === '') return { kind: 'none', problem: 'the label is missing', text };
  if (text.includes('|')) return readParts(text);
  if (text.startsWith('=')) return readExact(text);
  if (text.includes('-')) return readRange(text);
  if (text.includes(',')) return readList(text);
  const first = readComponents(text);
  return first === undefined ? invalid(text, text) : { kind: 'from', first, text };
}

/** Reports whether the index of an OpenShift version selects bundles with a label. */
export function evaluateVersionsLabel(label: VersionsLabel, index: string): VersionsVerdict {
  const version = readComponents(index);
  if (version === undefined) return { isIncluded: false, reason: `invalid version ${quoteGo(index)}` };
  switch (label.kind) {
    case 'none':
      return { isIncluded: false, reason: label.problem };
    case 'only': {
      const isIncluded = compareComponents(version, label.version) === 0;
      return { isIncluded, reason: `${isIncluded ? 'equals' : 'differs from'} ${label.text}` };
    }
    case 'from': {
      const isIncluded = compareComponents(version, label.first) >= 0;
      return { isIncluded, reason: `${isIncluded ? 'not below' : 'below'} ${label.text}` };
    }
    case 'range': {
      if (compareComponents(version, label.first) < 0)
        return { isIncluded: false, reason: `below ${label.text}` };
      const isIncluded = compareComponents(version, label.last) <= 0;
      return { isIncluded, reason: `${isIncluded ? 'within' : 'above'} ${label.text}` };
    }
    case 'any': {
      const verdicts = label.parts.map((part) => evaluateVersionsLabel(part, index));
      return (
        verdicts.find(({ isIncluded }) => isIncluded) ?? {
          isIncluded: false,
          reason: `no part of ${label.text} matches`,
        }
      );
    }
  }
}

/** Returns the components of a version such as `v4.12`; undefined for other text. */
function readComponents(text: string): Components | undefined {
  const [, numbers] = /^v?(\d{1,9}(?:\.\d{1,9}){0,5})$/i.exec(text.trim()) ?? [];
  return numbers?.split('.').map(Number);
}

function compareComponents(a: Components, b: Components): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const order = (a[index] ?? 0) - (b[index] ?? 0);
    if (order !== 0) return order;
  }
  return 0;
}

function invalid(part: string, text: string): VersionsLabel {
  return { kind: 'none', problem: `${quoteGo(part)} in the label is not a version such as v4.12`, text };
}

/** Reads `=v4.9|>=v4.16`: each part must start with `=` or `>=`. */
function readParts(text: string): VersionsLabel {
  const parts: VersionsLabel[] = [];
  for (const part of text.split('|').map((item) => item.trim())) {
    const isFrom = part.startsWith('>=');
    if (!isFrom && !part.startsWith('=')) {
      const problem = `${quoteGo(part)} in the label does not start with = or >=`;
      return { kind: 'none', problem, text };
    }
    const first = isFrom ? readComponents(part.slice(2)) : undefined;
    if (isFrom) parts.push(first === undefined ? invalid(part, text) : { kind: 'from', first, text: part });
    else parts.push(readExact(part));
  }
  return { kind: 'any', parts, text };
}

function readExact(text: string): VersionsLabel {
  const version = readComponents(text.replace(/^=+/, ''));
  return version === undefined ? invalid(text, text) : { kind: 'only', version, text };
}

function readRange(text: string): VersionsLabel {
  const [from = '', to = '', ...others] = text.split('-');
  const [first, last] = [readComponents(from), readComponents(to)];
  if (first === undefined || last === undefined || others.length > 0) return invalid(text, text);
  if (compareComponents(first, last) > 0) {
    return { kind: 'none', problem: `the range ${quoteGo(text)} in the label ends before it starts`, text };
  }
  return { kind: 'range', first, last, text };
}

/** Reads the old form `v4.5,v4.6`: the lowest version and later ones. */
function readList(text: string): VersionsLabel {
  const versions = text.split(',').map((part) => ({ part, components: readComponents(part) }));
  const wrong = versions.find(({ components }) => components === undefined);
  if (wrong !== undefined) return invalid(wrong.part, text);
  const sorted = versions.map(({ components }) => components as Components).sort(compareComponents);
  return { kind: 'from', first: sorted[0] as Components, text };
}

/**
 * Reports whether a label selects a version, under any name of its release: 4.23 equals 5.0. Undefined for an invalid
 * label.
 */
export function isInVersions(label: string, version: OpenShiftVersion | undefined): boolean | undefined {
  const parsed = readVersionsLabel(label);
  if (parsed.kind === 'none') return undefined;
  return version !== undefined && isSelected(parsed, version);
}

function isSelected(label: VersionsLabel, version: OpenShiftVersion): boolean {
  const names = knownOpenShift.filter((known) => compareOpenShift(known, version) === 0);
  return [version, ...names].some((name) => evaluateVersionsLabel(label, formatOpenShift(name)).isIncluded);
}

/** Limits of the OpenShift versions that a bundle declares; undefined without one. */
interface OpenShiftLimits {
  maxOpenShift: OpenShiftVersion | undefined;
  minKube: Version | undefined;
  /** Valid `com.redhat.openshift.versions`. */
  openShiftVersions: string | undefined;
}

/**
 * Returns the first and last OpenShift version that limits allow, as names; either is omitted without a limit. Undefined
 * if they allow none. For labels with single versions, these are the first and last.
 */
export function allowedOpenShift(limits: OpenShiftLimits): { min?: string; max?: string } | undefined {
  const allowed = knownOpenShift.filter((version) => isAllowed(limits, version));
  const [min, max] = [allowed[0], allowed.at(-1)];
  if (min === undefined || max === undefined) return undefined;
  return {
    ...(min !== knownOpenShift[0] && { min: formatOpenShift(min) }),
    ...(max !== knownOpenShift.at(-1) && { max: formatOpenShift(max) }),
  };
}

function isAllowed(
  { maxOpenShift, minKube, openShiftVersions }: OpenShiftLimits,
  version: OpenShiftVersion,
): boolean {
  if (maxOpenShift !== undefined && compareOpenShift(maxOpenShift, version) < 0) return false;
  if (openShiftVersions !== undefined && isInVersions(openShiftVersions, version) === false) return false;
  return minKube === undefined || !isAboveKubernetes(minKube, getKubernetesMinor(version));
}

/** Returns the versions that a valid label selects although their Kubernetes is below the minimum, oldest first. */
export function findUnsupportedVersions(label: VersionsLabel, minKube: Version): OpenShiftVersion[] {
  return knownOpenShift.filter(
    (version) => isAboveKubernetes(minKube, getKubernetesMinor(version)) && isSelected(label, version),
  );
}
