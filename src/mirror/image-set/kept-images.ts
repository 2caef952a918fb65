import { quoteGo } from '../../document/go-json.js';
import type { ImageName } from './image-set-names.js';
import type { ImageSetLock, LockedImage } from '../lock/lock.js';

/** What locks say must stay: every manifest of their images, and the names that these have. */
export class KeptImages {
  readonly #byDigest = new Map<string, string>();
  readonly #byName = new Map<string, string>();

  /** `file` is how messages name the lock. */
  add(lock: ImageSetLock, file: string): void {
    for (const image of lock.images) {
      const reason = `${getUser(image)} in ${file} needs it`;
      for (const { descriptor } of image.contents.manifests) note(this.#byDigest, descriptor.digest, reason);
      if (image.tag !== undefined) note(this.#byName, `${image.repository}:${image.tag}`, reason);
    }
  }

  /** Who needs the manifest; undefined where nobody does. */
  reasonFor(digest: string | undefined): string | undefined {
    return digest === undefined ? undefined : this.#byDigest.get(digest);
  }

  /** Who needs the image of that name below a target. */
  reasonForName({ repository, tag }: ImageName): string | undefined {
    return this.#byName.get(`${repository}:${tag}`);
  }
}

/** The first one to need it is who is told. */
function note(reasons: Map<string, string>, key: string, reason: string): void {
  if (!reasons.has(key)) reasons.set(key, reason);
}

function getUser({ kind, source, bundles }: LockedImage): string {
  const [first] = bundles;
  if (first === undefined) return kind === 'catalog' ? `the catalog ${source}` : source;
  const more = bundles.length - 1;
  const name = `bundle ${quoteGo(first.bundle)} of package ${quoteGo(first.package)}`;
  return more === 0 ? name : `${name} (and ${more} more)`;
}
