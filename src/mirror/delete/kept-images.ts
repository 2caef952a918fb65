import { getOrAdd } from '../../core/groups.js';
import type { TargetName } from '../naming/image-name.js';
import { describeBundles } from '../plan/planned-image.js';
import type { ImageSetLock, LockedImage } from '../lock/lock.js';

/** Manifests and names of images in locks, which must not be deleted. */
export type KeptImages = ReturnType<typeof createKeptImages>;

/** Creates an empty set of kept images. */
export function createKeptImages() {
  const byDigest = new Map<string, string>();
  const byName = new Map<string, string>();
  return {
    /** Adds the images of a lock; `file` names it in messages. */
    add({ images }: ImageSetLock, file: string): void {
      for (const image of images) {
        const reason = (): string => `${getUser(image)} in ${file} needs it`;
        for (const { descriptor } of image.contents.manifests) getOrAdd(byDigest, descriptor.digest, reason);
        if (image.tag !== undefined) getOrAdd(byName, `${image.repository}:${image.tag}`, reason);
      }
    },
    /** Returns the reason to keep a manifest; undefined for none. */
    reasonFor: (digest: string | undefined) => (digest === undefined ? undefined : byDigest.get(digest)),
    /** Returns the reason to keep an image by its name below a target; undefined for none. */
    reasonForName: ({ repository, tag }: TargetName) => byName.get(`${repository}:${tag}`),
  };
}

function getUser({ kind, source, bundles }: LockedImage): string {
  return describeBundles(bundles) ?? (kind === 'catalog' ? `the catalog ${source}` : source);
}
