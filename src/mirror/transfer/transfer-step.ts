import { type CancelOptions, mapConcurrent, onAbort } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import {
  CancelledError,
  DigestMismatchError,
  OpmateError,
  RegistryError,
  throwIfCancelled,
} from '../../core/errors.js';
import { getOrAdd } from '../../core/groups.js';
import { silentLogger } from '../../core/log.js';
import { count } from '../../core/printable.js';
import { type Reference, formatReference, withReferenceTag } from '../../core/reference.js';
import {
  type ImageSession,
  type OpenedReference,
  type OpenedTarget,
  openReference,
  openTarget,
} from '../../oci/image/open.js';
import { imageTimeoutError } from './image-clock.js';
import type {
  PinnedTransfer,
  StepFaults,
  Transfer,
  TransferOptions,
  TransferReport,
} from './transfer-types.js';

/** Result for an image in a step: a value, a missing source, or an error. */
type Outcome<R> = R | 'missing' | OpmateError;

/** Results for all images in a step, each list in their order. */
interface StepResults<R> extends StepFaults {
  results: R[];
}

/** Number of consecutive network or access failures after which a step stops if no image succeeded. */
const maxInitialFailures = 8;
/** Maximum names of images in one message about their host. */
const maxShownNames = 5;

/** Default maximum parallel blobs, or manifests, per image. */
export const defaultBlobsPerImage = 6;

/** Returns the maximum number of parallel small requests for a maximum of large ones. */
export function getMaxSmallRequests(maxPerRegistry: number): number {
  // 1 is a request for strictly sequential work.
  return maxPerRegistry === 1 ? 1 : maxPerRegistry * 4;
}

/** Returns the maximum number of parallel images. */
export function getMaxImages(options: Pick<TransferOptions, 'maxPerRegistry' | 'imagesAtOnce'>): number {
  return Math.min(getMaxSmallRequests(options.maxPerRegistry), options.imagesAtOnce ?? Infinity);
}

const mappingHints = {
  missing: 'check the name and tag, or skip it with options.skipMissing',
  unreachable: 'skip it with options.continueOnError',
};

interface StepOptions extends TransferOptions {
  /** Maximum parallel images. */
  concurrency: number;
  /** Name of the step in progress messages; default no progress by images. */
  task?: string | undefined;
}

/** Limits of the work for an image. */
export interface StepLimits extends CancelOptions {
  /** Aborted by the failure that ends the step: work in progress may end, but must not begin more. */
  stop: AbortSignal;
}

/**
 * Runs `work` for each image, several in parallel. Throws the first failure unless `continueOnError`; with it, throws
 * failures of the local disk, and network or access failures if no image succeeded. Always throws CancelledError.
 */
export async function runStep<T extends Transfer, R>(
  transfers: readonly T[],
  work: (transfer: T, limits: StepLimits) => Promise<R | 'missing'>,
  options: StepOptions,
): Promise<StepResults<R>> {
  const { session, task } = options;
  const { logger = silentLogger } = session;
  const outcomes: Outcome<R>[] = [];
  const isUnreachable = (outcome: unknown): boolean =>
    outcome instanceof OpmateError && ['NETWORK', 'AUTH'].includes(outcome.code);
  const isFatal = (error: OpmateError): boolean => {
    if (!options.continueOnError || error.code === 'IO') return true;
    return isUnreachable(error) && outcomes.length + 1 >= maxInitialFailures && outcomes.every(isUnreachable);
  };
  const stopping = new AbortController();
  const { signal: stop } = stopping;
  const failures = createFailureLog(options);
  const workUntilStopped = async (transfer: T, limits: CancelOptions) => work(transfer, { ...limits, stop });
  if (task !== undefined) logger.progress({ task, state: 'start' });
  try {
    const sorted = await mapConcurrent(
      transfers,
      options.concurrency,
      async (transfer) => {
        const outcome = await attempt(transfer, workUntilStopped, isFatal, failures, options).catch(
          (error: unknown) => {
            stopping.abort();
            throw error;
          },
        );
        const current = outcomes.push(outcome);
        const amount = { current, total: transfers.length, unit: 'items' as const };
        const item = transfer.sourceName;
        if (task !== undefined) logger.progress({ task, state: 'update', ...amount, item });
        return outcome;
      },
      session,
    );
    return sortOutcomes(transfers, sorted);
  } finally {
    failures.finish();
    if (task !== undefined) logger.progress({ task, state: 'done' });
  }
}

