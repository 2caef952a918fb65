import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { type Reference, formatReference } from '../core/reference.js';
import { copyImage } from '../oci/copy.js';
import type { ContentManifest, ImageContents } from '../oci/contents.js';
import {
  type OpenReferenceOptions,
  type OpenedReference,
  type OpenedTarget,
  openReference,
  openTarget,
} from '../oci/open.js';
import type { Descriptor, Platform } from '../oci/types.js';

/** An image to be copied. */
export interface Transfer {
  /** Where it is, or how to open a place that no reference names, such as an image that was just built. */
  source: Reference | (() => Promise<OpenedReference>);
  /** With a tag, or the digest of the source. */
  target: Reference;
  /** How messages name both. */
  sourceName: string;
  targetName: string;
  /** Copied when everything else has been: a catalog, which should name only what is there. */
  isLast?: boolean | undefined;
  /** Of an index only these platforms' images. */
  platforms?: readonly Platform[] | undefined;
  /** What it consists of, where that is known already: then its source is asked only for what must be copied. */
  contents?: ImageContents | undefined;
}

/** An image of which is known what it consists of. */
export interface PinnedTransfer extends Transfer {
  contents: ImageContents;
}

/** An image of which is known what the target lacks. */
export interface SurveyedTransfer {
  transfer: PinnedTransfer;
  /** Manifests that the target repository lacks, in the order of the contents. */
  manifests: readonly ContentManifest[];
  /** Blobs that these need and the target repository lacks. */
  blobs: readonly Descriptor[];
  /** Whether the target's tag, where it has one, names the root already. */
  isTagged: boolean;
}

/** What became of the images in a step that goes on after failures. */
export interface StepFaults {
  /** Images that are not at the source. */
  missing: Transfer[];
  failed: { transfer: Transfer; error: OpmateError }[];
}

/**
 * Reads what each image consists of: one request a manifest, none a blob. Transfers that have their contents are
 * passed on. Stops or goes on as `transferImages` does.
 */
export function pinTransfers(
  transfers: readonly Transfer[],
  options: TransferOptions,
): Promise<StepFaults & { pinned: PinnedTransfer[] }> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [transfers, options] });
}

/**
 * Asks the target what it has: one request a manifest, and one a blob of those manifests that are not there, each
 * blob once a repository. Nothing is written, and no layout directory made.
 */
export function surveyTransfers(
  pinned: readonly PinnedTransfer[],
  options: TransferOptions,
): Promise<StepFaults & { surveyed: SurveyedTransfer[] }> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [pinned, options] });
}

/**
 * Copies what a survey found to be lacking. A blob that several repositories of the target need is sent once and
 * mounted in the others, where the registry can.
 */
export function copyTransfers(
  surveyed: readonly SurveyedTransfer[],
  options: TransferOptions,
): Promise<TransferReport> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [surveyed, options] });
}

/**
 * The signatures and what else is attached to images by tag (`sha256-HEX.sig`, `.att`, `.sbom`), as transfers of
 * their own into the same target repository, pinned; for the root and every manifest below it. Referrers are added
 * to the contents of their image. What is not there, or cannot be asked for, is none.
 */
export function findSignatures(
  pinned: readonly PinnedTransfer[],
  options: TransferOptions,
): Promise<{ pinned: PinnedTransfer[]; signatures: PinnedTransfer[] }> {
  throw new OpmateError('INTERNAL', 'not built yet', { cause: [pinned, options] });
}

export interface TransferOptions extends CancelOptions {
  open: OpenReferenceOptions;
  /** Requests to a registry at a time, about. */
  maxPerRegistry: number;
  /** Goes on after a failure. Images that are not at the source are passed over either way with `skipMissing`. */
  continueOnError: boolean;
  skipMissing: boolean;
  /** Copies what refers to the images too. */
  referrers?: boolean | undefined;
  /** Looks for each image at its source, and copies none. */
  dryRun?: boolean | undefined;
  logger?: Logger | undefined;
}

/** What became of the transfers, each list in their order. */
export interface TransferReport {
  done: { transfer: Transfer; digest: string }[];
  /** Images that are not at the source. */
  missing: Transfer[];
  failed: { transfer: Transfer; error: OpmateError }[];
  /** Blobs and their bytes that were sent. */
  blobs: number;
  bytes: number;
}

type Outcome = { digest: string; blobs: number; bytes: number } | 'missing' | OpmateError;

