import { OpmateError } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import type { Reference } from '../../core/reference.js';
import { type ImageContents, readContentsFrom } from '../../oci/image/contents.js';
import { type AskedTarget, surveyContents } from '../../oci/image/copy.js';
import { type OpenedReference, openTarget } from '../../oci/image/open.js';
import type { Repository } from '../../oci/registry/repository.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Descriptor } from '../../oci/image/types.js';
import { withChanges } from '../../source/session.js';
import { copyTransfers } from './copy-transfers.js';
import {
  blobsOfImageAtOnce,
  imagesAtOnce,
  OpenPlaces,
  placeKey,
  referenceAt,
  runStep,
  smallRequestsAtOnce,
  splitCopyOrder,
} from './transfer-step.js';
import type {
  PinnedTransfer,
  StepFaults,
  SurveyedTransfer,
  Transfer,
  TransferOptions,
  TransferReport,
} from './transfer-types.js';

/** Bytes of manifests that are kept from reading to writing; those beyond are read again. */
const maxKeptBytes = 32 * 1024 * 1024;

/**
 * Reads what each image consists of: one request a manifest, none a blob. Transfers that have their contents are
 * passed on. Stops or goes on as `transferImages` does.
 */
export async function pinTransfers(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
  const places = new OpenPlaces(options);
  const { atOnce, concurrency } = shareOut(transfers.length, options);
  let kept = 0;
  const read = new Map<string, Promise<ImageContents | undefined>>();
  try {
    const { results, ...faults } = await runStep(
      transfers,
      async (transfer, limited): Promise<PinnedTransfer | 'missing'> => {
        if (transfer.contents !== undefined) return { ...transfer, contents: transfer.contents };
        const pin = async (): Promise<ImageContents | undefined> => {
          const from = await places.source(transfer);
          const { platforms } = transfer;
          const contents = await readImage(from, { ...options, ...limited, platforms, concurrency });
          const manifests = contents?.manifests.map((manifest) => {
            kept += manifest.bytes?.length ?? 0;
            return kept > maxKeptBytes ? { ...manifest, bytes: undefined } : manifest;
          });
          return contents && manifests && { ...contents, manifests };
        };
        // Components of a release are often one image under several names.
        const key = pinKey(transfer);
        const contents = await (key === undefined ? pin() : getOrAdd(read, key, pin));
        return contents === undefined ? 'missing' : { ...transfer, contents };
      },
      { ...options, atOnce, task: 'read manifests' },
    );
    return { ...faults, pinned: results };
  } finally {
    await places.close();
  }
}

/** What transfers of one image in a registry have in common; undefined where a tag may change in between. */
function pinKey({ source, platforms }: Transfer): string | undefined {
  if (typeof source === 'function' || source.transport !== 'docker' || source.digest === undefined)
    return undefined;
  const { registry, repository, digest } = source;
  return JSON.stringify([registry, repository, digest, platforms?.map(formatPlatform)]);
}

