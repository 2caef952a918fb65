import type { CancelOptions } from '../../core/concurrency.js';
import { ifFound, type OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Reference } from '../../core/reference.js';
import { type ImageContents, readContentsFrom } from '../../oci/image/contents.js';
import { type SurveyTarget, surveyContents } from '../../oci/image/copy.js';
import { openTarget } from '../../oci/image/open.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Descriptor } from '../../oci/image/types.js';
import type { Repository } from '../../oci/registry/repository.js';
import { copyTransfers } from './copy-transfers.js';
import {
  countDownRepositories,
  createPlaces,
  defaultBlobsPerImage,
  getMaxImages,
  getMaxSmallRequests,
  getTargetVersion,
  isImageFailure,
  runStep,
  splitCopyOrder,
  toRepositoryKey,
} from './transfer-step.js';
import type {
  NamedTransfer,
  PinnedTransfer,
  StepFaults,
  SurveyedTransfer,
  Transfer,
  TransferOptions,
  TransferReport,
} from './transfer-types.js';

/** Maximum bytes of manifests kept between reading and writing; further manifests are read again. */
const maxKeptBytes = 32 * 1024 * 1024;

interface PinOptions extends TransferOptions {
  /** Returns an image whose source lost it (`error` is undefined) or cannot be read, if it is available elsewhere. */
  findElsewhere?:
    | ((
        transfer: Transfer,
        error: OpmateError | undefined,
        limits: CancelOptions,
      ) => Promise<PinnedTransfer | undefined>)
    | undefined;
}

/**
 * Reads the contents of images that lack them: one request per manifest, none per blob. Fails or continues as
 * `transferImages` does.
 */
export async function pinTransfers(
  transfers: readonly Transfer[],
  options: PinOptions,
): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
  const { session, referrers } = options;
  const places = createPlaces(session);
  const { images, requestsPerImage } = getParallelism(transfers.length, options);
  let keptBytes = 0;
  const known = new Map<string, Promise<ImageContents | undefined>>();
  const read = async (transfer: Transfer, { signal }: CancelOptions): Promise<ImageContents | undefined> => {
    const { repository, reference } = await places.openSource(transfer);
    const { platforms } = transfer;
    const reading = { signal, logger: session.logger, referrers, platforms, concurrency: requestsPerImage };
    const root = await ifFound(repository.getManifest(reference, reading));
    if (root === undefined) return undefined;
    const contents = await readContentsFrom(repository, reference, root, reading);
    const manifests = contents.manifests.map((manifest) => {
      keptBytes += manifest.bytes?.length ?? 0;
      return keptBytes > maxKeptBytes ? { ...manifest, bytes: undefined } : manifest;
    });
    return { ...contents, manifests };
  };
  // Components of a release are often one image under several names.
  const readOnce = (transfer: Transfer, limits: CancelOptions): Promise<ImageContents | undefined> => {
    const key = toImageKey(transfer);
    return key === undefined ? read(transfer, limits) : getOrAdd(known, key, () => read(transfer, limits));
  };
  try {
    const { results, ...faults } = await runStep(
      transfers,
      async (transfer, limits): Promise<PinnedTransfer | 'missing'> => {
        try {
          const contents = transfer.contents ?? (await readOnce(transfer, limits));
          if (contents !== undefined) return { ...transfer, contents };
        } catch (error) {
          throwIfCancelled(limits.signal);
          if (!isImageFailure(error)) throw error;
          const elsewhere = await options.findElsewhere?.(transfer, error, limits);
          if (elsewhere === undefined) throw error;
          return elsewhere;
        }
        return (await options.findElsewhere?.(transfer, undefined, limits)) ?? 'missing';
      },
      { ...options, concurrency: images, task: 'read manifests' },
    );
    return { ...faults, pinned: results };
  } finally {
    await places.close();
  }
}

/** Returns a key for transfers of one image in a registry; undefined for a tag, which may change. */
function toImageKey({ source, platforms }: Transfer): string | undefined {
  if (typeof source === 'function' || source.transport !== 'docker' || source.digest === undefined)
    return undefined;
  const { registry, repository, digest } = source;
  return JSON.stringify([registry, repository, digest, platforms?.map(formatPlatform)]);
}

interface SurveyOptions extends TransferOptions {
  /** Requests every manifest and blob, regardless of the list of tags. */
  isExact?: boolean | undefined;
  /** Requests the blobs of present manifests too; a manifest that lacks a blob is missing. */
  everyBlob?: boolean | undefined;
}

/**
 * Requests what the target has: its tags, each manifest under a present tag, and each blob of missing manifests once
 * per repository; of a new repository a single blob. Writes nothing, and creates no layout directory.
 */
