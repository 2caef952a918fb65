import { isDigest } from '../../core/digest.js';
import { getOrAdd } from '../../core/groups.js';
import { type Field, quoteShort } from '../../document/field.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import { type Descriptor, maxManifestBytes } from '../../oci/image/types.js';
import { listManifestTree, lockLimits } from './lock.js';

/** Names that must be unique. */
export class UniqueNames {
  readonly #seen = new Set<string>();

  add(name: string, field: Field<never>): string {
    if (this.#seen.has(name)) return field.fail(`duplicate ${quoteShort(name)}`, { code: 'duplicate' });
    this.#seen.add(name);
    return name;
  }
}

/** The tables of manifests and blobs of a lock, and the images that refer to them. */
export class LockedContents {
  readonly #blobs = new Map<string, Descriptor>();
  readonly #manifests = new Map<string, ContentManifest>();
  /** Manifest trees by root, shared by images with the same root. */
  readonly #trees = new Map<string, readonly ContentManifest[]>();
  #manifestCount = 0;
  #blobCount = 0;
  #bytes = 0;

  /** Reads both tables. Fails at manifests that list unknown ones. */
  constructor(blobs: Field<never>, manifests: Field<never>) {
    for (const [digest, field] of blobs.entries(lockLimits.manifests)) {
      this.#blobs.set(requireDigest(digest, field), this.#readBlob(digest, field, ['mediaType', 'size']));
    }
    const listedFields = new Map<string, Field<never>>();
    for (const [digest, field] of manifests.entries(lockLimits.manifests)) {
      const fields = field.object(['mediaType', 'size', 'manifests', 'blobs']);
      this.#manifests.set(requireDigest(digest, field), this.#readManifest(digest, fields));
      listedFields.set(digest, fields.manifests);
    }
    for (const [digest, manifest] of this.#manifests) {
      for (const [i, listed] of manifest.manifests.entries()) {
        if (this.#manifests.has(listed)) continue;
        const field = listedFields.get(digest)?.list(lockLimits.manifestsOfImage)[i];
        field?.fail(`${listed} is not in manifests`);
      }
    }
  }

  /** Reads the contents of an image: its listed manifests, else the tree below its root. */
  readImage(
    item: Field<never>,
    fields: Readonly<Record<'digest' | 'manifests', Field<never>>>,
  ): ImageContents {
    const digest = fields.digest.digest();
    const manifests = fields.manifests.isPresent
      ? this.#readManifests(fields.manifests)
      : getOrAdd(this.#trees, digest, () => this.#getTree(digest, fields.digest));
    const root = manifests.find((manifest) => manifest.descriptor.digest === digest);
    if (root === undefined) return fields.digest.fail(`${digest} is not among the manifests of the image`);
    this.#count(manifests, item);
    return { root: root.descriptor, manifests };
  }

  #getTree(root: string, field: Field<never>): readonly ContentManifest[] {
    if (!this.#manifests.has(root)) return field.fail(`${root} is not in manifests`);
    const digests = listManifestTree(root, (digest) => this.#manifests.get(digest)?.manifests ?? []);
    const manifests = digests.map((digest) => this.#manifests.get(digest) as ContentManifest);
    requireOrder(manifests, () => field);
    return manifests;
  }

  #readManifests(field: Field<never>): readonly ContentManifest[] {
    const items = field.list(lockLimits.manifestsOfImage);
    const names = new UniqueNames();
    const manifests = items.map((item) => {
      if (typeof item.value === 'string') {
        const digest = names.add(item.digest(), item);
        return this.#manifests.get(digest) ?? item.fail(`${digest} is not in manifests`);
      }
      const fields = item.object(['digest', 'mediaType', 'size', 'manifests', 'blobs']);
      return this.#readManifest(names.add(fields.digest.digest(), item), fields);
    });
    requireOrder(manifests, (i) => items[i] as Field<never>);
    return manifests;
  }

  #readManifest(
    digest: string,
    fields: Readonly<Record<'mediaType' | 'size' | 'manifests' | 'blobs', Field<never>>>,
  ): ContentManifest {
    const names = new UniqueNames();
    return {
      descriptor: {
        mediaType: fields.mediaType.text(),
        digest,
        size: fields.size.size(maxManifestBytes),
      },
      manifests: fields.manifests
        .optionalList(lockLimits.manifestsOfImage)
        .map((item) => names.add(item.digest(), item)),
      blobs: fields.blobs.optionalList(lockLimits.manifestsOfImage).map((item) => {
        const blob = this.#getBlob(item);
        names.add(blob.digest, item);
        return blob;
      }),
    };
  }

  #getBlob(item: Field<never>): Descriptor {
    if (typeof item.value === 'string') {
      const digest = item.digest();
      return this.#blobs.get(digest) ?? item.fail(`${digest} is not in blobs`);
    }
    const keys = ['digest', 'mediaType', 'size'] as const;
    return this.#readBlob(item.object(keys).digest.digest(), item, keys);
  }

  #readBlob(
    digest: string,
    field: Field<never>,
    keys: readonly ('digest' | 'mediaType' | 'size')[],
  ): Descriptor {
    const fields = field.object(keys);
    const size = fields.size.size();
    this.#bytes += size;
    if (this.#bytes > Number.MAX_SAFE_INTEGER)
      return fields.size.fail('more bytes than can be counted', { code: 'limit' });
    return { mediaType: fields.mediaType.text(), digest, size };
  }

  /** Applies the limits to all images together; an index that two images contain counts twice. */
  #count(manifests: readonly ContentManifest[], item: Field<never>): void {
    const { manifestsOfImage, manifests: maxManifests, blobs: maxBlobs } = lockLimits;
    if (manifests.length > manifestsOfImage)
      return item.fail(`more than ${manifestsOfImage} manifests`, { code: 'limit' });
    this.#manifestCount += manifests.length;
    for (const { blobs } of manifests) this.#blobCount += blobs.length;
    if (this.#manifestCount > maxManifests)
      return item.fail(`more than ${maxManifests} manifests in all`, { code: 'limit' });
    if (this.#blobCount > maxBlobs) return item.fail(`more than ${maxBlobs} blobs in all`, { code: 'limit' });
  }
}

function requireDigest(digest: string, field: Field<never>): string {
  return isDigest(digest) ? digest : field.fail(`invalid digest ${quoteShort(digest)}`);
}

/** Requires manifests to follow the ones they list, so none can contain itself. */
function requireOrder(manifests: readonly ContentManifest[], getField: (i: number) => Field<never>): void {
  const heights = new Map<string, number>();
  for (const [i, { descriptor, manifests: listed }] of manifests.entries()) {
    let height = 1;
    for (const digest of listed) {
      const below = heights.get(digest);
      if (below === undefined) {
        const problem = `${descriptor.digest} lists ${digest}, which does not precede it`;
        const hint = 'list a manifest after the manifests that it contains';
        return getField(i).fail(problem, { hint });
      }
      height = Math.max(height, below + 1);
    }
    if (height > lockLimits.depth) {
      return getField(i).fail(`manifests are nested deeper than ${lockLimits.depth}`, { code: 'limit' });
    }
    heights.set(descriptor.digest, height);
  }
}
