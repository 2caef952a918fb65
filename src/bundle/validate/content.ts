import { splitApiVersion } from '../../kube/object.js';
import { OpmateError } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { TypeMismatchError, conform, readTyped, struct } from '../../kube/struct.js';
import { objectMeta } from '../../kube/meta-types.js';
import { supportedKinds } from '../plain/registry-v1/supported-kinds.js';
import { describeKind } from '../../document/field.js';
import { csvRelease } from '../../model/csv.js';
import { quoteGo } from '../../document/go-json.js';
import { getText } from '../../document/json-fields.js';
import { readFirstDocument } from '../manifest.js';
import { isKubernetesObject } from '../parse.js';
import type { BundleFile } from '../read.js';
import { type DefinedResources, checkCrd } from './crd.js';
import { type Csv, apiDefinitions } from '../../kube/csv-types.js';
import { checkCsv } from './csv.js';
import type { BundleAnnotations, MediaType } from '../../model/bundle-keys.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { type CheckDiagnostic, errorAt, warningAt } from './diagnostic.js';
import { objectMetaFaults } from './object-meta.js';

/** The first document of a manifest. */
export interface BundleObject {
  file: string;
  value: JsonObject;
  apiVersion: string;
  /** Group of `apiVersion`; empty for the core group. */
  group: string;
  version: string;
  kind: string;
  name: string;
}

/** Input of validators. */
export interface BundleContent {
  /** Name of the ClusterServiceVersion; empty if unreadable. */
  name: string;
  csv: Csv | undefined;
  /** Manifest of `csv`. */
  csvObject: BundleObject | undefined;
  objects: BundleObject[];
  crds: (DefinedResources & { file: string })[];
  /** `crds` lacks definitions that cannot be read. */
  isIncomplete: boolean;
  format: BundleAnnotations;
  /** Content of each file. */
  files: readonly Buffer[];
}

function readObject(file: string, content: Buffer): BundleObject | CheckDiagnostic {
  const { value, error } = readFirstDocument(content);
  if (error !== undefined) {
    if (error.code !== 'SYNTAX') throw error;
    return { severity: 'error', problem: error.message, file, line: error.line };
  }
  if (value !== null && !isJsonObject(value)) {
    const problem = `expected an object of Kubernetes, got ${describeKind(value)}`;
    return { severity: 'error', problem, file };
  }
  const apiVersion = getText(value, 'apiVersion');
  if (!isKubernetesObject(value)) {
    const reason = apiVersion.split('/').length > 2 ? ': apiVersion has more than one slash' : '';
    return { ...errorAt(['kind'], `Object 'Kind' is missing${reason}`), file };
  }
  const name = getText(value, 'metadata', 'name');
  const kind = value['kind'] as string;
  return {
    file,
    value: kind === 'ConfigMap' || kind === 'Secret' ? getHead(value) : value,
    apiVersion,
    ...splitApiVersion(apiVersion),
    kind,
    name,
  };
}

