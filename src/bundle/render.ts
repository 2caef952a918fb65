import { inContext } from '../core/diagnostics-error.js';
import { encodeGoJson, quoteGo } from '../document/go-json.js';
import { type EncodableJson, type JsonObject, RawJson } from '../document/json.js';
import { compareBytes, sortLikeGo } from '../core/order.js';
import {
  type BundleBlob,
  type Property,
  type RelatedImage,
  propertyTypes,
  schemas,
} from '../model/declarative-config.js';
import type { ApiKey } from '../model/csv.js';
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
function renderBundle(bundle: Bundle, image: string, subject: string): BundleBlob {
  const objects = bundle.objects.map((text) => Buffer.from(text, 'utf8').toString('base64'));
  // For ASCII the built-in order is byte order, and much faster.
  objects.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  const encoded = objects.map((data) => ({ type: propertyTypes.bundleObject, value: { data } }));
  const [others, encodedObjects] = sortedProperties(bundle, subject);
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
  const typed = (type: string, value: JsonObject): number =>
    all.push({ type, value, text: encodeGoJson(value) });
  const opaque = ({ type, text }: RawProperty): number =>
    all.push({ type, text: text ?? '', value: text === undefined ? null : new RawJson(text) });
  const gvks = new Map<string, JsonObject>();
  const requiredGvks = new Map<string, JsonObject>();
  let packageValue: JsonObject | undefined;
  for (const [index, property] of bundle.properties.entries()) {
    if (property.type === propertyTypes.gvk) {
      addGvk(gvks, getFields(property, index, ['group', 'kind', 'version'], subject));
    } else if (property.type === propertyTypes.package) {
      packageValue = toPackageValue(
        getFields(property, index, ['packageName', 'version', 'release'], subject),
      );
    } else opaque(property);
  }
  for (const [index, dependency] of bundle.dependencies.entries()) {
    if (dependency.type === propertyTypes.gvk) {
      addGvk(requiredGvks, getFields(dependency, index, ['group', 'kind', 'version'], subject));
    } else if (dependency.type === propertyTypes.package) {
      const fields = getFields(dependency, index, ['packageName', 'version'], subject);
      const { packageName = '', version: versionRange = '' } = fields;
      typed(propertyTypes.packageRequired, { packageName, versionRange });
    } else opaque(dependency);
  }
  for (const api of bundle.providedApis) addGvk(gvks, api);
  for (const api of bundle.requiredApis) addGvk(requiredGvks, api);
  typed(propertyTypes.package, packageValue ?? toPackageValue(bundle));
  for (const value of gvks.values()) typed(propertyTypes.gvk, value);
  for (const value of requiredGvks.values()) typed(propertyTypes.gvkRequired, value);
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
  const hint = 'fix it in metadata/, or in the olm.properties annotation of the ClusterServiceVersion';
  const action = `parse property[${index}] of type ${quoteGo(property.type)}`;
  return inContext({ subject, hint }, () =>
    inContext({ subject: action }, () => propertyFields(property, fields)),
  );
}

function addGvk(
  set: Map<string, JsonObject>,
  { group = '', kind = '', version = '' }: Partial<ApiKey>,
): void {
  set.set(`${group}\0${kind}\0${version}`, { group, kind, version });
}

type PackageFields = Partial<Pick<Bundle, 'packageName' | 'version' | 'release'>>;

function toPackageValue({ packageName = '', version = '', release = '' }: PackageFields): JsonObject {
  return { packageName, version, ...(release !== '' && { release }) };
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
  return sortLikeGo(images, (a, b) => compareBytes(a.image, b.image));
}

interface RenderBundleOptions {
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
  const blob = renderBundle(bundle, image, subject);
  return options.migrateLevel === undefined
    ? blob
    : migrateBundle(blob, options.migrateLevel, bundle.csvText);
}

function getImage(bundle: Bundle, template: ImageTemplate, subject: string): string {
  return inContext(
    {
      subject: `failed templating image reference from bundle for ${quoteGo(subject)}`,
    },
    () => {
      const property = bundle.properties.find(({ type }) => type === propertyTypes.package);
      const version = property === undefined ? '' : (propertyFields(property, ['version'])['version'] ?? '');
      return template({ Package: bundle.packageName, Name: bundle.name, Version: version });
    },
  );
}
