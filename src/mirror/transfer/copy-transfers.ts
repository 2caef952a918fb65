import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError, throwIfCancelled } from '../../core/errors.js';
import { createDistanceLimiter, createLimiter } from '../../core/limiter.js';
import { putContents } from '../../oci/image/copy.js';
import { type CopyBlobOptions, SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { isNonDistributable } from '../../oci/image/manifest.js';
import { createByteProgress, toBlobPlace } from './byte-progress.js';
import {
  type StepLimits,
  countDownRepositories,
  createPlaces,
  defaultBlobsPerImage,
  getMaxImages,
  getMaxSmallRequests,
  getTargetVersion,
  joinReports,
  runStep,
  splitCopyOrder,
  toRepositoryKey,
} from './transfer-step.js';
import {
  type SurveyedTransfer,
  type TransferOptions,
  type TransferReport,
  getPresentBlobs,
  isComplete,
} from './transfer-types.js';

/** Size above which a blob is large: at most `maxPerRegistry` of these are under way. */
const largeBlobBytes = 1024 * 1024;
/** Maximum parallel small requests to a distant registry, and connections to it. */
const maxDistantRequests = 64;

/**
 * Copies the content that a survey found missing. A blob of several repositories is sent once and mounted in the others,
 * if the registry supports that. Several calls that pass the same `shared` send it once in total.
 */
export async function copyTransfers(
  surveyed: readonly SurveyedTransfer[],
  options: TransferOptions,
  shared = new SharedBlobs(),
): Promise<TransferReport> {
  const { session, maxPerRegistry } = options;
  const requests = getMaxSmallRequests(maxPerRegistry);
  const small = createDistanceLimiter(
    requests,
    requests === 1 ? 1 : Math.min(maxDistantRequests, 2 * requests),
  );
  const large = createLimiter(maxPerRegistry);
  noteKnown(surveyed, shared);
  const rounds = splitCopyOrder(surveyed);
  const firstBlobs = scheduleFirstBlobs(rounds.flat());
  const places = createPlaces(session);
  const isLastOfRepository = countDownRepositories(surveyed);
  const progress = createByteProgress(surveyed, session.logger);
  const { logger } = session;

  const copyImage = async (transfer: SurveyedTransfer, { signal, stop }: StepLimits) => {
    const whenFree: CopyBlobOptions['whenFree'] = (bytes, work) =>
      (bytes > largeBlobBytes ? large : small)(() => {
        throwIfCancelled(stop);
        return work();
      });
    const copied = { transfer, blobs: 0, bytes: 0 };
    if (isComplete(transfer)) return copied;
    progress.startImage(transfer);
    const target = await places.openTarget(transfer.target);
    const { repository: source } = await places.openSource(transfer);
    const copyBlob = async (blob: Descriptor): Promise<void> => {
      const onSent = progress.watch(transfer.target, blob);
      const sending = { signal, logger, whenFree, onSent, isAbsent: true };
      const outcome = await shared.copy(source, target, blob, sending);
      progress.settle(transfer.target, blob, outcome === 'copied');
      if (outcome !== 'copied') return;
      copied.blobs++;
      copied.bytes += blob.size;
    };
    try {
      const others = await firstBlobs.copy(transfer, copyBlob);
      await mapConcurrent(others, options.layersAtOnce ?? defaultBlobsPerImage, copyBlob, { signal });
      await putContents(source, target, transfer.contents, transfer, getTargetVersion(transfer), {
        signal,
        resend: (blob) => shared.resend(source, target, blob, { signal, logger, whenFree }),
      });
      options.onCopied?.(transfer, transfer.contents.root.digest);
      return copied;
    } catch (error) {
      // A missing blob is an error; a missing image may be skipped.
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') {
        const { digest } = transfer.contents.root;
        if ((await source.headManifest(digest, { signal })) === undefined) return 'missing' as const;
      }
      throw transfer.platforms === undefined ? error : addSparseHint(error);
    } finally {
      progress.endImage(transfer);
    }
  };

  const reports: TransferReport[] = [];
  progress.report('start');
  try {
    for (const round of rounds) {
      const { results, ...faults } = await runStep(
        round,
        (transfer, limits) =>
          copyImage(transfer, limits).finally(() => {
            firstBlobs.release(transfer);
            if (isLastOfRepository(transfer.target)) places.forgetTarget(transfer.target);
          }),
        { ...options, concurrency: getMaxImages(options) },
      );
      const copied = results.map(({ transfer, blobs, bytes }): TransferReport => {
        const { digest } = transfer.contents.root;
        const isPresent = isComplete(transfer);
        return { done: [{ transfer, digest, isPresent }], missing: [], failed: [], blobs, bytes };
      });
      reports.push(...copied, { done: [], ...faults, blobs: 0, bytes: 0 });
    }
  } finally {
    progress.report('done');
    await places.close();
  }
  return joinReports(...reports);
}

