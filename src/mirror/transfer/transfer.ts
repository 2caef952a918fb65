import { OpmateError } from '../../core/errors.js';
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
  inCopyOrder,
  OpenPlaces,
  placeKey,
  referenceAt,
  runStep,
  smallRequestsAtOnce,
  sortOutcomes,
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
    const outcomes = await runStep(
      transfers,
      (transfer) => transfer,
      async (transfer, limited): Promise<PinnedTransfer | 'missing'> => {
        if (transfer.contents !== undefined) return { ...transfer, contents: transfer.contents };
        const pin = async (): Promise<ImageContents | undefined> => {
          const from = await places.source(transfer);
          try {
            const { platforms } = transfer;
            const contents = await readImage(from, { ...options, ...limited, platforms, concurrency });
            const manifests = contents?.manifests.map((manifest) => {
              kept += manifest.bytes?.length ?? 0;
              return kept > maxKeptBytes ? { ...manifest, bytes: undefined } : manifest;
            });
            return contents && manifests && { ...contents, manifests };
          } finally {
            await from.close();
          }
        };
        // Components of a release are often one image under several names.
        const key = pinKey(transfer);
        let pinning = key === undefined ? undefined : read.get(key);
        if (pinning === undefined) pinning = pin();
        if (key !== undefined) read.set(key, pinning);
        const contents = await pinning;
        return contents === undefined ? 'missing' : { ...transfer, contents };
      },
      { ...options, atOnce, task: 'read manifests' },
    );
    const { results, ...faults } = sortOutcomes(transfers, (transfer) => transfer, outcomes);
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
  for (const { target, contents } of inCopyOrder(pinned, (transfer) => transfer)) {
    const [first] = contents.manifests.flatMap(({ blobs }) => blobs);
    const key = placeKey(target);
    if (first !== undefined && !firstBlobs.has(key)) firstBlobs.set(key, first);
  }
  const { atOnce, concurrency } = shareOut(pinned.length, options);
  const outcomes = await runStep(
    pinned,
    (transfer) => transfer,
    async (transfer): Promise<SurveyedTransfer> => {
      const reference = referenceAt(transfer);
      const key = placeKey(transfer.target);
      let target = targets.get(key);
      if (target === undefined)
        targets.set(key, (target = openToAsk(transfer.target, firstBlobs.get(key), options)));
      const wanted = await target;
      const { contents } = transfer;
      const missing = await surveyContents(wanted, contents, reference, { ...options, concurrency });
      return { transfer, ...missing, ...(wanted.isNew && { firstBlob: firstBlobs.get(key)?.digest }) };
    },
    { ...options, atOnce, task: 'look at the target' },
  );
  const { results, ...faults } = sortOutcomes(pinned, (transfer) => transfer, outcomes);
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
    headManifest(reference, how) {
      let response = manifests.get(reference);
      if (response === undefined)
        manifests.set(reference, (response = repository.headManifest(reference, how)));
      return response;
    },
    hasBlob(blob, how) {
      let response = blobs.get(blob.digest);
      if (response === undefined) blobs.set(blob.digest, (response = repository.hasBlob(blob, how)));
      return response;
    },
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
  // Each step makes images anew; a report is about those that were given.
  const inputs = new Map(transfers.map((transfer, i) => [i, transfer]));
  const numbered = transfers.map((transfer, i) => ({ ...transfer, position: i }));
  const getPosition = (transfer: Transfer): number => (transfer as (typeof numbered)[number]).position;
  const pin = await pinTransfers(numbered, options);
  const survey = await surveyTransfers(pin.pinned, options);
  const report = await copyTransfers(survey.surveyed, options);
  const inOrder = <T>(items: readonly T[], transferOf: (item: T) => Transfer): [T, Transfer][] =>
    items
      .map((item) => [item, getPosition(transferOf(item))] as const)
      .sort(([, a], [, b]) => a - b)
      .map(([item, i]) => [item, inputs.get(i) as Transfer]);
  return {
    ...report,
    done: inOrder(report.done, ({ transfer }) => transfer).map(([item, transfer]) => ({ ...item, transfer })),
    missing: inOrder([...pin.missing, ...report.missing], (transfer) => transfer).map(
      ([, transfer]) => transfer,
    ),
    failed: inOrder([...pin.failed, ...survey.failed, ...report.failed], ({ transfer }) => transfer).map(
      ([item, transfer]) => ({ ...item, transfer }),
    ),
  };
}

/** Looks for each image at its source. */
async function lookForImages(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  const places = new OpenPlaces(options);
  const outcomes = await runStep(
    transfers,
    (transfer) => transfer,
    async (transfer) => {
      const from = await places.source(transfer);
      try {
        const descriptor = await from.repository.headManifest(from.reference, options);
        return descriptor === undefined ? 'missing' : { transfer, digest: descriptor.digest };
      } finally {
        await from.close();
      }
    },
    { ...options, atOnce: options.maxPerRegistry, task: 'look for images' },
  ).finally(() => places.close());
  const { results, ...faults } = sortOutcomes(transfers, (transfer) => transfer, outcomes);
  return { ...faults, done: results, blobs: 0, bytes: 0 };
}
