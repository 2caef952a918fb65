import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { describeManifest } from '../../oci/image/contents.js';
import type { ImageSession } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import type { Descriptor } from '../../oci/image/types.js';
import { isNonDistributable } from '../../oci/layout/layout-manifest.js';
import { NoCatalogError, listRepositories } from '../../oci/registry/list-repositories.js';
import { createRegistryRepository } from '../../oci/registry/registry-client.js';
import type { ManifestContent, Repository } from '../../oci/registry/repository.js';
import type { MirrorTarget } from '../image-set/image-set-names.js';
import { type Inventory, type InventoryRepository, maxInventoryItems, maxRepositories } from './inventory.js';

interface TakeInventoryOptions extends CancelOptions {
  session: ImageSession;
  /** Repositories to read, with digests of untagged images in them; all below the target where left out. */
  repositories?: ReadonlyMap<string, ReadonlySet<string>> | undefined;
  /** Maximum parallel requests. */
  maxPerRegistry: number;
  logger?: Logger | undefined;
}

const repositoriesAtOnce = 4;
/** Manifests of one repository. */
const maxManifestsOfRepository = 200_000;

/**
 * Reads what a registry has below a path: tags, the manifests that they name, what those list and what refers to
 * them, and the blobs that are there. Throws OpmateError: NOT_FOUND where the registry has no list of repositories
 * and none is named, and what requests throw. A manifest that cannot be read is left out, with a warning.
 */
export async function takeInventory(target: MirrorTarget, options: TakeInventoryOptions): Promise<Inventory> {
  const { session, logger = silentLogger } = options;
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
        ...{ connection, registry: target.registry, repository: name, logger },
        withoutMirrors: true,
      });
      const foundRepository = await new RepositoryInventory(repository, {
        ...options,
        logger,
        concurrency,
      }).read(wanted.get(name) ?? new Set());
      const progress = { current: ++done, total: names.length, unit: 'items' as const };
      logger.progress({ task: 'take inventory', state: 'update', ...progress });
      return foundRepository;
    },
    options,
  );
  logger.progress({ task: 'take inventory', state: 'done' });
  return combine(target, names, read);
}

/** All repositories below a target. */
async function findRepositories(
  { registry, path }: MirrorTarget,
  { session, signal }: TakeInventoryOptions,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  try {
    const all = await listRepositories(await session.connect(), registry, { signal });
    const isBelow = (name: string): boolean => path === '' || name === path || name.startsWith(`${path}/`);
    return new Map(all.filter(isBelow).map((name) => [name, new Set()]));
  } catch (error) {
    if (!(error instanceof NoCatalogError)) throw error;
    const login = error.code === 'AUTH' ? `; or ${error.hint ?? 'log in'}` : '';
    throw new OpmateError('NOT_FOUND', `does not list its repositories: ${error.problem}`, {
      subject: registry,
      hint: `specify them with --repository, or a lock or archive of the mirrored images with --lock${login}`,
      cause: error,
    });
  }
}

interface FoundRepository {
  repository: InventoryRepository;
  manifests: ReadonlyMap<string, number>;
  blobs: ReadonlyMap<string, number>;
}

type ReadOptions = CancelOptions & { concurrency: number; logger: Logger };

/** Reads one repository. */
class RepositoryInventory {
  readonly #source: Repository;
  readonly #options: ReadOptions;
  readonly #manifests = new Map<string, number>();
  readonly #blobs = new Map<string, Descriptor>();

  constructor(source: Repository, options: ReadOptions) {
    this.#source = source;
    this.#options = options;
  }

