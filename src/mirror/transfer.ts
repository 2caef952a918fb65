import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { type Reference, formatReference } from '../core/reference.js';
import { copyImage } from '../oci/copy.js';
import { type OpenReferenceOptions, type OpenedTarget, openReference, openTarget } from '../oci/open.js';

/** An image to be copied. */
export interface Transfer {
  source: Reference;
  /** With a tag, or the digest of the source. */
  target: Reference;
  /** How messages name both. */
  sourceName: string;
  targetName: string;
  /** Copied when everything else has been: a catalog, which should name only what is there. */
  isLast?: boolean | undefined;
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
  const from = await openReference(transfer.source, { ...options.open, signal });
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
