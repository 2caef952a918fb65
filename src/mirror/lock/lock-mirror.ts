import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { count } from '../../core/printable.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { type MirrorTarget, getDestination, pathBelow } from '../naming/mirror-target.js';
import { toBundleKey } from '../plan/planned-image.js';
import { copyTransfers } from '../transfer/copy-transfers.js';
import { joinReports, noCopies, splitCopyOrder } from '../transfer/transfer-step.js';
import type {
  PinnedTransfer,
  StepFaults,
  SurveyedTransfer,
  TransferOptions,
} from '../transfer/transfer-types.js';
import { surveyTransfers } from '../transfer/transfer.js';
import type { BaseContent } from './base-content.js';
import { type BytePlan, planSurveyed } from './byte-plan.js';
import { type ImageSetLock, type LockedImage, withoutHeld } from './lock.js';
import { type LockPlanOptions, getTargetName, toTransfers } from './lock-plan.js';
import { type LockReport, ShardMirror } from './shard-mirror.js';
import { type Shard, assignShards } from './shard.js';

/** Options of mirroring a lock. */
export interface LockMirrorOptions extends LockPlanOptions {
  transfer: TransferOptions;
  /** Copies only this shard of the images; catalogs are copied when all other images are present. */
  shard?: Shard | undefined;
  /** Maximum time to wait for content of other shards after the last of it arrived, in milliseconds; default 0. */
  shardWaitMs?: number | undefined;
  /** Archive to copy from. */
  archive?: OpenedArchive | undefined;
  /** Content that the archive lacks. */
  base?: BaseContent | undefined;
}

/** Mirrors the images of a lock by digest; no tag is resolved. */
export class LockMirror {
  readonly #lock: ImageSetLock;
  readonly #options: LockMirrorOptions;
  readonly #operands: readonly PinnedTransfer[];
  readonly #catalogs: readonly PinnedTransfer[];
  /** The part of one shard; undefined for a mirror of the whole lock. */
  readonly #shard: ShardMirror | undefined;
  readonly #shared = new SharedBlobs();
  #survey: StepFaults & { surveyed: SurveyedTransfer[] } = { surveyed: [], missing: [], failed: [] };