export async function surveyTransfers(
  pinned: readonly PinnedTransfer[],
  options: SurveyOptions,
): Promise<StepFaults & { surveyed: SurveyedTransfer[] }> {
  const targets = new Map<string, Promise<SurveyTarget>>();
  const firstBlobs = new Map<string, Descriptor>();
  for (const { target, contents } of splitCopyOrder(pinned).flat()) {
    const [first] = contents.manifests.flatMap(({ blobs }) => blobs);
    if (first !== undefined) getOrAdd(firstBlobs, toRepositoryKey(target), () => first);
  }
  const { images, requestsPerImage } = getParallelism(pinned.length, options);
  const { everyBlob } = options;
  const isLastOfRepository = countDownRepositories(pinned);
  const { results, ...faults } = await runStep(
    pinned,
    async (transfer): Promise<SurveyedTransfer> => {
      const version = getTargetVersion(transfer);
      const key = toRepositoryKey(transfer.target);
      const firstBlob = firstBlobs.get(key);
      const target = await getOrAdd(targets, key, () => openForSurvey(transfer.target, firstBlob, options));
      const missing = await surveyContents(target, transfer.contents, version, {
        everyBlob,
        signal: options.session.signal,
        concurrency: requestsPerImage,
      }).finally(() => {
        if (isLastOfRepository(transfer.target)) targets.delete(key);
      });
      return { ...transfer, ...missing, firstBlob: target.isNew ? firstBlob?.digest : undefined };
    },
    { ...options, concurrency: images, task: 'check the target' },
  );
  return { ...faults, surveyed: results };
}

/** Returns a target that requests each digest once; a missing layout is empty. */
async function openForSurvey(
  target: Reference,
  firstBlob: Descriptor | undefined,
  { session, isExact = false }: SurveyOptions,
): Promise<SurveyTarget> {
  const repository = await openForReading(target, session);
  if (repository === undefined)
    return { headManifest: () => Promise.resolve(undefined), hasBlob: () => Promise.resolve(false) };
  const manifests = new Map<string, Promise<Descriptor | undefined>>();
  const blobs = new Map<string, Promise<boolean>>();
  const tags = isExact ? undefined : await repository.findTags?.(session);
  const isEmpty = tags?.size === 0 && firstBlob !== undefined;
  return {
    tags,
    isNew: isEmpty && !(await repository.hasBlob(firstBlob, session)),
    headManifest: (reference, options) =>
      getOrAdd(manifests, reference, () => repository.headManifest(reference, options)),
    hasBlob: (blob, options) => getOrAdd(blobs, blob.digest, () => repository.hasBlob(blob, options)),
  };
}

async function openForReading(
  target: Reference,
  session: TransferOptions['session'],
): Promise<Repository | undefined> {
  if (target.transport !== 'oci') return (await openTarget(target, session)).repository;
  const { openLayout } = await import('../../oci/layout/layout.js');
  return ifFound(openLayout(target.path));
}

/** Returns the maximum number of parallel images, and of parallel requests for each. */
function getParallelism(
  count: number,
  options: TransferOptions,
): { images: number; requestsPerImage: number } {
  const requests = getMaxSmallRequests(options.maxPerRegistry);
  const images = Math.max(1, Math.min(getMaxImages(options), count));
  const limit =
    options.layersAtOnce ?? (options.imagesAtOnce === undefined ? Infinity : defaultBlobsPerImage);
  return { images, requestsPerImage: Math.max(1, Math.min(limit, Math.floor(requests / images))) };
}

/**
 * Copies images with all their platforms, several in parallel. Each is verified by digest, and tagged when complete.
 * Present content is not sent again, so an interrupted or failed run can be repeated. Throws the first failure unless
 * `continueOnError`; with it, throws failures of the local disk, and network or access failures if no image succeeded.
 * Always throws CancelledError.
 */
export async function transferImages(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  if (options.dryRun) return lookUpImages(transfers, options);
  // Steps return copies of some of the transfers.
  const numbered = transfers.map((transfer, position) => ({ ...transfer, position }));
  const byPosition = (a: NamedTransfer, b: NamedTransfer): number =>
    (a as (typeof numbered)[number]).position - (b as (typeof numbered)[number]).position;
  const pin = await pinTransfers(numbered, options);
  const survey = await surveyTransfers(pin.pinned, options);
  const { done, missing, failed, ...sent } = await copyTransfers(survey.surveyed, options);
  return {
    ...sent,
    done: done.sort((a, b) => byPosition(a.transfer, b.transfer)),
    missing: [...pin.missing, ...missing].sort(byPosition),
    failed: [...pin.failed, ...survey.failed, ...failed].sort((a, b) => byPosition(a.transfer, b.transfer)),
  };
}

async function lookUpImages(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  const places = createPlaces(options.session);
  const { results, ...faults } = await runStep(
    transfers,
    async (transfer) => {
      const { repository, reference } = await places.openSource(transfer);
      const descriptor = await repository.headManifest(reference, options.session);
      return descriptor === undefined ? 'missing' : { transfer, digest: descriptor.digest };
    },
    { ...options, concurrency: options.maxPerRegistry, task: 'look for images' },
  ).finally(() => places.close());
  return { ...faults, done: results, blobs: 0, bytes: 0 };
}
