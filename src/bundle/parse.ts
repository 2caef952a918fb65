import { firstBy } from '../core/groups.js';
import { formatLocation } from '../core/diagnostic.js';
import { addContext } from '../core/diagnostics-error.js';
import { encodeGoJson, parseGoJson } from '../document/go-json.js';
import { OpmateError } from '../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { sortedByBytes } from '../core/order.js';
import {
  type ApiKey,
  csvApiServices,
  csvCustomResources,
  csvDeploymentImages,
  csvRelatedImages,
  csvRelease,
  csvSpec,
  csvVersion,
  isCsv,
  readCsvMetadata,
} from '../model/csv.js';
import {
  type BundleAnnotations,
  bundleKeys,
  propertiesAnnotation,
  toBundleAnnotations,
} from '../model/bundle-keys.js';
import { type RelatedImage, propertyTypes } from '../model/declarative-config.js';
import { objectMeta } from '../kube/meta-types.js';
import { type StructType, structList, readTyped, strings, struct } from '../kube/struct.js';
import { describeKind } from '../document/field.js';
import { locateFault, manifestText, readFirstDocument } from './manifest.js';
import { type RawProperty, getLastField, rawValue, readMetadataFiles, toTexts } from './metadata.js';
import { rawElements } from '../document/raw-json.js';
import { getText } from '../document/json-fields.js';
import type { BundleFile, BundleFiles } from './read.js';
import { splitApiVersion } from '../kube/object.js';

/** A bundle of the format registry+v1. */
export interface Bundle {
  /** Name of its ClusterServiceVersion. */
  name: string;
  /** From the annotations; may be empty. */
  packageName: string;
  channels: string[];
  defaultChannel: string;
  /** From the ClusterServiceVersion; may be empty, like `release`. */
  version: string;
  release: string;
  csv: JsonObject;
  /** Text of the ClusterServiceVersion, also one of `objects`. */
  csvText: string;
  /** Manifests as compact JSON with sorted keys, in order of file names. */
  objects: string[];
  /** Explicit and derived properties, without duplicates. */
  properties: RawProperty[];
  dependencies: RawProperty[];
  providedApis: ApiKey[];
  requiredApis: ApiKey[];
  /** Images that the ClusterServiceVersion lists. */
  relatedImages: RelatedImage[];
  /** Images of the containers of its deployments. */
  deploymentImages: string[];
  /** Manifests that do not parse or are not Kubernetes objects. */
  skippedFiles: { file: string; reason: string; line: number | undefined }[];
}

/**
 * Parses the files of a bundle by the rules of opm: reads the first document of each file, skips manifests that do not
 * parse and all ClusterServiceVersions but the first, and identifies files of `metadata/` by their content. `subject`
 * names the bundle in messages. Throws OpmateError INVALID, with the file if one is the cause.
 */
