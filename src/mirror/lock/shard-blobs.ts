import { mapConcurrent } from '../../core/concurrency.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { pause } from '../../oci/transport/retry-policy.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import { OpenPlaces, joinReports } from '../transfer/transfer-step.js';
import type {
  PinnedTransfer,
  SurveyedTransfer,
  TransferOptions,
  TransferReport,
} from '../transfer/transfer-types.js';

/** A blob that images of several shards need. */
interface SharedBlob {
  /** The shard that sends it. */
  owner: number;
  /** The repository that it is sent to. */
  home: string;
  /** By repository, the shard that brings it there. */
  bringers: ReadonlyMap<string, number>;
}

/** A blob that a repository lacks, needed by images of several shards. */
interface LackingBlob {
  blob: Descriptor;
  repository: string;
  transfer: SurveyedTransfer;
  shared: SharedBlob;
}

const firstPollMs = 100;
const maxPollMs = 2_000;

/**
 * Says for each blob that images of several shards need which shard sends it, and where to. Every shard finds the same
 * from the same plan. `shards` has the shard of each transfer.
 */
export function planSharedBlobs(
  transfers: readonly PinnedTransfer[],
  shards: readonly number[],
): ReadonlyMap<string, SharedBlob> {
  const needs = new Map<string, { blob: Descriptor; repositories: Map<string, Set<number>> }>();
  for (const [i, { target, contents }] of transfers.entries()) {
    if (target.transport !== 'docker') continue;
    for (const blob of contents.manifests.flatMap(({ blobs }) => blobs)) {
      const need = getOrAdd(needs, blob.digest, () => ({
        blob,
        repositories: new Map<string, Set<number>>(),
      }));
      getOrAdd(need.repositories, target.repository, () => new Set()).add(shards[i] as number);
    }
  }
  const loads = new Map<number, number>();
  const plan = new Map<string, SharedBlob>();
  const largestFirst = [...needs.values()].sort(
    (a, b) => b.blob.size - a.blob.size || compareBytes(a.blob.digest, b.blob.digest),
  );
  for (const { blob, repositories } of largestFirst) {
    const needing = [...new Set([...repositories.values()].flatMap((own) => [...own]))].sort((a, b) => a - b);
    if (needing.length < 2) continue;
    const getLoad = (shard: number): number => loads.get(shard) ?? 0;
    const owner = needing.reduce((best, shard) => (getLoad(shard) < getLoad(best) ? shard : best));
    loads.set(owner, getLoad(owner) + blob.size + 1);
    const names = sortedByBytes(repositories.keys());
    const home = names.find((name) => repositories.get(name)?.has(owner)) as string;
    const bringers = names.map((name): [string, number] => {
      const own = repositories.get(name) as Set<number>;
      return [name, own.has(owner) ? owner : Math.min(...own)];
    });
    plan.set(blob.digest, { owner, home, bringers: new Map(bringers) });
  }
  return plan;
}

interface CopyShardOptions {
  shard: number;
  plan: ReadonlyMap<string, SharedBlob>;
  transfer: TransferOptions;
  /** How long to wait for other shards after the last blob of theirs has come. */
  waitMs: number;
}

/**
 * Copies the images of one shard. Blobs that other shards need too are sent first, each by one shard; what the others
 * send is mounted once it is there, and sent from here only where it does not come.
 */
export async function copyShard(
  surveyed: readonly SurveyedTransfer[],
  shared: SharedBlobs,
  options: CopyShardOptions,
): Promise<TransferReport> {
  const places = new OpenPlaces(options.transfer);
  try {
    return await new ShardCopy(surveyed, { ...options, shared, places }).run();
  } finally {
    await places.close();
  }
}

class ShardCopy {
  readonly #surveyed: readonly SurveyedTransfer[];
  readonly #options: CopyShardOptions & { shared: SharedBlobs; places: OpenPlaces };
  readonly #sent = { blobs: 0, bytes: 0 };

  constructor(
    surveyed: readonly SurveyedTransfer[],
    options: CopyShardOptions & { shared: SharedBlobs; places: OpenPlaces },
  ) {
    this.#surveyed = surveyed;
    this.#options = options;
  }

