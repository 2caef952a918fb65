import { type CancelOptions, mapConcurrent, onAbort } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { CancelledError, DigestMismatchError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { type Reference, formatReference, withReferenceTag } from '../../core/reference.js';
import {
  type ImageSession,
  type OpenedReference,
  type OpenedTarget,
  openReference,
  openTarget,
} from '../../oci/image/open.js';
import { withChanges } from '../../source/session.js';
import { imageTimeoutError } from './image-clock.js';
import type {
  PinnedTransfer,
  StepFaults,
  Transfer,
  TransferOptions,
  TransferReport,
} from './transfer-types.js';

/** What became of an image in a step: its result, that it is not at the source, or why it failed. */
type Outcome<R> = R | 'missing' | OpmateError;

/** What became of all images in a step, each list in their order. */
interface StepResults<R> extends StepFaults {
  results: R[];
}

/** Images that may fail one after the other for want of an answer or permission before anything works. */
const maxFailuresAtFirst = 8;

/** Blobs, or manifests, of one image that are under way at a time, unless the user says. */
export const blobsOfImageAtOnce = 6;

/** How many small requests may be under way where `maxPerRegistry` large ones may. */
export function smallRequestsAtOnce(maxPerRegistry: number): number {
  // Whoever asks for one at a time means it.
  return maxPerRegistry === 1 ? 1 : maxPerRegistry * 4;
}

/** How many images are worked on at a time. */
export function imagesAtOnce(options: Pick<TransferOptions, 'maxPerRegistry' | 'imagesAtOnce'>): number {
  return Math.min(smallRequestsAtOnce(options.maxPerRegistry), options.imagesAtOnce ?? Infinity);
}

interface StepOptions extends TransferOptions {
  /** Images at a time. */
  atOnce: number;
  /** How progress names the step, where it is told by images. */
  task?: string | undefined;
}

/**
 * Does something with each image, several at a time. Throws the first failure unless
 * `continueOnError`; and with it one of the local disk, or when nothing works from the first. CancelledError always.
 */
export async function runStep<T extends Transfer, R>(
  transfers: readonly T[],
  work: (transfer: T, options: CancelOptions) => Promise<R | 'missing'>,
  options: StepOptions,
): Promise<StepResults<R>> {
  const { logger = silentLogger, task } = options;
  const reached: Outcome<R>[] = [];
  const isDead = (outcome: unknown): boolean =>
    outcome instanceof OpmateError && ['NETWORK', 'AUTH'].includes(outcome.code);
  const giveUp = (error: OpmateError): boolean => {
    if (!options.continueOnError || error.code === 'IO') return true;
    return isDead(error) && reached.length + 1 >= maxFailuresAtFirst && reached.every(isDead);
  };
  if (task !== undefined) logger.progress({ task, state: 'start' });
  try {
    const outcomes = await mapConcurrent(
      transfers,
      options.atOnce,
      async (transfer) => {
        const inTime = () => withinTime(transfer, options, (limited) => work(transfer, limited));
        const outcome = await attempt(transfer, inTime, giveUp, options);
        reached.push(outcome);
        const amount = { current: reached.length, total: transfers.length, unit: 'items' as const };
        const item = transfer.sourceName;
        if (task !== undefined) logger.progress({ task, state: 'update', ...amount, item });
        return outcome;
      },
      options,
    );
    return sortOutcomes(transfers, outcomes);
  } finally {
    if (task !== undefined) logger.progress({ task, state: 'done' });
  }
}

/** Works on one image with a signal that also fires when its time is over, if that is limited. */
async function withinTime<R>(
  { targetName }: Transfer,
  { imageTimeoutMs, signal }: TransferOptions,
  work: (options: CancelOptions) => Promise<R>,
): Promise<R> {
  if (imageTimeoutMs === undefined) return work({ signal });
  const controller = new AbortController();
  const release = onAbort(signal, () => controller.abort(signal?.reason));
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    controller.abort();
  }, imageTimeoutMs);
  try {
    return await work({ signal: controller.signal });
  } catch (error) {
    if (!isLate || signal?.aborted === true) throw error;
    throw imageTimeoutError(targetName, imageTimeoutMs, error);
  } finally {
    clearTimeout(timer);
    release();
  }
}

