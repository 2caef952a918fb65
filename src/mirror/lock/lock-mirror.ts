import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { parseReference } from '../../core/reference.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import { pause } from '../../oci/transport/retry-policy.js';
import type { Descriptor } from '../../oci/image/types.js';
import type { BaseContent } from './base-content.js';
import type { BytePlan } from './byte-plan.js';
import { type MirrorTarget, getDestination, pathBelow } from '../image-set/image-set-names.js';
import type { NamedImage } from '../image-set/image-set-plan.js';
import type { MirroredSet } from '../image-set/image-set-resources.js';
import type { ImageSetLock } from './lock.js';
import { type LockedTransfersOptions, getTargetName, transfersOfLock } from './locked-transfers.js';
import { type Shard, assignShards } from './shard.js';
import { copyShard, planSharedBlobs } from './shard-blobs.js';
import { planSurveyed } from './surveyed-set.js';
import { joinReports, splitCopyOrder } from '../transfer/transfer-step.js';
import { surveyTransfers } from '../transfer/transfer.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import {
  type PinnedTransfer,
  type SurveyedTransfer,
  type TransferOptions,
  type TransferReport,
  isComplete,
} from '../transfer/transfer-types.js';

/** How a lock is mirrored. */
export interface LockMirrorOptions extends LockedTransfersOptions {
  transfer: TransferOptions;
  /** Only this part of the images; the catalogs by whoever finds everything else there. */
  shard?: Shard | undefined;
  /** How long a shard waits for content that others are to bring, after the last of it has come; 0 by default. */
  shardWaitMs?: number | undefined;
  /** Where the images come from, if it is an archive, and where what it lacks may be. */
  archive?: OpenedArchive | undefined;
  base?: BaseContent | undefined;
}

/** Between two questions whether other shards have ended. */
const pollMs = 500;

/** What mirroring by a lock has come to. */
interface LockReport extends TransferReport {
  /** Images that other machines have not copied yet, so that the catalogs wait. */
  waiting: number;
}

/** Mirrors what a lock names: nothing is looked up, everything is what it was when the lock was written. */
export class LockMirror {
  readonly #lock: ImageSetLock;
  readonly #options: LockMirrorOptions;
  readonly #operands: PinnedTransfer[];
  readonly #others: PinnedTransfer[];
  readonly #catalogs: PinnedTransfer[];
  readonly #sharedBlobs: ReturnType<typeof planSharedBlobs> = new Map();
  #surveyed: SurveyedTransfer[] = [];

  constructor(lock: ImageSetLock, options: LockMirrorOptions) {
    this.#lock = lock;
    this.#options = options;
    const transfers = transfersOfLock(lock, options);
    const [operands, catalogs] = splitCopyOrder(transfers);
    const { shard } = options;
    this.#catalogs = catalogs;
    this.#operands = operands;
    this.#others = [];
    if (shard === undefined) return;
    const images = lock.images.filter((_, i) => transfers[i]?.isLast !== true);
    const shards = assignShards(images, shard.count);
    this.#operands = operands.filter((_, i) => shards[i] === shard.index);
    this.#others = operands.filter((_, i) => shards[i] !== shard.index);
    this.#sharedBlobs = planSharedBlobs(operands, shards);
  }

  /**
   * Asks the target what it has. Throws OpmateError where it lacks what the archive, and the archives that came with
   * it, do not hold.
   */
  async survey(): Promise<BytePlan> {
    const transfers =
      this.#options.shard === undefined ? [...this.#operands, ...this.#catalogs] : this.#operands;
    // What an inventory found is trusted no longer than it is there, below manifests that are there, too.
    const isBased = this.#options.base?.isOfRegistry === true;
    // Other shards write to the same repositories, so that one blob tells nothing of the others.
    const isExact = isBased || this.#options.shard !== undefined;
    const { surveyed } = await surveyTransfers(transfers, {
      ...this.#options.transfer,
      ...{ isExact, everyBlob: isBased },
    });
    this.#surveyed = surveyed;
    await this.#requireBase();
    const names = new Set(transfers.map(({ targetName }) => targetName));
    const images = this.#lock.images.filter((image) => names.has(getTargetName(image, this.#options.target)));
    return planSurveyed(images, surveyed);
  }

