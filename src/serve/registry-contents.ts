import { mapConcurrent } from '../core/concurrency.js';
import { computeDigest, parseDigest } from '../core/digest.js';
import { OpmateError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import { sortedByBytes } from '../core/order.js';
import { repositoryAnnotation } from '../oci/archive-set/archive-layout.js';
import { type ManifestFacts, readManifestFacts } from '../oci/layout/layout-manifest.js';
import { type LayoutStore, refNameAnnotation } from '../oci/layout/layout-store.js';
import { type Descriptor, maxManifestBytes } from '../oci/image/types.js';
import { KeyedLock } from '../core/keyed-lock.js';
import { isRepositoryName, isTag } from '../oci/registry/registry-names.js';
import { type RegistryStore, readPiece } from './registry-store.js';

/** A manifest of one repository. */
interface StoredManifest {
  descriptor: Descriptor;
  facts: ManifestFacts;
}

/** What one repository holds. Changes only after the index on disk has. */
interface RepositoryContents {
  /** Digests by tag. */
  readonly tags: Map<string, string>;
  readonly manifests: Map<string, StoredManifest>;
  /** Blobs that its manifests name or that were uploaded or mounted here. */
  readonly blobs: Set<string>;
}

interface Place {
  repository: string;
  tag: string | undefined;
}

/**
 * The repositories of one layout directory or archive. The blobs are shared; which repository an index entry belongs
 * to is told by its tag annotation: `ns/name:v1` is `v1` of `ns/name`, and a bare `v1` is of the default
 * repository. An entry without a tag has the repository in an annotation of its own, or is of the default.
 * Manifests that an index lists need no entry. What a repository holds is read when it is first asked for.
 */
export class RegistryContents {
  readonly store: RegistryStore;
  readonly #defaultRepository: string;
  readonly #logger: Logger;
  readonly #locks = new KeyedLock();
  readonly #facts = new Map<string, ManifestFacts>();
  readonly #places = new WeakMap<Descriptor, Place>();
  readonly #uploaded = new Map<string, Set<string>>();
  #generation = -1;
  #loaded = new Map<string, Promise<RepositoryContents>>();
  #grouped: { from: readonly Descriptor[]; groups: Map<string, Descriptor[]> } | undefined;

  constructor(store: RegistryStore, defaultRepository: string, logger: Logger) {
    this.store = store;
    this.#defaultRepository = defaultRepository;
    this.#logger = logger;
  }

  /** Where changes go; whoever serves an archive refuses them before. */
  get #layout(): LayoutStore {
    const { layout, directory } = this.store;
    if (layout === undefined) throw new OpmateError('UNSUPPORTED', `${directory}: for reading only`);
    return layout;
  }

  /** Names of the repositories that hold anything, in byte order. */
  async listRepositories(): Promise<string[]> {
    await this.#refresh();
    const groups = this.#group();
    return sortedByBytes(new Set([...groups.keys(), ...this.#loaded.keys()]));
  }

  async find(repository: string): Promise<RepositoryContents | undefined> {
    await this.#refresh();
    let loading = this.#loaded.get(repository);
    if (loading === undefined) {
      const entries = this.#group().get(repository);
      if (entries === undefined && !this.#uploaded.has(repository)) return undefined;
      const loaded = this.#loaded;
      loading = this.#load(repository, entries ?? []);
      loading.catch(() => loaded.delete(repository));
      loaded.set(repository, loading);
    }
    return await loading;
  }

  /** Bytes of a manifest, checked; undefined when it is gone or damaged. */
  async readManifest(digest: string): Promise<Buffer | undefined> {
    const size = await this.store.blobSize(digest);
    if (size === undefined || size > maxManifestBytes) return undefined;
    const { file, offset } = this.store.locate(digest);
    const bytes = await readPiece(file, offset, size);
    if (bytes === undefined || computeDigest(bytes, parseDigest(digest).algorithm) === digest) return bytes;
    this.#logger.log('error', `${this.store.directory}: ${digest}: content does not match its digest`);
    return undefined;
  }

  /** Stores a manifest under its digest and under tags; what it refers to has been looked up before. */
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
      await this.#layout.update((entries) => this.#withManifest(entries, repository, tags, descriptor));
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

  /** Removes a tag; false if it does not exist. Its manifest stays. */
  async deleteTag(repository: string, tag: string): Promise<boolean> {
    const contents = await this.find(repository);
    if (contents === undefined || !contents.tags.has(tag)) return false;
    await this.#layout.update((entries) => this.#withoutTag(entries, repository, tag));
    await this.#apply(repository, ({ tags }) => tags.delete(tag));
    return true;
  }

  /** Removes a manifest and every tag of it; false when the repository has none with this digest. */
  async deleteManifest(repository: string, digest: string): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      if (!(await this.find(repository))?.manifests.has(digest)) return false;
      await this.#layout.update((entries) => {
        const kept = entries.filter(
          (entry) => entry.digest !== digest || this.#placeOf(entry).repository !== repository,
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

  /** Bytes of a blob of a repository; undefined when it has none with this digest. */
  async blobSize(repository: string, digest: string): Promise<number | undefined> {
    const contents = await this.find(repository);
    return contents?.blobs.has(digest) ? await this.store.blobSize(digest) : undefined;
  }

  /** The same for a client that will not upload what is there; see `RegistryStore.claimBlob`. */
  async claimBlob(repository: string, digest: string): Promise<number | undefined> {
    const contents = await this.find(repository);
    return contents?.blobs.has(digest) ? await this.store.claimBlob(digest) : undefined;
  }

  /** Puts an uploaded file, already checked and synced, in its place. */
  async adoptBlob(repository: string, digest: string, temporaryPath: string): Promise<void> {
    await this.#locks.run(digest, async () => {
      await this.#layout.adoptBlob(temporaryPath, digest);
      await this.#addBlob(repository, digest);
    });
  }

  /** Makes a blob of another repository, or of any when none is named, one of this repository too. */
  async mountBlob(repository: string, digest: string, from: string | undefined): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      const size =
        from === undefined ? await this.store.claimBlob(digest) : await this.claimBlob(from, digest);
      if (size === undefined) return false;
      await this.#addBlob(repository, digest);
      return true;
    });
  }

  /** Removes a blob from a repository, and its file when no other has it; false when it is not there. */
  async deleteBlob(repository: string, digest: string): Promise<boolean> {
    return await this.#locks.run(digest, async () => {
      if ((await this.blobSize(repository, digest)) === undefined) return false;
      this.#uploaded.get(repository)?.delete(digest);
      await this.#apply(repository, ({ blobs }) => blobs.delete(digest));
      await this.#removeUnused(digest);
      return true;
    });
  }

  async #addBlob(repository: string, digest: string): Promise<void> {
    let uploaded = this.#uploaded.get(repository);
    if (uploaded === undefined) this.#uploaded.set(repository, (uploaded = new Set()));
    uploaded.add(digest);
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
   * Does to what is in memory what has just been done to the index. Changes are applied in the order in which
   * they were written, since each gets here in as many steps. A repository that is not loaded needs nothing:
   * loading starts from the newest index.
   */
  async #apply(repository: string, change: (contents: RepositoryContents) => void): Promise<void> {
    const contents = await this.#loaded.get(repository);
    if (contents !== undefined) change(contents);
  }

  /** Forgets what was derived from an index that another process has changed since. */
  async #refresh(): Promise<void> {
    await this.store.entries();
    if (this.store.generation === this.#generation) return;
    this.#generation = this.store.generation;
    this.#loaded = new Map();
  }

  /** Entries by repository. */
  #group(): Map<string, Descriptor[]> {
    const entries = this.store.knownEntries;
    if (this.#grouped?.from !== entries) {
      const groups = new Map<string, Descriptor[]>();
      for (const entry of entries) {
        const { repository } = this.#placeOf(entry);
        const group = groups.get(repository);
        if (group === undefined) groups.set(repository, [entry]);
        else group.push(entry);
      }
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
      const { tag } = this.#placeOf(entry);
      if (tag !== undefined && contents.manifests.has(entry.digest)) contents.tags.set(tag, entry.digest);
    }
    return contents;
  }

  /** Takes manifests into a repository with all that they list, as far as it is there. */
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
      this.#logger.log('warn', `${this.store.directory}: ${digest}: not served: ${String(error)}`);
      return undefined;
    }
  }

  /** Annotations may fill megabytes, and only those of a referrer are ever shown. */
  #remember(digest: string, facts: ManifestFacts): ManifestFacts {
    if (facts.subject === undefined) delete facts.annotations;
    this.#facts.set(digest, facts);
    return facts;
  }

  #placeOf(entry: Descriptor): Place {
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

  #getEntry(repository: string, tag: string | undefined, descriptor: Descriptor): Descriptor {
    const { mediaType, digest, size } = descriptor;
    const isDefault = repository === this.#defaultRepository;
    if (tag !== undefined) {
      return {
        mediaType,
        digest,
        size,
        annotations: { [refNameAnnotation]: isDefault ? tag : `${repository}:${tag}` },
      };
    }
    return {
      mediaType,
      digest,
      size,
      ...(isDefault ? {} : { annotations: { [repositoryAnnotation]: repository } }),
    };
  }

  #withManifest(
    entries: readonly Descriptor[],
    repository: string,
    tags: readonly string[],
    descriptor: Descriptor,
  ): readonly Descriptor[] {
    const wanted = new Set(tags);
    const displaced = new Map<string, Descriptor>();
    let tagged = 0;
    let listed = false;
    const next: Descriptor[] = [];
    for (const entry of entries) {
      const place = this.#placeOf(entry);
      if (place.repository !== repository) {
        next.push(entry);
        continue;
      }
      const same = entry.digest === descriptor.digest;
      if (place.tag !== undefined && wanted.has(place.tag)) {
        if (same && entry.mediaType === descriptor.mediaType) {
          wanted.delete(place.tag);
          next.push(entry);
          tagged++;
        } else if (!same) displaced.set(entry.digest, entry);
      } else if (same && place.tag === undefined && tags.length > 0) {
        // The tag that is about to be written stands for it.
      } else {
        next.push(
          same && entry.mediaType !== descriptor.mediaType
            ? { ...entry, mediaType: descriptor.mediaType }
            : entry,
        );
        listed ||= same;
      }
    }
    for (const tag of wanted) next.push(this.#getEntry(repository, tag, descriptor));
    if (tags.length === 0 && !listed) next.push(this.#getEntry(repository, undefined, descriptor));
    this.#keepUntagged(next, repository, displaced);
    const unchanged = next.length === entries.length && next.every((entry, i) => entry === entries[i]);
    return unchanged && (tagged === tags.length || listed) ? entries : next;
  }

  #withoutTag(entries: readonly Descriptor[], repository: string, tag: string): readonly Descriptor[] {
    const displaced = new Map<string, Descriptor>();
    const next = entries.filter((entry) => {
      const place = this.#placeOf(entry);
      if (place.repository !== repository || place.tag !== tag) return true;
      displaced.set(entry.digest, entry);
      return false;
    });
    this.#keepUntagged(next, repository, displaced);
    return next.length === entries.length && displaced.size === 0 ? entries : next;
  }

  /** A manifest that loses its last tag stays in its repository, without one. */
  #keepUntagged(entries: Descriptor[], repository: string, displaced: ReadonlyMap<string, Descriptor>): void {
    for (const [digest, entry] of displaced) {
      const listed = entries.some(
        (other) => other.digest === digest && this.#placeOf(other).repository === repository,
      );
      if (!listed) entries.push(this.#getEntry(repository, undefined, entry));
    }
  }
}