/** Runs `work` with a signal that is also aborted when the time of the image is over. */
async function withinTime<R>(
  { targetName }: Transfer,
  { imageTimeoutMs, session: { signal } }: TransferOptions,
  work: (limits: CancelOptions) => Promise<R>,
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

async function attempt<T extends Transfer, R>(
  transfer: T,
  work: (transfer: T, limits: CancelOptions) => Promise<R | 'missing'>,
  isFatal: (error: OpmateError) => boolean,
  failures: FailureLog,
  options: TransferOptions,
): Promise<Outcome<R>> {
  const { logger = silentLogger, signal } = options.session;
  const { hints = mappingHints } = options;
  try {
    const outcome = await withinTime(transfer, options, (limits) => work(transfer, limits));
    if (outcome !== 'missing') return outcome;
    const { sourceName, neededBy } = transfer;
    if (!options.skipMissing)
      throw new OpmateError(
        'NOT_FOUND',
        neededBy === undefined ? 'not found' : `not found: ${neededBy} needs it`,
        {
          subject: sourceName,
          hint: hints.missing,
        },
      );
    logger.log('warn', `${sourceName}: not found, skipped`);
    return outcome;
  } catch (error) {
    throwIfCancelled(signal);
    if (!isImageFailure(error)) throw error;
    const { file, line } = transfer.place ?? {};
    const named = addImageName(error, transfer, hints.unreachable);
    const placed = file === undefined ? named : addContext(named, { file, line });
    options.onFailed?.(transfer);
    if (isFatal(placed)) throw placed;
    failures.add(placed, transfer);
    return placed;
  }
}

type FailureLog = ReturnType<typeof createFailureLog>;

/**
 * Returns a log of failed images. Of those with one cause at one host, such as an unreachable or full registry, it has the
 * first as error, and then the number and names of the others together as warning.
 */
function createFailureLog({ session: { logger = silentLogger }, isQuiet = false }: TransferOptions) {
  const further = new Map<string, { host: string; cause: string; names: string[] }>();
  return {
    add(error: OpmateError, transfer: Transfer): void {
      if (isQuiet) return;
      const { subject = '', message } = error;
      const host = /^[^/]+(?=\/)/.exec(subject)?.[0];
      const cause = findSharedCause(error);
      if (host === undefined || cause === undefined) return logger.log('error', message);
      const key = `${host} ${cause}`;
      const others = further.get(key);
      if (others !== undefined) return void others.names.push(getImageNameAt(host, transfer));
      further.set(key, { host, cause, names: [] });
      logger.log('error', message);
    },
    finish(): void {
      for (const { host, cause, names } of further.values()) {
        if (names.length === 0) continue;
        const shown = `${names.slice(0, maxShownNames).join(', ')}${names.length > maxShownNames ? ', …' : ''}`;
        logger.log('warn', `${host}: ${cause} for ${count(names.length, 'further image')}: ${shown}`);
      }
    },
  };
}

function getImageNameAt(host: string, { sourceName, targetName }: Transfer): string {
  return targetName.startsWith(`${host}/`) ? targetName : sourceName;
}

/** Returns the problem of a host that further images have too; undefined for one of an image. */
function findSharedCause(error: OpmateError): string | undefined {
  if (error.code === 'NETWORK') return 'unreachable';
  const isAboutHost = error instanceof RegistryError && error.status >= 400 && error.status !== 404;
  return isAboutHost ? error.problem : undefined;
}

/** Reports whether an error concerns an image, not the whole run. */
export function isImageFailure(error: unknown): error is OpmateError {
  return error instanceof OpmateError && !(error instanceof CancelledError) && error.code !== 'INTERNAL';
}

/** Replaces the subject of an error of a registry or repository by the image that was not copied. */
function addImageName(
  error: OpmateError,
  { sourceName, targetName }: Transfer,
  unreachableHint: string,
): OpmateError {
  const { subject } = error;
  // An error with a hint about the registry itself, such as a certificate or password, concerns all of its images.
  if (subject === undefined || (error.hint !== undefined && !subject.includes('/'))) return error;
  const name = [sourceName, targetName].find((image) => image === subject || image.startsWith(`${subject}/`));
  if (name === undefined) return error;
  const hint = name === sourceName && error.code === 'NETWORK' ? unreachableHint : undefined;
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

/** Report of copying nothing. */
export const noCopies: TransferReport = { done: [], missing: [], failed: [], blobs: 0, bytes: 0 };

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

/** Splits images into operands and the images that name them, which are copied last. */
export function splitCopyOrder<T extends Transfer>(transfers: readonly T[]): [operands: T[], last: T[]] {
  const isLast = (transfer: T): boolean => transfer.isLast === true;
  return [transfers.filter((transfer) => !isLast(transfer)), transfers.filter(isLast)];
}

/** Returns sources and targets of a step. Archives and targets are opened once, and stay open until the step ends. */
export function createPlaces(session: ImageSession) {
  /** By reference, or by the function that opens an image without one. */
  const sources = new Map<unknown, Promise<OpenedReference>>();
  const targets = new Map<string, Promise<OpenedTarget>>();
  return {
    openSource({ source }: Transfer): Promise<OpenedReference> {
      if (typeof source === 'function') return getOrAdd(sources, source, source);
      // An opened registry needs no closing.
      if (source.transport === 'docker') return openReference(source, session);
      return getOrAdd(sources, formatReference(source), () => openReference(source, session));
    },
    /** Opens the repository of a target; a missing layout is created. */
    async openTarget(target: Reference): Promise<OpenedTarget['repository']> {
      return (await getOrAdd(targets, toRepositoryKey(target), () => openTarget(target, session))).repository;
    },
    /** Forgets a repository of a registry that no further transfer goes to: thousands of them would take 4 KB each. */
    forgetTarget(target: Reference): void {
      if (target.transport === 'docker') targets.delete(toRepositoryKey(target));
    },
    async close(): Promise<void> {
      for (const opened of [...sources.values(), ...targets.values()])
        await opened.then((place) => place.close()).catch(() => undefined);
    },
  };
}

/** Returns a key for the repository of a reference. */
export function toRepositoryKey(reference: Reference): string {
  return formatReference(withReferenceTag(reference));
}

/** Returns a function to call at the end of each transfer; it returns true for the last one to a repository. */
export function countDownRepositories(
  transfers: readonly Pick<Transfer, 'target'>[],
): (target: Reference) => boolean {
  const left = new Map<string, number>();
  for (const { target } of transfers) {
    const key = toRepositoryKey(target);
    left.set(key, (left.get(key) ?? 0) + 1);
  }
  return (target) => {
    const key = toRepositoryKey(target);
    const rest = (left.get(key) ?? 0) - 1;
    if (rest > 0) left.set(key, rest);
    else left.delete(key);
    return rest <= 0;
  };
}

/** Returns the tag or digest of an image at its target. Throws DigestMismatchError for another digest than its own. */
export function getTargetVersion({ target, targetName, sourceName, contents }: PinnedTransfer): string {
  const { digest } = contents.root;
  if (target.tag !== undefined) return target.tag;
  if (target.digest !== undefined && target.digest !== digest)
    throw new DigestMismatchError(`cannot be ${sourceName}, whose digest is ${digest}`, {
      subject: targetName,
    });
  return digest;
}
