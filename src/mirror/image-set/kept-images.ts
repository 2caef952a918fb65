import { getOrAdd } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import type { ImageName } from './image-set-names.js';
import type { ImageSetLock, LockedImage } from '../lock/lock.js';

/** Manifests and names of images in locks, which must not be deleted. */
export type KeptImages = ReturnType<typeof createKeptImages>;

/** Returns the images of locks, which have their names in messages as keys. */
export function createKeptImages(locks: ReadonlyMap<string, ImageSetLock>) {
  const reasons = new Map<string, string>();
  for (const [file, { images }] of locks) {
    for (const image of images) {
      const reason = (): string => `${getUser(image)} in ${file} needs it`;
      for (const { descriptor } of image.contents.manifests) getOrAdd(reasons, descriptor.digest, reason);
      if (image.tag !== undefined) getOrAdd(reasons, `${image.repository}:${image.tag}`, reason);
    }
  }
  return {
    /** Returns the reason to keep a manifest; undefined for none. */
    reasonFor: (digest: string | undefined) => (digest === undefined ? undefined : reasons.get(digest)),
    /** Returns the reason to keep an image by its name below a target; undefined for none. */
    reasonForName: ({ repository, tag }: ImageName) => reasons.get(`${repository}:${tag}`),
  };
}

function getUser({ kind, source, bundles }: LockedImage): string {
  const [first] = bundles;
  if (first === undefined) return kind === 'catalog' ? `the catalog ${source}` : source;
  const more = bundles.length - 1;
  const name = `bundle ${quoteGo(first.bundle)} of package ${quoteGo(first.package)}`;
  return more === 0 ? name : `${name} (and ${more} more)`;
}
