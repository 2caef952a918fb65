import { OpmateError } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { parseReference } from '../../core/reference.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { BytePlan } from './byte-plan.js';
import { type MirrorTarget, destinationOf, pathBelow } from '../image-set/image-set-names.js';
import type { NamedImage } from '../image-set/image-set-plan.js';
import type { MirroredSet } from '../image-set/image-set-resources.js';
import type { ImageSetLock } from './lock.js';
import { type LockedTransfersOptions, targetNameOf, transfersOfLock } from './locked-transfers.js';
import { type Shard, shardOf } from './shard.js';
import { isComplete, planSurveyed } from './surveyed-set.js';
import { surveyTransfers } from '../transfer/transfer.js';
import { copyTransfers } from '../transfer/copy-transfers.js';
import type {
  PinnedTransfer,
  SurveyedTransfer,
  TransferOptions,
  TransferReport,
} from '../transfer/transfer-types.js';

interface LockMirrorOptions extends LockedTransfersOptions {
  transfer: TransferOptions;
  /** Only this part of the images; the catalogs by whoever finds everything else there. */
  shard?: Shard | undefined;
  /** Where the images come from, if it is an archive. */
  archive?: OpenedArchive | undefined;
  logger?: Logger | undefined;
}

/** What mirroring by a lock has come to. */
interface LockReport extends TransferReport {
  /** Images that other machines have not copied yet, so that the catalogs wait. */
  waiting: number;
}

/** Mirrors what a lock names: nothing is looked up, everything is what it was when the lock was written. */
export class LockMirror {
  readonly #lock: ImageSetLock;
  readonly #options: LockMirrorOptions;
  readonly #logger: Logger;
  readonly #operands: PinnedTransfer[];
  readonly #others: PinnedTransfer[];
  readonly #catalogs: PinnedTransfer[];
  #surveyed: SurveyedTransfer[] = [];

  constructor(lock: ImageSetLock, options: LockMirrorOptions) {
    this.#lock = lock;
    this.#options = options;
    this.#logger = options.logger ?? silentLogger;
    const transfers = transfersOfLock(lock, options);
    const operands = transfers.filter(({ isLast }) => isLast !== true);
    const { shard } = options;
    this.#catalogs = transfers.filter(({ isLast }) => isLast === true);
    this.#operands = shard === undefined ? operands : partOf(operands, shard);
    const own = new Set(this.#operands);
    this.#others = operands.filter((transfer) => !own.has(transfer));
  }

  /**
   * Asks the target what it has. Throws OpmateError where it lacks what the archive, and the archives that came with
   * it, do not hold.
   */
  async survey(): Promise<BytePlan> {
    const transfers =
      this.#options.shard === undefined ? [...this.#operands, ...this.#catalogs] : this.#operands;
    const { surveyed } = await surveyTransfers(transfers, this.#options.transfer);
    this.#surveyed = surveyed;
    this.#requireBase();
    const names = new Set(transfers.map(({ targetName }) => targetName));
    const images = this.#lock.images.filter((image) => names.has(targetNameOf(image, this.#options)));
    return planSurveyed(images, surveyed);
  }

  /** Copies what the survey found to be lacking; the catalogs last, and only when all else is there. */
  async copy(): Promise<LockReport> {
    const { transfer: options, shard } = this.#options;
    const operands = this.#surveyed.filter(({ transfer }) => transfer.isLast !== true);
    const shared = new SharedBlobs();
    const first = await copyTransfers(operands, options, shared);
    let catalogs = this.#surveyed.filter(({ transfer }) => transfer.isLast === true);
    if (shard !== undefined) {
      const { surveyed } = await surveyTransfers(this.#others, options);
      const waiting = surveyed.filter((one) => !isComplete(one)).length;
      if (waiting > 0 || first.failed.length > 0) return { ...first, waiting };
      ({ surveyed: catalogs } = await surveyTransfers(this.#catalogs, options));
    }
    const last = await copyTransfers(catalogs, options, shared);
    return {
      done: [...first.done, ...last.done],
      missing: [...first.missing, ...last.missing],
      failed: [...first.failed, ...last.failed],
      blobs: first.blobs + last.blobs,
      bytes: first.bytes + last.bytes,
      waiting: 0,
    };
  }

  /** What is, or is to be, at the target. */
  mirrored(): MirroredSet {
    return mirroredOfLock(this.#lock, this.#options.target, this.#options.maxNestedPaths);
  }

  #requireBase(): void {
    const { archive } = this.#options;
    if (archive === undefined) return;
    const missing = archive.missing();
    if (missing.size === 0) return;
    for (const { transfer, manifests, blobs } of this.#surveyed) {
      const lacking = [...manifests.map(({ descriptor }) => descriptor), ...blobs].find(({ digest }) =>
        missing.has(digest),
      );
      if (lacking === undefined) continue;
      const { id, base } = archive.index;
      const problem = `archive ${id}: is based on archive ${base}, which is not at the target: ${transfer.targetName} needs ${lacking.digest}`;
      throw new OpmateError('NOT_FOUND', problem, {
        hint: 'copy the base to the target first, or name its directory with one more --from',
      });
    }
    this.#logger.log('debug', `archive ${archive.index.id}: what its base holds is at the target`);
  }
}

function partOf(transfers: readonly PinnedTransfer[], shard: Shard): PinnedTransfer[] {
  const parts = transfers.map((transfer) => {
    const { manifests } = transfer.contents;
    const bytes = manifests.flatMap(({ blobs }) => blobs).reduce((sum, { size }) => sum + size, 0);
    return { key: transfer.targetName, bytes, transfer };
  });
  return shardOf(parts, shard).map(({ transfer }) => transfer);
}

/** What of a lock a cluster must know when it is at a target. */
export function mirroredOfLock(
  lock: ImageSetLock,
  target: MirrorTarget,
  maxNestedPaths: number | undefined,
): MirroredSet<NamedImage> {
  const images = lock.images.flatMap((image) => {
    const { kind, source } = image;
    if (kind === 'signature') return [];
    const repository = pathBelow(target, image.repository, maxNestedPaths);
    const destination = targetNameOf(image, { target, maxNestedPaths });
    const aliases = image.aliases?.map((text) => parseReference(text));
    const reference = parseReference(image.reference);
    return [{ kind, reference, aliases, source, repository, destination }];
  });
  const catalogs = lock.catalogs.map(({ catalog, repository, tag, targetCatalogSourceTemplate }) => ({
    operator: { catalog, targetCatalogSourceTemplate: targetCatalogSourceTemplate?.file },
    destination: destinationOf(target, pathBelow(target, repository, maxNestedPaths), tag),
    name: { repository, tag },
  }));
  return { images, catalogs };
}