export function parseBundle(files: BundleFiles, options: { subject: string }): Bundle {
  const { subject } = options;
  const origin: Origin = { subject, files };
  const { manifests, skippedFiles } = readManifests(origin);
  if (manifests.length === 0) throw createEmptyError(subject, 'no bundle objects found', skippedFiles);
  const csvManifest = manifests.find(({ value }) => isCsv(value));
  const csvFile = csvManifest?.file ?? '';
  const parts =
    csvManifest &&
    withFile(origin, csvFile, () => {
      const { spec, ...others } = readCsvParts(csvManifest.value);
      return { ...others, owned: csvCustomResources(spec, 'owned'), release: csvRelease(spec) };
    });
  const crdApis = manifests.flatMap(({ file, value }) =>
    value['kind'] === 'CustomResourceDefinition'
      ? withFile(origin, file, () => customResourceApis(value))
      : [],
  );
  if (csvManifest === undefined || parts === undefined) {
    throw createEmptyError(subject, 'no csv in bundle', skippedFiles);
  }
  const { annotations, owned, ownedServices, ...fields } = parts;
  const { version, release } = fields;
  const providedApis = sortApis([...crdApis, ...ownedServices]);
  checkOwnedApis(subject, fields.name, owned, providedApis, csvFile);

  const metadata = readMetadata(origin);
  if (metadata.annotations === undefined) throw createAnnotationsError(subject, files.metadata);
  const { packageName, channels, defaultChannel } = metadata.annotations;
  const derived = annotatedProperties(annotations);
  if (packageName !== '') {
    const value = { packageName, version, ...(release !== '' && { release }) };
    derived.unshift({ type: propertyTypes.package, text: encodeGoJson(value, { escapeHtml: true }) });
  }
  for (const { group, kind, version: apiVersion } of providedApis) {
    const text = encodeGoJson({ group, kind, version: apiVersion }, { escapeHtml: true });
    derived.push({ type: propertyTypes.gvk, text });
  }
  const objects = manifests.map(({ file, value }) => withFile(origin, file, () => manifestText(value)));
  return {
    ...fields,
    packageName,
    channels,
    defaultChannel,
    csv: csvManifest.value,
    csvText: objects[manifests.indexOf(csvManifest)] as string,
    objects,
    properties: distinctProperties([...metadata.properties, ...distinctProperties(derived)]),
    dependencies: metadata.dependencies,
    providedApis,
    skippedFiles,
  };
}

/** Reads the fields of a ClusterServiceVersion that its bundle needs. Throws OpmateError INVALID. */
export function readCsvParts(csv: JsonObject) {
  const { name, annotations } = readCsvMetadata(csv);
  const spec = csvSpec(csv);
  return {
    name,
    annotations,
    spec,
    ownedServices: csvApiServices(spec, 'owned'),
    version: csvVersion(spec),
    requiredApis: sortApis([...csvCustomResources(spec, 'required'), ...csvApiServices(spec, 'required')]),
    relatedImages: csvRelatedImages(spec),
    deploymentImages: csvDeploymentImages(spec),
  };
}

/** A bundle in messages. */
interface Origin {
  subject: string;
  files: BundleFiles;
}

/** Runs `work` and adds the bundle, the file and, if known, the line to its errors. */
function withFile<T>(origin: Origin, file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw addFile(error, origin, file);
  }
}

function addFile(error: unknown, { subject, files }: Origin, file: string): unknown {
  if (!(error instanceof OpmateError)) return error;
  const content = files.manifests.find(({ name }) => `manifests/${name}` === file)?.content;
  return addContext(locateFault(error, file, content), { subject });
}

function readManifests(origin: Origin) {
  const manifests: { file: string; value: JsonObject }[] = [];
  const skippedFiles: Bundle['skippedFiles'] = [];
  let hasCsv = false;
  for (const { name, content } of origin.files.manifests) {
    const file = `manifests/${name}`;
    const { value, error } = readFirstDocument(content);
    if (error !== undefined) {
      if (error.code !== 'SYNTAX') throw addFile(error, origin, file);
      skippedFiles.push({ file, reason: error.message, line: error.line });
      continue;
    }
    if (!isKubernetesObject(value)) {
      const reason = value === null ? 'its first document is empty' : 'not a Kubernetes object: missing kind';
      skippedFiles.push({ file, reason, line: undefined });
      continue;
    }
    if (isCsv(value)) {
      if (hasCsv) continue;
      hasCsv = true;
    }
    manifests.push({ file, value });
  }
  return { manifests, skippedFiles };
}

/**
 * Reports whether a document is a Kubernetes object. One whose `apiVersion` has two slashes is not. (Source: unstructured
 * objects of apimachinery.)
 */
export function isKubernetesObject(value: JsonValue): value is JsonObject {
  if (!isJsonObject(value) || typeof value['kind'] !== 'string' || value['kind'] === '') return false;
  const apiVersion = value['apiVersion'];
  return typeof apiVersion !== 'string' || apiVersion.split('/').length <= 2;
}

