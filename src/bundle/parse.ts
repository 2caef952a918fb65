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
import { structList, readTyped, strings, struct } from '../kube/struct.js';
import { describeKind } from '../document/field.js';
import { locateFault, manifestText, readFirstDocument } from './manifest.js';
import { type RawProperty, getField, rawValue, readMetadataFiles, toTexts } from './metadata.js';
import { rawElements } from '../document/raw-json.js';
import { getText } from '../document/json-fields.js';
import type { BundleFile, BundleFiles } from './read.js';
import { splitApiVersion } from '../kube/object.js';

/** A bundle of the format registry+v1. */
export interface Bundle {
  /** The name of its ClusterServiceVersion. */
  name: string;
  /** From the annotations, which may leave it empty. */
  packageName: string;
  channels: string[];
  defaultChannel: string;
  /** As its ClusterServiceVersion has them; may be empty. */
  version: string;
  release: string;
  /** The ClusterServiceVersion, and its text, which is also one of `objects`. */
  csv: JsonObject;
  csvText: string;
  /** Every manifest as compact JSON with sorted keys, in order of the file names. */
  objects: string[];
  /** Given and derived properties, each once. */
  properties: RawProperty[];
  dependencies: RawProperty[];
  providedApis: ApiKey[];
  requiredApis: ApiKey[];
  /** As the ClusterServiceVersion lists them. */
  relatedImages: RelatedImage[];
  /** Images of the containers of its deployments. */
  deploymentImages: string[];
  /** Manifests that were passed over because they do not parse or are no Kubernetes objects. */
  skippedFiles: SkippedFile[];
}

interface SkippedFile {
  file: string;
  reason: string;
  line: number | undefined;
}

/** A manifest with the file it came from. */
interface ParsedManifest {
  file: string;
  value: JsonObject;
}

/**
 * Makes a bundle of its files, by the rules of upstream: of each file the first document counts; a file in
 * `manifests/` that does not parse is passed over, and so is every ClusterServiceVersion after the first;
 * the files in `metadata/` are known by what is in them. `subject` names the bundle in messages. Throws
 * OpmateError INVALID, with the file where one is at fault.
 */
export function parseBundle(files: BundleFiles, options: { subject: string }): Bundle {
  const { subject } = options;
  const origin: Origin = { subject, files };
  const { manifests, skippedFiles } = readManifests(origin);
  if (manifests.length === 0) throw nothingFound(subject, 'no bundle objects found', skippedFiles);
  const csvManifest = manifests.find(({ value }) => isCsv(value));
  const csvFile = csvManifest?.file ?? '';
  const parts =
    csvManifest &&
    blaming(origin, csvFile, () => {
      const { spec, ...others } = readCsvParts(csvManifest.value);
      return { ...others, owned: csvCustomResources(spec, 'owned'), release: csvRelease(spec) };
    });
  const crdApis = manifests.flatMap(({ file, value }) =>
    value['kind'] === 'CustomResourceDefinition'
      ? blaming(origin, file, () => customResourceApis(value))
      : [],
  );
  if (csvManifest === undefined || parts === undefined) {
    throw nothingFound(subject, 'no csv in bundle', skippedFiles);
  }
  const { annotations, owned, ownedServices, ...fields } = parts;
  const { version, release } = fields;
  const providedApis = sortApis([...crdApis, ...ownedServices]);
  checkOwnedApis(subject, fields.name, owned, providedApis, csvFile);

  const metadata = readMetadata(origin);
  if (metadata.annotations === undefined) throw annotationsMissing(subject, files.metadata);
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
  const objects = manifests.map(({ file, value }) => blaming(origin, file, () => manifestText(value)));
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

/** What a bundle takes from its ClusterServiceVersion. */
interface CsvParts extends Pick<
  Bundle,
  'name' | 'version' | 'requiredApis' | 'relatedImages' | 'deploymentImages'
> {
  annotations: JsonObject;
  spec: JsonObject;
  ownedServices: ApiKey[];
}

/** Reads what a bundle takes from its ClusterServiceVersion. Throws OpmateError INVALID. */
export function readCsvParts(csv: JsonObject): CsvParts {
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

/** What messages about a bundle need. */
interface Origin {
  subject: string;
  files: BundleFiles;
}

/** Runs `work`; a fault that it finds is reported with the bundle, the file and, if known, the line. */
function blaming<T>(origin: Origin, file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw blamed(error, origin, file);
  }
}

function blamed(error: unknown, { subject, files }: Origin, file: string): unknown {
  if (!(error instanceof OpmateError)) return error;
  const content = files.manifests.find(({ name }) => `manifests/${name}` === file)?.content;
  return addContext(locateFault(error, file, content), { subject });
}

function readManifests(origin: Origin): { manifests: ParsedManifest[]; skippedFiles: SkippedFile[] } {
  const manifests: ParsedManifest[] = [];
  const skippedFiles: SkippedFile[] = [];
  let csvFound = false;
  for (const { name, content } of origin.files.manifests) {
    const file = `manifests/${name}`;
    const { value, error } = readFirstDocument(content);
    if (error !== undefined) {
      if (error.code !== 'SYNTAX') throw blamed(error, origin, file);
      skippedFiles.push({ file, reason: error.message, line: error.line });
      continue;
    }
    if (!isKubernetesObject(value)) {
      const reason = value === null ? 'its first document is empty' : 'no Kubernetes object (it has no kind)';
      skippedFiles.push({ file, reason, line: undefined });
      continue;
    }
    if (isCsv(value)) {
      if (csvFound) continue;
      csvFound = true;
    }
    manifests.push({ file, value });
  }
  return { manifests, skippedFiles };
}

/**
 * Whether a document is a Kubernetes object. An `apiVersion` with two slashes hides the kind too. (Source:
 * apimachinery's unstructured objects.)
 */
export function isKubernetesObject(value: JsonValue): value is JsonObject {
  if (!isJsonObject(value) || typeof value['kind'] !== 'string' || value['kind'] === '') return false;
  const apiVersion = value['apiVersion'];
  return typeof apiVersion !== 'string' || apiVersion.split('/').length <= 2;
}

function nothingFound(subject: string, problem: string, skippedFiles: SkippedFile[]): OpmateError {
  const first = skippedFiles[0];
  if (first === undefined) {
    const hint = 'add the ClusterServiceVersion of the operator to manifests/';
    return new OpmateError('INVALID', problem, { subject, hint });
  }
  const where = first.line === undefined ? first.file : `${first.file}:${first.line}`;
  const others = skippedFiles.length > 1 ? ` (and ${skippedFiles.length - 1} more)` : '';
  return new OpmateError('INVALID', problem, {
    subject,
    hint: `fix ${where}, which was skipped: ${first.reason}${others}`,
    file: first.file,
    line: first.line,
  });
}

function annotationsMissing(subject: string, files: BundleFile[]): OpmateError {
  const names = files.map(({ name }) => name);
  const listed =
    names.length === 0 ? 'nothing' : names.slice(0, 5).join(', ') + (names.length > 5 ? ' …' : '');
  return new OpmateError('INVALID', 'Could not find annotations file', {
    subject,
    hint: `add a file with annotations such as ${bundleKeys.package} to metadata/, which contains ${listed}`,
  });
}

/** The APIs that a custom resource definition serves; none for a version of the format that is not known. */
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

/** What of a definition decides which APIs it serves, in either form. */
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

/** Throws OpmateError INVALID for the first API that a CSV says to own and that nothing defines. */
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
  throw new OpmateError(
    'INVALID',
    `error checking provided apis in bundle ${name}: ` +
      `couldn't find ${missing} in bundle. found: map[${list}]`,
    {
      subject,
      file,
      hint: `add the definition to manifests/, or fix spec.customresourcedefinitions.owned in ${file}`,
    },
  );
}