  async run(): Promise<TransferReport> {
    const { shard, shared, transfer, waitMs } = this.#options;
    noteKnown(this.#surveyed, shared);
    const lacking = this.#lackingBlobs();
    const isOwn = ({ shared: { owner, bringers }, repository }: LackingBlob): boolean =>
      owner === shard && bringers.get(repository) === shard;
    const own = lacking.filter(isOwn);
    const atHome = ({ shared: { home }, repository }: LackingBlob): boolean => repository === home;
    await this.#bring(own.filter(atHome));
    await this.#bring(own.filter((blob) => !atHome(blob)));
    const others = lacking.filter((blob) => !isOwn(blob));
    const keys = new Set(others.map(toKey));
    const isHeld = ({ target, blobs }: SurveyedTransfer): boolean =>
      target.transport === 'docker' &&
      blobs.some((blob) => keys.has(toKey({ blob, repository: target.repository })));
    const held = this.#surveyed.filter(isHeld);
    const first = await copyTransfers(
      this.#surveyed.filter((surveyedTransfer) => !isHeld(surveyedTransfer)),
      transfer,
      shared,
    );
    if (others.length > 0) await this.#await(others, waitMs);
    const last = await copyTransfers(held, transfer, shared);
    return joinReports({ done: [], missing: [], failed: [], ...this.#sent }, first, last);
  }

  #lackingBlobs(): LackingBlob[] {
    const { plan } = this.#options;
    const lacking = new Map<string, LackingBlob>();
    for (const transfer of this.#surveyed) {
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

  /** Sends blobs, or mounts them where the registry is known to have them. */
  async #bring(blobs: readonly LackingBlob[]): Promise<void> {
    const { transfer: options, shared, places } = this.#options;
    await mapConcurrent(
      blobs,
      options.maxPerRegistry,
      async ({ blob, transfer }) => {
        const from = await places.source(transfer);
        const target = await places.target(transfer.target);
        const outcome = await shared.copy(from.repository, target, blob, { ...options, isAbsent: true });
        if (outcome !== 'copied') return;
        this.#sent.blobs++;
        this.#sent.bytes += blob.size;
      },
      options,
    );
  }

  /** Waits for the blobs of other shards, and mounts what this one has to bring into a repository. */
  async #await(blobs: readonly LackingBlob[], waitMs: number): Promise<void> {
    const { transfer: options } = this.#options;
    const { logger = silentLogger } = options;
    let left = blobs;
    let lastProgress = performance.now();
    let poll = firstPollMs;
    for (;;) {
      const matches = await mapConcurrent(
        left,
        options.maxPerRegistry,
        (blob) => this.#isBrought(blob),
        options,
      );
      const before = left.length;
      left = left.filter((_, i) => matches[i] !== true);
      if (left.length === 0) return;
      const now = performance.now();
      if (left.length < before) {
        lastProgress = now;
        poll = firstPollMs;
      }
      if (now - lastProgress >= waitMs) break;
      if (poll === firstPollMs) logger.log('debug', `waiting for ${left.length} blobs of other shards`);
      await pause(Math.min(poll, waitMs), options.signal);
      poll = Math.min(poll * 2, maxPollMs);
    }
    logger.log('info', `${left.length} blobs of other shards missing after the wait: copying them here`);
    // Blobs that the registry holds in another repository are mounted, not uploaded.
    for (const blob of left) await this.#noteHome(blob);
  }

  async #isBrought(lackingBlob: LackingBlob): Promise<boolean> {
    const { shard, shared } = this.#options;
    const { blob, repository, transfer, shared: plan } = lackingBlob;
    if (plan.bringers.get(repository) === shard) {
      if (!(await this.#noteHome(lackingBlob))) return false;
      await this.#bring([lackingBlob]);
      return true;
    }
    const { places, transfer: options } = this.#options;
    const target = await places.target(transfer.target);
    if (!(await target.hasBlob(blob, options))) return false;
    if (transfer.target.transport === 'docker')
      shared.note({ registry: transfer.target.registry, repository }, blob.digest);
    return true;
  }

  /** Notes the home of a blob as a place to mount it from, once it is there. */
  async #noteHome({ blob, transfer: { target }, shared: { home } }: LackingBlob): Promise<boolean> {
    const { places, shared, transfer: options } = this.#options;
    if (target.transport !== 'docker') return false;
    const place = await places.target({ ...target, repository: home });
    if (!(await place.hasBlob(blob, options))) return false;
    shared.note({ registry: target.registry, repository: home }, blob.digest);
    return true;
  }
}

function toKey({ blob, repository }: { blob: Descriptor; repository: string }): string {
  return `${blob.digest} ${repository}`;
}
