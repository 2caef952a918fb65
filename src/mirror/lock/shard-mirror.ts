import { sleep } from '../../core/concurrency.js';
import { groupBy } from '../../core/groups.js';
import type { SharedBlobs } from '../../oci/image/shared-blobs.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import { joinReports, noCopies } from '../transfer/transfer-step.js';
import {
  type PinnedTransfer,
  type StepFaults,
  type SurveyedTransfer,
  type TransferOptions,
  type TransferReport,
  isComplete,
} from '../transfer/transfer-types.js';
import { surveyTransfers } from '../transfer/transfer.js';
import { copyShard, planSharedBlobs } from './shard-blobs.js';
import type { Shard } from './shard.js';

/** Interval of requests for the progress of other shards. */
const pollMs = 500;
/** Number of images in the first batch of a search, doubled for each further one. */
const firstBatch = 50;

/** Report of mirroring a lock, or a shard of it. */
export interface LockReport extends TransferReport {
  /** Images of other shards seen missing, so the catalogs wait; the search of an earlier shard ends with the first few. */
  waiting: number;
}

interface ShardMirrorOptions {
  shard: Shard;
  transfer: TransferOptions;
  shared: SharedBlobs;
  /** Maximum time to wait for content of other shards after the last of it arrived, in milliseconds. */
  waitMs: number;
}

/**
 * Mirrors the images of one shard. Catalogs are copied by the last shard, which checks all images, or, if that gave up, by
 * any shard that finds all other images present.
 */
export class ShardMirror {
  /** Images of this shard. */
  readonly own: readonly PinnedTransfer[];
  readonly #others: readonly PinnedTransfer[];
  readonly #catalogs: readonly PinnedTransfer[];
  readonly #shardOf: ReadonlyMap<PinnedTransfer, number>;
  readonly #plan: ReturnType<typeof planSharedBlobs>;
  readonly #options: ShardMirrorOptions;

  /** `shards` has the shard of each operand. */
  constructor(
    [operands, catalogs]: readonly [PinnedTransfer[], PinnedTransfer[]],
    shards: readonly number[],
    options: ShardMirrorOptions,
  ) {
    const { index } = options.shard;
    this.own = operands.filter((_, i) => shards[i] === index);
    this.#others = operands.filter((_, i) => shards[i] !== index);
    this.#catalogs = catalogs;
    this.#shardOf = new Map(operands.map((transfer, i) => [transfer, shards[i] as number]));
    this.#plan = planSharedBlobs(operands, shards);
    this.#options = options;
  }

  /** Copies images of this shard, and the catalogs if it is their time; `faults` are those of the survey. */
  async copy(missing: readonly SurveyedTransfer[], faults: StepFaults): Promise<LockReport> {
    const { shard, transfer, shared, waitMs } = this.#options;
    const copied = await copyShard(missing, shared, {
      shard: shard.index,
      plan: this.#plan,
      transfer,
      waitMs,
    });
    const first = joinReports({ ...noCopies, ...faults }, copied);
    return shard.index < shard.count - 1 ? this.#endEarlier(first) : this.#endLast(first);
  }

  /** Leaves the catalogs to the last shard, unless that gave up and all other images are present. */
  async #endEarlier(first: TransferReport): Promise<LockReport> {
    // An image of another shard matters only to a catalog that is not copied yet.
    const isDone = first.failed.length === 0 && (await this.#findIncomplete(this.#catalogs)).length === 0;
    if (isDone || this.#catalogs.length === 0) return { ...first, waiting: 0 };
    const waiting = await this.#findSomeIncomplete(lastFirst(this.#others, this.#shardOf));
    if (waiting > 0 || first.failed.length > 0) return { ...first, waiting };
    if ((await this.#waitFor(this.#catalogs, this.#options.waitMs)) === 0) return { ...first, waiting: 0 };
    return this.#copyCatalogs(first);
  }

  /** Waits for the images of the other shards, then copies the catalogs. */
  async #endLast(first: TransferReport): Promise<LockReport> {
    const limitMs = first.failed.length > 0 || this.#catalogs.length === 0 ? 0 : this.#options.waitMs;
    const waiting = await this.#waitFor(this.#others, limitMs);
    if (waiting > 0 || first.failed.length > 0) return { ...first, waiting };
    return this.#copyCatalogs(first);
  }

  async #copyCatalogs(first: TransferReport): Promise<LockReport> {
    const { transfer, shared } = this.#options;
    const { surveyed } = await surveyTransfers(this.#catalogs, transfer);
    return { ...joinReports(first, await copyTransfers(surveyed, transfer, shared)), waiting: 0 };
  }

  /** Waits until all are complete, or no further one was for `limitMs`. Returns the number of incomplete ones. */
  async #waitFor(pinned: readonly PinnedTransfer[], limitMs: number): Promise<number> {
    let left = await this.#findIncomplete(pinned);
    let lastProgress = performance.now();
    while (left.length > 0 && performance.now() - lastProgress < limitMs) {
      await sleep(Math.min(pollMs, limitMs), this.#options.transfer.session.signal);
      const before = left.length;
      left = await this.#findIncomplete(left);
      if (left.length < before) lastProgress = performance.now();
    }
    return left.length;
  }

  /** Returns the number of incomplete images in the first batch with any. */
  async #findSomeIncomplete(pinned: readonly PinnedTransfer[]): Promise<number> {
    for (let start = 0, size = firstBatch; start < pinned.length; start += size, size *= 2) {
      const left = await this.#findIncomplete(pinned.slice(start, start + size));
      if (left.length > 0) return left.length;
    }
    return 0;
  }

  /** Returns the incomplete images, and notes the blobs of the others, which catalogs may share. */
  async #findIncomplete(pinned: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> {
    const { surveyed } = await surveyTransfers(pinned, this.#options.transfer);
    const present = surveyed.filter(isComplete);
    noteKnown(present, this.#options.shared);
    const complete = new Set(present.map(({ targetName }) => targetName));
    return pinned.filter(({ targetName }) => !complete.has(targetName));
  }
}

/** Returns images in the order in which a missing one is expected: shards copy theirs in their order, at the same time. */
function lastFirst(
  transfers: readonly PinnedTransfer[],
  shardOf: ReadonlyMap<PinnedTransfer, number>,
): PinnedTransfer[] {
  const groups = [...groupBy(transfers, (transfer) => shardOf.get(transfer)).values()];
  const ordered: PinnedTransfer[] = [];
  while (ordered.length < transfers.length) for (const group of groups) ordered.push(...group.splice(-1));
  return ordered;
}