  async read(digests: ReadonlySet<string>): Promise<FoundRepository> {
    const { concurrency } = this.#options;
    const names = await this.#source.listTags(this.#options).catch((error: unknown) => {
      // It is listed and has nothing, or is named and is not there yet.
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') return [];
      throw error;
    });
    const roots = await mapConcurrent(
      [...names, ...digests],
      concurrency,
      async (name) => ({ name, content: await this.#manifest(name) }),
      this.#options,
    );
    const tags = new Map<string, string>();
    for (const { name, content } of roots) {
      if (content !== undefined && !name.includes(':')) tags.set(name, content.descriptor.digest);
    }
    const contents = roots.flatMap(({ content }) => content ?? []);
    await this.#walk(contents);
    await this.#walkReferrers(contents, new Set(names));
    const blobs = await this.#presentBlobs();
    const repository = {
      tags,
      manifests: new Set(this.#manifests.keys()),
      blobs: new Set(blobs.keys()),
    };
    return { repository, manifests: this.#manifests, blobs };
  }

  /** Reads manifests and what they list, level by level; children that are not there are passed over. */
  async #walk(first: readonly ManifestContent[]): Promise<void> {
    let level = first;
    while (level.length > 0) {
      const next = new Set<string>();
      for (const content of level) {
        const { digest, size } = content.descriptor;
        if (this.#manifests.has(digest)) continue;
        if (this.#manifests.size >= maxManifestsOfRepository)
          throw new LimitError(`more than ${maxManifestsOfRepository} manifests`, {
            subject: this.#source.name,
          });
        let described: ReturnType<typeof describeManifest>;
        try {
          described = describeManifest(content, getSubject(this.#source.name, digest));
        } catch (error) {
          this.#warn(error);
          continue;
        }
        this.#manifests.set(digest, size);
        for (const blob of described.manifest.blobs) this.#blobs.set(blob.digest, blob);
        for (const listed of described.manifest.manifests) if (!this.#manifests.has(listed)) next.add(listed);
      }
      const { concurrency } = this.#options;
      const read = await mapConcurrent(
        [...next],
        concurrency,
        (digest) => this.#manifest(digest),
        this.#options,
      );
      level = read.filter((content) => content !== undefined);
    }
  }

  async #walkReferrers(roots: readonly ManifestContent[], tags: ReadonlySet<string>): Promise<void> {
    const digests = [...new Set(roots.map(({ descriptor }) => descriptor.digest))];
    const lists = await mapConcurrent(
      digests,
      this.#options.concurrency,
      (digest) =>
        this.#source.listReferrers(digest, { ...this.#options, tags }).catch((error: unknown) => {
          this.#warn(error);
          return [];
        }),
      this.#options,
    );
    const fresh = [...new Set(lists.flat().map(({ digest }) => digest))].filter(
      (digest) => !this.#manifests.has(digest),
    );
    const { concurrency } = this.#options;
    const read = await mapConcurrent(fresh, concurrency, (digest) => this.#manifest(digest), this.#options);
    await this.#walk(read.filter((content) => content !== undefined));
  }

  /** A manifest; undefined for one that is gone, or, with a warning, cannot be read. */
  async #manifest(reference: string): Promise<ManifestContent | undefined> {
    try {
      return await this.#source.getManifest(reference, this.#options);
    } catch (error) {
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
      this.#warn(error);
      return undefined;
    }
  }

  /** Warns of content that cannot be used; throws what is not about content. */
  #warn(error: unknown): void {
    throwIfCancelled(this.#options.signal);
    const isContent =
      error instanceof OpmateError &&
      ['INVALID', 'SYNTAX', 'DIGEST', 'LIMIT', 'UNSUPPORTED'].includes(error.code);
    if (!isContent) throw error;
    this.#options.logger.log('warn', `${error.message}: left out of the inventory`);
  }

  /** The blobs that are there: a manifest does not prove its blobs. */
  async #presentBlobs(): Promise<Map<string, number>> {
    const all = [...this.#blobs.values()];
    if (all.length > maxInventoryItems)
      throw new LimitError(`more than ${maxInventoryItems} blobs`, { subject: this.#source.name });
    const present = await mapConcurrent(
      all,
      this.#options.concurrency,
      (blob) => this.#source.hasBlob(blob, this.#options),
      this.#options,
    );
    const missing = all.filter((blob, i) => present[i] !== true && !isNonDistributable(blob));
    if (missing.length > 0) {
      const what = `${missing.length} ${missing.length === 1 ? 'blob' : 'blobs'} missing, e.g. ${missing[0]?.digest ?? ''}`;
      this.#options.logger.log('warn', `${this.#source.name}: ${what}: left out of the inventory`);
    }
    return new Map(all.filter((_, i) => present[i] === true).map(({ digest, size }) => [digest, size]));
  }
}

function combine(
  { registry, path }: MirrorTarget,
  names: readonly string[],
  matches: readonly FoundRepository[],
): Inventory {
  const repositories = new Map<string, InventoryRepository>();
  const manifests = new Map<string, number>();
  const blobs = new Map<string, number>();
  for (const [i, { repository, ...own }] of matches.entries()) {
    if (repository.manifests.size === 0) continue;
    repositories.set(names[i] as string, repository);
    for (const [digest, size] of own.manifests) manifests.set(digest, size);
    for (const [digest, size] of own.blobs) blobs.set(digest, size);
  }
  return {
    registry: `docker://${path === '' ? registry : `${registry}/${path}`}`,
    ...{ repositories, manifests, blobs },
  };
}
