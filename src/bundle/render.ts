import { addContext } from '../core/diagnostics-error.js';
import { encodeGoJson, quoteGo } from '../document/go-json.js';
import { OpmateError } from '../core/errors.js';
import { type EncodableJson, type JsonObject, RawJson } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import {
  type BundleBlob,
  type Property,
  type RelatedImage,
  propertyTypes,
  schemas,
} from '../model/declarative-config.js';
import { migrateBundle } from '../model/migrations.js';
import type { ImageTemplate } from './image-template.js';
import type { RawProperty } from './metadata.js';
import { type Bundle, parseBundle, propertyFields } from './parse.js';
import type { BundleFiles } from './read.js';

/** A property with its sort key. */
interface SortableProperty {
  type: string;
  text: string;
  value: EncodableJson;
}

/**
 * Returns the `olm.bundle` blob of a bundle. Properties are sorted by type and text, with encoded manifests last;
 * related images by image. `image` is empty for a bundle outside of registries. Throws OpmateError INVALID for a
 * property with an invalid value.
 */
function renderBundle(bundle: Bundle, options: { image: string; subject?: string }): BundleBlob {
  const { image } = options;
  const objects = bundle.objects.map((text) => Buffer.from(text, 'utf8').toString('base64'));
  // For ASCII the built-in order is byte order, and much faster.
  objects.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const encoded = objects.map((data) => ({ type: propertyTypes.bundleObject, value: { data } }));
  const [others, encodedObjects] = sortedProperties(bundle, options.subject ?? bundle.name);
  return {
    schema: schemas.bundle,
    name: bundle.name,
    package: bundle.packageName,
    image,
    properties: [...others, ...mergeObjects(encoded, encodedObjects)],
    relatedImages: relatedImages(bundle, image),
  };
}

/** Sorts encoded manifests together with properties of these types from the metadata. */
function mergeObjects(encoded: Property[], objects: SortableProperty[]): Property[] {
  if (objects.length === 0) return encoded;
  const all = encoded.map(({ type, value }) => ({ type, value, text: encodeGoJson(value) })).concat(objects);
  return all.sort(compareProperties).map(({ type, value }) => ({ type, value }));
}

function compareProperties(a: SortableProperty, b: SortableProperty): number {
  return compareBytes(a.type, b.type) || compareBytes(a.text, b.text);
}

function sortedProperties(bundle: Bundle, subject: string): [Property[], SortableProperty[]] {
  const all: SortableProperty[] = [];
  const gvks = new Map<string, JsonObject>();
  const requiredGvks = new Map<string, JsonObject>();
  let packageValue: JsonObject | undefined;
  bundle.properties.forEach((property, index) => {
    if (property.type === propertyTypes.gvk) {
      addGvk(gvks, getFields(property, index, ['group', 'kind', 'version'], subject));
    } else if (property.type === propertyTypes.package) {
      const fields = getFields(property, index, ['packageName', 'version', 'release'], subject);
      const { packageName = '', version = '', release = '' } = fields;
      packageValue = toPackageValue(packageName, version, release);
    } else all.push(opaque(property));
  });
  bundle.dependencies.forEach((dependency, index) => {
    if (dependency.type === propertyTypes.gvk) {
      addGvk(requiredGvks, getFields(dependency, index, ['group', 'kind', 'version'], subject));
    } else if (dependency.type === propertyTypes.package) {
      const fields = getFields(dependency, index, ['packageName', 'version'], subject);
      const { packageName = '', version = '' } = fields;
      all.push(typed(propertyTypes.packageRequired, { packageName, versionRange: version }));
    } else all.push(opaque(dependency));
  });
  for (const api of bundle.providedApis) addGvk(gvks, api);
  for (const api of bundle.requiredApis) addGvk(requiredGvks, api);
  packageValue ??= toPackageValue(bundle.packageName, bundle.version, bundle.release);
  all.push(typed(propertyTypes.package, packageValue));
  for (const value of gvks.values()) all.push(typed(propertyTypes.gvk, value));
  for (const value of requiredGvks.values()) all.push(typed(propertyTypes.gvkRequired, value));
  all.sort(compareProperties);
  const isLast = ({ type }: SortableProperty): boolean =>
    type === propertyTypes.bundleObject || type === propertyTypes.csvMetadata;
  const others = all.filter((property) => !isLast(property)).map(({ type, value }) => ({ type, value }));
  return [others, all.filter(isLast)];
}

