import { propertiesAnnotation } from '../../model/bundle-keys.js';
import { listNames } from '../../core/suggest.js';
import { OpmateError } from '../../core/errors.js';
import {
  type OpenShiftVersion,
  maxOpenShiftProperty,
  openShiftVersionsLabel,
  parseMaxOpenShift,
} from '../../core/openshift-version.js';
import { isInVersions } from '../../core/openshift-limits.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getObject, getText } from '../../document/json-fields.js';
import { rawElements, rawFields } from '../../document/raw-json.js';
import { getPropertyValue } from '../../model/properties.js';
import { SemverError, type Version, parseTolerantVersion } from '../../core/semver.js';
import { csvDeploymentImages, csvSpec } from '../../model/csv.js';
import { type BundleBlob, type Property, propertyTypes } from '../../model/declarative-config.js';
import { type Need, dependencyTypes, readNeed, readProvidedApi } from '../../model/dependency-needs.js';
import { detach } from '../../model/describe.js';
import type { BlobOrigin } from '../../model/facts.js';
import { findCsvText } from '../../model/migrations.js';
import type { FindingList, AddFinding } from './finding-list.js';

/** Properties of a bundle that checks of heads and of several bundles need, beyond its facts. */
export interface BundleTraits {
  /** Provided APIs, see `readProvidedApi`. */
  apis: readonly string[];
  needs: readonly { need: Need; path: (string | number)[] }[];
  /** Form of its ClusterServiceVersion. */
  csv: 'objects' | 'metadata' | 'both' | 'none';
  displayName: boolean;
  description: boolean;
  /** AllNamespaces is supported; undefined without install modes. */
  installsForAll: boolean | undefined;
  servesApis: boolean;
  /** Maximum OpenShift version. */
  maxOpenShift: OpenShiftVersion | undefined;
  minKube: Version | undefined;
  /** Valid `com.redhat.openshift.versions`. */
  openShiftVersions: string | undefined;
}

/** Bytes of a blob beyond the default message limit of gRPC clients. */
const messageLimit = 4 * 1024 * 1024;
const largeBundle = 1024 * 1024;

/** Parts of a ClusterServiceVersion, complete or as metadata. */
interface CsvParts {
  spec: JsonObject;
  annotations: JsonObject;
  /** Path for findings. */
  path: (string | number)[];
}

/** Examines one bundle. */
export function examineBundle(blob: BundleBlob, origin: BlobOrigin, findings: FindingList): BundleTraits {
  const subject = { package: detach(blob.package), bundle: detach(blob.name), origin };
  const report: AddFinding = (code, path, ...rest) => findings.add(code, { ...subject, path }, ...rest);
  examineImages(blob, report);
  examineSize(origin, report);
  if (findings.wants('property-repeated')) examineRepeated(blob.properties, report);
  const metadata = blob.properties.findIndex(({ type }) => type === propertyTypes.csvMetadata);
  const hasObjects = blob.properties.some(({ type }) => type === propertyTypes.bundleObject);
  const whole = hasObjects ? wholeCsv(blob) : undefined;
  if (whole !== undefined && findings.wants('related-image-missing')) {
    examineOperatorImages(blob, whole.spec, report);
  }
  const csv = whole ?? metadataCsv(blob, metadata);
  const { apis, needs } = readDependencies(blob, report);
  return {
    apis,
    needs,
    csv: metadata >= 0 ? (hasObjects ? 'both' : 'metadata') : hasObjects ? 'objects' : 'none',
    displayName: getText(csv?.spec['displayName']).trim() !== '',
    description: getText(csv?.spec['description']).trim() !== '',
    installsForAll: installsForAll(csv?.spec['installModes']),
    servesApis: servesApis(csv?.spec),
    maxOpenShift: readMaxOpenShift(blob, csv, report),
    minKube: readMinKube(csv, report),
    openShiftVersions: readOpenShiftVersions(blob, csv, report),
  };
}

