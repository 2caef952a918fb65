import { isDigest } from '../../core/digest.js';
import { getOrAdd } from '../../core/groups.js';
import { type Field, quoteShort } from '../../document/field.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import { type Descriptor, maxManifestBytes } from '../../oci/image/types.js';
import { listManifestTree, lockLimits } from './lock.js';
import { createUnique } from './locked-fields.js';

/**
 * The tables of manifests and blobs of a lock, and a reader of the images that refer to them. Fails at manifests that list
 * unknown ones.
 */
export class ContentTables {
  readonly #blobs = new Map<string, Descriptor>();
  readonly #manifests = new Map<string, ContentManifest>();
  /** Manifest trees by root, shared by images with the same root. */
  readonly #trees = new Map<string, readonly ContentManifest[]>();
  /** Sums of all images. */
  readonly #sums = { manifests: 0, blobs: 0, bytes: 0 };

  constructor(blobTable: Field<never>, manifestTable: Field<never>) {
    for (const [digest, field] of blobTable.entries(lockLimits.manifests))
      this.#blobs.set(
        requireDigest(digest, field),
        this.#readBlob(digest, field.object(['mediaType', 'size'])),
      );
    const listedFields = new Map<string, Field<never>>();
    for (const [digest, field] of manifestTable.entries(lockLimits.manifests)) {
      const fields = field.object(['mediaType', 'size', 'manifests', 'blobs']);
      this.#manifests.set(requireDigest(digest, field), this.#readManifest(digest, fields));
      listedFields.set(digest, fields.manifests);
    }
    for (const [digest, { manifests }] of this.#manifests) {
      const unknown = manifests.findIndex((item) => !this.#manifests.has(item));
      if (unknown >= 0)
        listedFields.get(digest)?.field(unknown).fail(`${manifests[unknown]} is not in manifests`);
    }
  }

  /** Reads the contents of an image: its listed manifests, else the tree below its root. */
  readImage(item: Field<never>, root: Field<never>, listed: Field<never>): ImageContents {
    const digest = root.digest();
    const own = listed.isPresent
      ? this.#readList(listed)
      : getOrAdd(this.#trees, digest, () => this.#readTree(digest, root));
    const manifest = own.find(({ descriptor }) => descriptor.digest === digest);
    if (manifest === undefined) return root.fail(`${digest} is not among the manifests of the image`);
    this.#count(own, item);
    return { root: manifest.descriptor, manifests: own };
  }

  #readBlob(
    digest: string,
    { mediaType, size: sizeField }: Readonly<Record<'mediaType' | 'size', Field<never>>>,
  ): Descriptor {
    const size = sizeField.size();
    this.#sums.bytes += size;
    if (this.#sums.bytes > Number.MAX_SAFE_INTEGER)
      return sizeField.fail('more bytes than can be counted', { code: 'limit' });
    return { mediaType: mediaType.text(), digest, size };
  }

  #readManifest(
    digest: string,
    fields: Readonly<Record<'mediaType' | 'size' | 'manifests' | 'blobs', Field<never>>>,
  ): ContentManifest {
    const requireUnique = createUnique();
    const { mediaType, size } = fields;
    return {
      descriptor: { mediaType: mediaType.text(), digest, size: size.size(maxManifestBytes) },
      manifests: fields.manifests
        .optionalList(lockLimits.manifestsOfImage)
        .map((item) => requireUnique(item.digest(), item)),
      blobs: fields.blobs.optionalList(lockLimits.manifestsOfImage).map((item) => {
        const blob = this.#readListedBlob(item);
        requireUnique(blob.digest, item);
        return blob;
      }),
    };
  }

  /** Reads a blob of a manifest: its digest in the table, or the blob itself. */
  #readListedBlob(item: Field<never>): Descriptor {
    if (typeof item.value === 'string') {
      const digest = item.digest();
      return this.#blobs.get(digest) ?? item.fail(`${digest} is not in blobs`);
    }
    const fields = item.object(['digest', 'mediaType', 'size']);
    return this.#readBlob(fields.digest.digest(), fields);
  }

  #readTree(root: string, field: Field<never>): readonly ContentManifest[] {
    if (!this.#manifests.has(root)) return field.fail(`${root} is not in manifests`);
    const digests = listManifestTree(root, (digest) => this.#manifests.get(digest)?.manifests ?? []);
    const tree = digests.map((digest) => this.#manifests.get(digest) as ContentManifest);
    requireOrder(tree, () => field);
    return tree;
  }

  #readList(field: Field<never>): readonly ContentManifest[] {
    const items = field.list(lockLimits.manifestsOfImage);
    const requireUnique = createUnique();
    const listed = items.map((item) => {
      if (typeof item.value === 'string') {
        const digest = requireUnique(item.digest(), item);
        return this.#manifests.get(digest) ?? item.fail(`${digest} is not in manifests`);
      }
      const fields = item.object(['digest', 'mediaType', 'size', 'manifests', 'blobs']);
      return this.#readManifest(requireUnique(fields.digest.digest(), item), fields);
    });
    requireOrder(listed, (i) => items[i] as Field<never>);
    return listed;
  }

  /** Applies the limits to all images together; an index that two images contain counts twice. */
  #count(own: readonly ContentManifest[], item: Field<never>): void {
    const { manifestsOfImage, manifests: maxManifests, blobs: maxBlobs } = lockLimits;
    const fail = (problem: string): never => item.fail(`more than ${problem}`, { code: 'limit' });
    if (own.length > manifestsOfImage) fail(`${manifestsOfImage} manifests`);
    this.#sums.manifests += own.length;
    for (const manifest of own) this.#sums.blobs += manifest.blobs.length;
    if (this.#sums.manifests > maxManifests) fail(`${maxManifests} manifests in all`);
    if (this.#sums.blobs > maxBlobs) fail(`${maxBlobs} blobs in all`);
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
