import { isDigest } from '../../core/digest.js';
import { getOrAdd } from '../../core/groups.js';
import { type Field, quoteShort } from '../../document/field.js';
import type { ContentManifest, ImageContents } from '../../oci/image/contents.js';
import { type Descriptor, maxManifestBytes } from '../../oci/image/types.js';
import { listManifestTree, lockLimits } from './lock.js';
import { createUnique } from './locked-fields.js';

/** Reads the contents of an image: its listed manifests, else the tree below its root. */
export type ContentsReader = ReturnType<typeof readContentTables>;

/**
 * Reads the tables of manifests and blobs of a lock, and returns a reader of the images that refer to them. Fails at
 * manifests that list unknown ones.
 */
export function readContentTables(blobTable: Field<never>, manifestTable: Field<never>) {
  const blobs = new Map<string, Descriptor>();
  const manifests = new Map<string, ContentManifest>();
  /** Manifest trees by root, shared by images with the same root. */
  const trees = new Map<string, readonly ContentManifest[]>();
  const sums = { manifests: 0, blobs: 0, bytes: 0 };

  const readBlob = (
    digest: string,
    { mediaType, size: sizeField }: Readonly<Record<'mediaType' | 'size', Field<never>>>,
  ): Descriptor => {
    const size = sizeField.size();
    sums.bytes += size;
    if (sums.bytes > Number.MAX_SAFE_INTEGER)
      return sizeField.fail('more bytes than can be counted', { code: 'limit' });
    return { mediaType: mediaType.text(), digest, size };
  };

  const getBlob = (item: Field<never>): Descriptor => {
    if (typeof item.value === 'string') {
      const digest = item.digest();
      return blobs.get(digest) ?? item.fail(`${digest} is not in blobs`);
    }
    const fields = item.object(['digest', 'mediaType', 'size']);
    return readBlob(fields.digest.digest(), fields);
  };

  const readManifest = (
    digest: string,
    fields: Readonly<Record<'mediaType' | 'size' | 'manifests' | 'blobs', Field<never>>>,
  ): ContentManifest => {
    const requireUnique = createUnique();
    const { mediaType, size } = fields;
    return {
      descriptor: { mediaType: mediaType.text(), digest, size: size.size(maxManifestBytes) },
      manifests: fields.manifests
        .optionalList(lockLimits.manifestsOfImage)
        .map((item) => requireUnique(item.digest(), item)),
      blobs: fields.blobs.optionalList(lockLimits.manifestsOfImage).map((item) => {
        const blob = getBlob(item);
        requireUnique(blob.digest, item);
        return blob;
      }),
    };
  };

  const getTree = (root: string, field: Field<never>): readonly ContentManifest[] => {
    if (!manifests.has(root)) return field.fail(`${root} is not in manifests`);
    const digests = listManifestTree(root, (digest) => manifests.get(digest)?.manifests ?? []);
    const tree = digests.map((digest) => manifests.get(digest) as ContentManifest);
    requireOrder(tree, () => field);
    return tree;
  };

  const readList = (field: Field<never>): readonly ContentManifest[] => {
    const items = field.list(lockLimits.manifestsOfImage);
    const requireUnique = createUnique();
    const listed = items.map((item) => {
      if (typeof item.value === 'string') {
        const digest = requireUnique(item.digest(), item);
        return manifests.get(digest) ?? item.fail(`${digest} is not in manifests`);
      }
      const fields = item.object(['digest', 'mediaType', 'size', 'manifests', 'blobs']);
      return readManifest(requireUnique(fields.digest.digest(), item), fields);
    });
    requireOrder(listed, (i) => items[i] as Field<never>);
    return listed;
  };

  /** Applies the limits to all images together; an index that two images contain counts twice. */
  const count = (own: readonly ContentManifest[], item: Field<never>): void => {
    const { manifestsOfImage, manifests: maxManifests, blobs: maxBlobs } = lockLimits;
    const fail = (problem: string): never => item.fail(`more than ${problem}`, { code: 'limit' });
    if (own.length > manifestsOfImage) fail(`${manifestsOfImage} manifests`);
    sums.manifests += own.length;
    for (const manifest of own) sums.blobs += manifest.blobs.length;
    if (sums.manifests > maxManifests) fail(`${maxManifests} manifests in all`);
    if (sums.blobs > maxBlobs) fail(`${maxBlobs} blobs in all`);
  };

  for (const [digest, field] of blobTable.entries(lockLimits.manifests))
    blobs.set(requireDigest(digest, field), readBlob(digest, field.object(['mediaType', 'size'])));
  const listedFields = new Map<string, Field<never>>();
  for (const [digest, field] of manifestTable.entries(lockLimits.manifests)) {
    const fields = field.object(['mediaType', 'size', 'manifests', 'blobs']);
    manifests.set(requireDigest(digest, field), readManifest(digest, fields));
    listedFields.set(digest, fields.manifests);
  }
  for (const [digest, { manifests: listed }] of manifests) {
    const unknown = listed.findIndex((item) => !manifests.has(item));
    if (unknown >= 0) listedFields.get(digest)?.field(unknown).fail(`${listed[unknown]} is not in manifests`);
  }

  return (item: Field<never>, root: Field<never>, listed: Field<never>): ImageContents => {
    const digest = root.digest();
    const own = listed.isPresent ? readList(listed) : getOrAdd(trees, digest, () => getTree(digest, root));
    const manifest = own.find(({ descriptor }) => descriptor.digest === digest);
    if (manifest === undefined) return root.fail(`${digest} is not among the manifests of the image`);
    count(own, item);
    return { root: manifest.descriptor, manifests: own };
  };
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
