import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { isNonDistributable } from '../layout/layout-manifest.js';
import type { PutBlobOptions, Repository, WritableRepository } from '../registry/repository.js';
import { retryDamaged } from '../transport/retry-policy.js';
import type { Descriptor } from './types.js';

/** What became of a blob: sent, mounted from a neighbour, there already, or not to be had and not needed. */
type BlobOutcome = 'copied' | 'mounted' | 'present' | 'skipped';

export interface CopyBlobOptions extends PutBlobOptions {
  logger?: Logger | undefined;
  /** Runs a request, or the sending of so many bytes, when there is room for it. */
  whenFree?: (<T>(bytes: number, work: () => Promise<T>) => Promise<T>) | undefined;
}

/** A repository within its registry; what is in no registry is a place of its own. */
export interface BlobPlace {
  registry: string;
  repository: string;
}

/** What is known of one registry. */
interface Place {
  /** Repositories that have a blob, by its digest. */
  holders: Map<string, Set<string>>;
  /** Blobs that are being sent. */
  underWay: Map<string, Promise<void>>;
  /** Blobs that are being sent to, or mounted in, one repository. */
  arriving: Map<string, Promise<void>>;
  /** Whether it has refused to mount what was there. */
  refusesMounts: boolean;
  /** Repositories that nothing may be mounted from. */
  closed: Set<string>;
}

/**
 * Blobs on their way into the repositories of registries: each is sent to a registry once and mounted where else it
 * is needed, as long as the registry does that.
 */
export class SharedBlobs {
  readonly #places = new Map<string, Place>();

  /** Notes that a repository has a blob. */
  note({ registry, repository }: BlobPlace, digest: string): void {
    const { holders } = this.#placeAt(registry);
    const known = holders.get(digest);
    if (known === undefined) holders.set(digest, new Set([repository]));
    else known.add(repository);
  }

  /**
   * Brings a blob into a repository that is said to lack it. While the same registry is being sent the blob from
   * elsewhere, waits for that. Throws what the repositories throw.
   *
   * Nothing arrives twice in a repository: the `distribution` registry refuses a manifest while it writes anew that
   * the repository has one of its blobs.
   */
  async copy(
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions = {},
  ): Promise<BlobOutcome> {
    const { registry, repository } = toBlobPlace(target);
    const { holders, arriving } = this.#placeAt(registry);
    const key = `${blob.digest} ${repository}`;
    for (;;) {
      throwIfCancelled(options.signal);
      if (holders.get(blob.digest)?.has(repository)) return 'present';
      const other = arriving.get(key);
      if (other === undefined) break;
      await other;
    }
    const bringing = this.#bring(source, target, blob, options);
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

  /** Sends a blob that a repository was thought to have, and lacks. */
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

  async #bring(
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions,
  ): Promise<BlobOutcome> {
    const blobPlace = toBlobPlace(target);
    const { registry, repository } = blobPlace;
    const place = this.#placeAt(registry);
    const { whenFree = runNow } = options;
    for (;;) {
      throwIfCancelled(options.signal);
      if (await this.#mount(source, target, blob, options)) {
        this.note(blobPlace, blob.digest);
        return 'mounted';
      }
      const key = place.refusesMounts ? `${blob.digest} ${repository}` : blob.digest;
      const other = place.underWay.get(key);
      if (other !== undefined) {
        // Should that one fail, its own image tells; this one then tries from its own source.
        await other.catch(() => undefined);
        continue;
      }
      const sending = whenFree(blob.size, () => send(source, target, blob, options));
      const ended = sending.then(() => undefined);
      place.underWay.set(key, ended);
      try {
        const outcome = await sending;
        if (outcome !== 'skipped') this.note(blobPlace, blob.digest);
        return outcome;
      } finally {
        place.underWay.delete(key);
        await ended.catch(() => undefined);
      }
    }
  }

  /** Tries to have a blob mounted from wherever the registry is known to have it. */
  async #mount(
    source: Repository,
    target: WritableRepository,
    blob: Descriptor,
    options: CopyBlobOptions,
  ): Promise<boolean> {
    const { registry, repository } = toBlobPlace(target);
    const place = this.#placeAt(registry);
    const { whenFree = runNow } = options;
    const holders = [...(place.holders.get(blob.digest) ?? [])];
    const own = toBlobPlace(source);
    if (own.registry === registry && own.repository !== repository) holders.push(own.repository);
    for (const from of holders) {
      if (place.refusesMounts) return false;
      if (place.closed.has(from)) continue;
      try {
        if (await whenFree(0, () => target.mountBlob(blob, from, options))) return true;
        place.refusesMounts = true;
      } catch (error) {
        // Whoever may push here need not be allowed to mount from there.
        const isRefusal =
          error instanceof OpmateError && ['AUTH', 'NOT_FOUND', 'UNSUPPORTED'].includes(error.code);
        if (!isRefusal) throw error;
        place.closed.add(from);
      }
    }
    return false;
  }

  #placeAt(registry: string): Place {
    let place = this.#places.get(registry);
    if (place === undefined) {
      place = {
        holders: new Map(),
        underWay: new Map(),
        arriving: new Map(),
        refusesMounts: false,
        closed: new Set(),
      };
      this.#places.set(registry, place);
    }
    return place;
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
    // Nothing of a blob that came damaged stays at the target.
    await ('registry' in source ? retryDamaged(put, options) : put());
  } catch (error) {
    const isGone = error instanceof OpmateError && error.code === 'NOT_FOUND' && opened;
    if (!isGone || !isNonDistributable(blob)) throw error;
    const { logger = silentLogger } = options;
    logger.log('warn', `${source.name}: ${blob.digest}: non-distributable layer left out`);
    return 'skipped';
  }
  return opened ? 'copied' : 'present';
}

function toBlobPlace(repository: Repository): BlobPlace {
  return 'registry' in repository && 'repository' in repository
    ? { registry: String(repository.registry), repository: String(repository.repository) }
    : { registry: repository.name, repository: '' };
}
