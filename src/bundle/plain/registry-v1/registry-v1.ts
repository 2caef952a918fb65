import { bundleKeys, propertiesAnnotation } from '../../../model/bundle-keys.js';
import { encodeGoJson, parseGoJson, sortKeysDeep } from '../../../document/go-json.js';
import { OpmateError } from '../../../core/errors.js';
import { type JsonObject, type JsonValue } from '../../../document/json.js';
import { sortedByBytes } from '../../../core/order.js';
import { describeKind } from '../../../document/field.js';
import { readPlacedMetadata } from '../../metadata.js';
import { getObject, getText, getValue } from '../../../document/json-fields.js';
import type { BundleFile, BundleFiles } from '../../read.js';
import { crdStruct } from '../../../kube/crd-types.js';
import { type ClusterServiceVersion, csvStruct } from '../../../kube/csv-types.js';
import { type Conformed, type Of, conform, suggestKnownField } from '../../../kube/struct.js';
import { type Manifest, locateIn, readManifests } from '../../../kube/manifests.js';
import { formatPath } from '../../../core/diagnostic.js';
import { Report } from '../../report.js';

/** The parts of a registry+v1 bundle that installing it requires. */
export interface RegistryV1 {
  packageName: string;
  /** With the properties of the bundle among its annotations. */
  csv: ClusterServiceVersion;
  csvManifest: Manifest;
  crds: Manifest[];
  /** All other objects. */
  others: Manifest[];
}

/**
 * Reads a bundle as operator-controller does: every document of every manifest, and `annotations.yaml` and
 * `properties.yaml` of `metadata/`. Unlike operator-controller, reports further ClusterServiceVersions as findings, and
 * custom resource definitions of v1beta1 too unless `acceptOldDefinitions`, which reads them as v1. `bundle` is undefined if it has no readable ClusterServiceVersion.
 * Throws LimitError.
 */
export function readRegistryV1(
  files: BundleFiles,
  options: { keepBelow?: number | undefined; acceptOldDefinitions?: boolean | undefined } = {},
): { bundle: RegistryV1 | undefined; report: Report } {
  const report = new Report();
  const { manifests, findings } = readManifests(files.manifests, { ...options, prefix: 'manifests/' });
  report.add({ findings });
  for (const name of files.folders ?? []) {
    report.fault('directory', 'is a directory', {
      file: `manifests/${name}`,
      hint: 'move its manifests up to manifests/, or remove the directory',
    });
  }
  const metadata = readMetadata(files.metadata, report);
  const [csvManifest, ...otherCsvs] = manifests.filter(({ kind }) => kind === 'ClusterServiceVersion');
  for (const other of otherCsvs) {
    report.fault('second-csv', `another ClusterServiceVersion; ${csvManifest?.file} has one already`, {
      ...locateIn(other),
      hint: 'keep exactly one ClusterServiceVersion',
    });
  }
  if (csvManifest === undefined) {
    report.fault('missing-csv', 'no ClusterServiceVersion in manifests/', {
      hint: 'add one, or use options.format plain for plain manifests',
    });
  }
  const crds = manifests.filter(({ kind }) => kind === 'CustomResourceDefinition');
  for (const crd of crds) checkCrd(crd, options.acceptOldDefinitions === true, report);
  const others = manifests.filter(({ kind }) => !readKinds.has(kind));
  for (const other of others) {
    if (other.apiVersion !== '') continue;
    const problem = 'missing apiVersion: clusters refuse it';
    report.warn('missing-field', problem, locateIn(other, ['kind']));
  }
  checkKinds(others, report);
  const csv = csvManifest && readCsv(csvManifest, metadata.properties, report);
  if (csvManifest === undefined || csv === undefined) return { bundle: undefined, report };
  return { bundle: { packageName: metadata.packageName, csv, csvManifest, crds, others }, report };
}

const readKinds: ReadonlySet<string> = new Set(['ClusterServiceVersion', 'CustomResourceDefinition']);

function checkTypes(manifest: Manifest, { faults }: Pick<Conformed, 'faults'>, report: Report): void {
  for (const { message, path, hint } of faults)
    report.fault('wrong-type', message, { ...locateIn(manifest, path), hint });
}

/** API version of custom resource definitions, the only one since Kubernetes 1.22. */
export const definitionVersion = 'apiextensions.k8s.io/v1';

function checkCrd(crd: Manifest, acceptsOld: boolean, report: Report): void {
  const isOld = crd.apiVersion !== definitionVersion;
  if (isOld) {
    const problem = `apiVersion ${crd.apiVersion} is not supported`;
    const details = {
      ...locateIn(crd, ['apiVersion']),
      hint: `convert it to ${definitionVersion}, the only version since Kubernetes 1.22`,
    };
    if (!acceptsOld) {
      report.fault('unsupported', problem, details);
      return;
    }
    report.warn('unsupported', problem, details);
  }
  checkTypes(crd, conformCrd(crd), report);
}

/** Results for definitions that are in memory anyway. */
const conformedCrds = new WeakMap<JsonObject, ConformedCrd>();

type ConformedCrd = Conformed<Of<typeof crdStruct>>;

function conformCrd(crd: Manifest): ConformedCrd {
  const object = crd.load();
  const known = conformedCrds.get(object);
  if (known !== undefined) return known;
  const conformed = conform(object, crdStruct);
  conformedCrds.set(object, conformed);
  return conformed;
}

/** Returns a custom resource definition for a cluster. Callers must not change it. */
export function loadCrd(crd: Manifest): JsonObject {
  const { value } = conformCrd(crd);
  return crd.apiVersion === definitionVersion ? value : { ...value, apiVersion: definitionVersion };
}