/**
 * Returns the schedule of the blobs that new repositories get before all others; see `SurveyedTransfer`. Takes the
 * transfers in the order of their start, so that none waits for one that has not started.
 */
function scheduleFirstBlobs(surveyed: readonly SurveyedTransfer[]) {
  /** Transfer that copies the first blob, by repository; other transfers to it wait. */
  const arrivals = new Map<
    string,
    { owner: SurveyedTransfer; promise: Promise<void>; release: () => void }
  >();
  const seen = new Set<string>();
  for (const owner of surveyed) {
    const key = toRepositoryKey(owner.target);
    if (owner.firstBlob === undefined || seen.has(key)) continue;
    seen.add(key);
    if (!owner.blobs.some(({ digest }) => digest === owner.firstBlob)) continue;
    let release = (): void => undefined;
    const promise = new Promise<void>((resolve) => (release = resolve));
    arrivals.set(key, { owner, promise, release });
  }
  const getArrival = ({ target }: SurveyedTransfer) => arrivals.get(toRepositoryKey(target));
  return {
    /** Copies the first blob, or waits until it is copied or has failed; returns the blobs left to copy. */
    async copy(
      transfer: SurveyedTransfer,
      copyBlob: (blob: Descriptor) => Promise<void>,
    ): Promise<readonly Descriptor[]> {
      const { blobs, firstBlob } = transfer;
      const arrival = getArrival(transfer);
      if (arrival?.owner !== transfer) {
        await arrival?.promise;
        return blobs;
      }
      for (const blob of blobs.filter(({ digest }) => digest === firstBlob)) await copyBlob(blob);
      arrival.release();
      return blobs.filter(({ digest }) => digest !== firstBlob);
    },
    /** Lets the waiting transfers continue, after a success or failure. */
    release(transfer: SurveyedTransfer): void {
      const arrival = getArrival(transfer);
      if (arrival?.owner === transfer) arrival.release();
    },
  };
}

/** Error codes of registries for an index that lists missing images. */
const sparseIndexErrors = ['MANIFEST_BLOB_UNKNOWN', 'MANIFEST_UNKNOWN', 'MANIFEST_INVALID'];

function addSparseHint(error: unknown): unknown {
  if (!(error instanceof RegistryError)) return error;
  const { message, status, registryCodes, code } = error;
  if (!sparseIndexErrors.some((sparse) => registryCodes.includes(sparse))) return error;
  const hint =
    'remove session.platform and platforms: this registry requires the images of all platforms of an index';
  return new RegistryError(message, { status, registryCodes, code, hint, cause: error });
}

/** Notes the repositories that already have blobs, to mount these from there. */
export function noteKnown(surveyed: readonly SurveyedTransfer[], shared: SharedBlobs): void {
  for (const image of surveyed) {
    const place = toBlobPlace(image.target);
    // A non-distributable layer may be missing below a present manifest.
    for (const blob of getPresentBlobs(image)) if (!isNonDistributable(blob)) shared.note(place, blob.digest);
  }
}
