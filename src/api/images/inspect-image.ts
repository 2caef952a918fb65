import { withOpen } from '../../core/concurrency.js';
import { compareBytes } from '../../core/order.js';
import { openImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import type { Descriptor, Platform } from '../../oci/image/types.js';
import { parseSourceImage, parseSourceRepository } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';

/** An image, without the content of its layers. */
export interface InspectedImage {
  name: string;
  /** Digest of the image or image index that the reference names. */
  digest: string;
  /** Digest of the manifest of the platform. */
  manifest: string;
  mediaType: string;
  platform: Platform;
  /** Creation time, as the image has it. */
  created?: string;
  /** By name. */
  labels: Record<string, string>;
  layers: Pick<Descriptor, 'mediaType' | 'digest' | 'size'>[];
}

/** Reads manifest and configuration of an image; its layers are not read. Throws OpmateError. */
export async function inspectImage(reference: string, session: Session): Promise<InspectedImage> {
  return withOpen(
    openReference(await parseSourceImage(reference, session), session),
    async ({ repository, reference: name }) => {
      const { root, descriptor, manifest, config, ...image } = await openImage(repository, name, session);
      return {
        name: image.name,
        digest: root.digest,
        manifest: descriptor.digest,
        mediaType: descriptor.mediaType,
        platform: { ...image.platform },
        ...(config.created !== undefined && { created: config.created }),
        labels: Object.fromEntries(Object.entries(image.labels).sort(([a], [b]) => compareBytes(a, b))),
        layers: manifest.layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
      };
    },
  );
}

/** Lists the tags of a repository; the reference needs no tag. Throws OpmateError. */
export async function listTags(
  reference: string,
  session: Session,
): Promise<{ name: string; tags: string[] }> {
  const parsed = await parseSourceRepository(reference, session);
  const needsTag = parsed.tag === undefined && parsed.digest === undefined;
  const named = needsTag ? { ...parsed, tag: 'latest' } : parsed;
  return withOpen(openReference(named, session), async ({ repository }) => ({
    name: repository.name,
    tags: await repository.listTags(session),
  }));
}

/** Reads the manifest or image index that a reference names, byte for byte. Throws OpmateError. */
export async function readManifest(reference: string, session: Session): Promise<Buffer> {
  return withOpen(
    openReference(await parseSourceImage(reference, session), session),
    async ({ repository, reference: name }) => (await repository.getManifest(name, session)).bytes,
  );
}