/** What an image consists of; undefined where it is not there. */
async function readImage(
  { repository, reference }: OpenedReference,
  options: Parameters<typeof readContentsFrom>[3],
): Promise<ImageContents | undefined> {
  const root = await repository.getManifest(reference, options).catch((error: unknown) => {
    // Of an image that is there nothing may be missing.
    if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
  return root && readContentsFrom(repository, reference, root, options);
}

/**
 * Asks the target what it has: its tags, one request a manifest under a tag that is there, and one a blob of those
 * manifests that are not there, each blob once a repository; of a new repository only one. Nothing is written, and no layout directory made.
 */
export async function surveyTransfers(
  pinned: readonly PinnedTransfer[],
  options: TransferOptions & {
    /** Asks for every manifest and blob, whatever the list of tags says. */
    isExact?: boolean | undefined;
    /** Asks for the blobs of manifests that are there, too; one that lacks a blob counts as missing. */
    everyBlob?: boolean | undefined;
  },
): Promise<StepFaults & { surveyed: SurveyedTransfer[] }> {
  const targets = new Map<string, Promise<AskedTarget>>();
  const firstBlobs = new Map<string, Descriptor>();
  for (const { target, contents } of splitCopyOrder(pinned).flat()) {
    const [first] = contents.manifests.flatMap(({ blobs }) => blobs);
    if (first !== undefined) getOrAdd(firstBlobs, placeKey(target), () => first);
  }
  const { atOnce, concurrency } = shareOut(pinned.length, options);
  const { results, ...faults } = await runStep(
    pinned,
    async (transfer): Promise<SurveyedTransfer> => {
      const reference = referenceAt(transfer);
      const key = placeKey(transfer.target);
      const firstBlob = firstBlobs.get(key);
      const target = await getOrAdd(targets, key, () => openToAsk(transfer.target, firstBlob, options));
      const missing = await surveyContents(target, transfer.contents, reference, { ...options, concurrency });
      return { ...transfer, ...missing, firstBlob: target.isNew ? firstBlob?.digest : undefined };
    },
    { ...options, atOnce, task: 'check the target' },
  );
  return { ...faults, surveyed: results };
}

/** A target that is asked by digest once for each; one that is not there has nothing. */
async function openToAsk(
  target: Reference,
  firstBlob: Descriptor | undefined,
  options: Parameters<typeof surveyTransfers>[1],
): Promise<AskedTarget> {
  const repository = await openToRead(target, options);
  if (repository === undefined)
    return { headManifest: () => Promise.resolve(undefined), hasBlob: () => Promise.resolve(false) };
  const manifests = new Map<string, Promise<Descriptor | undefined>>();
  const blobs = new Map<string, Promise<boolean>>();
  const tags = options.isExact ? undefined : await repository.findTags?.(options);
  const isEmpty = tags?.size === 0 && firstBlob !== undefined;
  return {
    tags,
    isNew: isEmpty && !(await repository.hasBlob(firstBlob, options)),
    headManifest: (reference, how) =>
      getOrAdd(manifests, reference, () => repository.headManifest(reference, how)),
    hasBlob: (blob, how) => getOrAdd(blobs, blob.digest, () => repository.hasBlob(blob, how)),
  };
}

async function openToRead(
  target: Reference,
  { session, signal }: TransferOptions,
): Promise<Repository | undefined> {
  if (target.transport !== 'oci') {
    return (await openTarget(target, withChanges(session, { signal }))).repository;
  }
  const { openLayout } = await import('../../oci/layout/layout.js');
  return openLayout(target.path).catch((error: unknown) => {
    if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
}

/** How many images are worked on at a time, and how many requests each may have under way. */
function shareOut(count: number, options: TransferOptions): { atOnce: number; concurrency: number } {
  const requests = smallRequestsAtOnce(options.maxPerRegistry);
  const atOnce = Math.max(1, Math.min(imagesAtOnce(options), count));
  const ofImage =
    options.layersAtOnce ?? (options.imagesAtOnce === undefined ? Infinity : blobsOfImageAtOnce);
  return { atOnce, concurrency: Math.max(1, Math.min(ofImage, Math.floor(requests / atOnce))) };
}

/**
 * Copies images with all their platforms, several at a time, each verified by digest and complete before it gets
 * its tag. What a target has already is not sent again, so that a run that was interrupted or has failed can be
 * repeated. Throws the first failure unless `continueOnError`; and with it one of the local disk, or when nothing
 * works from the first. CancelledError always.
 */
export async function transferImages(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  if (options.dryRun) return lookForImages(transfers, options);
  // Steps make images anew, and go on with some of them.
  const numbered = transfers.map((transfer, position) => ({ ...transfer, position }));
  const byPosition = (a: Transfer, b: Transfer): number =>
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

/** Looks for each image at its source. */
async function lookForImages(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  const places = new OpenPlaces(options);
  const { results, ...faults } = await runStep(
    transfers,
    async (transfer) => {
      const from = await places.source(transfer);
      const descriptor = await from.repository.headManifest(from.reference, options);
      return descriptor === undefined ? 'missing' : { transfer, digest: descriptor.digest };
    },
    { ...options, atOnce: options.maxPerRegistry, task: 'look for images' },
  ).finally(() => places.close());
  return { ...faults, done: results, blobs: 0, bytes: 0 };
}
