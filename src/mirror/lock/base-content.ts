import { getOrAdd } from '../../core/groups.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import type { ImageSession } from '../../oci/image/open.js';
import type { Descriptor } from '../../oci/image/types.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import type { Repository } from '../../oci/registry/repository.js';

/** An archive with the content of its base. */
export type BaseContent = ReturnType<typeof createBaseContent>;

/**
 * Returns an archive with the content of its base: content that the archive lacks is read from the target registry,
 * verified by digest.
 */
export function createBaseContent(archive: OpenedArchive, registry: string, session: ImageSession) {
  const { signal } = session;
  const opened = new Map<string, Promise<Repository>>();
  const open = (repository: string): Promise<Repository> =>
    getOrAdd(opened, repository, async () => {
      const { connect, logger } = session;
      return createRegistryRepository({
        connection: await connect(),
        registry,
        repository,
        logger,
        withoutMirrors: true,
      });
    });
  /** Repositories of the target with content that the archive lacks, by digest; blobs are mounted from there. */
  const holders = new Map<string, string>();
  return {
    holders,
    /** Reports whether the base is an inventory of a registry, not an archive, and the archive needs its content. */
    isOfRegistry: (): boolean => archive.index.holders !== undefined && archive.missing().size > 0,
    /**
     * Returns a repository of the archive. Missing content is read from its holder, else from the one in the index of the
     * archive, else from `fallback`.
     */
    repository(name: string, fallback?: string): Repository {
      const archived = archive.repository(name);
      const select = async (digest: string): Promise<Repository> => {
        if (archive.locate(digest) !== undefined) return archived;
        const holder = holders.get(digest) ?? archive.index.holders?.get(digest) ?? fallback;
        return holder === undefined ? archived : open(holder);
      };
      return {
        ...archived,
        getManifest: async (digest, options) => (await select(digest)).getManifest(digest, options),
        headManifest: async (digest, options) => (await select(digest)).headManifest(digest, options),
        openBlob: async (blob, options) => (await select(blob.digest)).openBlob(blob, options),
        hasBlob: async (blob, options) => (await select(blob.digest)).hasBlob(blob, options),
      };
    },
    /** Returns the first of these repositories of the target that has a manifest or blob. */
    async findHolder(
      { digest, mediaType, size }: Descriptor,
      isManifest: boolean,
      repositories: Iterable<string>,
    ): Promise<string | undefined> {
      for (const name of repositories) {
        const repository = await open(name);
        const isPresent = isManifest
          ? (await repository.headManifest(digest, { signal })) !== undefined
          : await repository.hasBlob({ digest, mediaType, size }, { signal });
        if (isPresent) return name;
      }
      return undefined;
    },
  };
}