/** Images that may fail one after the other for want of an answer or permission before any is copied. */
const maxFailuresAtFirst = 8;

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
  const { logger = silentLogger, maxPerRegistry } = options;
  const task = options.dryRun ? 'look for images' : 'mirror';
  const targets = new Map<string, Promise<OpenedTarget>>();
  const outcomes = new Map<Transfer, Outcome>();
  const giveUp = (error: OpmateError): boolean => {
    if (!options.continueOnError || error.code === 'IO') return true;
    const isDead = (outcome: unknown): boolean =>
      outcome instanceof OpmateError && ['NETWORK', 'AUTH'].includes(outcome.code);
    const others = [...outcomes.values()];
    return isDead(error) && others.length + 1 >= maxFailuresAtFirst && others.every(isDead);
  };
  let current = 0;
  logger.progress({ task, state: 'start' });
  try {
    for (const isLast of [false, true]) {
      const round = transfers.filter((transfer) => (transfer.isLast ?? false) === isLast);
      const atOnce = Math.max(1, Math.min(maxPerRegistry, round.length));
      const concurrency = Math.max(1, Math.floor(maxPerRegistry / atOnce));
      await mapConcurrent(
        round,
        atOnce,
        async (transfer) => {
          const outcome = await attempt(transfer, { ...options, concurrency, targets, giveUp });
          outcomes.set(transfer, outcome);
          logger.progress({
            task,
            state: 'update',
            current: ++current,
            total: transfers.length,
            unit: 'items',
          });
        },
        options,
      );
    }
    return reportOf(transfers, outcomes);
  } finally {
    logger.progress({ task, state: 'done' });
    for (const target of targets.values())
      await target.then((opened) => opened.close()).catch(() => undefined);
  }
}

interface AttemptOptions extends TransferOptions {
  concurrency: number;
  targets: Map<string, Promise<OpenedTarget>>;
  /** Whether there is no sense in going on after a failure. */
  giveUp(error: OpmateError): boolean;
}

async function attempt(transfer: Transfer, options: AttemptOptions): Promise<Outcome> {
  const { signal, logger = silentLogger } = options;
  try {
    const outcome = await copyOne(transfer, options);
    if (outcome !== 'missing' || options.skipMissing) {
      if (outcome === 'missing') logger.log('warn', `${transfer.sourceName}: not there, passed over`);
      return outcome;
    }
    throw new OpmateError('NOT_FOUND', `${transfer.sourceName}: not found`, {
      hint: '--skip-missing passes over images that are not at the source',
    });
  } catch (error) {
    throwIfCancelled(signal);
    const isFailure =
      error instanceof OpmateError && !(error instanceof CancelledError) && error.code !== 'INTERNAL';
    if (!isFailure || options.giveUp(error)) throw error;
    logger.log('error', error.message);
    return error;
  }
}

async function copyOne(transfer: Transfer, options: AttemptOptions): Promise<Outcome> {
  const { signal } = options;
  const { source } = transfer;
  const from = await (typeof source === 'function'
    ? source()
    : openReference(source, { ...options.open, signal }));
  try {
    if (options.dryRun) {
      const found = await from.repository.headManifest(from.reference, options);
      return found === undefined ? 'missing' : { digest: found.digest, blobs: 0, bytes: 0 };
    }
    const to = await targetOf(transfer.target, options);
    const reference = transfer.target.tag ?? transfer.target.digest ?? from.reference;
    try {
      const result = await copyImage(from.repository, from.reference, to.repository, reference, options);
      return { digest: result.descriptor.digest, blobs: result.blobs.copied, bytes: result.bytes };
    } catch (error) {
      // A blob that is not there is a fault; an image that is not there may be passed over.
      const mayBeMissing = error instanceof OpmateError && error.code === 'NOT_FOUND';
      if (mayBeMissing && (await from.repository.headManifest(from.reference, options)) === undefined)
        return 'missing';
      throw error;
    }
  } finally {
    await from.close();
  }
}

/** The place of a target, opened once, whatever number of images go there. */
function targetOf(target: Reference, { open, targets }: AttemptOptions): Promise<OpenedTarget> {
  const key = formatReference({ ...target, tag: undefined, digest: undefined } as unknown as Reference);
  let opened = targets.get(key);
  if (opened === undefined) targets.set(key, (opened = openTarget(target, open)));
  return opened;
}

function reportOf(transfers: readonly Transfer[], outcomes: ReadonlyMap<Transfer, Outcome>): TransferReport {
  const report: TransferReport = { done: [], missing: [], failed: [], blobs: 0, bytes: 0 };
  for (const transfer of transfers) {
    const outcome = outcomes.get(transfer);
    if (outcome === undefined) continue;
    if (outcome === 'missing') report.missing.push(transfer);
    else if (outcome instanceof OpmateError) report.failed.push({ transfer, error: outcome });
    else {
      report.done.push({ transfer, digest: outcome.digest });
      report.blobs += outcome.blobs;
      report.bytes += outcome.bytes;
    }
  }
  return report;
}
