import { pipeline, type Readable } from 'node:stream';
import { verifyContent } from '../../core/digest.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { Image } from './image.js';
import { type BuiltImage, listNewBlobs } from './image-builder.js';
import { getSubject } from './platform.js';
import type { ManifestContent, Repository } from '../registry/repository.js';

/**
 * Returns built images that are not stored yet as a repository to copy from, without tags and referrers: new content, and
 * the layers of their bases. `index` lists the images, if any.
 */
export function holdBuiltImages(
  name: string,
  images: readonly BuiltImage[],
  index?: ManifestContent,
): Repository {
  const manifests = new Map<string, ManifestContent>();
  const blobs = new Map<string, () => Readable>();
  const bases = new Map<string, Repository>();
  if (index !== undefined) manifests.set(index.descriptor.digest, index);
  for (const image of images) {
    const { descriptor, manifest, base } = image;
    manifests.set(descriptor.digest, { descriptor, bytes: manifest });
    for (const layer of base?.manifest.layers ?? []) bases.set(layer.digest, (base as Image).repository);
    for (const { descriptor, open } of listNewBlobs(image)) blobs.set(descriptor.digest, open);
  }
  const missing = (reference: string) =>
    new OpmateError('NOT_FOUND', 'not found', { subject: getSubject(name, reference) });
  return {
    name,
    async getManifest(reference, { signal } = {}) {
      throwIfCancelled(signal);
      const manifest = manifests.get(reference);
      if (manifest === undefined) throw missing(reference);
      return manifest;
    },
    headManifest: async (reference) => manifests.get(reference)?.descriptor,
    async openBlob(descriptor, options = {}) {
      throwIfCancelled(options.signal);
      const { digest, size } = descriptor;
      const open = blobs.get(digest);
      const base = bases.get(digest);
      if (open === undefined && base !== undefined) return base.openBlob(descriptor, options);
      if (open === undefined) throw missing(digest);
      const checked = verifyContent({ digest, size, subject: getSubject(name, digest) });
      // A failure of the first stream destroys the second with its error.
      pipeline(open(), checked, () => undefined);
      return checked;
    },
    async hasBlob(descriptor, options) {
      if (blobs.has(descriptor.digest)) return true;
      return (await bases.get(descriptor.digest)?.hasBlob(descriptor, options)) ?? false;
    },
    listTags: async () => [],
    listReferrers: async () => [],
  };
}
