import { propertiesAnnotation } from '../../model/bundle-keys.js';
import { GoJsonError, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { sortedByBytes } from '../../core/order.js';
import { SemverError, parseVersion } from '../../core/semver.js';
import { isKubernetesObject } from '../parse.js';
import { conform } from '../../kube/struct.js';
import { type Csv, csvSpecType, csvType, installStrategy } from '../../kube/csv-types.js';
import { isZero } from './is-zero.js';
import { type CheckDiagnostic, errorAt, warningAt } from './diagnostic.js';
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
 * Checks a ClusterServiceVersion. `csv` is undefined if fields have wrong types. (Source: operator-framework/api,
 * validation of ClusterServiceVersions.)
 */
export function checkCsv(manifest: JsonObject): { faults: CheckDiagnostic[]; csv: Csv | undefined } {
  const conformed = conform(manifest, csvType);
  if (conformed.faults.length > 0) {
    return {
      faults: conformed.faults.map(({ message, path }) => errorAt(path, message)),
      csv: undefined,
    };
  }
  const csv = conformed.value;
  const name = csv.metadata.name ?? '';
  const faults: CheckDiagnostic[] = [];
  const tell = (path: (string | number)[], problem: string): void =>
    void faults.push(errorAt(path, `(${name}) ${problem}`));
  const nameFault = findNameFault(name);
  if (nameFault !== undefined) tell(['metadata', 'name'], `metadata.name ${nameFault}`);
  const { replaces = '' } = csv.spec;
  const replacesFault = replaces === '' ? undefined : findNameFault(replaces);
  if (replacesFault !== undefined) tell(['spec', 'replaces'], `spec.replaces ${replacesFault}`);
  faults.push(
    ...exampleFaults(csv, name),
    ...installModeFaults(csv, name),
    ...minKubeVersionFaults(csv, name),
    ...missingFields(manifest),
    ...annotationFaults(csv),
  );
  if (splitApiVersion(csv.apiVersion ?? '').version === '') tell(['apiVersion'], "'apiVersion' is missing");
  return { faults, csv };
}

function findNameFault(name: string): string | undefined {
  const faults = [...subdomainFaults(name), ...labelValueFaults(name)];
  return faults.length === 0 ? undefined : `${quoteGo(name)} is invalid: ${faults.join(',')}`;
}

function exampleFaults(csv: Csv, name: string): CheckDiagnostic[] {
  const { annotations = {} } = csv.metadata;
  const location = ['metadata', 'annotations'];
  if (Object.keys(annotations).length === 0) {
    return [warningAt(['metadata'], `(${name}) annotations not found`)];
  }
  const faults: CheckDiagnostic[] = [];
  const key = Object.hasOwn(annotations, 'alm-examples') ? 'alm-examples' : 'olm.examples';
  const text = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
  if (text === undefined) return [warningAt(location, `(${name}) example annotations not found`)];
  if (key === 'alm-examples' && Object.hasOwn(annotations, 'olm.examples')) {
    const message = 'both `alm-examples` and `olm.examples` are present. Checking only `alm-examples`';
    faults.push(warningAt([...location, 'olm.examples'], `(${name}) ${message}`));
  }
  const path = [...location, key];
  let value: JsonValue;
  try {
    value = text === '' ? [] : parseGoJson(text);
  } catch (error) {
    if (!(error instanceof GoJsonError)) throw error;
    return [...faults, errorAt(path, `invalid example: ${error.message}`)];
  }
  const examples = new Set<string>();
  const list = value ?? [];
  const wrong = 'error decoding example CustomResource';
  if (!Array.isArray(list)) return [...faults, errorAt(path, `${wrong}: expected a list of objects`)];
  for (const [index, example] of list.entries()) {
    if (!isKubernetesObject(example)) {
      return [...faults, errorAt(path, `${wrong}: Object 'Kind' is missing in example ${index}`)];
    }
    const { group, version } = splitApiVersion(getText(example, 'apiVersion'));
    examples.add(gvkText(group, version, String(example['kind'])));
  }
  const provided = new Set<string>();
  for (const [index, owned] of (csv.spec.customresourcedefinitions?.owned ?? []).entries()) {
    const dot = owned.name.indexOf('.');
    if (dot < 0) {
      const problem = `couldn't parse plural.group from crd name: ${owned.name}`;
      faults.push(errorAt(['spec', 'customresourcedefinitions', 'owned', index, 'name'], problem));
    } else provided.add(gvkText(owned.name.slice(dot + 1), owned.version, owned.kind));
  }
  for (const { group = '', version, kind } of csv.spec.apiservicedefinitions?.owned ?? []) {
    provided.add(gvkText(group, version, kind));
  }
  for (const example of sortedByBytes(examples)) {
    if (!provided.has(example)) {
      faults.push(errorAt(path, `Value ${example}: example must have a provided API`));
    }
  }
  for (const api of sortedByBytes(provided)) {
    if (!examples.has(api)) {
      faults.push(warningAt(path, `Value ${api}: provided API should have an example annotation`));
    }
  }
  return faults;
}

function gvkText(group: string, version: string, kind: string): string {
  return `${group}/${version}, Kind=${kind}`;
}

function installModeFaults({ spec }: Csv, name: string): CheckDiagnostic[] {
  const { installModes = [], webhookdefinitions = [] } = spec;
  const path = ['spec', 'installModes'];
  if (installModes.length === 0) return [errorAt(path, `(${name}) install modes not found`)];
  const faults: CheckDiagnostic[] = [];
  const isForAll = installModes.every(({ type, supported }) => supported === (type === 'AllNamespaces'));
  for (const [index, { conversionCRDs = [] }] of webhookdefinitions.entries()) {
    if (conversionCRDs.length === 0 || isForAll) continue;
    const problem = 'only AllNamespaces InstallModeType is supported when conversionCRDs is present';
    faults.push(errorAt(['spec', 'webhookdefinitions', index, 'conversionCRDs'], `(${name}) ${problem}`));
  }
  if (!installModes.some(({ supported }) => supported)) {
    faults.push(errorAt(path, `(${name}) none of InstallModeTypes are supported`));
  }
  return faults;
}

/** Returns the faults of the minimum version of Kubernetes. */
export function minKubeVersionFaults({ spec }: Csv, name: string): CheckDiagnostic[] {
  const { minKubeVersion = '' } = spec;
  const path = ['spec', 'minKubeVersion'];
  if (minKubeVersion.trim() === '') return [warningAt(path, `(${name}) ${minKubeVersionMissing}`)];
  try {
    parseVersion(minKubeVersion);
    return [];
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    return [errorAt(path, `(${name}) csv.Spec.MinKubeVersion has an invalid value: ${minKubeVersion}`)];
  }
}

/** Returns the faults of missing fields that upstream's type requires. */
function missingFields(manifest: JsonObject): CheckDiagnostic[] {
  const { metadata, spec } = manifest;
  const missing: CheckDiagnostic[] = [];
  const tell = (field: string, path: string[]): void =>
    void missing.push(errorAt(path, `Field ${field}: required field missing`));
  if (isZero(metadata, csvType.fields.get('metadata')?.type ?? 'any')) tell('ObjectMeta', ['metadata']);
  if (!isJsonObject(spec) || isZero(spec, csvSpecType)) {
    tell('Spec', ['spec']);
    return missing;
  }
  const { install } = spec;
  if (!isJsonObject(install) || isZero(install, installStrategy)) {
    tell('Spec.InstallStrategy', ['spec', 'install']);
  } else {
    const { strategy, spec: details } = install;
    if ((strategy ?? '') === '') tell('Spec.InstallStrategy.StrategyName', ['spec', 'install', 'strategy']);
    const type = installStrategy.fields.get('spec')?.type ?? 'any';
    if (isJsonObject(details) && !isZero(details, type) && (details['deployments'] ?? null) === null) {
      tell('Spec.InstallStrategy.StrategySpec.DeploymentSpecs', ['spec', 'install', 'spec', 'deployments']);
    }
  }
  if ((spec['displayName'] ?? '') === '') tell('Spec.DisplayName', ['spec', 'displayName']);
  return missing;
}

function annotationFaults({ metadata }: Csv): CheckDiagnostic[] {
  const { name = '', annotations = {} } = metadata;
  const faults: CheckDiagnostic[] = [];
  for (const key of Object.keys(annotations)) {
    const right = caseSensitiveKeys.get(key.toLowerCase());
    const path = ['metadata', 'annotations', key];
    if (right !== undefined && right !== key) {
      const message = `provided annotation ${key} uses wrong case and should be ${right} instead`;
      faults.push(errorAt(path, `Value ${name}: ${message}`));
    }
    if (key === propertiesAnnotation) {
      const problem = `found ${key} annotation, please define these properties in metadata/properties.yaml instead`;
      faults.push(warningAt(path, problem));
    }
  }
  return faults;
}
