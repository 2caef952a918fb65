import { mapConcurrent, sleep } from '../../core/concurrency.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import type { Reference, RegistryReference } from '../../core/reference.js';
import type { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { toBlobPlace } from '../transfer/byte-progress.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import { createPlaces, joinReports, noCopies } from '../transfer/transfer-step.js';
import type {
  PinnedTransfer,
  SurveyedTransfer,
  TransferOptions,
  TransferReport,
} from '../transfer/transfer-types.js';

/** A blob that images of several shards need. */
interface SharedBlob {
  /** Shard that uploads it. */
  owner: number;
  /** Repository that it is uploaded to. */
  home: string;
  /** Shards that provide it to repositories, by repository. */
  providers: ReadonlyMap<string, number>;
}

/** A shared blob that a repository lacks. */
interface LackingBlob {
  blob: Descriptor;
  repository: string;
  transfer: SurveyedTransfer;
  shared: SharedBlob;
}

/** A repository of the target that a blob is expected in. */
interface BlobPlace {
  blob: Descriptor;
  target: Reference;
}

/** A place where a blob arrives, with those that need it. */
interface Arrival extends BlobPlace {
  users: LackingBlob[];
}

const firstPollMs = 100;
const maxPollMs = 2_000;

/**
 * Assigns each blob that images of several shards need to the shard that uploads it, and to a repository. All shards
 * compute the same assignment. `shards` has the shard of each transfer.
 */
export function planSharedBlobs(
  transfers: readonly PinnedTransfer[],
  shards: readonly number[],
): ReadonlyMap<string, SharedBlob> {
  const uses = new Map<string, { blob: Descriptor; repositories: Map<string, Set<number>> }>();
  for (const [i, { target, contents }] of transfers.entries()) {
    if (target.transport !== 'docker') continue;
    for (const blob of contents.manifests.flatMap(({ blobs }) => blobs)) {
      const { repositories } = getOrAdd(uses, blob.digest, () => ({ blob, repositories: new Map() }));
      getOrAdd(repositories, target.repository, () => new Set()).add(shards[i] as number);
    }
  }
  const loads = new Map<number, number>();
  const getLoad = (shard: number): number => loads.get(shard) ?? 0;
  const plan = new Map<string, SharedBlob>();
  const largestFirst = [...uses.values()].sort(
    (a, b) => b.blob.size - a.blob.size || compareBytes(a.blob.digest, b.blob.digest),
  );
  for (const { blob, repositories } of largestFirst) {
    const users = [...new Set([...repositories.values()].flatMap((own) => [...own]))].sort((a, b) => a - b);
    if (users.length < 2) continue;
    const owner = users.reduce((best, shard) => (getLoad(shard) < getLoad(best) ? shard : best));
    loads.set(owner, getLoad(owner) + blob.size + 1);
    const names = sortedByBytes(repositories.keys());
    const home = names.find((name) => repositories.get(name)?.has(owner)) as string;
    const providers = names.map((name): [string, number] => {
      const own = repositories.get(name) as Set<number>;
      return [name, own.has(owner) ? owner : Math.min(...own)];
    });
    plan.set(blob.digest, { owner, home, providers: new Map(providers) });
  }
  return plan;
}

interface CopyShardOptions {
  shard: number;
  plan: ReadonlyMap<string, SharedBlob>;
  transfer: TransferOptions;
  /** Maximum time to wait for other shards after their last blob arrived, in milliseconds. */
  waitMs: number;
}

/**
 * Copies the images of one shard. Blobs shared with other shards are uploaded first, each by one shard; those of the
 * others are mounted when present, and uploaded here if they do not arrive in time.
 */
export async function copyShard(
  surveyed: readonly SurveyedTransfer[],
  shared: SharedBlobs,
  options: CopyShardOptions,
): Promise<TransferReport> {
  const copy = new ShardCopy(shared, options);
  try {
    return await copy.copyAll(surveyed);
  } finally {
    await copy.close();
  }
}

/** A copy of the images of one shard. */
class ShardCopy {
  readonly #shared: SharedBlobs;
  readonly #options: CopyShardOptions;
  readonly #places: ReturnType<typeof createPlaces>;
  /** Content sent before the images. */
  readonly #sent = { blobs: 0, bytes: 0 };

  constructor(shared: SharedBlobs, options: CopyShardOptions) {
    this.#shared = shared;
    this.#options = options;
    this.#places = createPlaces(options.transfer.session);
  }

  async copyAll(surveyed: readonly SurveyedTransfer[]): Promise<TransferReport> {
    const { plan, transfer } = this.#options;
    noteKnown(surveyed, this.#shared);
    const lacking = findLackingBlobs(surveyed, plan);
    const own = lacking.filter((blob) => this.#isOwn(blob));
    await this.#provide(own.filter(isAtHome));
    await this.#provide(own.filter((blob) => !isAtHome(blob)));
    const others = lacking.filter((blob) => !this.#isOwn(blob));
    const keys = new Set(others.map(toKey));
    const isWaiting = ({ target, blobs }: SurveyedTransfer): boolean =>
      target.transport === 'docker' &&
      blobs.some((blob) => keys.has(toKey({ blob, repository: target.repository })));
    const ready = surveyed.filter((image) => !isWaiting(image));
    const first = await copyTransfers(ready, transfer, this.#shared);
    if (others.length > 0) await this.#waitFor(others);
    const last = await copyTransfers(surveyed.filter(isWaiting), transfer, this.#shared);
    return joinReports({ ...noCopies, ...this.#sent }, first, last);
  }

  async close(): Promise<void> {
    await this.#places.close();
  }

  /** Waits for the blobs of other shards, and mounts those that this shard provides to a repository. */
  async #waitFor(blobs: readonly LackingBlob[]): Promise<void> {
    const { transfer, waitMs } = this.#options;
    const { logger, signal } = transfer.session;
    // A blob that this shard mounts in many repositories arrives in one.
    let left = groupByArrival(blobs, (blob) => this.#isProvider(blob));
    let lastProgress = performance.now();
    let pollMs = firstPollMs;
    for (;;) {
      const before = left.length;
      left = await this.#takeArrived(left);
      if (left.length === 0) return;
      const now = performance.now();
      if (left.length < before) {
        lastProgress = now;
        pollMs = firstPollMs;
      }
      if (now - lastProgress >= waitMs) break;
      if (pollMs === firstPollMs) logger?.log('debug', `waiting for ${left.length} blobs of other shards`);
      await sleep(Math.min(pollMs, waitMs), signal);
      pollMs = Math.min(pollMs * 2, maxPollMs);
    }
    logger?.log('info', `${left.length} blobs of other shards missing after the wait: copying them here`);
    // Blobs that the registry has in another repository are mounted, not uploaded.
    const homes = groupByArrival(
      left.flatMap(({ users }) => users),
      () => true,
    );
    await this.#noteHolders(homes);
  }

  /** Mounts what this shard provides of blobs that arrived; returns those that did not. */
  async #takeArrived(places: readonly Arrival[]): Promise<Arrival[]> {
    const isPresent = await this.#noteHolders(places);
    const arrived = places.filter((_, i) => isPresent[i] === true);
    await this.#provide(arrived.flatMap(({ users }) => users.filter((blob) => this.#isProvider(blob))));
    return places.filter((_, i) => isPresent[i] !== true);
  }

  /** Notes the repositories to mount blobs from that have them; returns whether each has. */
  async #noteHolders(places: readonly BlobPlace[]): Promise<boolean[]> {
    const { session, maxPerRegistry } = this.#options.transfer;
    const noteIfPresent = async ({ blob, target }: BlobPlace): Promise<boolean> => {
      const repository = await this.#places.openTarget(target);
      if (!(await repository.hasBlob(blob, session))) return false;
      this.#shared.note(toBlobPlace(target), blob.digest);
      return true;
    };
    return mapConcurrent(places, maxPerRegistry, noteIfPresent, session);
  }

  /** Uploads blobs, or mounts those the registry is known to have. */
  async #provide(blobs: readonly LackingBlob[]): Promise<void> {
    const { session, maxPerRegistry } = this.#options.transfer;
    const { logger, signal } = session;
    const provideOne = async ({ blob, transfer }: LackingBlob): Promise<void> => {
      const { repository: source } = await this.#places.openSource(transfer);
      const target = await this.#places.openTarget(transfer.target);
      const outcome = await this.#shared.copy(source, target, blob, { signal, logger, isAbsent: true });
      if (outcome !== 'copied') return;
      this.#sent.blobs++;
      this.#sent.bytes += blob.size;
    };
    await mapConcurrent(blobs, maxPerRegistry, provideOne, session);
  }

  /** Reports whether this shard uploads a blob, and to this repository. */
  #isOwn(blob: LackingBlob): boolean {
    return blob.shared.owner === this.#options.shard && this.#isProvider(blob);
  }

  #isProvider({ shared: { providers }, repository }: LackingBlob): boolean {
    return providers.get(repository) === this.#options.shard;
  }
}

function isAtHome({ shared: { home }, repository }: LackingBlob): boolean {
  return repository === home;
}

function findLackingBlobs(
  surveyed: readonly SurveyedTransfer[],
  plan: CopyShardOptions['plan'],
): LackingBlob[] {
  const lacking = new Map<string, LackingBlob>();
  for (const transfer of surveyed) {
    if (transfer.target.transport !== 'docker') continue;
    const { repository } = transfer.target;
    for (const blob of transfer.blobs) {
      const shared = plan.get(blob.digest);
      if (shared !== undefined)
        lacking.set(toKey({ blob, repository }), { blob, repository, transfer, shared });
    }
  }
  return [...lacking.values()];
}

/**
 * Groups blobs by the place where they arrive: the repository that the blob is uploaded to if this shard mounts it from
 * there, else their own.
 */
function groupByArrival(blobs: readonly LackingBlob[], isMounted: (blob: LackingBlob) => boolean): Arrival[] {
  const groups = new Map<string, Arrival>();
  for (const lacking of blobs) {
    const { blob, transfer, shared } = lacking;
    const repository = isMounted(lacking) ? shared.home : lacking.repository;
    const target = { ...transfer.target, repository } as RegistryReference;
    getOrAdd(groups, toKey({ blob, repository }), () => ({ blob, target, users: [] })).users.push(lacking);
  }
  return [...groups.values()];
}

function toKey({ blob, repository }: { blob: Descriptor; repository: string }): string {
  return `${blob.digest} ${repository}`;
}