function showApi({ group, version, kind, plural }: ApiKey): string {
  return `${group}/${version}/${kind} (${plural})`;
}

/** Each API once, in the order in which Go prints a map of them. */
export function sortApis(apis: ApiKey[]): ApiKey[] {
  const key = ({ group, version, kind, plural }: ApiKey): string => [group, version, kind, plural].join('\0');
  const byKey = new Map(apis.map((api) => [key(api), api]));
  return sortedByBytes(byKey.keys()).map((text) => byKey.get(text) as ApiKey);
}

/** What the files of `metadata/` say; for each role the first file that has something to say. */
function readMetadata(origin: Origin): {
  annotations: BundleAnnotations | undefined;
  dependencies: RawProperty[];
  properties: RawProperty[];
} {
  let annotations: BundleAnnotations | undefined;
  let dependencies: RawProperty[] = [];
  let properties: RawProperty[] = [];
  for (const { file, error, ...part } of readMetadataFiles(origin.files.metadata)) {
    if (error !== undefined && error.code !== 'SYNTAX') throw blamed(error, origin, file);
    annotations ??= part.annotations && annotationsIn(part.annotations);
    if (dependencies.length === 0) dependencies = part.dependencies;
    if (properties.length === 0) properties = part.properties;
  }
  return { annotations, dependencies, properties };
}

function annotationsIn(annotations: JsonObject): BundleAnnotations | undefined {
  const keys = [bundleKeys.package, bundleKeys.channels, bundleKeys.defaultChannel];
  const texts = toTexts(keys.map((key) => [key, getField(annotations, key)]));
  const isEmpty = texts === undefined || [...texts.values()].every((text) => text === '');
  return isEmpty ? undefined : toBundleAnnotations(texts);
}

/**
 * The properties in the annotation of a ClusterServiceVersion. Upstream only warns when they do not parse,
 * and keeps what it could read.
 */
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
    const type = getField(item, 'type');
    return { type: getText(type), text: rawValue(element) };
  });
}

function distinctProperties(properties: RawProperty[]): RawProperty[] {
  const seen = new Set<string>();
  return properties.filter(({ type, text }) => {
    const key = `${type}\0${text ?? ''}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Reads the value of a property as a flat record of strings; other fields are dropped. */
export function propertyFields(property: RawProperty, fields: readonly string[]): Record<string, string> {
  const type = struct(Object.fromEntries(fields.map((field) => [field, 'string' as const])));
  if (property.text === undefined) throw new OpmateError('INVALID', 'value: not found');
  const value = parseGoJson(property.text);
  if (value !== null && !isJsonObject(value)) {
    throw new OpmateError('INVALID', `value: expected an object, got ${describeKind(value)}`);
  }
  return readTyped(value, type, { path: ['value'], foldNames: true }) as Record<string, string>;
}