/** Returns undefined if fields have wrong types. */
function readCsv(
  manifest: Manifest,
  properties: readonly string[] | undefined,
  report: Report,
): ClusterServiceVersion | undefined {
  const conformed = conform(manifest.load(), csvStruct);
  checkTypes(manifest, conformed, report);
  if (conformed.faults.length > 0) return undefined;
  for (const field of conformed.dropped) {
    const { path } = field;
    // The table has rendered fields only; others are dropped although known.
    if (path[0] !== 'spec' || (path[1] !== 'install' && path[1] !== 'webhookdefinitions')) continue;
    report.warn('unknown-field', 'unknown field, ignored', {
      ...locateIn(manifest, path),
      subject: formatPath(path),
      hint: suggestKnownField(field),
    });
  }
  const csv = conformed.value;
  if (properties !== undefined) addProperties(csv, properties, manifest, report);
  return csv;
}

/** Appends the properties of the bundle to those of the annotation; no properties become `null`, as upstream. */
function addProperties(
  csv: ClusterServiceVersion,
  properties: readonly string[],
  manifest: Manifest,
  report: Report,
): void {
  const annotations = (csv.metadata.annotations ??= {});
  const annotation = annotations[propertiesAnnotation];
  let all: JsonValue[] | undefined;
  if (typeof annotation === 'string' && annotation !== '') {
    let parsed: JsonValue = null;
    try {
      parsed = parseGoJson(annotation);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
    }
    if (!Array.isArray(parsed)) {
      report.fault('wrong-type', `annotation ${propertiesAnnotation} is not a JSON list of properties`, {
        file: manifest.file,
        ...manifest.placeOf(['metadata', 'annotations', propertiesAnnotation]),
      });
      return;
    }
    all = parsed;
  }
  if (properties.length > 0) all = [...(all ?? []), ...properties.map((text) => parseGoJson(text))];
  annotations[propertiesAnnotation] = encodeGoJson(all?.map(getProperty) ?? null, { escapeHtml: true });
}

/** Returns type and value in upstream's order. */
function getProperty(value: JsonValue): JsonObject {
  const { type = '', value: inner = null } = getObject(value);
  return { type, value: inner };
}

function readMetadata(
  files: readonly BundleFile[],
  report: Report,
): { packageName: string; properties?: string[] } {
  const annotations = readMetadataFile(files, 'annotations.yaml', 'annotations', report);
  if (annotations === undefined) {
    if (files.some(({ name }) => name === 'annotations.yaml')) return { packageName: '' };
    report.fault('missing-file', 'metadata/annotations.yaml is missing', {
      hint: `add the file, with the annotation ${bundleKeys.package}`,
    });
    return { packageName: '' };
  }
  const packageName = getText(annotations.value, bundleKeys.package);
  if (packageName === '') {
    const hint = `set annotation ${bundleKeys.package}`;
    report.fault('missing-field', 'package name is empty', { ...annotations.place, hint });
  }
  const properties = readMetadataFile(files, 'properties.yaml', 'properties', report);
  if (properties === undefined) return { packageName };
  const list = properties.value ?? [];
  if (Array.isArray(list)) {
    return { packageName, properties: list.map((item) => encodeGoJson(sortKeysDeep(item))) };
  }
  report.fault('wrong-type', 'properties: expected a list', properties.place);
  return { packageName };
}

function readMetadataFile(
  files: readonly BundleFile[],
  name: string,
  key: string,
  report: Report,
): { value: JsonValue; place: { file: string; line: number } } | undefined {
  const content = files.find((file) => file.name === name)?.content;
  if (content === undefined) return undefined;
  const file = `metadata/${name}`;
  const { root, findings, placeOf } = readPlacedMetadata(content, file);
  report.add({ findings });
  if (root === undefined || findings.length > 0) return undefined;
  return { value: root[key] ?? null, place: { file, line: 1, column: 1, ...placeOf([key]) } };
}

/**
 * Kinds that a bundle may contain in addition to its ClusterServiceVersion and custom resource definitions. Objects of
 * namespaced kinds are moved to the install namespace. (Source: operator-controller, which ignores groups and treats
 * VerticalPodAutoscaler as cluster-scoped.)
 */
export const supportedKinds = new Map<string, { isNamespaced: boolean }>([
  ...[
    'ConfigMap',
    'NetworkPolicy',
    'PodDisruptionBudget',
    'PodMonitor',
    'PrometheusRule',
    'Role',
    'RoleBinding',
    'Secret',
    'Service',
    'ServiceAccount',
    'ServiceMonitor',
  ].map((kind) => [kind, { isNamespaced: true }] as const),
  ...[
    'ClusterRole',
    'ClusterRoleBinding',
    'ConsoleCLIDownload',
    'ConsoleLink',
    'ConsolePlugin',
    'ConsoleQuickStart',
    'ConsoleYAMLSample',
    'PriorityClass',
    'VerticalPodAutoscaler',
  ].map((kind) => [kind, { isNamespaced: false }] as const),
]);

/** Reports objects that a bundle must not contain, or without name. */
function checkKinds(others: readonly Manifest[], report: Report): void {
  for (const other of others) {
    if (!supportedKinds.has(other.kind)) {
      report.fault('unsupported-kind', 'bundles must not hold objects of this kind', {
        ...locateIn(other, ['kind']),
        hint: `use one of ${sortedByBytes(supportedKinds.keys()).join(', ')}`,
      });
    } else if (other.name === '') {
      const name = getValue(other.load(), 'metadata', 'name') ?? '';
      const problem = name === '' ? 'missing' : `expected a string, got ${describeKind(name)}`;
      const place = { ...locateIn(other, ['metadata', 'name']), subject: other.kind };
      report.fault('invalid-name', `metadata.name: ${problem}`, place);
    }
  }
}