function examineImages({ image, relatedImages }: BundleBlob, report: AddFinding): void {
  if (image === '') {
    const hint = 'push the bundle, and set image to its digest reference';
    report('bundle-image-missing', ['image'], 'bundle has no image', hint);
  } else if (!hasDigest(image)) {
    const hint = 'use a digest reference, REPOSITORY@sha256:…: tags can move, in mirrors too';
    report('bundle-image-tag', ['image'], `bundle image ${quoteGo(image)} is referenced by tag`, hint);
  }
  if (relatedImages.length > 0 && image !== '' && relatedImages.every((related) => related.image !== image)) {
    const message = 'its own image is missing from its related images';
    report('related-image-missing', ['relatedImages'], message, 'add it, as api.render does', 'notice');
  }
  const byTag = new Set<string>();
  let firstByTag = -1;
  for (const [index, related] of relatedImages.entries()) {
    if (related.image === '') {
      const name = related.name === '' ? `number ${index + 1}` : quoteGo(related.name);
      const hint = 'set the image, or remove the item';
      report('related-image-empty', ['relatedImages', index], `its related image ${name} is empty`, hint);
    } else if (related.image !== image && !hasDigest(related.image)) {
      if (firstByTag < 0) firstByTag = index;
      byTag.add(related.image);
    }
  }
  if (byTag.size === 0) return;
  const hint = 'use digest references: tags can move, and ImageDigestMirrorSets do not cover them';
  const path = ['relatedImages', firstByTag, 'image'];
  report('related-image-tag', path, listNames('related images are referenced by tag:', byTag), hint);
}

function hasDigest(image: string): boolean {
  return image.includes('@');
}

function examineSize({ length }: BlobOrigin, report: AddFinding): void {
  if (length < largeBundle) return;
  const message = `the bundle has ${(length / 1024 / 1024).toFixed(1)} MiB`;
  if (length > messageLimit) {
    const hint = 'reduce its size with api.migrateCatalog: gRPC clients receive 4 MiB by default';
    report('bundle-size', undefined, message, hint, 'warning');
  } else report('bundle-size', undefined, message, 'reduce its size with api.migrateCatalog');
}

function examineRepeated(properties: readonly Property[], report: AddFinding): void {
  const seen = new Set<string>();
  let metadata = 0;
  for (const [index, { type, value }] of properties.entries()) {
    if (type === propertyTypes.bundleObject) continue;
    const path = ['properties', index];
    if (type === propertyTypes.csvMetadata) {
      const message = `has several properties of type ${quoteGo(type)}`;
      if (++metadata > 1)
        report('property-repeated', path, message, 'keep one: servers reject two', 'warning');
      continue;
    }
    const key = `${type}\0${encodeGoJson(value)}`;
    if (seen.has(key)) {
      const message = `has a duplicate property of type ${quoteGo(type)}`;
      report('property-repeated', path, message, 'remove one of them');
    }
    seen.add(key);
  }
}

