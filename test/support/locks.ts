/** Locks of small image sets for tests. */
import { createHash } from 'node:crypto';
import type { ImageSetLock, LockedCatalog, LockedImage } from '../../src/mirror/lock/lock.js';
import type { ContentManifest, ImageContents } from '../../src/oci/image/contents.js';
import { type Descriptor, mediaTypes } from '../../src/oci/image/types.js';

export const digestFor = (text: string): string =>
  `sha256:${createHash('sha256').update(text).digest('hex')}`;

/** A layer of some size; one name is one digest. */
export const layer = (name: string, size: number): Descriptor => ({
  mediaType: mediaTypes.ociLayerGzip,
  digest: digestFor(`layer ${name}`),
  size,
});

export const imageManifest = (name: string, blobs: readonly Descriptor[]): ContentManifest => ({
  descriptor: { mediaType: mediaTypes.ociManifest, digest: digestFor(`manifest ${name}`), size: 500 },
  manifests: [],
  blobs,
});

export const indexManifest = (name: string, listed: readonly ContentManifest[]): ContentManifest => ({
  descriptor: { mediaType: mediaTypes.ociIndex, digest: digestFor(`index ${name}`), size: 300 },
  manifests: listed.map(({ descriptor }) => descriptor.digest),
  blobs: [],
});

/** Contents of manifests in order; the last is the root unless told. */
export function contentsOf(
  manifests: readonly ContentManifest[],
  root: ContentManifest = manifests.at(-1) as ContentManifest,
): ImageContents {
  return { root: root.descriptor, manifests };
}

/** An image below `ns/` under its name; needed by the bundles `package/bundle`. */
export function lockedImage(
  name: string,
  contents: ImageContents,
  more: Partial<Omit<LockedImage, 'bundles'>> & { bundles?: readonly string[] } = {},
): LockedImage {
  const { bundles = [], ...rest } = more;
  return {
    kind: bundles.length > 0 ? 'related' : 'additional',
    reference: `quay.io/ns/${name}:v1`,
    source: `docker://quay.io/ns/${name}@${contents.root.digest}`,
    repository: `ns/${name}`,
    tag: 'v1',
    contents,
    ...rest,
    bundles: bundles.map((text) => {
      const [packageName = '', bundle = ''] = text.split('/');
      return { package: packageName, bundle };
    }),
  };
}

/** A whole catalog with packages, each with channel `stable` and these bundles, the last of them its head. */
export function lockedCatalog(packages: Readonly<Record<string, readonly string[]>>): LockedCatalog {
  return {
    catalog: 'quay.io/ns/index:v1',
    sourceDigest: digestFor('catalog'),
    repository: 'ns/index',
    tag: 'v1',
    isWhole: true,
    packages: Object.entries(packages).map(([name, bundles]) => ({
      name,
      defaultChannel: 'stable',
      channels: [{ name: 'stable', head: bundles.at(-1) as string }],
      bundles: bundles.map((bundle, i) => ({ name: bundle, version: `1.0.${i}` })),
    })),
  };
}

export function lockOf(
  images: readonly LockedImage[],
  catalogs: readonly LockedCatalog[] = [],
): ImageSetLock {
  return {
    configuration: digestFor('configuration'),
    options: { dependencies: 'report' },
    catalogs: [...catalogs],
    images: [...images],
  };
}