/** Drops data, which no validator needs, to save memory. */
function getHead({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  return {
    ...(apiVersion !== undefined && { apiVersion }),
    ...(kind !== undefined && { kind }),
    ...(metadata !== undefined && { metadata }),
  };
}

function isObject(read: BundleObject | CheckDiagnostic): read is BundleObject {
  return 'value' in read;
}

const csvKind = 'ClusterServiceVersion';
const crdKind = 'CustomResourceDefinition';

/** Returns the media type of objects other than charts. */
export function detectMediaType(objects: readonly BundleObject[]): MediaType {
  return objects.some(({ kind }) => kind === csvKind) ? 'registry+v1' : 'plain';
}

/** Upstream's warning about definitions of v1beta1. */
const oldCrdWarning =
  'GroupVersionKind apiextensions.k8s.io/v1beta1, Kind=CustomResourceDefinition was deprecated in Kubernetes ' +
  '1.16+, removed in 1.22. Supportfor apiextensions.k8s.io/v1beta1 CustomResourceDefinitions will be removed in ' +
  'the future in favor of apiextensions.k8s.io/v1 CustomResourceDefinitions.';

/**
 * Checks every object of a bundle, and that the ClusterServiceVersion owns the definitions; adds what it reads to
 * `content`. (Source: operator-registry, pkg/lib/bundle and pkg/lib/validation.)
 */
export function checkContent(content: BundleContent, mediaType: MediaType): Diagnostic[] {
  const faults: Diagnostic[] = [];
  for (const object of content.objects) {
    const tell = (code: string, diagnostics: readonly CheckDiagnostic[]): void => {
      for (const fault of diagnostics) faults.push({ file: object.file, ...fault, code });
    };
    const { kind, value } = object;
    const isKnown = kind === csvKind || kind === crdKind || supportedKinds.has(kind);
    if (mediaType === 'registry+v1' && !isKnown) {
      const message = `${kind} is not supported type for registryV1 bundle: ${object.file}`;
      tell('manifests', [errorAt(['kind'], message)]);
    } else if (kind === csvKind) {
      const { faults: diagnostics, csv } = checkCsv(value);
      tell('csv', diagnostics);
      if (content.csvObject !== undefined) {
        const message = `another ClusterServiceVersion; ${content.csvObject.file} has one already`;
        tell('csv', [warningAt(['kind'], message)]);
      } else {
        content.csvObject = object;
        content.csv = csv;
        content.name = csv?.metadata.name ?? '';
      }
    } else if (kind === crdKind) {
      if (
        object.apiVersion !== 'apiextensions.k8s.io/v1' &&
        object.apiVersion !== 'apiextensions.k8s.io/v1beta1'
      ) {
        const message = `Unsupported api version of CRD: ${object.apiVersion}`;
        tell('crd', [errorAt(['apiVersion'], message)]);
        if (object.version === 'v1' || object.version === 'v1beta1') content.isIncomplete = true;
        continue;
      }
      const { faults: diagnostics, defined } = checkCrd(value);
      tell('crd', diagnostics);
      if (object.version === 'v1beta1') tell('crd', [warningAt(['apiVersion'], oldCrdWarning)]);
      if (defined === undefined) content.isIncomplete = true;
      else content.crds.push({ ...defined, file: object.file });
    } else tell('manifests', metadataFaults(value));
  }
  const { csv, csvObject } = content;
  // Unreadable objects are reported above, and ownership is then unknown.
  if (csv !== undefined && csvObject !== undefined && !content.isIncomplete) {
    for (const fault of ownershipFaults(content, csv, csvObject.value)) {
      faults.push({ file: csvObject.file, ...fault, code: 'bundle' });
    }
  }
  return faults;
}

const metaStruct = struct({ 'kind?': 'string', 'apiVersion?': 'string', 'metadata?': objectMeta });

function metadataFaults(object: JsonObject): CheckDiagnostic[] {
  const conformed = conform(object, metaStruct);
  if (conformed.faults.length > 0) {
    return conformed.faults.map(({ message, path }) => errorAt(path, message));
  }
  const { metadata } = conformed.value;
  return objectMetaFaults(metadata).map((fault) => ({
    ...fault,
    problem: `error validating object metadata: ${fault.problem}`,
  }));
}

/** Compares owned definitions with those of the bundle. */
function ownershipFaults(content: BundleContent, csv: Csv, manifest: JsonObject): CheckDiagnostic[] {
  const spec = manifest['spec'] ?? null;
  const location = ['spec', 'customresourcedefinitions'];
  if (!isJsonObject(spec)) {
    return spec === null && Object.hasOwn(manifest, 'spec')
      ? []
      : [errorAt(['spec'], 'error getting CSV CRDs: spec is missing')];
  }
  let owned;
  try {
    const definitions = spec['customresourcedefinitions'];
    owned = readTyped(definitions, apiDefinitions, { path: location, foldNames: true }).owned ?? [];
  } catch (error) {
    if (!(error instanceof TypeMismatchError)) throw error;
    return [errorAt(error.path, `error getting CSV CRDs: ${error.message}`)];
  }
  const faults: CheckDiagnostic[] = [];
  const toKey = (name: string, version: string, kind: string): string => [name, version, kind].join('\0');
  const unowned = new Map<string, { name: string; version: string; file: string }>();
  for (const { name, versions, kind, file } of content.crds) {
    for (const version of versions) unowned.set(toKey(name, version, kind), { name, version, file });
  }
  for (const [index, { group, kind, name, version }] of owned.entries()) {
    const key = toKey(name, version, kind);
    // Upstream's keys of definitions lack the group, so that an owned one with a group is never found.
    if (group === '' && unowned.delete(key)) continue;
    const shown = name === '' ? `${group}/${version} ${kind}` : `${name}/${version}`;
    const message = `owned CRD ${shown} not found in bundle ${quoteGo(content.name)}`;
    faults.push(errorAt([...location, 'owned', index], message));
  }
  for (const { name, version, file } of unowned.values()) {
    const message = `CRD ${name}/${version} is present in bundle ${quoteGo(content.name)} but not defined in CSV`;
    faults.push({ ...warningAt(['spec', 'versions'], message), file });
  }
  try {
    const release = csvRelease(spec);
    const substitutes = csv.metadata.annotations?.['olm.substitutesFor'] ?? '';
    if (release !== '' && substitutes !== '') {
      const message =
        `bundle ${quoteGo(content.name)} cannot have both a release version (${quoteGo(release)}) and ` +
        `olm.substitutesFor annotation (${quoteGo(substitutes)})`;
      faults.push(errorAt(['spec', 'release'], message));
    }
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
  }
  return faults;
}

/** Reads the objects in `manifests/`; other files are faults. */
export function readObjects(files: readonly BundleFile[]): {
  objects: BundleObject[];
  faults: CheckDiagnostic[];
} {
  const read = files.map(({ name, content }) => readObject(`manifests/${name}`, content));
  return {
    objects: read.filter(isObject),
    faults: read.filter((item) => !isObject(item)) as CheckDiagnostic[],
  };
}