function wholeCsv(blob: BundleBlob): CsvParts | undefined {
  const text = findCsvText(blob);
  if (text === undefined) return undefined;
  const csv = JSON.parse(text) as JsonObject;
  try {
    const { metadata } = csv;
    const annotations = getObject(metadata, 'annotations');
    return { spec: csvSpec(csv), annotations, path: ['properties'] };
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

function metadataCsv(blob: BundleBlob, index: number): CsvParts | undefined {
  const value =
    blob.properties[index] === undefined ? undefined : getPropertyValue(blob.properties[index].value);
  if (!isJsonObject(value)) return undefined;
  return { spec: value, annotations: getObject(value['annotations']), path: ['properties', index, 'value'] };
}

/** Warns about images that pods use but mirrors lack, as these contain related images only. */
function examineOperatorImages(blob: BundleBlob, spec: JsonObject, report: AddFinding): void {
  const related = new Set(blob.relatedImages.map(({ image }) => image));
  let images: string[];
  try {
    images = csvDeploymentImages(spec);
  } catch (error) {
    if (error instanceof OpmateError) return;
    throw error;
  }
  const missing = images.filter((image) => image !== '' && !related.has(image));
  if (missing.length === 0) return;
  const message = listNames('its deployments run images that are missing from its related images:', missing);
  const hint = 'add them to relatedImages: mirrors contain only these';
  report('related-image-missing', ['relatedImages'], message, hint);
}

function readDependencies(
  { properties }: BundleBlob,
  report: AddFinding,
): Pick<BundleTraits, 'apis' | 'needs'> {
  const apis: string[] = [];
  const needs: { need: Need; path: (string | number)[] }[] = [];
  for (const [index, property] of properties.entries()) {
    const path = ['properties', index];
    const api = readProvidedApi(property);
    if (api !== undefined) apis.push(detach(api));
    if (!dependencyTypes.has(property.type)) continue;
    const need = readNeed(property.type, getPropertyValue(property.value));
    if (need?.kind === 'unclear' && !need.isCel) {
      const hint = 'set a package and a range, or a group, version and kind';
      report('dependency-unclear', path, `depends on ${need.text}`, hint);
    } else if (need !== undefined) needs.push({ need, path });
  }
  return { apis, needs };
}

/** Returns the maximum OpenShift version as OLM reads it; undefined without a valid one. */
function readMaxOpenShift(
  { properties }: BundleBlob,
  csv: CsvParts | undefined,
  report: AddFinding,
): OpenShiftVersion | undefined {
  const ofBundle = properties.flatMap(({ type, value }, index) =>
    type === maxOpenShiftProperty ? [{ text: encodeGoJson(value), index }] : [],
  );
  const [first] = ofBundle;
  const texts = first ? ofBundle.map(({ text }) => text) : readAnnotatedMaximum(csv);
  const [text] = texts;
  if (text === undefined) return undefined;
  const path = first ? ['properties', first.index, 'value'] : (csv?.path ?? []);
  const fail = (problem: string, hint: string): void =>
    report('max-openshift', path, `${maxOpenShiftProperty} ${text}: ${problem}`, hint);
  if (texts.length > 1) {
    fail('duplicate property: OLM blocks upgrades of the cluster', 'keep one of them');
    return undefined;
  }
  if (/^-?\d/.test(text)) fail('is a number, for which 4.1 equals 4.10', 'quote the version, such as "4.18"');
  try {
    return parseMaxOpenShift(texts);
  } catch (error) {
    if (!(error instanceof SemverError)) throw error;
    const hint = 'use a string of major and minor version, such as "4.18"';
    fail(`is not an OpenShift version: OLM blocks upgrades of the cluster: ${error.message}`, hint);
    return undefined;
  }
}

/** Returns the texts of maximum OpenShift versions in an annotation of the ClusterServiceVersion. */
function readAnnotatedMaximum(csv: CsvParts | undefined): string[] {
  const text = getText(csv?.annotations[propertiesAnnotation]);
  if (!text.includes(maxOpenShiftProperty)) return [];
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return [];
    return rawElements(text).flatMap((element) => {
      if (!element.startsWith('{')) return [];
      const fields = new Map(rawFields(element));
      const type: unknown = JSON.parse(fields.get('type') ?? 'null');
      return type === maxOpenShiftProperty ? [fields.get('value') ?? 'null'] : [];
    });
  } catch {
    // Other annotations are not checked: the property takes precedence.
    return [];
  }
}

function readMinKube(csv: CsvParts | undefined, report: AddFinding): Version | undefined {
  const text = getText(csv?.spec['minKubeVersion']);
  if (text === '') return undefined;
  try {
    return parseTolerantVersion(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const message = `minKubeVersion ${quoteGo(text)} is not a version: ${error.message}`;
    report('min-kube', csv?.path ?? [], message, 'use a version such as 1.31.0');
    return undefined;
  }
}

function readOpenShiftVersions(
  { properties }: BundleBlob,
  csv: CsvParts | undefined,
  report: AddFinding,
): string | undefined {
  const index = properties.findIndex(({ type }) => type === openShiftVersionsLabel);
  const property = properties[index];
  const label =
    property === undefined
      ? getText(csv?.annotations[openShiftVersionsLabel])
      : getText(getPropertyValue(property.value));
  if (label === '') return undefined;
  if (isInVersions(label, undefined) !== undefined) return detach(label);
  const path = property === undefined ? (csv?.path ?? []) : ['properties', index, 'value'];
  const hint = 'use v4.12, =v4.12, v4.12-v4.15 or =v4.12|>=v4.15';
  report('openshift-versions', path, `${openShiftVersionsLabel} ${quoteGo(label)} is invalid`, hint);
  return undefined;
}

function installsForAll(modes: JsonValue | undefined): boolean | undefined {
  if (!Array.isArray(modes) || modes.length === 0) return undefined;
  return modes.some(
    (mode) => isJsonObject(mode) && mode['type'] === 'AllNamespaces' && mode['supported'] === true,
  );
}

/** Returns API definitions under their name in a ClusterServiceVersion or in metadata. */
function servesApis(spec: JsonObject | undefined): boolean {
  const definitions = getObject(spec?.['apiservicedefinitions'] ?? spec?.['apiServiceDefinitions']);
  const { owned } = definitions;
  return Array.isArray(owned) && owned.length > 0;
}
