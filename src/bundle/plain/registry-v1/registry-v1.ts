import { bundleKeys, propertiesAnnotation } from '../../../model/bundle-keys.js';
import { encodeGoJson, parseGoJson, sortKeysDeep } from '../../../document/go-json.js';
import { OpmateError } from '../../../core/errors.js';
import { type JsonObject, type JsonValue } from '../../../document/json.js';
import { readPlacedMetadata } from '../../metadata.js';
import { getObject, getText, getValue } from '../../../document/json-fields.js';
import type { BundleFile, BundleFiles } from '../../read.js';
import { crdStruct } from '../../../kube/crd-types.js';
import { type ClusterServiceVersion, csvStruct } from '../../../kube/csv-types.js';
import { type Conformed, type Of, conform } from '../../../kube/struct.js';
import { type Manifest, locateIn, readManifests } from '../../../kube/manifests.js';
import { type Diagnostic, createFault, createWarning, formatPath } from '../../../core/diagnostic.js';
import { unsupportedKinds } from './supported-kinds.js';

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
 * `properties.yaml` of `metadata/`. Unlike operator-controller, reports further ClusterServiceVersions, and custom
 * resource definitions of v1beta1, as findings. `bundle` is undefined if it has no readable ClusterServiceVersion.
 * Throws LimitError.
 */
export function readRegistryV1(
  files: BundleFiles,
  options: { keepBelow?: number | undefined } = {},
): { bundle: RegistryV1 | undefined; findings: Diagnostic[]; warnings: Diagnostic[] } {
  const { manifests, findings } = readManifests(files.manifests, { ...options, prefix: 'manifests/' });
  const warnings: Diagnostic[] = [];
  for (const name of files.folders ?? []) {
    findings.push(
      createFault('directory', 'is a directory', {
        file: `manifests/${name}`,
        hint: 'move its manifests up to manifests/, or remove the directory',
      }),
    );
  }
  const metadata = readMetadata(files.metadata, findings);
  const [csvManifest, ...otherCsvs] = manifests.filter(({ kind }) => kind === 'ClusterServiceVersion');
  for (const other of otherCsvs) {
    findings.push(
      createFault('second-csv', `another ClusterServiceVersion; ${csvManifest?.file} has one already`, {
        ...locateIn(other),
        hint: 'keep exactly one ClusterServiceVersion',
      }),
    );
  }
  if (csvManifest === undefined) {
    findings.push(
      createFault('missing-csv', 'no ClusterServiceVersion in manifests/', {
        hint: 'add one, or use --format plain for plain manifests',
      }),
    );
  }
  const crds = manifests.filter(({ kind }) => kind === 'CustomResourceDefinition');
  for (const crd of crds) checkCrd(crd, findings);
  const others = manifests.filter(({ kind }) => !readKinds.has(kind));
  for (const other of others) {
    if (other.apiVersion !== '') continue;
    const problem = 'apiVersion is missing, so that no cluster will take it';
    warnings.push(createWarning('missing-field', problem, locateIn(other, ['kind'])));
  }
  findings.push(...unsupportedKinds(others));
  if (csvManifest === undefined) return { bundle: undefined, findings, warnings };
  const csv = readCsv(csvManifest, metadata.properties, findings, warnings);
  if (csv === undefined) return { bundle: undefined, findings, warnings };
  const bundle = { packageName: metadata.packageName, csv, csvManifest, crds, others };
  return { bundle, findings, warnings };
}

const readKinds: ReadonlySet<string> = new Set(['ClusterServiceVersion', 'CustomResourceDefinition']);

function getTypeFaults(manifest: Manifest, { faults }: Pick<Conformed, 'faults'>): Diagnostic[] {
  return faults.map(({ message, path }) => createFault('wrong-type', message, locateIn(manifest, path)));
}

