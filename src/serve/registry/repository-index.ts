import { repositoryAnnotation } from '../../oci/archive-set/archive-layout.js';
import type { Descriptor } from '../../oci/image/types.js';
import { refNameAnnotation } from '../../oci/layout/layout-store.js';
import { isRepositoryName, isTag } from '../../oci/registry/registry-names.js';

interface Place {
  repository: string;
  tag: string | undefined;
}

/**
 * Maps index entries to repositories by their tag annotation: `ns/name:v1` is `v1` of `ns/name`, a bare `v1` belongs to the
 * default repository. Without a tag, another annotation has the repository, or else it is the default.
 */
export class RepositoryIndex {
  readonly #defaultRepository: string;
  readonly #places = new WeakMap<Descriptor, Place>();

  constructor(defaultRepository: string) {
    this.#defaultRepository = defaultRepository;
  }

  /** Returns the repository and tag of an entry. */
  getPlace(entry: Descriptor): Place {
    let place = this.#places.get(entry);
    if (place === undefined) this.#places.set(entry, (place = this.#readPlace(entry)));
    return place;
  }

  #readPlace(entry: Descriptor): Place {
    const name = entry.annotations?.[refNameAnnotation];
    if (name !== undefined) {
      if (isTag(name)) return { repository: this.#defaultRepository, tag: name };
      const colon = name.lastIndexOf(':');
      const repository = name.slice(0, Math.max(colon, 0));
      const tag = name.slice(colon + 1);
      if (isRepositoryName(repository) && isTag(tag)) return { repository, tag };
    }
    const repository = entry.annotations?.[repositoryAnnotation];
    const valid = repository !== undefined && isRepositoryName(repository);
    return { repository: valid ? repository : this.#defaultRepository, tag: undefined };
  }

  #createEntry(repository: string, tag: string | undefined, descriptor: Descriptor): Descriptor {
    const { mediaType, digest, size } = descriptor;
    const isDefault = repository === this.#defaultRepository;
    if (tag !== undefined) {
      const name = isDefault ? tag : `${repository}:${tag}`;
      return { mediaType, digest, size, annotations: { [refNameAnnotation]: name } };
    }
    const annotations = { [repositoryAnnotation]: repository };
    return { mediaType, digest, size, ...(!isDefault && { annotations }) };
  }

  /** Returns the entries with a manifest and its tags, if any; the same array if unchanged. */
  withManifest(
    entries: readonly Descriptor[],
    repository: string,
    tags: readonly string[],
    descriptor: Descriptor,
  ): readonly Descriptor[] {
    const { digest, mediaType } = descriptor;
    const wanted = new Set(tags);
    const displaced = new Map<string, Descriptor>();
    let listed = false;
    const next: Descriptor[] = [];
    for (const entry of entries) {
      const place = this.getPlace(entry);
      const isSame = entry.digest === digest;
      if (place.repository !== repository) next.push(entry);
      else if (place.tag !== undefined && wanted.has(place.tag)) {
        if (isSame && entry.mediaType === mediaType) {
          wanted.delete(place.tag);
          next.push(entry);
        } else if (!isSame) displaced.set(entry.digest, entry);
      } else if (!isSame) next.push(entry);
      else if (place.tag !== undefined || tags.length === 0) {
        next.push(entry.mediaType === mediaType ? entry : { ...entry, mediaType });
        listed = true;
      } // Else it is replaced by the tagged entry.
    }
    for (const tag of wanted) next.push(this.#createEntry(repository, tag, descriptor));
    if (tags.length === 0 && !listed) next.push(this.#createEntry(repository, undefined, descriptor));
    this.#keepUntagged(next, repository, displaced);
    const unchanged = next.length === entries.length && next.every((entry, i) => entry === entries[i]);
    return unchanged ? entries : next;
  }

  /** Returns the entries without a tag, with its manifest; the same array if unchanged. */
  withoutTag(entries: readonly Descriptor[], repository: string, tag: string): readonly Descriptor[] {
    const displaced = new Map<string, Descriptor>();
    const next = entries.filter((entry) => {
      const place = this.getPlace(entry);
      if (place.repository !== repository || place.tag !== tag) return true;
      displaced.set(entry.digest, entry);
      return false;
    });
    this.#keepUntagged(next, repository, displaced);
    return displaced.size === 0 ? entries : next;
  }

  /** Adds an untagged entry for each manifest that has lost its last tag. */
  #keepUntagged(entries: Descriptor[], repository: string, displaced: ReadonlyMap<string, Descriptor>): void {
    for (const [digest, entry] of displaced) {
      const listed = entries.some(
        (other) => other.digest === digest && this.getPlace(other).repository === repository,
      );
      if (!listed) entries.push(this.#createEntry(repository, undefined, entry));
    }
  }
}