async function attempt<R>(
  transfer: Transfer,
  work: () => Promise<R | 'missing'>,
  giveUp: (error: OpmateError) => boolean,
  { skipMissing, isQuiet, signal, logger = silentLogger }: TransferOptions,
): Promise<Outcome<R>> {
  try {
    const outcome = await work();
    if (outcome !== 'missing') return outcome;
    if (!skipMissing)
      throw new OpmateError('NOT_FOUND', 'not found', {
        subject: transfer.sourceName,
        hint: 'check the name and tag, or skip it with --skip-missing, or with --on-error skip-image and --config',
      });
    logger.log('warn', `${transfer.sourceName}: not found, skipped`);
    return outcome;
  } catch (error) {
    throwIfCancelled(signal);
    const isFailure =
      error instanceof OpmateError && !(error instanceof CancelledError) && error.code !== 'INTERNAL';
    if (!isFailure) throw error;
    const { file, line } = transfer.place ?? {};
    const named = nameImage(error, transfer);
    const placed = file === undefined ? named : addContext(named, { file, line });
    if (giveUp(placed)) throw placed;
    if (isQuiet !== true) logger.log('error', placed.message);
    return placed;
  }
}

/** Returns an error about an image, or about a whole registry, with the image that it kept from being copied. */
function nameImage(error: OpmateError, { sourceName, targetName }: Transfer): OpmateError {
  const { subject } = error;
  if (subject === undefined) return error;
  const name = [sourceName, targetName].find((image) => image === subject || image.startsWith(`${subject}/`));
  if (name === undefined) return error;
  const hint =
    name === sourceName && error.code === 'NETWORK'
      ? 'exclude it with blockedImages, or skip it with --on-error skip-image (both with --config)'
      : undefined;
  return addContext(error, { subject: name, replaces: [subject], hint });
}

function sortOutcomes<R>(transfers: readonly Transfer[], outcomes: readonly Outcome<R>[]): StepResults<R> {
  const sorted: StepResults<R> = { missing: [], failed: [], results: [] };
  for (const [i, transfer] of transfers.entries()) {
    const outcome = outcomes[i] as Outcome<R>;
    if (outcome === 'missing') sorted.missing.push(transfer);
    else if (outcome instanceof OpmateError) sorted.failed.push({ transfer, error: outcome });
    else sorted.results.push(outcome);
  }
  return sorted;
}

/** Returns one report of several copies. */
export function joinReports(...reports: readonly TransferReport[]): TransferReport {
  const sum = (key: 'blobs' | 'bytes'): number => reports.reduce((total, report) => total + report[key], 0);
  return {
    done: reports.flatMap(({ done }) => done),
    missing: reports.flatMap(({ missing }) => missing),
    failed: reports.flatMap(({ failed }) => failed),
    blobs: sum('blobs'),
    bytes: sum('bytes'),
  };
}

/** Returns the images in the order in which they are copied: operands, then what names them. */
export function splitCopyOrder<T extends Transfer>(transfers: readonly T[]): [operands: T[], last: T[]] {
  const isLast = (transfer: T): boolean => transfer.isLast === true;
  return [transfers.filter((transfer) => !isLast(transfer)), transfers.filter(isLast)];
}

/** Sources and targets of a step: what is opened stays open until it ends, archives and targets opened once each. */
export class OpenPlaces {
  readonly #session: ImageSession;
  /** By reference, or by what opens a place that no reference names. */
  readonly #sources = new Map<unknown, Promise<OpenedReference>>();
  readonly #targets = new Map<string, Promise<OpenedTarget>>();

  constructor({ session, signal }: Pick<TransferOptions, 'session'> & CancelOptions) {
    this.#session = withChanges(session, { signal });
  }

  /** Opens the source of an image. */
  source({ source }: Transfer): Promise<OpenedReference> {
    if (typeof source === 'function') return getOrAdd(this.#sources, source, source);
    // A registry has nothing to close.
    if (source.transport === 'docker') return openReference(source, this.#session);
    return getOrAdd(this.#sources, formatReference(source), () => openReference(source, this.#session));
  }

  /** The repository of a target, whatever number of images go there. A layout is created if missing. */
  async target(target: Reference): Promise<OpenedTarget['repository']> {
    const opened = getOrAdd(this.#targets, placeKey(target), () => openTarget(target, this.#session));
    return (await opened).repository;
  }

  async close(): Promise<void> {
    for (const opened of [...this.#sources.values(), ...this.#targets.values()])
      await opened.then((place) => place.close()).catch(() => undefined);
  }
}

/** The repository of a reference as a key. */
export function placeKey(reference: Reference): string {
  return formatReference(withReferenceTag(reference));
}

/** The tag or digest that an image gets. Throws DigestMismatchError where the target is another digest. */
export function referenceAt({ target, targetName, sourceName, contents }: PinnedTransfer): string {
  const { digest } = contents.root;
  if (target.tag !== undefined) return target.tag;
  if (target.digest !== undefined && target.digest !== digest)
    throw new DigestMismatchError(`cannot be ${sourceName}, whose digest is ${digest}`, {
      subject: targetName,
    });
  return digest;
}