function createEmptyError(
  subject: string,
  problem: string,
  skippedFiles: Bundle['skippedFiles'],
): OpmateError {
  const first = skippedFiles[0];
  if (first === undefined) {
    const hint = 'add the ClusterServiceVersion of the operator to manifests/';
    return new OpmateError('INVALID', problem, { subject, hint });
  }
  const { file, line, reason } = first;
  const others = skippedFiles.length > 1 ? ` (and ${skippedFiles.length - 1} more)` : '';
  const hint = `fix ${formatLocation({ file, line })}, which was skipped: ${reason}${others}`;
  return new OpmateError('INVALID', problem, { subject, hint, file, line });
}

function createAnnotationsError(subject: string, files: BundleFile[]): OpmateError {
  const names = files.map(({ name }) => name);
  const listed =
    names.length === 0 ? 'nothing' : names.slice(0, 5).join(', ') + (names.length > 5 ? ' …' : '');
  return new OpmateError('INVALID', 'Could not find annotations file', {
    subject,
    hint: `add a file with annotations such as ${bundleKeys.package} to metadata/, which contains ${listed}`,
  });
}

/** Returns the APIs of a custom resource definition; none for an unknown version of the format. */
export function customResourceApis(crd: JsonObject): ApiKey[] {
  const apiVersion = getText(crd, 'apiVersion');
  const { group: ownGroup, version: format } = splitApiVersion(apiVersion);
  if (format !== 'v1' && format !== 'v1beta1') return [];
  const fail = (problem: string, cause?: unknown): OpmateError =>
    new OpmateError('INVALID', `error decoding ${format} CRD: ${problem}`, { cause });
  if (ownGroup !== 'apiextensions.k8s.io') {
    throw fail(`no kind "CustomResourceDefinition" is registered for version ${JSON.stringify(apiVersion)}`);
  }
  try {
    const { spec } = readTyped(crd, crdHead);
    const versions = (spec.versions ?? []).map(({ name }) => name);
    if (format === 'v1beta1' && spec.version !== '') versions.push(spec.version);
    const { group, names } = spec;
    return versions.map((version) => ({ group, version, kind: names.kind, plural: names.plural }));
  } catch (error) {
    throw error instanceof OpmateError ? fail(error.message, error) : error;
  }
}

/** Fields of a definition of either version that determine its APIs. */
const crdHead = struct({
  metadata: objectMeta,
  status: struct({}),
  spec: struct({
    group: 'string',
    version: 'string',
    scope: 'string',
    names: struct({
      kind: 'string',
      plural: 'string',
      singular: 'string',
      listKind: 'string',
      shortNames: strings,
      categories: strings,
    }),
    versions: structList({ name: 'string', served: 'bool', storage: 'bool', deprecated: 'bool' }),
  }),
});

/** Throws OpmateError INVALID for the first owned API of a ClusterServiceVersion without definition. */
export function checkOwnedApis(
  subject: string,
  name: string,
  owned: ApiKey[],
  provided: ApiKey[],
  file: string,
): void {
  const shown = new Set(provided.map(showApi));
  const missing = sortedByBytes(owned.map(showApi)).find((api) => !shown.has(api));
  if (missing === undefined) return;
  const list = sortApis(provided)
    .map((api) => `${showApi(api)}:{}`)
    .join(' ');
  const problem = `couldn't find ${missing} in bundle. found: map[${list}]`;
  throw new OpmateError('INVALID', `error checking provided apis in bundle ${name}: ${problem}`, {
    subject,
    file,
    hint: `add the definition to manifests/, or fix spec.customresourcedefinitions.owned in ${file}`,
  });
}

function showApi({ group, version, kind, plural }: ApiKey): string {
  return `${group}/${version}/${kind} (${plural})`;
}

/** Returns APIs without duplicates, in the order in which Go prints a map of them. */
export function sortApis(apis: ApiKey[]): ApiKey[] {
  const key = ({ group, version, kind, plural }: ApiKey): string => [group, version, kind, plural].join('\0');
  const byKey = new Map(apis.map((api) => [key(api), api]));
  return sortedByBytes(byKey.keys()).map((text) => byKey.get(text) as ApiKey);
}

