import { computeDigest } from '../../core/digest.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import type { JsonObject, JsonValue } from '../../document/json.js';
import { setFields } from '../../kube/object.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import type { Descriptor } from '../../oci/image/types.js';
import {
  type ImageSetLock,
  type LockedCatalog,
  type LockedImage,
  compareLocked,
  listManifestTree,
  lockFormatVersion,
  lockLimits,
} from './lock.js';
import { encodeReleases } from './locked-releases.js';
import { parseLock } from './parse-lock.js';

/**
 * Encodes a lock as the text of its file; equal locks have equal bytes. Manifests and blobs are in tables, each once,
 * with media type, digest and size. Throws OpmateError, as `parseLock`, for duplicate names and exceeded limits.
 */
export function encodeLock(lock: ImageSetLock): string {
  const content = encodeContent(lock);
  const { version, ...others } = content;
  const text = `${formatJson({ version, plan: computePlan(content), ...others }, '')}\n`;
  parseLock(text, 'lock', 'reference');
  return text;
}

/** Returns the digest of everything a lock pins: its `plan`, which machines that share a lock compare. */
export function planOf(lock: ImageSetLock): string {
  return computePlan(encodeContent(lock));
}

function computePlan(content: ReturnType<typeof encodeContent>): string {
  return computeDigest(JSON.stringify(content));
}

function encodeContent(lock: ImageSetLock) {
  const images = [...lock.images].sort(compareLocked);
  const tables = new ContentEncoder(images);
  const { charts = [] } = lock;
  return {
    version: lockFormatVersion,
    configuration: lock.configuration,
    options: Object.fromEntries(sortByKey(Object.entries(lock.options))),
    catalogs: lock.catalogs.map(encodeCatalog),
    ...(charts.length > 0 && {
      charts: charts.map((chart) => setFields(chart, ['source', 'name', 'version', 'repository', 'tag'])),
    }),
    ...(lock.releases !== undefined && { releases: encodeReleases(lock.releases) }),
    images: images.map((image) => encodeImage(image, tables)),
    ...tables.encode(),
  };
}

/**
 * Encodes the contents of images by tables of the manifests and blobs of the first image with each; images that describe
 * one differently contain it inline.
 */
class ContentEncoder {
  readonly #manifests = new Map<string, ContentManifest>();
  readonly #blobs = new Map<string, Descriptor>();

