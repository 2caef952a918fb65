import { decodeUtf8, parseGoJson, quoteGo } from '../../document/go-json.js';
import { OpmateError } from '../../core/errors.js';
import { isJsonObject } from '../../document/json.js';
import { parseRange, tryParse } from '../../core/semver.js';
import { parseYaml } from '../../document/yaml.js';
import {
  type BundleAnnotations,
  type MediaType,
  bundleKeys,
  toBundleAnnotations,
} from '../../model/bundle-keys.js';
import { findRuleFault } from '../../model/property-rule.js';
import { TypeMismatchError, readTyped, struct } from '../../kube/struct.js';
import { type RawProperty, readMetadataFiles, toTexts } from '../metadata.js';
import type { BundleFile, BundleFiles } from '../read.js';

import type { Reporter } from './report.js';

const requiredKeys = [
  bundleKeys.channels,
  bundleKeys.manifests,
  bundleKeys.mediaType,
  bundleKeys.metadata,
  bundleKeys.package,
];

/** Reports whether `manifests/` is a Helm chart: it has a Chart.yaml with a name. */
export function isChart(files: readonly BundleFile[]): boolean {
  const chart = files.find(({ name }) => name === 'Chart.yaml');
  if (chart === undefined) return false;
  try {
    const value = parseYaml(decodeUtf8(chart.content));
    return isJsonObject(value) && typeof value['name'] === 'string' && value['name'] !== '';
  } catch (error) {
    if (error instanceof OpmateError) return false;
    throw error;
  }
}

/**
 * Checks annotations and dependencies of a bundle, and returns its annotations; `mediaType` is undefined without
 * manifests, and `unknown`, which is not compared, if manifests cannot be read. (Source: operator-registry, pkg/lib/bundle.)
 */
export function checkFormat(
  files: BundleFiles,
  mediaType: MediaType | 'unknown' | undefined,
  report: Reporter,
): BundleAnnotations {
  if (mediaType === undefined) report([], 'The directory manifests/ contains no yaml files');
  let annotations: Map<string, string> | undefined;
  let annotationsFile = '';
  let dependencies: RawProperty[] = [];
  let dependenciesFile = '';
  const unread: string[] = [];
  for (const { file, error, ...part } of readMetadataFiles(files.metadata)) {
    if (error !== undefined) {
      if (error.code !== 'SYNTAX') throw error;
      unread.push(`${file} does not parse: ${error.message}`);
      continue;
    }
    if (annotations === undefined) {
      annotations = part.annotations && toTexts(Object.entries(part.annotations));
      annotationsFile = file;
      if (annotations !== undefined) continue;
    }
    if (dependencies.length > 0) continue;
    dependencies = part.dependencies;
    dependenciesFile = file;
  }
  if (annotations === undefined) report([], ['Could not find annotations file', ...unread].join('; '));
  else {
    const file = annotationsFile;
    checkAnnotations(annotations, mediaType ?? '', (key, problem) =>
      report(['annotations', key], problem, { file }),
    );
  }
  for (const [index, dependency] of dependencies.entries()) {
    for (const problem of dependencyFaults(dependency)) {
      report(['dependencies', index], problem, { file: dependenciesFile });
    }
  }
  return toBundleAnnotations(annotations ?? new Map());
}

function checkAnnotations(
  values: ReadonlyMap<string, string>,
  mediaType: string,
  report: (key: string, problem: string) => void,
): void {
  for (const key of requiredKeys) {
    if (!values.has(key)) report(key, `Missing annotation ${quoteGo(key)}`);
  }
  const expect = (key: string, what: string): void =>
    report(key, `Expecting annotation ${quoteGo(key)} to have ${what}`);
  const { [bundleKeys.mediaType]: actual = '', [bundleKeys.channels]: channels = '' } =
    Object.fromEntries(values);
  if (mediaType !== 'unknown' && actual !== mediaType) {
    expect(bundleKeys.mediaType, `value ${quoteGo(mediaType)} instead of ${quoteGo(actual)}`);
  }
  if (channels === '') expect(bundleKeys.channels, 'non-empty value');
  if (values.get(bundleKeys.defaultChannel) === '') expect(bundleKeys.defaultChannel, 'non-empty value');
}

const gvk = struct({ group: 'string', kind: 'string', version: 'string' });
const packageRange = struct({ packageName: 'string', version: 'string' });
const label = struct({ label: 'string' });
const constraint = struct({ failureMessage: 'string', cel: 'raw' });
const cel = struct({ rule: 'string' });

function dependencyFaults({ type, text }: RawProperty): string[] {
  try {
    if (text === undefined) throw new TypeMismatchError([], 'no value');
    const value = parseGoJson(text);
    const options = { foldNames: true };
    switch (type) {
      case 'olm.gvk': {
        const key = readTyped(value, gvk, options);
        return (['group', 'version', 'kind'] as const)
          .filter((field) => key[field] === '')
          .map((field) => `API ${field[0]?.toUpperCase()}${field.slice(1)} is empty`);
      }
      case 'olm.package':
        return packageFaults(readTyped(value, packageRange, options));
      case 'olm.label': {
        const labelValue = readTyped(value, label, options);
        return labelValue.label === '' ? ['Label information is missing'] : [];
      }
      case 'olm.constraint': {
        const constraintValue = readTyped(value, constraint, options);
        if (constraintValue.cel === null) return ['The CEL field is missing'];
        const { rule } = readTyped(constraintValue.cel, cel, { path: ['cel'], foldNames: true });
        if (rule === '') return ['The CEL expression is missing'];
        const fault = findRuleFault(rule);
        return fault === undefined ? [] : [`Invalid CEL expression: ${fault}`];
      }
    }
  } catch (error) {
    if (!(error instanceof TypeMismatchError)) throw error;
  }
  return [`couldn't parse dependency of type ${type}`];
}

function packageFaults({ packageName, version }: { packageName: string; version: string }): string[] {
  const faults = packageName === '' ? ['Package name is empty'] : [];
  if (version === '') return [...faults, 'Package version is empty'];
  return tryParse(parseRange, version) === undefined ? [...faults, 'Invalid semver format version'] : faults;
}
