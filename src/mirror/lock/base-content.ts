import { getOrAdd } from '../../core/groups.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { BlobPlace } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import { withReads } from '../../oci/registry/replaced-reads.js';
import type { Repository } from '../../oci/registry/repository.js';

/**
 * The content of an archive with that of its base: what the archive lacks is read from the repositories of the target
 * registry that hold it. All of it is verified by digest as it is read.
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

  /** Whether the archive needs content that it does not hold. */
  get isNeeded(): boolean {
    return this.#archive.missing().size > 0;
  }

  /** Whether the content that the archive lacks was found in a registry, and not in another archive. */
  get isOfRegistry(): boolean {
    return this.#archive.index.holders !== undefined && this.isNeeded;
  }

  /** Notes that a repository of the target holds what the archive lacks. */
  note(digest: string, repository: string): void {
    this.#holders.set(digest, repository);
  }

  /** What was noted, as places to mount from. */
  places(): [digest: string, place: BlobPlace][] {
    return [...this.#holders].map(([digest, repository]) => [
      digest,
      { registry: this.#registry, repository },
    ]);
  }

  /**
   * A repository of the archive, whose missing content is read from the repository of the target that holds it, or is
   * said to, and else from `otherwise`.
   */
  repository(name: string, otherwise?: string): Repository {
    const own = this.#archive.repository(name);
    const pick = async (digest: string): Promise<Repository> => {
      if (this.#archive.locate(digest) !== undefined) return own;
      const holder = this.#holders.get(digest) ?? this.#archive.index.holders?.get(digest) ?? otherwise;
      return holder === undefined ? own : this.at(holder);
    };
    return withReads(own, {
      getManifest: async (digest, options) => (await pick(digest)).getManifest(digest, options),
      headManifest: async (digest, options) => (await pick(digest)).headManifest(digest, options),
      openBlob: async (blob, options) => (await pick(blob.digest)).openBlob(blob, options),
      hasBlob: async (blob, options) => (await pick(blob.digest)).hasBlob(blob, options),
    });
  }

  /** The first of some repositories that has a manifest or blob. */
  async findHolder(
    { digest, mediaType, size }: Descriptor,
    isManifest: boolean,
    repositories: Iterable<string>,
  ): Promise<string | undefined> {
    const { signal } = this.#session;
    for (const name of repositories) {
      const repository = await this.at(name);
      const isThere = isManifest
        ? (await repository.headManifest(digest, { signal })) !== undefined
        : await repository.hasBlob({ digest, mediaType, size }, { signal });
      if (isThere) return name;
    }
    return undefined;
  }

  /** A repository of the target. */
  at(repository: string): Promise<Repository> {
    return getOrAdd(this.#opened, repository, () => this.#open(repository));
  }

  async #open(repository: string): Promise<Repository> {
    const { connect, logger } = this.#session;
    return createRegistryRepository({
      ...{ connection: await connect(), registry: this.#registry, repository, logger },
      withoutMirrors: true,
    });
  }
}
