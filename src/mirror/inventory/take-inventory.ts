import { count } from '../../core/printable.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled, ifFound } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { describeManifest } from '../../oci/image/contents.js';
import type { ImageSession } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import { NameIndex } from '../../core/suggest.js';
import { quoteGo } from '../../document/go-json.js';
import type { Descriptor } from '../../oci/image/types.js';
import { isNonDistributable } from '../../oci/image/manifest.js';
import { NoCatalogError, listRepositories } from '../../oci/registry/list-repositories.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import type { ManifestContent, Repository } from '../../oci/registry/repository.js';
import type { MirrorTarget } from '../naming/mirror-target.js';
import { type Inventory, type InventoryRepository, maxInventoryItems, maxRepositories } from './inventory.js';

interface TakeInventoryOptions {
  session: ImageSession;
  /** Repositories to read, with digests of untagged images; default all below the target. */
  repositories?: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  /** Maximum parallel requests. */
  maxPerRegistry: number;
}

const repositoriesAtOnce = 4;
/** Maximum number of manifests of a repository. */
const maxManifestsOfRepository = 200_000;

/**
 * Reads the content of a registry below a path: tags, manifests with listed ones and referrers, and present blobs.
 * Unreadable manifests are omitted, with a warning. Throws OpmateError: NOT_FOUND if the registry does not list its
 * repositories and none are given, and errors of requests.
 */
export async function takeInventory(target: MirrorTarget, options: TakeInventoryOptions): Promise<Inventory> {
  const { session } = options;
  const { logger = silentLogger, signal } = session;
  const connection = await session.connect();
  const wanted = options.repositories ?? (await findRepositories(target, options));
  if (wanted.size > maxRepositories)
    throw new LimitError(`more than ${maxRepositories} repositories`, { subject: target.registry });
  const names = [...wanted.keys()];
  let done = 0;
  const concurrency = Math.max(1, Math.ceil((options.maxPerRegistry * 2) / repositoriesAtOnce));
  logger.progress({ task: 'take inventory', state: 'start' });
  const read = await mapConcurrent(
    names,
    repositoriesAtOnce,
    async (name) => {
      const repository = createRegistryRepository({
        connection,
        registry: target.registry,
        repository: name,
        logger,
        withoutMirrors: true,
      });
      const digests = wanted.get(name) ?? new Set<string>();
      const reader = new RepositoryReader(repository, { signal, logger, concurrency });
      const content = await reader.read(digests);
      const progress = { current: ++done, total: names.length, unit: 'items' as const };
      logger.progress({ task: 'take inventory', state: 'update', ...progress });
      return content;
    },
    session,
  );
  logger.progress({ task: 'take inventory', state: 'done' });
  return combine(target, names, read);
}

async function findRepositories(
  { registry, path }: MirrorTarget,
  { session }: TakeInventoryOptions,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  try {
    const all = await listRepositories(await session.connect(), registry, { signal: session.signal });
    const isBelow = (name: string): boolean => path === '' || name === path || name.startsWith(`${path}/`);
    const names = all.filter(isBelow);
    if (names.length === 0 && path !== '' && all.length > 0) throw noRepository(registry, path, all);
    return new Map(names.map((name) => [name, new Set()]));
  } catch (error) {
    if (!(error instanceof NoCatalogError)) throw error;
    const login = error.code === 'AUTH' ? `; or ${error.hint ?? 'log in'}` : '';
    throw new OpmateError('NOT_FOUND', `does not list its repositories: ${error.problem}`, {
      subject: registry,
      hint: `specify them with options.repositories, or a lock or archive of the mirrored images with options.lock${login}`,
      cause: error,
    });
  }
}

/** Returns the error for a path without repositories, which may be mistyped: an empty inventory omits nothing. */
function noRepository(registry: string, path: string, all: readonly string[]): OpmateError {
  const parents = new Set(
    all.flatMap((name) => name.split('/').map((_, i, parts) => parts.slice(0, i + 1).join('/'))),
  );
  const nearest = new NameIndex(parents).nearest(path);
  return new OpmateError('NOT_FOUND', 'no repository below this path', {
    subject: `${registry}/${path}`,
    hint:
      nearest === undefined ? 'check the path, or mirror to it first' : `did you mean ${quoteGo(nearest)}?`,
  });
}

interface RepositoryContent {
  repository: InventoryRepository;
  manifests: ReadonlyMap<string, number>;
  blobs: ReadonlyMap<string, number>;
}

type ReadOptions = CancelOptions & { concurrency: number; logger: Logger };

/** Reads the content of a repository. */
class RepositoryReader {
  readonly #source: Repository;
  readonly #options: ReadOptions;
  /** Sizes of read manifests, by digest. */
  readonly #manifests = new Map<string, number>();
  /** Blobs of these manifests, by digest. */
  readonly #blobs = new Map<string, Descriptor>();

  constructor(source: Repository, options: ReadOptions) {
    this.#source = source;
    this.#options = options;
  }

