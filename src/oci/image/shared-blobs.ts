import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { isNonDistributable } from './manifest.js';
import type { PutBlobOptions, Repository, WritableRepository } from '../registry/repository.js';
import { retryDamaged } from '../transport/retry-policy.js';
import type { Descriptor } from './types.js';

/** Outcome of a blob; `skipped` is an unavailable non-distributable layer. */
type BlobOutcome = 'copied' | 'mounted' | 'present' | 'skipped';

export interface CopyBlobOptions extends PutBlobOptions {
  logger?: Logger | undefined;
  /** Runs a request, or the transfer of this many bytes, when there is capacity. */
  whenFree?: (<T>(bytes: number, work: () => Promise<T>) => Promise<T>) | undefined;
}

/** A repository within its registry. Other repositories are places of their own. */
export interface RepositoryLocation {
  registry: string;
  repository: string;
}

/** Knowledge about a registry. */
interface Place {
  /** Repositories with a blob, by its digest. */
  holders: Map<string, Set<string>>;
  /** Blobs being sent. */
  underWay: Map<string, Promise<void>>;
  /** Blobs being sent to, or mounted in, a repository. */
  arriving: Map<string, Promise<void>>;
  /** It refused to mount an existing blob. */
  refusesMounts: boolean;
  /** Repositories from which mounting is refused. */
  closed: Set<string>;
}

/** Blobs copied to registries: each is sent to a registry once, and mounted in other repositories if possible. */
export class SharedBlobs {
  readonly #places = new Map<string, Place>();

  /** Notes that a repository has a blob. */
  note({ registry, repository }: RepositoryLocation, digest: string): void {
    getOrAdd(this.#placeAt(registry).holders, digest, () => new Set()).add(repository);
  }

  /**
   * Copies a blob to a repository that lacks it, after a running transfer to the same registry. Throws the errors of the
   * repositories. A blob is never sent twice to a repository at a time: the `distribution` registry refuses manifests
   * while it records that blob again.
   */
  async copy(
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions = {},
  ): Promise<BlobOutcome> {
    const place = this.#placeAt(toBlobPlace(target).registry);
    return new BlobCopy(place, source, target, blob, options).run();
  }

  /** Sends a blob that a repository lacks unexpectedly. */
  resend(
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions = {},
  ): Promise<BlobOutcome> {
    const { registry, repository } = toBlobPlace(target);
    this.#placeAt(registry).holders.get(blob.digest)?.delete(repository);
    return this.copy(source, target, blob, { ...options, isAbsent: true });
  }

  #placeAt(registry: string): Place {
    return getOrAdd(this.#places, registry, () => ({
      holders: new Map(),
      underWay: new Map(),
      arriving: new Map(),
      refusesMounts: false,
      closed: new Set(),
    }));
  }
}

/** Copy of a blob to a repository. */
class BlobCopy {
  readonly #place: Place;
  readonly #source: Repository;
  readonly #target: WritableRepository;
  readonly #blob: Descriptor;
  readonly #options: CopyBlobOptions;
  readonly #location: RepositoryLocation;
  readonly #whenFree: NonNullable<CopyBlobOptions['whenFree']>;
  /** Repositories of the registry with the blob. */
  readonly #holders: Set<string>;

  constructor(
    place: Place,
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions,
  ) {
    this.#place = place;
    this.#source = source;
    this.#target = target;
    this.#blob = blob;
    this.#options = options;
    this.#location = toBlobPlace(target);
    this.#whenFree = options.whenFree ?? runNow;
    this.#holders = getOrAdd(place.holders, blob.digest, () => new Set());
  }

  /** Brings the blob to the repository, once other copies of it to the same repository have ended. */
  async run(): Promise<BlobOutcome> {
    const { arriving } = this.#place;
    const { repository } = this.#location;
    const key = `${this.#blob.digest} ${repository}`;
    for (;;) {
      throwIfCancelled(this.#options.signal);
      if (this.#holders.has(repository)) return 'present';
      const other = arriving.get(key);
      if (other === undefined) break;
      await other;
    }
    const bringing = this.#bring();
    const ended = bringing.then(
      () => undefined,
      () => undefined,
    );
    arriving.set(key, ended);
    try {
      return await bringing;
    } finally {
      arriving.delete(key);
    }
  }

  /** Mounts the blob, or else sends it, once other transfers of it to the registry have ended. */
  async #bring(): Promise<BlobOutcome> {
    const { digest } = this.#blob;
    const { repository } = this.#location;
    for (;;) {
      throwIfCancelled(this.#options.signal);
      if (await this.#mount()) {
        this.#holders.add(repository);
        return 'mounted';
      }
      const key = this.#place.refusesMounts ? `${digest} ${repository}` : digest;
      const other = this.#place.underWay.get(key);
      if (other === undefined) return this.#send(key);
      // A failed transfer is reported with its own image; this one uses its own source.
      await other.catch(() => undefined);
    }
  }

  /** Mounts the blob from any repository of the registry that has it. */
  async #mount(): Promise<boolean> {
    const place = this.#place;
    const { registry, repository } = this.#location;
    const own = toBlobPlace(this.#source);
    const isSibling = own.registry === registry && own.repository !== repository;
    for (const from of [...this.#holders, ...(isSibling ? [own.repository] : [])]) {
      if (place.refusesMounts) return false;
      if (place.closed.has(from)) continue;
      try {
        const mount = () => this.#target.mountBlob(this.#blob, from, this.#options);
        if (await this.#whenFree(0, mount)) return true;
        place.refusesMounts = true;
      } catch (error) {
        // Access to the target does not include access to `from`.
        const isRefusal =
          error instanceof OpmateError && ['AUTH', 'NOT_FOUND', 'UNSUPPORTED'].includes(error.code);
        if (!isRefusal) throw error;
        place.closed.add(from);
      }
    }
    return false;
  }

  /** Sends the blob, as a transfer under way by `key`. */
  async #send(key: string): Promise<BlobOutcome> {
    const { underWay } = this.#place;
    const sending = this.#whenFree(this.#blob.size, () =>
      send(this.#source, this.#target, this.#blob, this.#options),
    );
    const ended = sending.then(() => undefined);
    underWay.set(key, ended);
    try {
      const outcome = await sending;
      if (outcome !== 'skipped') this.#holders.add(this.#location.repository);
      return outcome;
    } finally {
      underWay.delete(key);
      await ended.catch(() => undefined);
    }
  }
}

const runNow = <T>(_bytes: number, work: () => Promise<T>): Promise<T> => work();

async function send(
  source: Repository,
  target: WritableRepository,
  blob: Descriptor,
  options: CopyBlobOptions,
): Promise<BlobOutcome> {
  let opened = false;
  const open = () => {
    opened = true;
    return source.openBlob(blob, options);
  };
  try {
    const put = () => target.putBlob(blob, open, options);
    // A damaged blob leaves nothing at the target.
    await ('registry' in source ? retryDamaged(put, options) : put());
  } catch (error) {
    const isGone = error instanceof OpmateError && error.code === 'NOT_FOUND' && opened;
    if (!isGone || !isNonDistributable(blob)) throw error;
    const { logger = silentLogger } = options;
    logger.log('warn', `${source.name}: ${blob.digest}: non-distributable layer skipped`);
    return 'skipped';
  }
  return opened ? 'copied' : 'present';
}

function toBlobPlace(repository: Repository): RepositoryLocation {
  return 'registry' in repository && 'repository' in repository
    ? { registry: String(repository.registry), repository: String(repository.repository) }
    : { registry: repository.name, repository: '' };
}
