import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError, throwIfCancelled } from '../../core/errors.js';
import { type Limiter, createDistanceLimiter, createLimiter } from '../../core/limiter.js';
import { putContents } from '../../oci/image/copy.js';
import { type CopyBlobOptions, SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import { isNonDistributable } from '../../oci/image/manifest.js';
import type { Repository, WritableRepository } from '../../oci/registry/repository.js';
import { ByteProgress, toBlobPlace } from './byte-progress.js';
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
  noteKnown(surveyed, shared);
  return new CopyRun(surveyed, options, shared).copyAll();
}

/** An image with what was sent of it. */
interface CopiedImage {
  transfer: SurveyedTransfer;
  blobs: number;
  bytes: number;
}

/** A run that copies images, with its repositories, its limits of requests and its progress. */
class CopyRun {
  readonly #options: TransferOptions;
  readonly #shared: SharedBlobs;
  readonly #rounds: readonly SurveyedTransfer[][];
  readonly #firstBlobs: ReturnType<typeof scheduleFirstBlobs>;
  readonly #places: ReturnType<typeof createPlaces>;
  readonly #isLastOfRepository: ReturnType<typeof countDownRepositories>;
  readonly #progress: ByteProgress;
  readonly #small: Limiter;
  readonly #large: Limiter;

  constructor(surveyed: readonly SurveyedTransfer[], options: TransferOptions, shared: SharedBlobs) {
    const { session, maxPerRegistry } = options;
    this.#options = options;
    this.#shared = shared;
    this.#rounds = splitCopyOrder(surveyed);
    this.#firstBlobs = scheduleFirstBlobs(this.#rounds.flat());
    this.#places = createPlaces(session);
    this.#isLastOfRepository = countDownRepositories(surveyed);
    this.#progress = new ByteProgress(surveyed, session.logger);
    const requests = getMaxSmallRequests(maxPerRegistry);
    const distantRequests = requests === 1 ? 1 : Math.min(maxDistantRequests, 2 * requests);
    this.#small = createDistanceLimiter(requests, distantRequests);
    this.#large = createLimiter(maxPerRegistry);
  }

  async copyAll(): Promise<TransferReport> {
    const reports: TransferReport[] = [];
    this.#progress.report('start');
    try {
      for (const round of this.#rounds) reports.push(...(await this.#copyRound(round)));
    } finally {
      this.#progress.report('done');
      await this.#places.close();
    }
    return joinReports(...reports);
  }

  async #copyRound(round: readonly SurveyedTransfer[]): Promise<TransferReport[]> {
    const { results, ...faults } = await runStep(
      round,
      (transfer, limits) => this.#copyImage(transfer, limits).finally(() => this.#letGo(transfer)),
      { ...this.#options, concurrency: getMaxImages(this.#options) },
    );
    const copied = results.map(({ transfer, blobs, bytes }): TransferReport => {
      const { digest } = transfer.contents.root;
      const isPresent = isComplete(transfer);
      return { done: [{ transfer, digest, isPresent }], missing: [], failed: [], blobs, bytes };
    });
    return [...copied, { done: [], ...faults, blobs: 0, bytes: 0 }];
  }

  /** Lets those that wait for an image continue, and forgets its repository after the last one. */
  #letGo(transfer: SurveyedTransfer): void {
    this.#firstBlobs.release(transfer);
    if (this.#isLastOfRepository(transfer.target)) this.#places.forgetTarget(transfer.target);
  }

  async #copyImage(transfer: SurveyedTransfer, limits: StepLimits): Promise<CopiedImage | 'missing'> {
    if (isComplete(transfer)) return { transfer, blobs: 0, bytes: 0 };
    this.#progress.startImage(transfer);
    const target = await this.#places.openTarget(transfer.target);
    const { repository: source } = await this.#places.openSource(transfer);
    try {
      return await this.#copyContents(source, target, transfer, limits);
    } catch (error) {
      // A missing blob is an error; a missing image may be skipped.
      if (error instanceof OpmateError && error.code === 'NOT_FOUND') {
        const { digest } = transfer.contents.root;
        if ((await source.headManifest(digest, { signal: limits.signal })) === undefined) return 'missing';
      }
      throw transfer.platforms === undefined ? error : addSparseHint(error);
    } finally {
      this.#progress.endImage(transfer);
    }
  }

  /** Copies the blobs of an image that its target lacks, then its manifests. */
  async #copyContents(
    source: Repository,
    target: WritableRepository,
    transfer: SurveyedTransfer,
    { signal, stop }: StepLimits,
  ): Promise<CopiedImage> {
    const { session, layersAtOnce = defaultBlobsPerImage } = this.#options;
    const sending = { signal, logger: session.logger, whenFree: this.#whenFree(stop) };
    const copied = { transfer, blobs: 0, bytes: 0 };
    const copyBlob = async (blob: Descriptor): Promise<void> => {
      const onSent = this.#progress.watch(transfer.target, blob);
      const outcome = await this.#shared.copy(source, target, blob, { ...sending, onSent, isAbsent: true });
      this.#progress.settle(transfer.target, blob, outcome === 'copied');
      if (outcome !== 'copied') return;
      copied.blobs++;
      copied.bytes += blob.size;
    };
    const others = await this.#firstBlobs.copy(transfer, copyBlob);
    await mapConcurrent(others, layersAtOnce, copyBlob, { signal });
    await putContents(source, target, transfer.contents, transfer, getTargetVersion(transfer), {
      signal,
      resend: (blob) => this.#shared.resend(source, target, blob, sending),
    });
    this.#options.onCopied?.(transfer, transfer.contents.root.digest);
    return copied;
  }

  /** Returns what runs requests and transfers within the limits of the run, until its stop. */
  #whenFree(stop: StepLimits['stop']): CopyBlobOptions['whenFree'] {
    return (bytes, work) =>
      (bytes > largeBlobBytes ? this.#large : this.#small)(() => {
        throwIfCancelled(stop);
        return work();
      });
  }
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
