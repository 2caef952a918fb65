import { mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, RegistryError } from '../../core/errors.js';
import { createDistanceLimiter, createLimiter } from '../../core/limiter.js';
import { type Logger, silentLogger } from '../../core/log.js';
import type { Reference } from '../../core/reference.js';
import { putContents } from '../../oci/image/copy.js';
import { isNonDistributable } from '../../oci/layout/layout-manifest.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { type BlobPlace, type CopyBlobOptions, SharedBlobs } from '../../oci/image/shared-blobs.js';
import type { Descriptor } from '../../oci/image/types.js';
import {
  type SurveyedTransfer,
  type TransferOptions,
  type TransferReport,
  isComplete,
} from './transfer-types.js';
import {
  blobsOfImageAtOnce,
  imagesAtOnce,
  joinReports,
  OpenPlaces,
  placeKey,
  referenceAt,
  runStep,
  smallRequestsAtOnce,
  splitCopyOrder,
} from './transfer-step.js';

/** A blob above this counts as large: of those only `maxPerRegistry` are under way at a time. */
const largeBlobBytes = 1024 * 1024;
/** Small requests that are under way at a time to a registry that is far away; as many connections are opened to it. */
const maxDistantRequests = 64;
/** Progress is told so many times in a run, about. */
const progressSteps = 200;

/**
 * Copies what a survey found to be lacking. A blob that several repositories of the target need is sent once and
 * mounted in the others, where the registry can. Who copies in several calls hands `shared` from one to the next, so
 * that this holds for all of them.
 */
export async function copyTransfers(
  surveyed: readonly SurveyedTransfer[],
  options: TransferOptions,
  shared = new SharedBlobs(),
): Promise<TransferReport> {
  const places = new OpenPlaces(options);
  const atOnce = smallRequestsAtOnce(options.maxPerRegistry);
  const small = createDistanceLimiter(atOnce, atOnce === 1 ? 1 : Math.min(maxDistantRequests, 2 * atOnce));
  const large = createLimiter(options.maxPerRegistry);
  const progress = new ByteProgress(surveyed, options.logger ?? silentLogger);
  noteKnown(surveyed, shared);
  const rounds = splitCopyOrder(surveyed);
  const run: Run = {
    firstBlobs: new FirstBlobs(rounds.flat()),
    options,
    places,
    shared,
    progress,
    whenFree: (bytes, work) => (bytes > largeBlobBytes ? large : small)(work),
  };
  const reports: TransferReport[] = [];
  progress.start();
  try {
    for (const round of rounds) {
      const { results, ...faults } = await runStep(
        round,
        (transfer, limited) =>
          copyOne(transfer, { ...run, options: { ...options, ...limited } }).finally(() =>
            run.firstBlobs.end(transfer),
          ),
        { ...options, atOnce: imagesAtOnce(options) },
      );
      const copied = results.map(({ transfer, blobs, bytes }): TransferReport => {
        const { digest } = transfer.contents.root;
        return { done: [{ transfer, digest }], missing: [], failed: [], blobs, bytes };
      });
      reports.push(...copied, { done: [], ...faults, blobs: 0, bytes: 0 });
    }
  } finally {
    progress.end();
    await places.close();
  }
  return joinReports(...reports);
}

interface Run {
  firstBlobs: FirstBlobs;
  options: TransferOptions;
  places: OpenPlaces;
  shared: SharedBlobs;
  progress: ByteProgress;
  whenFree: NonNullable<CopyBlobOptions['whenFree']>;
}

interface Copied {
  transfer: SurveyedTransfer;
  blobs: number;
  bytes: number;
}

async function copyOne(transfer: SurveyedTransfer, run: Run): Promise<Copied | 'missing'> {
  const copied: Copied = { transfer, blobs: 0, bytes: 0 };
  if (isComplete(transfer)) return copied;
  const { options, places, shared, progress, whenFree } = run;
  progress.begin(transfer);
  const target = await places.target(transfer.target);
  const from = await places.source(transfer);
  const copyBlob = async (blob: Descriptor): Promise<void> => {
    const onSent = progress.watch(transfer.target, blob);
    const how = { ...options, whenFree, onSent, isAbsent: true };
    const outcome = await shared.copy(from.repository, target, blob, how);
    progress.settle(transfer.target, blob, outcome === 'copied');
    if (outcome !== 'copied') return;
    copied.blobs++;
    copied.bytes += blob.size;
  };
  try {
    const others = await run.firstBlobs.copy(transfer, copyBlob);
    await mapConcurrent(others, options.layersAtOnce ?? blobsOfImageAtOnce, copyBlob, options);
    const reference = referenceAt(transfer);
    const resend = (blob: Descriptor) =>
      shared.resend(from.repository, target, blob, { ...options, whenFree });
    await putContents(from.repository, target, transfer.contents, transfer, reference, {
      ...options,
      resend,
    });
    return copied;
  } catch (error) {
    // A blob that is not there is a fault; an image that is not there may be passed over.
    const mayBeMissing = error instanceof OpmateError && error.code === 'NOT_FOUND';
    if (mayBeMissing && (await isGone(from, transfer.contents.root, options))) return 'missing';
    throw transfer.platforms === undefined ? error : explainSparse(error);
  } finally {
    progress.finish(transfer);
  }
}

/** The blobs that new repositories get before all others; see `SurveyedTransfer`. */
class FirstBlobs {
  /** By place: who brings its first blob, which whoever else brings something waits for. */
  readonly #arrivals = new Map<
    string,
    { owner: SurveyedTransfer; promise: Promise<void>; end: () => void }
  >();

