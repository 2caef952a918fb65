import { propertiesAnnotation } from '../../model/bundle-keys.js';
import { GoJsonError, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { parseVersion, tryParse } from '../../core/semver.js';
import { isKubernetesObject } from '../parse.js';
import { type Type, conform } from '../../kube/struct.js';
import {
  type Csv,
  csvSpecType,
  csvType,
  installStrategy,
  version as versionType,
} from '../../kube/csv-types.js';
import { type Reporter, prefixed, soundValue, warning } from './report.js';
import { labelValueFaults, subdomainFaults } from '../../kube/names.js';
import { splitApiVersion } from '../../kube/object.js';
import { getText } from '../../document/json-fields.js';

/** Annotations that are often written in the wrong case, by their lower case. */
const caseSensitiveKeys = new Map(
  [
    'olm.operatorGroup',
    'olm.operatorNamespace',
    'olm.targetNamespaces',
    'olm.providedAPIs',
    'olm.skipRange',
  ].map((key) => [key.toLowerCase(), key]),
);

/** Upstream's warning about a missing minimum version of Kubernetes. */
const minKubeVersionMissing =
  'csv.Spec.minKubeVersion is not informed. It is recommended you provide this information. Otherwise, it would ' +
  'mean that your operator project can be distributed and installed in any cluster version available, which is ' +
  'not necessarily the case for all projects.';

/**
 * Checks a ClusterServiceVersion. Returns undefined if fields have wrong types. (Source: operator-framework/api,
 * validation of ClusterServiceVersions.)
 */
export function checkCsv(manifest: JsonObject, report: Reporter): Csv | undefined {
  const csv = soundValue(conform(manifest, csvType), report);
  if (csv === undefined) return undefined;
  const { name = '' } = csv.metadata;
  const { replaces = '' } = csv.spec;
  const reportNamed = prefixed(report, `(${name}) `);
  checkName(name, ['metadata', 'name'], reportNamed);
  if (replaces !== '') checkName(replaces, ['spec', 'replaces'], reportNamed);
  checkExamples(csv, report, reportNamed);
  checkInstallModes(csv, reportNamed);
  checkMinKubeVersion(csv, reportNamed);
  checkRequiredFields(manifest, report);
  checkAnnotations(csv, report);
  if (splitApiVersion(csv.apiVersion ?? '').version === '') {
    reportNamed(['apiVersion'], "'apiVersion' is missing");
  }
  return csv;
}

function checkName(name: string, path: readonly string[], report: Reporter): void {
  const faults = [...subdomainFaults(name), ...labelValueFaults(name)];
  if (faults.length > 0) report(path, `${path.join('.')} ${quoteGo(name)} is invalid: ${faults.join(',')}`);
}

function checkExamples({ metadata, spec }: Csv, report: Reporter, reportNamed: Reporter): void {
  const { annotations = {} } = metadata;
  const location = ['metadata', 'annotations'];
  if (Object.keys(annotations).length === 0) {
    reportNamed(['metadata'], 'annotations not found', warning);
    return;
  }
  const key = Object.hasOwn(annotations, 'alm-examples') ? 'alm-examples' : 'olm.examples';
  const text = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
  if (text === undefined) {
    reportNamed(location, 'example annotations not found', warning);
    return;
  }
  if (key === 'alm-examples' && Object.hasOwn(annotations, 'olm.examples')) {
    const problem = 'both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`';
    reportNamed([...location, 'olm.examples'], problem, warning);
  }
  const path = [...location, key];
  const examples = readExamples(text, (problem) => report(path, problem));
  if (examples === undefined) return;
  const provided = new Set<string>();
  for (const [index, owned] of (spec.customresourcedefinitions?.owned ?? []).entries()) {
    const dot = owned.name.indexOf('.');
    if (dot < 0) {
      const problem = `couldn't parse plural.group from crd name: ${owned.name}`;
      report(['spec', 'customresourcedefinitions', 'owned', index, 'name'], problem);
    } else provided.add(gvkText(owned.name.slice(dot + 1), owned.version, owned.kind));
  }
  for (const { group = '', version, kind } of spec.apiservicedefinitions?.owned ?? []) {
    provided.add(gvkText(group, version, kind));
  }
  for (const example of examples) {
    if (!provided.has(example)) report(path, `Value ${example}: example must have a provided API`);
  }
  for (const api of provided) {
    if (examples.has(api)) continue;
    report(path, `Value ${api}: provided API should have an example annotation`, warning);
  }
}

/** Returns the APIs of examples; undefined for text without a list of objects. */
function readExamples(text: string, fail: (problem: string) => void): Set<string> | undefined {
  let list: JsonValue;
  try {
    list = (text === '' ? null : parseGoJson(text)) ?? [];
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    return void fail(`invalid example: ${error.message}`);
  }
  const wrong = 'error decoding example CustomResource';
  if (!Array.isArray(list)) return void fail(`${wrong}: expected a list of objects`);
  const examples = new Set<string>();
  for (const [index, example] of list.entries()) {
    if (!isKubernetesObject(example)) {
      return void fail(`${wrong}: Object 'Kind' is missing in example ${index}`);
    }
    const { group, version } = splitApiVersion(getText(example, 'apiVersion'));
    examples.add(gvkText(group, version, String(example['kind'])));
  }
  return examples;
}

/** Returns a group, version and kind as Go prints them. */
export function gvkText(group: string, version: string, kind: string): string {
  return `${group}/${version}, Kind=${kind}`;
}

function checkInstallModes(
  { spec: { installModes = [], webhookdefinitions = [] } }: Csv,
  report: Reporter,
): void {
  const path = ['spec', 'installModes'];
  if (installModes.length === 0) {
    report(path, 'install modes not found');
    return;
  }
  const isForAll = installModes.every(({ type, supported }) => supported === (type === 'AllNamespaces'));
  for (const [index, { conversionCRDs = [] }] of webhookdefinitions.entries()) {
    if (conversionCRDs.length === 0 || isForAll) continue;
    const problem = 'only AllNamespaces InstallModeType is supported when conversionCRDs is present';
    report(['spec', 'webhookdefinitions', index, 'conversionCRDs'], problem);
  }
  if (!installModes.some(({ supported }) => supported))
    report(path, 'none of InstallModeTypes are supported');
}

/** Checks the minimum version of Kubernetes. */
export function checkMinKubeVersion({ spec: { minKubeVersion = '' } }: Csv, report: Reporter): void {
  const path = ['spec', 'minKubeVersion'];
  if (minKubeVersion.trim() === '') report(path, minKubeVersionMissing, warning);
  else if (tryParse(parseVersion, minKubeVersion) === undefined) {
    report(path, `csv.Spec.MinKubeVersion has an invalid value: ${minKubeVersion}`);
  }
}

/** Reports missing fields that upstream's type requires. */
function checkRequiredFields({ metadata, spec }: JsonObject, report: Reporter): void {
  const missing = (field: string, path: string[]): void =>
    report(path, `Field ${field}: required field missing`);
  if (isZero(metadata, csvType.fields.get('metadata')?.type ?? 'any')) missing('ObjectMeta', ['metadata']);
  if (!isJsonObject(spec) || isZero(spec, csvSpecType)) {
    missing('Spec', ['spec']);
    return;
  }
  const { install } = spec;
  if (!isJsonObject(install) || isZero(install, installStrategy)) {
    missing('Spec.InstallStrategy', ['spec', 'install']);
  } else {
    const { strategy, spec: details } = install;
    if ((strategy ?? '') === '') {
      missing('Spec.InstallStrategy.StrategyName', ['spec', 'install', 'strategy']);
    }
    const type = installStrategy.fields.get('spec')?.type ?? 'any';
    if (isJsonObject(details) && !isZero(details, type) && (details['deployments'] ?? null) === null) {
      const path = ['spec', 'install', 'spec', 'deployments'];
      missing('Spec.InstallStrategy.StrategySpec.DeploymentSpecs', path);
    }
  }
  if ((spec['displayName'] ?? '') === '') missing('Spec.DisplayName', ['spec', 'displayName']);
}

/**
 * Reports whether a value is the zero value of a type in Go; empty lists and maps are not. (Source:
 * reflect.Value.IsZero.)
 */
function isZero(value: JsonValue | undefined, type: Type): boolean {
  if (value === null || value === undefined) return true;
  if (typeof type === 'string') return type !== 'any' && (value === '' || value === 0 || value === false);
  if (type === versionType) {
    return typeof value === 'string' && /^\s*v?0*(?:\.0*)?(?:\.0*)?\s*$/.test(value);
  }
  if (!('fields' in type) || !isJsonObject(value)) return false;
  return [...type.fields].every(
    ([name, field]) => !Object.hasOwn(value, name) || isZero(value[name], field.type),
  );
}

function checkAnnotations({ metadata: { name = '', annotations = {} } }: Csv, report: Reporter): void {
  for (const key of Object.keys(annotations)) {
    const right = caseSensitiveKeys.get(key.toLowerCase());
    const path = ['metadata', 'annotations', key];
    if (right !== undefined && right !== key) {
      const problem = `provided annotation ${key} uses wrong case and should be ${right} instead`;
      report(path, `Value ${name}: ${problem}`);
    }
    if (key === propertiesAnnotation) {
      const problem = `found ${key} annotation, please define these properties in metadata/properties.yaml instead`;
      report(path, problem, warning);
    }
  }
}
