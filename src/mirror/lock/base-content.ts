import { getOrAdd } from '../../core/groups.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { RepositoryLocation } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import type { Repository } from '../../oci/registry/repository.js';

/**
 * An archive with the content of its base: content that the archive lacks is read from the target registry, verified
 * by digest.
 */
export class BaseContent {
  readonly #archive: OpenedArchive;
  readonly #registry: string;
  readonly #session: ImageSession;
  readonly #holders = new Map<string, string>();
  readonly #opened = new Map<string, Promise<Repository>>();

  constructor(archive: OpenedArchive, registry: string, session: ImageSession) {
    this.#archive = archive;
    this.#registry = registry;
    this.#session = session;
  }

  /** Set if the base is an inventory of a registry, not an archive, and the archive needs its content. */
  get isOfRegistry(): boolean {
    return this.#archive.index.holders !== undefined && this.#archive.missing().size > 0;
  }

  /** Notes a repository of the target as the holder of content that the archive lacks. */
  note(digest: string, repository: string): void {
    this.#holders.set(digest, repository);
  }

  /** Returns the noted repositories, to mount blobs from. */
  places(): [digest: string, place: RepositoryLocation][] {
    return [...this.#holders].map(([digest, repository]) => [
      digest,
      { registry: this.#registry, repository },
    ]);
  }

  /**
   * Returns a repository of the archive. Missing content is read from the noted holder, else from the one in the index of
   * the archive, else from `fallback`.
   */
  repository(name: string, fallback?: string): Repository {
    const archived = this.#archive.repository(name);
    const select = async (digest: string): Promise<Repository> => {
      if (this.#archive.locate(digest) !== undefined) return archived;
      const holder = this.#holders.get(digest) ?? this.#archive.index.holders?.get(digest) ?? fallback;
      return holder === undefined ? archived : this.#open(holder);
    };
    return {
      ...archived,
      getManifest: async (digest, options) => (await select(digest)).getManifest(digest, options),
      headManifest: async (digest, options) => (await select(digest)).headManifest(digest, options),
      openBlob: async (blob, options) => (await select(blob.digest)).openBlob(blob, options),
      hasBlob: async (blob, options) => (await select(blob.digest)).hasBlob(blob, options),
    };
  }

  /** Returns the first of these repositories of the target that has a manifest or blob. */
  async findHolder(
    { digest, mediaType, size }: Descriptor,
    isManifest: boolean,
    repositories: Iterable<string>,
  ): Promise<string | undefined> {
    const { signal } = this.#session;
    for (const name of repositories) {
      const repository = await this.#open(name);
      const isPresent = isManifest
        ? (await repository.headManifest(digest, { signal })) !== undefined
        : await repository.hasBlob({ digest, mediaType, size }, { signal });
      if (isPresent) return name;
    }
    return undefined;
  }

  #open(repository: string): Promise<Repository> {
    return getOrAdd(this.#opened, repository, async () => {
      const { connect, logger } = this.#session;
      return createRegistryRepository({
        ...{ connection: await connect(), registry: this.#registry, repository, logger },
        withoutMirrors: true,
      });
    });
  }
}