  /** Takes the transfers in the order in which they begin, so that none waits for one that has not begun. */
  constructor(surveyed: readonly SurveyedTransfer[]) {
    const seen = new Set<string>();
    for (const owner of surveyed) {
      const key = placeKey(owner.target);
      if (owner.firstBlob === undefined || seen.has(key)) continue;
      seen.add(key);
      if (!owner.blobs.some(({ digest }) => digest === owner.firstBlob)) continue;
      let end = (): void => undefined;
      const promise = new Promise<void>((resolve) => (end = resolve));
      this.#arrivals.set(key, { owner, promise, end });
    }
  }

  /** Copies the first blob, or waits until it has been copied or has failed; returns what is left to copy. */
  async copy(
    surveyed: SurveyedTransfer,
    copyBlob: (blob: Descriptor) => Promise<void>,
  ): Promise<readonly Descriptor[]> {
    const { target, blobs, firstBlob } = surveyed;
    const arrival = this.#arrivals.get(placeKey(target));
    if (arrival?.owner !== surveyed) {
      await arrival?.promise;
      return blobs;
    }
    for (const blob of blobs.filter(({ digest }) => digest === firstBlob)) await copyBlob(blob);
    this.end(surveyed);
    return blobs.filter(({ digest }) => digest !== firstBlob);
  }

  /** Lets the others go on, whatever became of the first blob. */
  end(surveyed: SurveyedTransfer): void {
    const arrival = this.#arrivals.get(placeKey(surveyed.target));
    if (arrival?.owner === surveyed) arrival.end();
  }
}

/** What registries say of an index that names images which are not there. */
const sparseRefusals = ['MANIFEST_BLOB_UNKNOWN', 'MANIFEST_UNKNOWN', 'MANIFEST_INVALID'];

function explainSparse(error: unknown): unknown {
  if (!(error instanceof RegistryError)) return error;
  if (!sparseRefusals.some((code) => error.registryCodes.includes(code))) return error;
  const { message, status, registryCodes, code } = error;
  const hint =
    'remove --platform and platforms: this registry requires the images of all platforms of an index';
  return new RegistryError(message, { status, registryCodes, code, hint, cause: error });
}

async function isGone(
  { repository }: OpenedReference,
  { digest }: Descriptor,
  options: TransferOptions,
): Promise<boolean> {
  return (await repository.headManifest(digest, options)) === undefined;
}

/** Notes what the survey says about blobs that are at the target: which repositories they can be mounted from. */
export function noteKnown(surveyed: readonly SurveyedTransfer[], shared: SharedBlobs): void {
  for (const { target, contents, blobs } of surveyed) {
    const place = placeOfTarget(target);
    const lacking = new Set(blobs.map(({ digest }) => digest));
    for (const blob of contents.manifests.flatMap((manifest) => manifest.blobs)) {
      // Of a manifest that is there such a layer may still be missing.
      if (!lacking.has(blob.digest) && !isNonDistributable(blob)) shared.note(place, blob.digest);
    }
  }
}

function placeOfTarget(target: Reference): BlobPlace {
  return target.transport === 'docker' ? target : { registry: placeKey(target), repository: '' };
}

/** Tells how many bytes have been sent of those that are to be: each blob once a registry, where it mounts. */
class ByteProgress {
  readonly #logger: Logger;
  readonly #expected = new Set<string>();
  /** Bytes of blobs that are on their way. */
  readonly #underWay = new Map<string, number>();
  /** Images under way, in the order in which they began. */
  readonly #images = new Set<SurveyedTransfer>();
  #total = 0;
  #settled = 0;
  #told = 0;

  constructor(surveyed: readonly SurveyedTransfer[], logger: Logger) {
    this.#logger = logger;
    for (const { target, blobs } of surveyed) {
      for (const blob of blobs) {
        const key = toKey(target, blob);
        if (!this.#expected.has(key)) this.#total += blob.size;
        this.#expected.add(key);
      }
    }
  }

  start(): void {
    this.#tell('start');
  }

  end(): void {
    this.#tell('done');
  }

  begin(image: SurveyedTransfer): void {
    this.#images.add(image);
    if (this.#told === 0 && this.#images.size === 1) this.#tell('update');
  }

  finish(image: SurveyedTransfer): void {
    this.#images.delete(image);
  }

  /** Takes note of the bytes of a blob while it is sent. */
  watch(target: Reference, blob: Descriptor): (bytes: number) => void {
    const key = `${placeKey(target)} ${blob.digest}`;
    return (bytes) => {
      this.#underWay.set(key, bytes);
      this.#update();
    };
  }

  /** A blob is there; `isSent` where it had to be sent, whether that was expected or not. */
  settle(target: Reference, blob: Descriptor, isSent: boolean): void {
    this.#underWay.delete(`${placeKey(target)} ${blob.digest}`);
    const isExpected = this.#expected.delete(toKey(target, blob));
    if (isExpected) this.#settled += blob.size;
    else if (isSent) {
      this.#total += blob.size;
      this.#settled += blob.size;
    }
    this.#update();
  }

  #update(): void {
    const current = this.#current();
    const isDue = Math.abs(current - this.#told) >= this.#total / progressSteps;
    if (isDue || (current === this.#total && current !== this.#told)) this.#tell('update');
  }

  #current(): number {
    let current = this.#settled;
    for (const bytes of this.#underWay.values()) current += bytes;
    return Math.min(current, this.#total);
  }

  #tell(state: 'start' | 'update' | 'done'): void {
    this.#told = this.#current();
    const [image] = this.#images;
    const amount = { current: this.#told, total: this.#total, unit: 'bytes' as const };
    const item = image === undefined ? {} : { item: image.sourceName };
    this.#logger.progress({ task: 'mirror', state, ...amount, ...item });
  }
}

function toKey(target: Reference, { digest }: Descriptor): string {
  return `${placeOfTarget(target).registry} ${digest}`;
}
