import { mapConcurrent } from '../../core/concurrency.js';
import { computeDigest, parseDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { sortedByBytes } from '../../core/order.js';
import { type ManifestFacts, isNonDistributable, readManifestFacts } from '../../oci/image/manifest.js';
import { type LayoutStore, MissingContentError } from '../../oci/layout/layout-store.js';
import { type Descriptor, maxManifestBytes } from '../../oci/image/types.js';
import { KeyedLock } from '../../core/keyed-lock.js';
import { RepositoryIndex } from './repository-index.js';
import { type RegistryStore, readPiece } from './store.js';

/** A manifest of one repository. */
interface StoredManifest {
  descriptor: Descriptor;
  facts: ManifestFacts;
}

/** Contents of one repository, updated after the index on disk. */
interface RepositoryContents {
  /** Digests by tag. */
  readonly tags: Map<string, string>;
  readonly manifests: Map<string, StoredManifest>;
  /** Blobs that its manifests refer to, or that were uploaded or mounted here. */
  readonly blobs: Set<string>;
}

/**
 * Repositories of a layout directory or archive, by its index; see `RepositoryIndex`. Blobs are shared. Manifests listed by
 * an image index need no entry. Contents of a repository are read with its first request.
 */
export class Repositories {
  readonly store: RegistryStore;
  readonly #index: RepositoryIndex;
  readonly #logger: Logger;
  readonly #locks = new KeyedLock();
  readonly #facts = new Map<string, ManifestFacts>();
  readonly #uploaded = new Map<string, Set<string>>();
  #generation = -1;
  #loaded = new Map<string, Promise<RepositoryContents>>();
  #grouped: { from: readonly Descriptor[]; groups: Map<string, Descriptor[]> } | undefined;

  constructor(store: RegistryStore, defaultRepository: string, logger: Logger) {
    this.store = store;
    this.#index = new RepositoryIndex(defaultRepository);
    this.#logger = logger;
  }

  /** Layout to change; archives refuse changes earlier. */
  get #layout(): LayoutStore {
    const { layout, content } = this.store;
    if (layout === undefined) throw new OpmateError('UNSUPPORTED', `${content.directory}: read-only`);
    return layout;
  }

  /** Lists the names of non-empty repositories, in byte order. */
  async listRepositories(): Promise<string[]> {
    await this.#refresh();
    const groups = this.#group();
    return sortedByBytes(new Set([...groups.keys(), ...this.#loaded.keys()]));
  }

  async find(repository: string): Promise<RepositoryContents | undefined> {
    await this.#refresh();
    const loaded = this.#loaded;
    const known = loaded.get(repository);
    if (known !== undefined) return await known;
    const entries = this.#group().get(repository);
    if (entries === undefined && !this.#uploaded.has(repository)) return undefined;
    const loading = this.#load(repository, entries ?? []);
    loading.catch(() => loaded.delete(repository));
    loaded.set(repository, loading);
    return await loading;
  }

  /** Reads a manifest and checks its digest; undefined if missing or damaged. */
  async readManifest(digest: string): Promise<Buffer | undefined> {
    const size = await this.store.content.blobSize(digest);
    if (size === undefined || size > maxManifestBytes) return undefined;
    const { file, offset } = this.store.locate(digest);
    const bytes = await readPiece(file, offset, size);
    if (bytes === undefined || computeDigest(bytes, parseDigest(digest).algorithm) === digest) return bytes;
    this.#logger.log(
      'error',
      `${this.store.content.directory}: ${digest}: content does not match its digest`,
    );
    return undefined;
  }

  /** Stores a manifest by digest and tags; the caller has checked its references. */
  async putManifest(
    repository: string,
    tags: readonly string[],
    descriptor: Descriptor,
    bytes: Buffer,
    facts: ManifestFacts,
  ): Promise<void> {
    const { digest } = descriptor;
    await this.#locks.run(digest, async () => {
      await this.#layout.writeBlob(digest, bytes);
      const needed = [
        digest,
        ...facts.blobs.filter((blob) => !isNonDistributable(blob)).map((blob) => blob.digest),
      ];
      await this.#layout.update(
        (entries) => this.#index.withManifest(entries, repository, tags, descriptor),
        // Garbage collection may have removed a blob since the caller checked it.
        async () => {
          for (const blob of needed) {
            if ((await this.#layout.claimBlob(blob)) === undefined)
              throw new MissingContentError(blob, repository);
          }
        },
      );
      this.#remember(digest, facts);
      await this.#apply(repository, (contents) => {
        contents.manifests.set(digest, { descriptor, facts });
        for (const blob of facts.blobs) contents.blobs.add(blob.digest);
        for (const tag of tags) contents.tags.set(tag, digest);
      });
      const contents = await this.find(repository);
      if (contents !== undefined) await this.#add(contents, facts.manifests);
    });
  }

  /** Removes a tag, and keeps its manifest; false if the tag does not exist. */
  async deleteTag(repository: string, tag: string): Promise<boolean> {
    const contents = await this.find(repository);
    if (contents === undefined || !contents.tags.has(tag)) return false;
    await this.#layout.update((entries) => this.#index.withoutTag(entries, repository, tag));
    await this.#apply(repository, ({ tags }) => tags.delete(tag));
    return true;
  }

  /** Removes a manifest and its tags; false if the repository does not have it. */
  async deleteManifest(repository: string, digest: string): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      if (!(await this.find(repository))?.manifests.has(digest)) return false;
      await this.#layout.update((entries) => {
        const kept = entries.filter(
          (entry) => entry.digest !== digest || this.#index.getPlace(entry).repository !== repository,
        );
        return kept.length === entries.length ? entries : kept;
      });
      await this.#apply(repository, ({ manifests, tags }) => {
        manifests.delete(digest);
        for (const [tag, target] of tags) if (target === digest) tags.delete(tag);
      });
      await this.#removeUnused(digest);
      return true;
    });
  }

  /** Returns the size of a blob of a repository; undefined if the repository does not have it. */
  async getBlobSize(repository: string, digest: string): Promise<number | undefined> {
    const contents = await this.find(repository);
    return contents?.blobs.has(digest) ? await this.store.content.blobSize(digest) : undefined;
  }

  /** As `getBlobSize`, for a client that will refer to the blob; see `LayoutStore.claimBlob`. */
  async claimBlob(repository: string, digest: string): Promise<number | undefined> {
    const contents = await this.find(repository);
    return contents?.blobs.has(digest) ? await this.store.content.claimBlob(digest) : undefined;
  }

  /** Moves an uploaded file, checked and synced, into the layout. */
  async adoptBlob(repository: string, digest: string, temporaryPath: string): Promise<void> {
    await this.#locks.run(digest, async () => {
      await this.#layout.adoptBlob(temporaryPath, digest);
      await this.#addBlob(repository, digest);
    });
  }

  /** Mounts a blob from another repository, or from any. */
  async mountBlob(repository: string, digest: string, from: string | undefined): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      const size =
        from === undefined ? await this.store.content.claimBlob(digest) : await this.claimBlob(from, digest);
      if (size === undefined) return false;
      await this.#addBlob(repository, digest);
      return true;
    });
  }

  /** Removes a blob from a repository, and its file if unreferenced; false if the repository does not have it. */
  async deleteBlob(repository: string, digest: string): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      if ((await this.getBlobSize(repository, digest)) === undefined) return false;
      this.#uploaded.get(repository)?.delete(digest);
      await this.#apply(repository, ({ blobs }) => blobs.delete(digest));
      await this.#removeUnused(digest);
      return true;
    });
  }

  async #addBlob(repository: string, digest: string): Promise<void> {
    getOrAdd(this.#uploaded, repository, () => new Set<string>()).add(digest);
    await this.#apply(repository, ({ blobs }) => blobs.add(digest));
  }

  async #removeUnused(digest: string): Promise<void> {
    for (const name of await this.listRepositories()) {
      const contents = await this.find(name);
      if (contents?.blobs.has(digest) || contents?.manifests.has(digest)) return;
    }
    await this.#layout.removeBlob(digest);
    this.#facts.delete(digest);
  }

  /**
   * Applies a change of the index to loaded contents, in the order of writing, since each change gets here in equally many
   * steps. A repository that is not loaded will start from the newest index.
   */
  async #apply(repository: string, change: (contents: RepositoryContents) => void): Promise<void> {
    const contents = await this.#loaded.get(repository);
    if (contents !== undefined) change(contents);
  }

  /** Drops contents that derive from an index which another process has changed. */
  async #refresh(): Promise<void> {
    await this.store.content.entries();
    if (this.store.content.generation === this.#generation) return;
    this.#generation = this.store.content.generation;
    this.#loaded = new Map();
  }

  #group(): Map<string, Descriptor[]> {
    const entries = this.store.content.knownEntries;
    if (this.#grouped?.from !== entries) {
      const groups = groupBy(entries, (entry) => this.#index.getPlace(entry).repository);
      this.#grouped = { from: entries, groups };
    }
    return this.#grouped.groups;
  }

  async #load(repository: string, entries: readonly Descriptor[]): Promise<RepositoryContents> {
    const contents: RepositoryContents = {
      tags: new Map(),
      manifests: new Map(),
      blobs: new Set(this.#uploaded.get(repository)),
    };
    await this.#add(contents, entries);
    for (const entry of entries) {
      const { tag } = this.#index.getPlace(entry);
      if (tag !== undefined && contents.manifests.has(entry.digest)) contents.tags.set(tag, entry.digest);
    }
    return contents;
  }

  /** Adds manifests and all existing ones that they list. */
  async #add(contents: RepositoryContents, roots: readonly Descriptor[]): Promise<void> {
    let level = roots;
    while (level.length > 0) {
      const fresh = level.filter(({ digest }) => !contents.manifests.has(digest));
      const read = await mapConcurrent(fresh, 16, async (item) => ({
        item,
        facts: await this.#findFacts(item.digest),
      }));
      const next: Descriptor[] = [];
      for (const { item, facts } of read) {
        if (facts === undefined) continue;
        const { mediaType, digest, size } = item;
        contents.manifests.set(digest, { descriptor: { mediaType, digest, size }, facts });
        for (const blob of facts.blobs) contents.blobs.add(blob.digest);
        next.push(...facts.manifests);
      }
      level = next;
    }
  }

  async #findFacts(digest: string): Promise<ManifestFacts | undefined> {
    const known = this.#facts.get(digest);
    if (known !== undefined) return known;
    const bytes = await this.readManifest(digest);
    if (bytes === undefined) return undefined;
    try {
      return this.#remember(digest, readManifestFacts(bytes));
    } catch (error) {
      this.#logger.log('warn', `${this.store.content.directory}: ${digest}: not served: ${String(error)}`);
      return undefined;
    }
  }

  /** Keeps annotations of referrers only: they may fill megabytes. */
  #remember(digest: string, facts: ManifestFacts): ManifestFacts {
    if (facts.subject === undefined) delete facts.annotations;
    this.#facts.set(digest, facts);
    return facts;
  }
}