function getFields(
  property: RawProperty,
  index: number,
  fields: readonly string[],
  subject: string,
): Record<string, string> {
  try {
    return propertyFields(property, fields);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const action = `parse property[${index}] of type ${quoteGo(property.type)}`;
    throw addContext(addContext(error, { subject: action }), {
      subject,
      hint: 'fix it in metadata/, or in the olm.properties annotation of the ClusterServiceVersion',
    });
  }
}

function addGvk(
  set: Map<string, JsonObject>,
  api: { group?: string; kind?: string; version?: string },
): void {
  const value = { group: api.group ?? '', kind: api.kind ?? '', version: api.version ?? '' };
  set.set(`${value.group}\0${value.kind}\0${value.version}`, value);
}

function toPackageValue(packageName: string, version: string, release: string): JsonObject {
  return { packageName, version, ...(release !== '' && { release }) };
}

function typed(type: string, value: JsonObject): SortableProperty {
  return { type, value, text: encodeGoJson(value) };
}

function opaque({ type, text }: RawProperty): SortableProperty {
  return { type, text: text ?? '', value: text === undefined ? null : new RawJson(text) };
}

/**
 * Returns the images of a bundle, sorted by image: those that its ClusterServiceVersion lists, repeated ones included,
 * its own, and those of its deployments.
 */
function relatedImages(bundle: Bundle, image: string): RelatedImage[] {
  const images = bundle.relatedImages.map(({ name, image: ref }) => ({ name, image: ref }));
  const listed = new Set(images.map((related) => related.image));
  if (image !== '' && !listed.has(image)) images.push({ name: '', image });
  for (const ref of bundle.deploymentImages) {
    if (!listed.has(ref)) images.push({ name: '', image: ref });
  }
  return images.sort((a, b) => compareBytes(a.image, b.image));
}

export interface RenderBundleOptions {
  /** Name of the bundle in messages: its directory or image. */
  subject: string;
  /** Pull specification of a bundle from an image. */
  image?: string | undefined;
  /** Creates the pull specification of a bundle from a directory. */
  imageTemplate?: ImageTemplate | undefined;
  /** Level of migrations; none by default. */
  migrateLevel?: string | undefined;
}

/**
 * Parses, renders and migrates a bundle. Throws the errors of `parseBundle` and `migrateBundle`, and OpmateError
 * INVALID for invalid properties and if the template fails.
 */
export function renderBundleFiles(files: BundleFiles, options: RenderBundleOptions): BundleBlob {
  const { subject } = options;
  const bundle = parseBundle(files, { subject });
  const image = options.imageTemplate
    ? getImage(bundle, options.imageTemplate, subject)
    : (options.image ?? '');
  const blob = renderBundle(bundle, { image, subject });
  return options.migrateLevel === undefined
    ? blob
    : migrateBundle(blob, options.migrateLevel, bundle.csvText);
}

function getImage(bundle: Bundle, template: ImageTemplate, subject: string): string {
  try {
    const property = bundle.properties.find(({ type }) => type === propertyTypes.package);
    const version = property === undefined ? '' : (propertyFields(property, ['version'])['version'] ?? '');
    return template({ Package: bundle.packageName, Name: bundle.name, Version: version });
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw addContext(error, {
      subject: `failed templating image reference from bundle for ${quoteGo(subject)}`,
    });
  }
}
