import { availableParallelism } from 'node:os';
import { type CancelOptions, onAbort } from '../core/concurrency.js';
import { CancelledError, OpmateError, throwIfCancelled } from '../core/errors.js';
import { startOwnWorker } from '../files/own-files.js';
import { type CatalogFormat, encodeBlob } from '../model/encode.js';
import { parseImageTemplate } from './image-template.js';
import { type BundleLimits, readBundleDirectory } from './read.js';
import { renderBundleFiles } from './render.js';

/** Options that can be sent to another thread. */
interface RenderDirectoriesOptions {
  format: CatalogFormat;
  /** Text of the template of image references. */
  imageTemplate?: string | undefined;
  migrateLevel?: string | undefined;
  limits?: BundleLimits | undefined;
  followLinks?: boolean | undefined;
}

/** A rendered bundle: its sort keys and encoded blob. */
interface RenderedBundle {
  package: string;
  name: string;
  text: string;
}

/** Renders a bundle directory in this thread. */
export async function renderDirectory(
  directory: string,
  options: RenderDirectoriesOptions & CancelOptions,
): Promise<RenderedBundle> {
  const { format, limits, followLinks, migrateLevel, signal } = options;
  const imageTemplate =
    options.imageTemplate === undefined ? undefined : parseImageTemplate(options.imageTemplate);
  const files = await readBundleDirectory(directory, { limits, followLinks, signal });
  const blob = renderBundleFiles(files, { subject: directory, imageTemplate, migrateLevel });
  return { package: blob.package, name: blob.name, text: encodeBlob({ kind: 'bundle', blob }, format) };
}

/** Data of a worker. */
export interface RenderWorkerData {
  directories: readonly string[];
  options: RenderDirectoriesOptions;
  /** Index of the next directory, shared by all threads. */
  next: Int32Array;
}

/** Result of a worker for one directory. */
export type RenderWorkerMessage = { index: number } & ({ result: RenderedBundle } | { fault: Fault });

/** Fields of an OpmateError that are sent between threads. */
type Fault = Pick<OpmateError, 'code' | 'message' | 'hint' | 'file' | 'line'>;

interface RenderDirectoriesControl extends CancelOptions {
  threads?: number | undefined;
  /** Returns the error to throw for a failed directory. */
  describeFailure?: ((directory: string, error: unknown) => unknown) | undefined;
}

/** Minimum number of directories for which threads are faster. */
const worthThreads = 12;

/**
 * Renders bundle directories on `threads` threads, by default one per processor; results are in the order of
 * `directories`. Throws the error of the first directory that fails. This thread does the work of one that does not
 * start or dies.
 */
export async function renderDirectories(
  directories: readonly string[],
  options: RenderDirectoriesOptions & RenderDirectoriesControl,
): Promise<RenderedBundle[]> {
  const { signal, threads = availableParallelism(), describeFailure, ...settings } = options;
  throwIfCancelled(signal);
  const next = new Int32Array(new SharedArrayBuffer(4));
  const results = new Map<number, RenderedBundle>();
  let failed: { index: number; error: unknown } | undefined;
  const take = (index: number, outcome: Outcome): void => {
    if ('result' in outcome) results.set(index, outcome.result);
    else if (failed === undefined || index < failed.index) failed = { index, error: outcome.error };
    // Directories in progress are finished, as an earlier one may fail too.
    if ('error' in outcome) Atomics.store(next, 0, directories.length);
  };
  const workerData: RenderWorkerData = { directories, options: settings, next };
  const useWorkers = directories.length >= worthThreads ? Math.min(threads, directories.length) - 1 : 0;
  const workers = Array.from({ length: Math.max(0, useWorkers) }, () => {
    const worker = startOwnWorker(new URL('./render-worker.js', import.meta.url), { workerData });
    worker.on('message', (message: RenderWorkerMessage) =>
      take(message.index, 'fault' in message ? { error: toError(message.fault) } : message),
    );
    const ended = new Promise<void>((resolve) => {
      worker.on('exit', () => resolve());
      // An exit follows; this thread renders the directories of the worker again.
      worker.on('error', () => undefined);
    });
    return { worker, ended };
  });
  const stop = (): void => {
    Atomics.store(next, 0, directories.length);
    for (const { worker } of workers) void worker.terminate();
  };
  const release = onAbort(signal, stop);
  try {
    await takeDirectories(workerData, signal, take);
    await Promise.all(workers.map(({ ended }) => ended));
  } finally {
    release();
    stop();
  }
  throwIfCancelled(signal);
  if (failed !== undefined) {
    const { index, error } = failed as { index: number; error: unknown };
    throw describeFailure === undefined ? error : describeFailure(directories[index] as string, error);
  }
  const ordered: RenderedBundle[] = [];
  for (const [index, directory] of directories.entries()) {
    ordered.push(results.get(index) ?? (await renderDirectory(directory, { ...settings, signal })));
  }
  return ordered;
}

type Outcome = { result: RenderedBundle } | { error: unknown };

/** Directories in progress per thread: others are read while one is rendered. */
const lanes = 3;

/** Renders directories until none is left. The same loop runs in every thread. */
export async function takeDirectories(
  data: RenderWorkerData,
  signal: AbortSignal | undefined,
  report: (index: number, outcome: Outcome) => void,
): Promise<void> {
  const lane = async (): Promise<void> => {
    for (;;) {
      const index = Atomics.add(data.next, 0, 1);
      const directory = data.directories[index];
      if (directory === undefined || signal?.aborted) return;
      try {
        report(index, { result: await renderDirectory(directory, { ...data.options, signal }) });
      } catch (error) {
        report(index, { error });
      }
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

/** Returns the fields of an OpmateError that can be sent to another thread; undefined for other errors. */
export function toFault(error: unknown): Fault | undefined {
  if (!(error instanceof OpmateError)) return undefined;
  const { code, message, hint, file, line } = error;
  return { code, message, hint, file, line };
}

function toError({ code, message, ...details }: Fault): OpmateError {
  return code === 'CANCELLED'
    ? new CancelledError(message, details)
    : new OpmateError(code, message, details);
}
