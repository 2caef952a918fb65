import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
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

/** A rendered bundle: its sort keys and encoded blob, which another thread can take over without copying. */
interface RenderedBundle {
  package: string;
  name: string;
  text: Uint8Array<ArrayBuffer>;
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
  const text = new TextEncoder().encode(encodeBlob({ kind: 'bundle', blob }, format));
  return { package: blob.package, name: blob.name, text };
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

/** Directories for which another thread is worth its start: it compiles the same code again. */
const directoriesPerThread = 500;

function chooseThreads(directories: number): number {
  return Math.min(availableParallelism(), Math.ceil(directories / directoriesPerThread));
}

/**
 * Renders bundle directories on `threads` threads, by default few, and calls `add` with the result
 * of each, in any order, one call after another. Throws the error of the first directory that fails. This thread does the
 * work of one that does not start or dies.
 */
export async function renderDirectories(
  directories: readonly string[],
  options: RenderDirectoriesOptions & RenderDirectoriesControl,
  add: (bundle: RenderedBundle, index: number) => Promise<void>,
): Promise<void> {
  const { signal, threads = chooseThreads(directories.length), describeFailure, ...settings } = options;
  throwIfCancelled(signal);
  const next = new Int32Array(new SharedArrayBuffer(4));
  const isDone = directories.map(() => false);
  let added = Promise.resolve();
  let failed: { index: number; error: unknown } | undefined;
  const fail = (index: number, error: unknown): void => {
    if (failed === undefined || index < failed.index) failed = { index, error };
    // Directories in progress are finished, as an earlier one may fail too.
    Atomics.store(next, 0, directories.length);
  };
  const take = (index: number, outcome: Outcome): Promise<void> => {
    isDone[index] = true;
    if ('error' in outcome) fail(index, outcome.error);
    else added = added.then(() => add(outcome.result, index)).catch((error: unknown) => fail(index, error));
    return added;
  };
  const workerData: RenderWorkerData = { directories, options: settings, next };
  const workers = Array.from({ length: Math.max(0, Math.min(threads, directories.length) - 1) }, () => {
    const worker = startOwnWorker(new URL('./render-worker.js', import.meta.url), { workerData });
    worker.on('message', (message: RenderWorkerMessage) => {
      void take(message.index, 'fault' in message ? { error: toError(message.fault) } : message);
    });
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
    for (const [index, directory] of directories.entries()) {
      if (isDone[index] || failed !== undefined || signal?.aborted) continue;
      await take(index, await renderOrFail(directory, { ...settings, signal }));
    }
    await added;
  } finally {
    release();
    stop();
  }
  throwIfCancelled(signal);
  if (failed === undefined) return;
  const { index, error } = failed as { index: number; error: unknown };
  throw describeFailure === undefined ? error : describeFailure(directories[index] as string, error);
}

type Outcome = { result: RenderedBundle } | { error: unknown };

/** Renders directories until none is left. The same loop runs in every thread. */
export async function takeDirectories(
  data: RenderWorkerData,
  signal: AbortSignal | undefined,
  report: (index: number, outcome: Outcome) => Promise<void> | void,
): Promise<void> {
  for (;;) {
    const index = Atomics.add(data.next, 0, 1);
    const directory = data.directories[index];
    if (directory === undefined || signal?.aborted) return;
    await report(index, await renderOrFail(directory, { ...data.options, signal }));
    // Results of other threads, and signals, are received in between.
    await setImmediate();
  }
}

async function renderOrFail(
  directory: string,
  options: RenderDirectoriesOptions & CancelOptions,
): Promise<Outcome> {
  try {
    return { result: await renderDirectory(directory, options) };
  } catch (error) {
    return { error };
  }
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
