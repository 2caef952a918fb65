import { computeDigest } from '../../core/digest.js';
import { compareBytes } from '../../core/order.js';
import type { JsonValue } from '../../document/json.js';
import type { ContentManifest } from '../../oci/image/contents.js';
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
  const { version, ...content } = encodeContent(lock);
  const text = `${formatJson({ version, plan: planOf(lock), ...content }, '')}\n`;
  parseLock(text, 'lock');
  return text;
}

/** Returns the digest of everything a lock pins: its `plan`, which machines that share a lock compare. */
export function planOf(lock: ImageSetLock): string {
  return computeDigest(JSON.stringify(encodeContent(lock)));
}

function encodeContent(lock: ImageSetLock) {
  const images = [...lock.images].sort(compareLocked);
  const tables = new Tables(images);
  const { charts = [] } = lock;
  return {
    version: lockFormatVersion,
    configuration: lock.configuration,
    options: Object.fromEntries(sortByKey(Object.entries(lock.options))),
    catalogs: lock.catalogs.map(encodeCatalog),
    ...(charts.length > 0 && {
      charts: charts.map(({ source, name, version, repository, tag }) => ({
        ...{ source, name, version, repository, tag },
      })),
    }),
    ...(lock.releases !== undefined && { releases: encodeReleases(lock.releases) }),
    images: images.map((image) => tables.encodeImage(image)),
    manifests: tables.encodeManifests(),
    blobs: tables.encodeBlobs(),
  };
}

function sortByKey<T>(entries: readonly [string, T][]): [string, T][] {
  return [...entries].sort(([a], [b]) => compareBytes(a, b));
}

function encodeCatalog(catalog: LockedCatalog): JsonValue {
  const { targetCatalogSourceTemplate: template } = catalog;
  return {
    catalog: catalog.catalog,
    sourceDigest: catalog.sourceDigest,
    repository: catalog.repository,
    tag: catalog.tag,
    isWhole: catalog.isWhole,
    ...(catalog.isDatabase === true && { isDatabase: true }),
    ...(template !== undefined && {
      targetCatalogSourceTemplate:
        template.text === undefined ? template.file : { file: template.file, text: template.text },
    }),
    packages: catalog.packages.map(({ name, defaultChannel, channels, bundles }) => ({
      name,
      defaultChannel,
      channels: channels.map((channel) => ({ name: channel.name, head: channel.head })),
      bundles: bundles.map((bundle) => ({ name: bundle.name, version: bundle.version })),
    })),
  };
}

/** Manifests and blobs of the first image with each; images that describe one differently contain it inline. */
class Tables {
  readonly #manifests = new Map<string, ContentManifest>();
  readonly #blobs = new Map<string, Descriptor>();

  constructor(images: readonly LockedImage[]) {
    for (const manifest of images.flatMap(({ contents }) => contents.manifests)) {
      if (this.#manifests.has(manifest.descriptor.digest)) continue;
      this.#manifests.set(manifest.descriptor.digest, manifest);
      for (const blob of manifest.blobs)
        if (!this.#blobs.has(blob.digest)) this.#blobs.set(blob.digest, blob);
    }
  }

  encodeImage(image: LockedImage): JsonValue {
    const { root, manifests } = image.contents;
    const listed = manifests.map((manifest) => {
      const known = this.#manifests.get(manifest.descriptor.digest) as ContentManifest;
      const { digest } = manifest.descriptor;
      return isSameManifest(known, manifest) ? digest : { digest, ...this.#encodeManifest(manifest) };
    });
    const tree = listManifestTree(root.digest, (digest) => this.#manifests.get(digest)?.manifests ?? []);
    const isTree = tree.length === listed.length && tree.every((digest, i) => digest === listed[i]);
    const { verification } = image;
    return {
      kind: image.kind,
      reference: image.reference,
      source: image.source,
      ...(image.aliases !== undefined && { aliases: [...image.aliases] }),
      repository: image.repository,
      ...(image.tag !== undefined && { tag: image.tag }),
      digest: root.digest,
      ...(!isTree && { manifests: listed }),
      bundles: image.bundles.map(({ package: name, bundle }) => ({ package: name, bundle })),
      ...(verification !== undefined && {
        verification: {
          status: verification.status,
          reason: verification.reason.slice(0, lockLimits.reasonLength),
        },
      }),
    };
  }

  encodeManifests(): JsonValue {
    const entries = sortByKey([...this.#manifests]);
    return Object.fromEntries(entries.map(([digest, manifest]) => [digest, this.#encodeManifest(manifest)]));
  }

  encodeBlobs(): JsonValue {
    const entries = sortByKey([...this.#blobs]);
    return Object.fromEntries(entries.map(([digest, { mediaType, size }]) => [digest, { mediaType, size }]));
  }

  #encodeManifest({ descriptor: { mediaType, size }, manifests, blobs }: ContentManifest) {
    return {
      mediaType,
      size,
      ...(manifests.length > 0 && { manifests: [...manifests] }),
      ...(blobs.length > 0 && { blobs: blobs.map((blob) => this.#encodeBlob(blob)) }),
    };
  }

  /** One digest may be a layer of one image and the configuration of another. */
  #encodeBlob(blob: Descriptor): JsonValue {
    const { digest, mediaType, size } = blob;
    const known = this.#blobs.get(digest);
    return known !== undefined && isSameContent(known, blob) ? digest : { digest, mediaType, size };
  }
}

function isSameManifest(a: ContentManifest, b: ContentManifest): boolean {
  return (
    a === b ||
    (isSameContent(a.descriptor, b.descriptor) &&
      a.manifests.length === b.manifests.length &&
      a.manifests.every((digest, i) => digest === b.manifests[i]) &&
      a.blobs.length === b.blobs.length &&
      a.blobs.every((blob, i) => isSameContent(blob, b.blobs[i] as Descriptor)))
  );
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