  /** Reads the tags of the repository and these digests, with all that they need. */
  async read(digests: ReadonlySet<string>): Promise<RepositoryContent> {
    // A listed repository may be empty, a given one missing.
    const names = (await ifFound(this.#source.listTags(this.#options))) ?? [];
    const roots = await this.#readAll([...names, ...digests], async (name) => ({
      name,
      content: await this.#getManifest(name),
    }));
    const tags = new Map<string, string>();
    for (const { name, content } of roots) {
      if (content !== undefined && !name.includes(':')) tags.set(name, content.descriptor.digest);
    }
    const contents = roots.flatMap(({ content }) => content ?? []);
    await this.#walk(contents);
    await this.#walkReferrers(contents, new Set(names));
    const blobs = await this.#findPresentBlobs();
    const manifests = this.#manifests;
    const repository = { tags, manifests: new Set(manifests.keys()), blobs: new Set(blobs.keys()) };
    return { repository, manifests, blobs };
  }

  /** Reads manifests and their listed ones, level by level; missing ones are skipped. */
  async #walk(first: readonly ManifestContent[]): Promise<void> {
    let level = first;
    while (level.length > 0) {
      const next = new Set<string>();
      for (const content of level) {
        for (const listed of this.#noteManifest(content)) if (!this.#manifests.has(listed)) next.add(listed);
      }
      level = await this.#getManifests([...next]);
    }
  }

  /** Notes a manifest and its blobs; returns the manifests that it lists, none if it is noted already or unreadable. */
  #noteManifest(content: ManifestContent): readonly string[] {
    const { digest, size } = content.descriptor;
    if (this.#manifests.has(digest)) return [];
    if (this.#manifests.size >= maxManifestsOfRepository)
      throw new LimitError(`more than ${maxManifestsOfRepository} manifests`, { subject: this.#source.name });
    try {
      const { manifest } = describeManifest(content, getSubject(this.#source.name, digest));
      this.#manifests.set(digest, size);
      for (const blob of manifest.blobs) this.#blobs.set(blob.digest, blob);
      return manifest.manifests;
    } catch (error) {
      this.#warn(error);
      return [];
    }
  }

  async #walkReferrers(roots: readonly ManifestContent[], tags: ReadonlySet<string>): Promise<void> {
    const digests = [...new Set(roots.map(({ descriptor }) => descriptor.digest))];
    const lists = await this.#readAll(digests, (digest) =>
      this.#source.listReferrers(digest, { ...this.#options, tags }).catch((error: unknown) => {
        this.#warn(error);
        return [];
      }),
    );
    const referrers = new Set(lists.flat().map(({ digest }) => digest));
    const fresh = [...referrers].filter((digest) => !this.#manifests.has(digest));
    await this.#walk(await this.#getManifests(fresh));
  }

  /** Returns the sizes of present blobs: a manifest does not prove that its blobs exist. */
  async #findPresentBlobs(): Promise<Map<string, number>> {
    const { name } = this.#source;
    const all = [...this.#blobs.values()];
    if (all.length > maxInventoryItems)
      throw new LimitError(`more than ${maxInventoryItems} blobs`, { subject: name });
    const isPresent = await this.#readAll(all, (blob) => this.#source.hasBlob(blob, this.#options));
    const missing = all.filter((blob, i) => isPresent[i] !== true && !isNonDistributable(blob));
    if (missing.length > 0) {
      const problem = `${count(missing.length, 'blob')} missing, e.g. ${missing[0]?.digest ?? ''}`;
      this.#options.logger.log('warn', `${name}: ${problem}: left out of the inventory`);
    }
    return new Map(all.filter((_, i) => isPresent[i] === true).map(({ digest, size }) => [digest, size]));
  }

  async #getManifests(digests: readonly string[]): Promise<ManifestContent[]> {
    const read = await this.#readAll(digests, (digest) => this.#getManifest(digest));
    return read.filter((content) => content !== undefined);
  }

  /** Returns undefined for a missing manifest, or with a warning for an unreadable one. */
  async #getManifest(reference: string): Promise<ManifestContent | undefined> {
    return ifFound(this.#source.getManifest(reference, this.#options)).catch((error: unknown) => {
      this.#warn(error);
      return undefined;
    });
  }

  #readAll<T, R>(items: readonly T[], read: (item: T) => Promise<R>): Promise<R[]> {
    return mapConcurrent(items, this.#options.concurrency, read, this.#options);
  }

  /** Warns about unusable content; throws other errors. */
  #warn(error: unknown): void {
    throwIfCancelled(this.#options.signal);
    const isContent =
      error instanceof OpmateError &&
      ['INVALID', 'SYNTAX', 'DIGEST', 'LIMIT', 'UNSUPPORTED'].includes(error.code);
    if (!isContent) throw error;
    this.#options.logger.log('warn', `${error.message}: left out of the inventory`);
  }
}

function combine(
  { registry, path }: MirrorTarget,
  names: readonly string[],
  contents: readonly RepositoryContent[],
): Inventory {
  const repositories = new Map<string, InventoryRepository>();
  const manifests = new Map<string, number>();
  const blobs = new Map<string, number>();
  for (const [i, { repository, ...own }] of contents.entries()) {
    if (repository.manifests.size === 0) continue;
    repositories.set(names[i] as string, repository);
    for (const [digest, size] of own.manifests) manifests.set(digest, size);
    for (const [digest, size] of own.blobs) blobs.set(digest, size);
  }
  return {
    registry: `docker://${path === '' ? registry : `${registry}/${path}`}`,
    repositories,
    manifests,
    blobs,
  };
}
