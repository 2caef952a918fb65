import path from 'node:path';
import {
  archiveImageSet,
  mapArchives,
  mapImageSet,
  mirrorArchives,
  mirrorImageSet,
} from '../../api/mirror.js';
import {
  type MirrorArchive,
  type MirrorMapping,
  type MirrorOptions,
  type MirrorResult,
  type RemovedImages,
  type WithPaths,
  type WithPlan,
  findCompleteRun,
} from '../../api/mirror/image-set-run.js';
import { countArchiveImages } from '../../api/images/archive-proof.js';
import { readSigningKey } from '../../api/images/image-output.js';
import { formatArchiveAmounts, getArchiveBytes, getArchiveDirectory, readProof } from '../archive/options.js';
import type { CommandContext } from '../context.js';
import { formatFlags, reportEnding, summarizeItems } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';
import { type ImageSetOptions, lockFlags, repeatedFlags, targetAccessFlags } from './flags.js';
import { describeBytes, describePlan } from './image-set-messages.js';
import { readVerification } from './image-set-options.js';
import { getCopyLimits } from './oc-mirror-flags.js';
import { encodeReport, finishTransfer } from './options.js';
import { prune, readPruneAge } from './prune.js';
import { writeAll } from '../output.js';
import { NothingMirroredError } from '../../mirror/image-set/image-set-mirror.js';

/** A run over an image set, as the command line has it. */
interface ImageSetRequest {
  options: ImageSetOptions;
  target: string;
}

/** Returns the options of a run that reports its plan and copies on stderr. Throws OpmateError for an invalid key. */
export async function readMirrorRun(
  context: CommandContext,
  options: ImageSetOptions,
  { logger }: CommandSession,
): Promise<MirrorOptions> {
  const { lock, name, prefix, icsp = false, pollInterval, signBy } = options;
  if (options.base !== undefined) getArchiveDirectory(options.base);
  const itemLevel = options.dryRun === true ? 'info' : 'debug';
  return {
    ...options,
    ...getCopyLimits(options),
    workspace: options.workspace ?? true,
    lock: undefined,
    lockFile: lock,
    naming: {
      catalogName: name,
      prefix,
      icsp,
      pollIntervalMinutes: pollInterval && pollInterval / 60_000,
    },
    verification: readVerification(options),
    shardWaitMs: options.shardWait,
    graphBase: options.graphBaseImage,
    signatures: options.removeSignatures === true ? false : undefined,
    signingKey: signBy === undefined ? undefined : await readSigningKey(signBy, context),
    onPlanned: (plan) => describePlan(plan, logger, { icsp, itemLevel }),
    onSurveyed: (bytes) => describeBytes(bytes, logger),
  };
}

/** Mirrors an image set as the request says, prints the result, and returns the exit code. */
export async function runImageSet(
  context: CommandContext,
  request: ImageSetRequest,
  session: CommandSession,
): Promise<number> {
  const { options, target } = request;
  const { config = '', from, dryRun = false } = options;
  const pruneAge = readPruneAge(request);
  const mirror = await readMirrorRun(context, options, session);
  if (options.retryFailed === true) {
    const time = await findCompleteRun(target, session, mirror);
    if (time !== undefined) {
      session.logger.log('info', `the run of ${time} failed for no image: nothing to retry`);
      return exitCodes.done;
    }
  }
  if (from !== undefined) return runArchives(context, request, from, mirror, session);
  if (dryRun) return finishMapping(request, await mapImageSet(config, target, session, mirror), session);
  if (target.startsWith('file://')) {
    const archive = await archiveImageSet(config, target, session, mirror);
    return finishArchive(context, request, archive, session);
  }
  const result = await mirrorImageSet(config, target, session, mirror).catch(async (error: unknown) => {
    if (error instanceof NothingMirroredError && options.output === 'json') {
      const { removedBundles } = error.report;
      await writeAll(context.stdout, encodeReport(error.report, { removedBundles }));
    }
    throw error;
  });
  for (const change of result.changes) session.logger.log('warn', change);
  logLock(result, options, session);
  logRemovedImages(result.removed, request, session);
  const code = await finishRun(context, request, result, session);
  if (pruneAge === undefined || code !== exitCodes.done || result.waiting > 0) return code;
  return prune(context, { ...request, mirror }, pruneAge, session);
}

/** Copies the archives of `--from`, or with `--dry-run` only maps their images. */
async function runArchives(
  context: CommandContext,
  request: ImageSetRequest,
  from: readonly string[],
  mirror: MirrorOptions,
  session: CommandSession,
): Promise<number> {
  const { options, target } = request;
  const directories = from.map(getArchiveDirectory);
  const archives = { ...mirror, configFile: options.config, proof: await readProof(options, context) };
  if (options.dryRun === true)
    return finishMapping(request, await mapArchives(directories, target, session, archives), session);
  const result = await mirrorArchives(directories, target, session, archives);
  logUsedLock(`of archive ${from[0]}`, session);
  return finishRun(context, request, result, session);
}

/** Returns the command that runs the copies of a plan or dry run, with `changes` to its options. */
export function getCopyCommand(
  { options, target }: Pick<ImageSetRequest, 'options' | 'target'>,
  changes: Partial<ImageSetOptions> = {},
): string {
  return `opmate mirror${formatFlags(repeatedFlags, { ...options, ...changes })} ${shellWord(target)}`;
}

/** Logs the path of the written lock. */
export function logWrittenLock({ paths }: WithPaths<object>, { logger }: CommandSession): void {
  if (paths !== undefined) logger.log('info', `wrote the lock to ${paths.lock}`);
}