  constructor(images: readonly LockedImage[]) {
    for (const manifest of images.flatMap(({ contents }) => contents.manifests)) {
      if (this.#manifests.has(manifest.descriptor.digest)) continue;
      this.#manifests.set(manifest.descriptor.digest, manifest);
      for (const blob of manifest.blobs) getOrAdd(this.#blobs, blob.digest, () => blob);
    }
  }

  /** Encodes the tables. */
  encode() {
    return {
      manifests: encodeTable(this.#manifests, (manifest) => this.#encodeManifest(manifest)),
      blobs: encodeTable(this.#blobs, (blob) => setFields(blob, ['mediaType', 'size'])),
    };
  }

  /** Encodes the digest of an image, and its manifests unless they are the tree below it. */
  encodeContents({ root: { digest }, manifests }: ImageContents): JsonObject {
    const listed = manifests.map((manifest) => {
      const own = manifest.descriptor.digest;
      const known = this.#manifests.get(own) as ContentManifest;
      return isSameManifest(known, manifest) ? own : { digest: own, ...this.#encodeManifest(manifest) };
    });
    const tree = listManifestTree(digest, (parent) => this.#manifests.get(parent)?.manifests ?? []);
    const isTree = tree.length === listed.length && tree.every((item, i) => item === listed[i]);
    return { digest, ...(!isTree && { manifests: listed }) };
  }

  #encodeManifest({ descriptor, manifests, blobs }: ContentManifest) {
    return {
      ...setFields(descriptor, ['mediaType', 'size']),
      ...(manifests.length > 0 && { manifests: [...manifests] }),
      ...(blobs.length > 0 && { blobs: blobs.map((blob) => this.#encodeBlob(blob)) }),
    };
  }

  /** One digest may be a layer of one image and the configuration of another. */
  #encodeBlob(blob: Descriptor): JsonValue {
    const known = this.#blobs.get(blob.digest);
    if (known !== undefined && isSameContent(known, blob)) return blob.digest;
    return setFields(blob, ['digest', 'mediaType', 'size']);
  }
}

function encodeImage(image: LockedImage, tables: ContentEncoder): JsonValue {
  const { aliases, verification } = image;
  return {
    ...setFields(image, ['kind', 'reference', 'source']),
    ...(aliases !== undefined && { aliases: [...aliases] }),
    ...setFields(image, ['repository', 'tag']),
    ...tables.encodeContents(image.contents),
    ...(image.isHeld === true && { isHeld: true }),
    bundles: image.bundles.map((bundle) => setFields(bundle, ['package', 'bundle'])),
    ...(verification !== undefined && {
      verification: {
        status: verification.status,
        reason: verification.reason.slice(0, lockLimits.reasonLength),
      },
    }),
  };
}

function encodeTable<T>(table: ReadonlyMap<string, T>, encode: (item: T) => JsonValue): JsonObject {
  return Object.fromEntries(sortByKey([...table]).map(([digest, item]) => [digest, encode(item)]));
}

function sortByKey<T>(entries: readonly [string, T][]): [string, T][] {
  return [...entries].sort(([a], [b]) => compareBytes(a, b));
}

function encodeCatalog(catalog: LockedCatalog): JsonValue {
  const { targetCatalogSourceTemplate: template } = catalog;
  return {
    ...setFields(catalog, ['catalog', 'sourceDigest', 'repository', 'tag', 'isWhole']),
    ...(catalog.isDatabase === true && { isDatabase: true }),
    ...(catalog.isHeld === true && { isHeld: true }),
    ...(template !== undefined && {
      targetCatalogSourceTemplate:
        template.text === undefined ? template.file : setFields(template, ['file', 'text']),
    }),
    ...(catalog.withoutImages !== undefined && { withoutImages: [...catalog.withoutImages] }),
    packages: catalog.packages.map((item) => ({
      ...setFields(item, ['name', 'defaultChannel']),
      channels: item.channels.map((channel) => setFields(channel, ['name', 'head'])),
      bundles: item.bundles.map((bundle) => setFields(bundle, ['name', 'version'])),
    })),
  };
}

function isSameManifest(a: ContentManifest, b: ContentManifest): boolean {
  return (
    a === b ||
    (isSameContent(a.descriptor, b.descriptor) &&
      isEqualList(a.manifests, b.manifests, (child, other) => child === other) &&
      isEqualList(a.blobs, b.blobs, isSameContent))
  );
}

function isEqualList<T>(a: readonly T[], b: readonly T[], isSame: (a: T, b: T) => boolean): boolean {
  return a.length === b.length && a.every((item, i) => isSame(item, b[i] as T));
}

function isSameContent(a: Descriptor, b: Descriptor): boolean {
  return a.digest === b.digest && a.mediaType === b.mediaType && a.size === b.size;
}

/** Formats JSON with one field or item per line, and short objects on one line, for small line diffs. */
function formatJson(value: JsonValue, indent: string): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((item) => formatJson(item, `${indent}  `))
    : Object.entries(value).map(
        ([key, item]) => `${JSON.stringify(key)}: ${formatJson(item, `${indent}  `)}`,
      );
  const [begin, end] = isList ? ['[', ']'] : ['{', '}'];
  if (items.length === 0) return `${begin}${end}`;
  const isShort = !isList && items.length <= 3 && Object.values(value).every(isScalar);
  if (isShort) return `{ ${items.join(', ')} }`;
  const inner = `\n${indent}  `;
  return `${begin}${inner}${items.join(`,${inner}`)}\n${indent}${end}`;
}

function isScalar(value: JsonValue): boolean {
  return typeof value !== 'object' || value === null;
}
