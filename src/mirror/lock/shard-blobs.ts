import { mapConcurrent, sleep } from '../../core/concurrency.js';
import { getOrAdd } from '../../core/groups.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import type { Reference, RegistryReference } from '../../core/reference.js';
import type { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { toBlobPlace } from '../transfer/byte-progress.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import { createPlaces, joinReports } from '../transfer/transfer-step.js';
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
  const { shard, plan, transfer, waitMs } = options;
  const { session, maxPerRegistry } = transfer;
  const { logger, signal } = session;
  const places = createPlaces(session);
  const sent = { blobs: 0, bytes: 0 };

  /** Uploads blobs, or mounts those the registry is known to have. */
  const provide = (blobs: readonly LackingBlob[]) =>
    mapConcurrent(
      blobs,
      maxPerRegistry,
      async ({ blob, transfer: image }) => {
        const { repository: source } = await places.openSource(image);
        const target = await places.openTarget(image.target);
        const outcome = await shared.copy(source, target, blob, { signal, logger, isAbsent: true });
        if (outcome !== 'copied') return;
        sent.blobs++;
        sent.bytes += blob.size;
      },
      session,
    );

  /** Notes a repository to mount a blob from, if it has the blob. */
  const noteIfPresent = async ({ blob, target }: BlobPlace): Promise<boolean> => {
    const repository = await places.openTarget(target);
    if (!(await repository.hasBlob(blob, session))) return false;
    shared.note(toBlobPlace(target), blob.digest);
    return true;
  };

  const isProvider = ({ shared: { providers }, repository }: LackingBlob): boolean =>
    providers.get(repository) === shard;

  /** Waits for the blobs of other shards, and mounts those that this shard provides to a repository. */
  const waitFor = async (blobs: readonly LackingBlob[]): Promise<void> => {
    // A blob that this shard mounts in many repositories arrives in one.
    let left = groupByArrival(blobs, isProvider);
    let lastProgress = performance.now();
    let pollMs = firstPollMs;
    for (;;) {
      const isPresent = await mapConcurrent(left, maxPerRegistry, noteIfPresent, session);
      const arrived = left.filter((_, i) => isPresent[i] === true);
      await provide(arrived.flatMap(({ users }) => users.filter(isProvider)));
      const before = left.length;
      left = left.filter((_, i) => isPresent[i] !== true);
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
    await mapConcurrent(homes, maxPerRegistry, noteIfPresent, session);
  };

  try {
    noteKnown(surveyed, shared);
    const lacking = findLackingBlobs(surveyed, plan);
    const isOwn = (blob: LackingBlob): boolean => blob.shared.owner === shard && isProvider(blob);
    const isAtHome = ({ shared: { home }, repository }: LackingBlob): boolean => repository === home;
    const own = lacking.filter(isOwn);
    await provide(own.filter(isAtHome));
    await provide(own.filter((blob) => !isAtHome(blob)));
    const others = lacking.filter((blob) => !isOwn(blob));
    const keys = new Set(others.map(toKey));
    const isWaiting = ({ target, blobs }: SurveyedTransfer): boolean =>
      target.transport === 'docker' &&
      blobs.some((blob) => keys.has(toKey({ blob, repository: target.repository })));
    const ready = surveyed.filter((image) => !isWaiting(image));
    const first = await copyTransfers(ready, transfer, shared);
    if (others.length > 0) await waitFor(others);
    const last = await copyTransfers(surveyed.filter(isWaiting), transfer, shared);
    return joinReports({ done: [], missing: [], failed: [], ...sent }, first, last);
  } finally {
    await places.close();
  }
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
function groupByArrival(
  blobs: readonly LackingBlob[],
  isMounted: (blob: LackingBlob) => boolean,
): (BlobPlace & { users: LackingBlob[] })[] {
  const groups = new Map<string, BlobPlace & { users: LackingBlob[] }>();
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