/** Reads annotations, dependencies and properties, each from the first file that has them. */
function readMetadata(origin: Origin) {
  let annotations: BundleAnnotations | undefined;
  let dependencies: RawProperty[] = [];
  let properties: RawProperty[] = [];
  for (const { file, error, ...part } of readMetadataFiles(origin.files.metadata)) {
    if (error !== undefined && error.code !== 'SYNTAX') throw addFile(error, origin, file);
    annotations ??= part.annotations && readAnnotations(part.annotations);
    if (dependencies.length === 0) dependencies = part.dependencies;
    if (properties.length === 0) properties = part.properties;
  }
  return { annotations, dependencies, properties };
}

function readAnnotations(annotations: JsonObject): BundleAnnotations | undefined {
  const keys = [bundleKeys.package, bundleKeys.channels, bundleKeys.defaultChannel];
  const texts = toTexts(keys.map((key) => [key, getLastField(annotations, key)]));
  const isEmpty = texts === undefined || [...texts.values()].every((text) => text === '');
  return isEmpty ? undefined : toBundleAnnotations(texts);
}

/** Returns the properties in the annotation of a ClusterServiceVersion; ignores an invalid list, as opm does. */
export function annotatedProperties(annotations: JsonObject): RawProperty[] {
  const text = annotations[propertiesAnnotation];
  if (typeof text !== 'string') return [];
  let list: JsonValue;
  try {
    list = parseGoJson(text);
  } catch (error) {
    if (error instanceof OpmateError) return [];
    throw error;
  }
  if (!Array.isArray(list)) return [];
  return rawElements(text).map((element, index) => {
    const item = list[index];
    if (!isJsonObject(item)) return { type: '', text: undefined };
    return { type: getText(getLastField(item, 'type')), text: rawValue(element) };
  });
}

function distinctProperties(properties: RawProperty[]): RawProperty[] {
  return [...firstBy(properties, ({ type, text = '' }) => `${type}\0${text}`).values()];
}

/** Types of the values of properties, by the names of their string fields. */
const propertyTypesByFields = new Map<string, StructType<Record<string, 'string'>>>();

/** Reads string fields of the value of a property. Throws OpmateError INVALID. */
export function propertyFields(property: RawProperty, fields: readonly string[]): Record<string, string> {
  const names = fields.join();
  const type =
    propertyTypesByFields.get(names) ??
    struct<Record<string, 'string'>>(Object.fromEntries(fields.map((field) => [field, 'string'])));
  propertyTypesByFields.set(names, type);
  if (property.text === undefined) throw new OpmateError('INVALID', 'value: not found');
  const value = parseGoJson(property.text);
  if (value !== null && !isJsonObject(value)) {
    throw new OpmateError('INVALID', `value: expected an object, got ${describeKind(value)}`);
  }
  return readTyped(value, type, { path: ['value'], foldNames: true });
}

/** Maximum bytes of manifests that are not reduced. */
const maxKept = 32 * 1024 * 1024;
const smallFile = 64 * 1024;

/**
 * Reduces large objects of a large bundle to apiVersion, kind and metadata, except ClusterServiceVersions and custom
 * resource definitions, for readers that keep every object in memory. Lines within reduced objects are lost.
 */
export function withoutBodies(files: BundleFiles): BundleFiles {
  const size = files.manifests.reduce((sum, { content }) => sum + content.length, 0);
  return size <= maxKept ? files : { ...files, manifests: files.manifests.map(withoutBody) };
}

function withoutBody(file: BundleFile): BundleFile {
  if (file.content.length <= smallFile) return file;
  const { value = null } = readFirstDocument(file.content);
  if (!isKubernetesObject(value) || isCsv(value) || value['kind'] === 'CustomResourceDefinition') return file;
  const { apiVersion = null, kind = null, metadata = null } = value;
  return { name: file.name, content: Buffer.from(encodeGoJson({ apiVersion, kind, metadata })) };
}