function logLock(result: WithPaths<object>, { locked }: ImageSetOptions, session: CommandSession): void {
  if (locked === true) logUsedLock(result.paths?.lock ?? '', session);
  else logWrittenLock(result, session);
}

/** Logs the images of the previous lock that are no longer selected, and the command that lists them for deletion. */
export function logRemovedImages(
  { names, lock }: RemovedImages,
  { options, target }: Pick<ImageSetRequest, 'options' | 'target'>,
  { logger }: CommandSession,
): void {
  if (lock === undefined) return;
  const verb = names.length === 1 ? 'is' : 'are';
  logger.log(
    'info',
    `${count(names.length, 'image')} of the previous lock ${verb} no longer selected, and stay in the registry:`,
  );
  for (const line of summarizeItems(names, 'image', logger)) logger.log('info', `  ${line}`);
  const { maxNestedPaths, workspace, lock: file } = lockFlags;
  const flags = formatFlags({ maxNestedPaths, workspace, lock: file, ...targetAccessFlags }, options);
  const command = `opmate mirror delete --generate --previous ${shellWord(lock)}${flags} ${shellWord(target)}`;
  logger.log('info', `to delete them: ${command}`);
}

function logUsedLock(lock: string, { logger }: CommandSession): void {
  logger.log('info', `used the lock ${lock}`);
}

function describeResources(resources: ReadonlyMap<string, string>, directory: string): string {
  const names = [...resources.keys()].sort().join(', ');
  return `wrote ${names || 'no manifests'} to ${directory}`;
}

function finishMapping(
  request: ImageSetRequest,
  { mapping, missing, resources, paths }: WithPaths<MirrorMapping>,
  session: CommandSession,
): number {
  const { logger } = session;
  const describe = (file: string, lines: readonly string[]): string =>
    `${path.join(paths?.mapping ?? '', file)}: ${count(lines.length, 'image')}`;
  const summary = [describe('mapping.txt', mapping)];
  if (missing.length > 0) summary.push(describe('missing.txt', missing));
  if (resources !== undefined) summary.push(describeResources(resources, paths?.resources ?? ''));
  reportEnding(logger, summary, getCopyCommand(request));
  return exitCodes.done;
}

function finishRun(
  context: CommandContext,
  request: ImageSetRequest,
  result: WithPaths<WithPlan<MirrorResult>>,
  session: CommandSession,
): Promise<number> {
  const { output, from } = request.options;
  const { report, removedBundles, removed, resources, waiting, plan, paths } = result;
  const place = paths?.resources ?? '';
  session.logger.log('info', describeResources(resources, place));
  if (waiting > 0) {
    const what = `waiting for ${count(waiting, 'image')} of other shards`;
    session.logger.log('info', `${what}: the last shard to end copies the catalogs`);
  }
  // Cluster resources refer to images that other shards still copy.
  const next = resources.size === 0 || waiting > 0 ? undefined : `kubectl apply -f ${shellWord(place)}`;
  const results = {
    lock: from?.[0] ?? paths?.lock ?? '',
    plan,
    resources: [...resources.keys()].sort().map((name) => path.join(place, name)),
    waiting,
    removedBundles,
    removedImages: removed.names,
  };
  return finishTransfer(context, session.logger, report, {
    output,
    dryRun: false,
    removedBundles,
    next,
    retry: getRetryCommand(request),
    results,
  });
}

/** Returns the command that tries skipped images again; undefined for an archive, which is copied as it is. */
function getRetryCommand({ options, target }: ImageSetRequest): string | undefined {
  if (options.from !== undefined) return undefined;
  // A locked run is continued by the same command.
  return getCopyCommand({ options, target }, { retryFailed: options.locked !== true });
}

function finishArchive(
  context: CommandContext,
  { options, target }: ImageSetRequest,
  archive: WithPaths<WithPlan<MirrorArchive>>,
  session: CommandSession,
): Promise<number> {
  const { index, keptBytes, plan, changes, removedBundles, report, paths } = archive;
  const { logger } = session;
  const { id, base, parts, blobs, inBase, holders } = index;
  const kept = keptBytes > 0 ? `, ${amountOfBytes(keptBytes)} from an earlier run` : '';
  logger.log('info', `archive ${id}: ${formatArchiveAmounts(index)}${kept}`);
  if (base !== undefined) {
    const omittedBytes = [...inBase.values()].reduce((sum, blob) => sum + blob, 0);
    const kind = holders === undefined ? 'archive' : 'inventory';
    const omitted = `${count(inBase.size, 'file')}, ${amountOfBytes(omittedBytes)} omitted`;
    logger.log('info', `based on ${kind} ${base}: ${omitted}`);
  }
  logLock(archive, options, session);
  for (const change of changes) logger.log('warn', change);
  const { workingDirectory } = context;
  const directory = path.resolve(workingDirectory, target.slice('file://'.length));
  const shown = path.relative(workingDirectory, directory) || '.';
  const results = {
    lock: paths?.lock ?? '',
    plan,
    archive: {
      directory: shown,
      id,
      ...(base !== undefined && { base }),
      images: countArchiveImages(index),
      parts: parts.map((part) => part.file),
      files: blobs.size,
      bytes: getArchiveBytes(index),
    },
  };
  const from = `--from ${shellWord(shown)} --id ${id}${formatFlags(targetAccessFlags, options)}`;
  const next = `opmate mirror ${from} docker://REGISTRY`;
  return finishTransfer(context, logger, report, {
    output: options.output,
    dryRun: false,
    isReported: true,
    removedBundles,
    next,
    results,
  });
}