  /** Copies what the survey found to be lacking; the catalogs last, and only when all else is there. */
  async copy(): Promise<LockReport> {
    const { transfer: options, shard } = this.#options;
    const [operands, catalogs] = splitCopyOrder(this.#surveyed);
    const shared = new SharedBlobs();
    for (const [digest, place] of this.#options.base?.places() ?? []) shared.note(place, digest);
    if (shard !== undefined) return this.#copyShard(operands, shard, shared);
    const first = await copyTransfers(operands, options, shared);
    const last = await copyTransfers(catalogs, options, shared);
    return { ...joinReports(first, last), waiting: 0 };
  }

  /**
   * The part of one shard. Catalogs are copied by the last shard, or, where that has given up, by whichever finds
   * everything else there.
   */
  async #copyShard(
    operands: readonly SurveyedTransfer[],
    { index, count }: Shard,
    shared: SharedBlobs,
  ): Promise<LockReport> {
    const { transfer, shardWaitMs: waitMs = 0 } = this.#options;
    const plan = this.#sharedBlobs;
    const first = await copyShard(operands, shared, { shard: index, plan, transfer, waitMs });
    if (first.failed.length > 0) return { ...first, waiting: await this.#countWaiting() };
    const isLastShard = index === count - 1;
    const waiting = await this.#until(
      () => this.#countWaiting(),
      isLastShard && this.#catalogs.length > 0 ? waitMs : 0,
    );
    if (waiting > 0) return { ...first, waiting };
    const countCatalogs = async (): Promise<number> => {
      const { surveyed } = await surveyTransfers(this.#catalogs, transfer);
      return surveyed.filter((surveyedTransfer) => !isComplete(surveyedTransfer)).length;
    };
    if ((await this.#until(countCatalogs, isLastShard ? 0 : waitMs)) === 0) return { ...first, waiting: 0 };
    const { surveyed: catalogs } = await surveyTransfers(this.#catalogs, transfer);
    const others = await surveyTransfers([...this.#operands, ...this.#others], transfer);
    noteKnown(others.surveyed, shared);
    return { ...joinReports(first, await copyTransfers(catalogs, transfer, shared)), waiting: 0 };
  }

  /** Images of other shards that are not complete. */
  async #countWaiting(): Promise<number> {
    const { surveyed } = await surveyTransfers(this.#others, this.#options.transfer);
    return surveyed.filter((transfer) => !isComplete(transfer)).length;
  }

  /** Asks how much is left until it is nothing, or has not become less for some time. */
  async #until(countLeft: () => Promise<number>, waitMs: number): Promise<number> {
    let left = await countLeft();
    let lastProgress = performance.now();
    while (left > 0 && performance.now() - lastProgress < waitMs) {
      await pause(Math.min(pollMs, waitMs), this.#options.transfer.signal);
      const now = await countLeft();
      if (now < left) lastProgress = performance.now();
      left = now;
    }
    return left;
  }

  /** Finds in the target what neither it has in its place nor the archive holds. Throws OpmateError for what is gone. */
  async #requireBase(): Promise<void> {
    const { archive, base, transfer: options } = this.#options;
    if (archive === undefined || base === undefined) return;
    const missing = archive.missing();
    if (missing.size === 0) return;
    const held = holdersIn(this.#surveyed);
    const wanted = new Map<string, { descriptor: Descriptor; isManifest: boolean; targetName: string }>();
    for (const { targetName, manifests, blobs } of this.#surveyed) {
      for (const descriptor of [...manifests.map((manifest) => manifest.descriptor), ...blobs]) {
        if (!missing.has(descriptor.digest) || wanted.has(descriptor.digest)) continue;
        wanted.set(descriptor.digest, { descriptor, targetName, isManifest: !blobs.includes(descriptor) });
      }
    }
    const gone = await mapConcurrent(
      [...wanted.values()],
      options.maxPerRegistry,
      async (item) => {
        const { digest } = item.descriptor;
        const listed = archive.index.holders?.get(digest);
        const places = new Set([...(listed === undefined ? [] : [listed]), ...(held.get(digest) ?? [])]);
        const holder = await base.findHolder(item.descriptor, item.isManifest, places);
        if (holder !== undefined) base.note(digest, holder);
        return holder === undefined ? item : undefined;
      },
      options,
    );
    const [first, ...others] = gone.filter((item) => item !== undefined);
    if (first === undefined) {
      options.logger?.log('debug', `archive ${archive.index.id}: what its base holds is at the target`);
      return;
    }
    throw baseError(archive.index, first, others.length);
  }
}

/** Repositories of the target that a survey found a blob in, by its digest. */
function holdersIn(surveyed: readonly SurveyedTransfer[]): Map<string, Set<string>> {
  const holders = new Map<string, Set<string>>();
  for (const { target, contents, manifests, blobs } of surveyed) {
    if (target.transport !== 'docker') continue;
    const lacking = new Set(
      [...manifests.map((manifest) => manifest.descriptor), ...blobs].map(({ digest }) => digest),
    );
    for (const manifest of contents.manifests) {
      for (const { digest } of [manifest.descriptor, ...manifest.blobs]) {
        if (lacking.has(digest)) continue;
        getOrAdd(holders, digest, () => new Set()).add(target.repository);
      }
    }
  }
  return holders;
}

function baseError(
  { id, base, holders }: OpenedArchive['index'],
  { descriptor: { digest }, targetName }: { descriptor: Descriptor; targetName: string },
  others: number,
): OpmateError {
  const more = others === 0 ? '' : `, and ${others} more ${others === 1 ? 'blob is' : 'blobs are'} missing`;
  const holder = holders?.get(digest);
  if (holder === undefined) {
    const problem = `archive ${id}: is based on archive ${base}, which is not at the target: ${targetName} needs ${digest}${more}`;
    return new OpmateError('NOT_FOUND', problem, {
      hint: 'copy the base to the target first, or name its directory with one more --from',
    });
  }
  const problem = `archive ${id}: is based on inventory ${base}: ${targetName} needs ${digest}, which is no longer in ${holder}${more}`;
  return new OpmateError('NOT_FOUND', problem, {
    hint: 'run opmate mirror inventory again, then recreate the archive with --base and that file',
  });
}

/** What of a lock a cluster must know when it is at a target. */
export function mirroredOfLock(lock: ImageSetLock, target: MirrorTarget): MirroredSet<NamedImage> {
  const images = lock.images.flatMap((image) => {
    const { kind, source } = image;
    if (kind === 'signature') return [];
    const repository = pathBelow(target, image.repository);
    const destination = getTargetName(image, target);
    const aliases = image.aliases?.map((text) => parseReference(text));
    const reference = parseReference(image.reference);
    return [{ kind, reference, aliases, source, repository, destination }];
  });
  const catalogs = lock.catalogs.map(
    ({ catalog, repository, tag, isDatabase, targetCatalogSourceTemplate }) => ({
      isDatabase,
      operator: { catalog, targetCatalogSourceTemplate: targetCatalogSourceTemplate?.file },
      destination: getDestination(target, pathBelow(target, repository), tag),
      name: { repository, tag },
    }),
  );
  return { images, catalogs, releases: lock.releases?.releases };
}