function checkCrd(crd: Manifest, findings: Diagnostic[]): void {
  if (crd.apiVersion !== 'apiextensions.k8s.io/v1') {
    findings.push(
      createFault('unsupported', `apiVersion ${crd.apiVersion} is not supported`, {
        ...locateIn(crd, ['apiVersion']),
        hint: 'convert it to apiextensions.k8s.io/v1, the only version since Kubernetes 1.22',
      }),
    );
    return;
  }
  findings.push(...getTypeFaults(crd, conformCrd(crd)));
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
  return conformCrd(crd).value;
}

/** Returns undefined if fields have wrong types. */
function readCsv(
  manifest: Manifest,
  properties: readonly string[] | undefined,
  findings: Diagnostic[],
  warnings: Diagnostic[],
): ClusterServiceVersion | undefined {
  const conformed = conform(manifest.load(), csvStruct);
  findings.push(...getTypeFaults(manifest, conformed));
  if (conformed.faults.length > 0) return undefined;
  for (const path of conformed.dropped) {
    // The table has rendered fields only; others are dropped although known.
    if (path[0] !== 'spec' || (path[1] !== 'install' && path[1] !== 'webhookdefinitions')) continue;
    warnings.push(
      createWarning('unknown-field', 'unknown field, ignored', {
        subject: formatPath(path),
        file: manifest.file,
        line: manifest.lineOf(path),
      }),
    );
  }
  const csv = conformed.value;
  if (properties !== undefined) addProperties(csv, properties, manifest, findings);
  return csv;
}

/** Appends the properties of the bundle to those of the annotation; no properties become `null`, as upstream. */
function addProperties(
  csv: ClusterServiceVersion,
  properties: readonly string[],
  manifest: Manifest,
  findings: Diagnostic[],
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
      findings.push(
        createFault('wrong-type', `annotation ${propertiesAnnotation} is not a JSON list of properties`, {
          file: manifest.file,
          line: manifest.lineOf(['metadata', 'annotations', propertiesAnnotation]),
        }),
      );
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
  findings: Diagnostic[],
): { packageName: string; properties: string[] | undefined } {
  const annotations = readMetadataFile(files, 'annotations.yaml', 'annotations', findings);
  if (annotations === undefined) {
    if (!files.some(({ name }) => name === 'annotations.yaml')) {
      findings.push(
        createFault('missing-file', 'metadata/annotations.yaml is missing', {
          hint: `add the file, with the annotation ${bundleKeys.package}`,
        }),
      );
    }
    return { packageName: '', properties: undefined };
  }
  const packageName = getValue(annotations.value, bundleKeys.package);
  if (typeof packageName !== 'string' || packageName === '') {
    findings.push(
      createFault('missing-field', 'package name is empty', {
        file: annotations.file,
        line: annotations.line,
        hint: `set annotation ${bundleKeys.package}`,
      }),
    );
  }
  const properties = readMetadataFile(files, 'properties.yaml', 'properties', findings);
  const list = properties === undefined ? undefined : (properties.value ?? []);
  if (list !== undefined && !Array.isArray(list)) {
    const { file, line } = properties ?? {};
    findings.push(createFault('wrong-type', 'properties: expected a list', { file, line }));
  }
  return {
    packageName: getText(packageName),
    properties: Array.isArray(list) ? list.map((item) => encodeGoJson(sortKeysDeep(item))) : undefined,
  };
}

function readMetadataFile(
  files: readonly BundleFile[],
  name: string,
  key: string,
  findings: Diagnostic[],
): { value: JsonValue; file: string; line: number | undefined } | undefined {
  const content = files.find((file) => file.name === name)?.content;
  if (content === undefined) return undefined;
  const file = `metadata/${name}`;
  const { root, findings: faults, lineOf } = readPlacedMetadata(content, file);
  findings.push(...faults);
  if (root === undefined || faults.length > 0) return undefined;
  return { value: root[key] ?? null, file, line: lineOf([key]) ?? 1 };
}
