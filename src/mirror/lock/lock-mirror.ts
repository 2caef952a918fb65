import { mapConcurrent, sleep } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { getOrAdd, groupBy } from '../../core/groups.js';
import { count } from '../../core/printable.js';
import type { OpenedArchive } from '../../oci/archive-set/archive-set-reader.js';
import { SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { type MirrorTarget, getDestination, pathBelow } from '../naming/mirror-target.js';
import { toBundleKey } from '../plan/planned-image.js';
import { copyTransfers, noteKnown } from '../transfer/copy-transfers.js';
import { joinReports, splitCopyOrder } from '../transfer/transfer-step.js';
import {
  type PinnedTransfer,
  type StepFaults,
  type SurveyedTransfer,
  type TransferOptions,
  type TransferReport,
  isComplete,
} from '../transfer/transfer-types.js';
import { surveyTransfers } from '../transfer/transfer.js';
import type { BaseContent } from './base-content.js';
import { type BytePlan, planSurveyed } from './byte-plan.js';
import { type ImageSetLock, type LockedImage, withoutHeld } from './lock.js';
import { type LockPlanOptions, getTargetName, toTransfers } from './lock-plan.js';
import { copyShard, planSharedBlobs } from './shard-blobs.js';
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

/** Interval of requests for the progress of other shards. */
const pollMs = 500;
/** Number of images in the first batch of a search, doubled for each further one. */
const firstBatch = 50;

interface LockReport extends TransferReport {
  /** Images of other shards seen missing, so the catalogs wait; the search of an earlier shard ends with the first few. */
  waiting: number;
}

/** Mirrors the images of a lock by digest; no tag is resolved. Throws errors of `toTransfers`. */
export function createLockMirror(whole: ImageSetLock, options: LockMirrorOptions) {
  const lock = withoutHeld(whole);
  const { shard, base, archive, transfer, target, shardWaitMs: waitMs = 0 } = options;
  const transfers = toTransfers(lock, options);
  const [operands, catalogs] = splitCopyOrder(transfers);
  const images = lock.images.filter((_, i) => transfers[i]?.isLast !== true);
  const shards = shard === undefined ? [] : assignShards(images, shard.count);
  const [own, others] = [true, false].map((isOwn) =>
    operands.filter((_, i) => (shards[i] === shard?.index) === isOwn),
  ) as [PinnedTransfer[], PinnedTransfer[]];
  const shardOf = new Map(operands.map((transfer, i) => [transfer, shards[i] as number]));
  const plan = shard === undefined ? new Map() : planSharedBlobs(operands, shards);
  let surveyed: SurveyedTransfer[] = [];
  const unsurveyed: StepFaults = { missing: [], failed: [] };
  const findMissingParts = createPartSearch(lock, target);
  const shared = new SharedBlobs();

  /** Returns the incomplete images, and notes the blobs of the others, which catalogs may share. */
  const findIncomplete = async (pinned: readonly PinnedTransfer[]): Promise<PinnedTransfer[]> => {
    const { surveyed: current } = await surveyTransfers(pinned, transfer);
    const present = current.filter(isComplete);
    noteKnown(present, shared);
    const complete = new Set(present.map(({ targetName }) => targetName));
    return pinned.filter(({ targetName }) => !complete.has(targetName));
  };

  /** Returns the number of incomplete images in the first batch with any. */
  const findSomeIncomplete = async (pinned: readonly PinnedTransfer[]): Promise<number> => {
    for (let start = 0, size = firstBatch; start < pinned.length; start += size, size *= 2) {
      const left = await findIncomplete(pinned.slice(start, start + size));
      if (left.length > 0) return left.length;
    }
    return 0;
  };

  /** Waits until all are complete, or no further one was for `limitMs`. Returns the number of incomplete ones. */
  const waitFor = async (pinned: readonly PinnedTransfer[], limitMs: number): Promise<number> => {
    let left = await findIncomplete(pinned);
    let lastProgress = performance.now();
    while (left.length > 0 && performance.now() - lastProgress < limitMs) {
      await sleep(Math.min(pollMs, limitMs), transfer.session.signal);
      const before = left.length;
      left = await findIncomplete(left);
      if (left.length < before) lastProgress = performance.now();
    }
    return left.length;
  };

  /**
   * Copies the images of one shard. Catalogs are copied by the last shard, which checks all images, or, if that gave up, by
   * any shard that finds all other images present.
   */
  const copyOwn = async (
    { index, count: shardCount }: Shard,
    missing: readonly SurveyedTransfer[],
  ): Promise<LockReport> => {
    const first = joinReports(
      { ...noCopies, ...unsurveyed },
      await copyShard(missing, shared, { shard: index, plan, transfer, waitMs }),
    );
    if (index < shardCount - 1) {
      // An image of another shard matters only to a catalog that is not copied yet.
      const isDone = first.failed.length === 0 && (await findIncomplete(catalogs)).length === 0;
      if (isDone || catalogs.length === 0) return { ...first, waiting: 0 };
      const waiting = await findSomeIncomplete(lastFirst(others, shardOf));
      if (waiting > 0 || first.failed.length > 0) return { ...first, waiting };
      if ((await waitFor(catalogs, waitMs)) === 0) return { ...first, waiting: 0 };
    } else {
      const limitMs = first.failed.length > 0 || catalogs.length === 0 ? 0 : waitMs;
      const waiting = await waitFor(others, limitMs);
      if (waiting > 0 || first.failed.length > 0) return { ...first, waiting };
    }
    const last = await surveyTransfers(catalogs, transfer);
    return { ...joinReports(first, await copyTransfers(last.surveyed, transfer, shared)), waiting: 0 };
  };

  return {
    /** Surveys the target. Throws OpmateError for content that neither it nor the archives have. */
    async survey(): Promise<BytePlan> {
      const wanted = shard === undefined ? [...operands, ...catalogs] : own;
      // Content of an inventory may have been deleted since, also below present manifests.
      const everyBlob = base?.isOfRegistry() === true;
      // Other shards write to the same repositories, so one blob does not prove the others.
      const isExact = everyBlob || shard !== undefined;
      const survey = await surveyTransfers(wanted, { ...transfer, isExact, everyBlob });
      ({ surveyed } = survey);
      unsurveyed.missing.push(...survey.missing);
      unsurveyed.failed.push(...survey.failed);
      if (archive !== undefined && base !== undefined) {
        await requireBase(archive, base, surveyed, transfer);
        await requireManifests(archive, surveyed, transfer);
      }
      const names = new Set(wanted.map(({ targetName }) => targetName));
      return planSurveyed(
        lock.images.filter((image) => names.has(getTargetName(image, target))),
        surveyed,
        lock.catalogs,
      );
    },
    /** Copies the content that the survey found missing; catalogs last. */
    async copy(): Promise<LockReport> {
      const [first, last] = splitCopyOrder(surveyed);
      for (const [digest, repository] of base?.holders ?? [])
        shared.note({ registry: target.registry, repository }, digest);
      if (shard !== undefined) return copyOwn(shard, first);
      const report = joinReports(
        { ...noCopies, ...unsurveyed },
        await copyTransfers(first, transfer, shared),
      );
      const lost = [...report.missing, ...report.failed.map((item) => item.transfer)];
      const names = new Set(lost.map(({ targetName }) => targetName));
      const incomplete = last.flatMap((item) => {
        const parts = findMissingParts(item.targetName, names);
        return parts === 0 ? [] : [{ transfer: item, error: createIncompleteError(item, parts) }];
      });
      for (const { error } of incomplete) transfer.session.logger?.log('error', error.message);
      const whole = last.filter((item) => incomplete.every((other) => other.transfer !== item));
      const rest = await copyTransfers(whole, transfer, shared);
      return { ...joinReports(report, rest, { ...noCopies, failed: incomplete }), waiting: 0 };
    },
  };
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

const noCopies: TransferReport = { done: [], missing: [], failed: [], blobs: 0, bytes: 0 };

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