  /** Throws errors of `toTransfers`. */
  constructor(whole: ImageSetLock, options: LockMirrorOptions) {
    const { shard, transfer, shardWaitMs: waitMs = 0 } = options;
    this.#lock = withoutHeld(whole);
    this.#options = options;
    const transfers = toTransfers(this.#lock, options);
    const order = splitCopyOrder(transfers);
    [this.#operands, this.#catalogs] = order;
    if (shard === undefined) return;
    const images = this.#lock.images.filter((_, i) => transfers[i]?.isLast !== true);
    const shards = assignShards(images, shard.count);
    this.#shard = new ShardMirror(order, shards, { shard, transfer, shared: this.#shared, waitMs });
  }

  /** Surveys the target. Throws OpmateError for content that neither it nor the archives have. */
  async survey(): Promise<BytePlan> {
    const { base, archive, transfer, target } = this.#options;
    const wanted = this.#shard?.own ?? [...this.#operands, ...this.#catalogs];
    // Content of an inventory may have been deleted since, also below present manifests.
    const everyBlob = base?.isOfRegistry() === true;
    // Other shards write to the same repositories, so one blob does not prove the others.
    const isExact = everyBlob || this.#shard !== undefined;
    this.#survey = await surveyTransfers(wanted, { ...transfer, isExact, everyBlob });
    const { surveyed } = this.#survey;
    if (archive !== undefined && base !== undefined) {
      await requireBase(archive, base, surveyed, transfer);
      await requireManifests(archive, surveyed, transfer);
    }
    const names = new Set(wanted.map(({ targetName }) => targetName));
    return planSurveyed(
      this.#lock.images.filter((image) => names.has(getTargetName(image, target))),
      surveyed,
      this.#lock.catalogs,
    );
  }

  /** Copies the content that the survey found missing; catalogs last. */
  async copy(): Promise<LockReport> {
    const { base, target, transfer } = this.#options;
    const { surveyed, ...faults } = this.#survey;
    const [first, last] = splitCopyOrder(surveyed);
    for (const [digest, repository] of base?.holders ?? [])
      this.#shared.note({ registry: target.registry, repository }, digest);
    if (this.#shard !== undefined) return this.#shard.copy(first, faults);
    const copied = await copyTransfers(first, transfer, this.#shared);
    const report = joinReports({ ...noCopies, ...faults }, copied);
    const incomplete = this.#findIncomplete(last, report);
    for (const { error } of incomplete) transfer.session.logger?.log('error', error.message);
    const whole = last.filter((item) => incomplete.every((other) => other.transfer !== item));
    const rest = await copyTransfers(whole, transfer, this.#shared);
    return { ...joinReports(report, rest, { ...noCopies, failed: incomplete }), waiting: 0 };
  }

  /** Returns the catalogs and releases that need images that were not copied. */
  #findIncomplete(last: readonly SurveyedTransfer[], { missing, failed }: StepFaults): StepFaults['failed'] {
    const findMissingParts = createPartSearch(this.#lock, this.#options.target);
    const lost = [...missing, ...failed.map((item) => item.transfer)];
    const names = new Set(lost.map(({ targetName }) => targetName));
    return last.flatMap((item) => {
      const parts = findMissingParts(item.targetName, names);
      return parts === 0 ? [] : [{ transfer: item, error: createIncompleteError(item, parts) }];
    });
  }
}

/** Returns a function that counts the images among missing ones that a catalog or release needs, all by target name. */
function createPartSearch({ catalogs, images }: ImageSetLock, target: MirrorTarget) {
  const bundlesOf = new Map<string, Set<string>>();
  for (const { packages, ...name } of catalogs) {
    const keys = packages.flatMap(({ name: packageName, bundles }) =>
      bundles.map((bundle) => toBundleKey({ package: packageName, bundle: bundle.name })),
    );
    bundlesOf.set(getDestination(target, pathBelow(target, name.repository), name.tag), new Set(keys));
  }
  return (whole: string, missing: ReadonlySet<string>): number => {
    if (missing.size === 0) return 0;
    const bundles = bundlesOf.get(whole);
    const isPart = ({ kind, bundles: own }: LockedImage): boolean =>
      bundles === undefined ? kind === 'component' : own.some((bundle) => bundles.has(toBundleKey(bundle)));
    return images.filter((image) => missing.has(getTargetName(image, target)) && isPart(image)).length;
  };
}

function createIncompleteError({ targetName }: PinnedTransfer, parts: number): OpmateError {
  return new OpmateError('NOT_FOUND', `not copied: ${count(parts, 'image')} of it could not be copied`, {
    subject: targetName,
    hint: 'mirror without mirror.locked to omit them, or try again later',
  });
}

/** Finds holders of the missing content that the archive lacks. Throws OpmateError for content without a holder. */
async function requireBase(
  archive: OpenedArchive,
  base: BaseContent,
  surveyed: readonly SurveyedTransfer[],
  { maxPerRegistry, session }: TransferOptions,
): Promise<void> {
  const lacking = archive.missing();
  if (lacking.size === 0) return;
  const holders = findHolders(surveyed);
  const wanted = new Map<string, { descriptor: Descriptor; isManifest: boolean; targetName: string }>();
  for (const { targetName, manifests, blobs } of surveyed) {
    for (const descriptor of [...manifests.map((manifest) => manifest.descriptor), ...blobs]) {
      if (!lacking.has(descriptor.digest)) continue;
      const isManifest = !blobs.includes(descriptor);
      getOrAdd(wanted, descriptor.digest, () => ({ descriptor, targetName, isManifest }));
    }
  }
  const gone = await mapConcurrent(
    [...wanted.values()],
    maxPerRegistry,
    async (item) => {
      const { digest } = item.descriptor;
      const listed = archive.index.holders?.get(digest);
      const places = new Set([...(listed === undefined ? [] : [listed]), ...(holders.get(digest) ?? [])]);
      const holder = await base.findHolder(item.descriptor, item.isManifest, places);
      if (holder !== undefined) base.holders.set(digest, holder);
      return holder === undefined ? item : undefined;
    },
    session,
  );
  const [first, ...others] = gone.filter((item) => item !== undefined);
  if (first !== undefined) throw createBaseError(archive.index, first, others.length);
  session.logger?.log('debug', `archive ${archive.index.id}: the content of its base is at the target`);
}

/** Throws OpmateError for a damaged manifest of an archive; blobs are verified while they are copied. */
async function requireManifests(
  archive: OpenedArchive,
  surveyed: readonly SurveyedTransfer[],
  { maxPerRegistry, session }: TransferOptions,
): Promise<void> {
  const sources = new Map<string, string>();
  for (const { sourceName, manifests } of surveyed)
    for (const { descriptor } of manifests)
      if (archive.locate(descriptor.digest) !== undefined) sources.set(descriptor.digest, sourceName);
  await mapConcurrent(
    [...sources],
    maxPerRegistry,
    async ([digest, name]) => archive.repository(name).getManifest(digest, session),
    session,
  );
}

/** Returns the repositories of the target with a manifest or blob, by digest. */
function findHolders(surveyed: readonly SurveyedTransfer[]): Map<string, Set<string>> {
  const holders = new Map<string, Set<string>>();
  for (const { target, contents, manifests, blobs } of surveyed) {
    if (target.transport !== 'docker') continue;
    const lacking = new Set(
      [...manifests.map((manifest) => manifest.descriptor), ...blobs].map(({ digest }) => digest),
    );
    for (const manifest of contents.manifests) {
      for (const { digest } of [manifest.descriptor, ...manifest.blobs]) {
        if (!lacking.has(digest)) getOrAdd(holders, digest, () => new Set()).add(target.repository);
      }
    }
  }
  return holders;
}

function createBaseError(
  { id, base, holders }: OpenedArchive['index'],
  { descriptor: { digest }, targetName }: { descriptor: Descriptor; targetName: string },
  others: number,
): OpmateError {
  const more = others === 0 ? '' : `, and ${others} more ${others === 1 ? 'blob is' : 'blobs are'} missing`;
  const holder = holders?.get(digest);
  if (holder === undefined) {
    const problem = `archive ${id}: is based on archive ${base}, which is not at the target: ${targetName} needs ${digest}${more}`;
    return new OpmateError('NOT_FOUND', problem, {
      hint: 'copy the base to the target first, or name its directory with one more options.archives',
    });
  }
  const problem = `archive ${id}: is based on inventory ${base}: ${targetName} needs ${digest}, which is no longer in ${holder}${more}`;
  return new OpmateError('NOT_FOUND', problem, {
    hint: 'run api.readMirrorInventory again, then recreate the archive with mirror.base and that file',
  });
}
