import path from 'node:path';
import {
  type MirrorArchivesOptions,
  archiveImageSet,
  mapArchives,
  mapImageSet,
  mirrorArchives,
  mirrorImageSet,
} from '../../api/mirror.js';
import type {
  MirrorArchive,
  MirrorMapping,
  MirrorOptions,
  MirrorResult,
  RemovedImages,
} from '../../api/mirror/image-set-run.js';
import { type MirrorDestination, parseDestination } from '../../api/mirror/destination.js';
import { countArchiveImages } from '../../api/images/archive-proof.js';
import { readSigningKey } from '../../api/images/image-output.js';
import { isDigest } from '../../core/digest.js';
import { invalidValue, UsageError } from '../../core/errors.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { parseShard } from '../../mirror/lock/shard.js';
import { formatArchiveAmounts, getArchiveBytes, getArchiveDirectory, readProof } from '../archive/options.js';
import type { CommandContext } from '../context.js';
import { formatFlags, reportEnding, summarizeItems } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';
import { type ImageSetOptions, lockFlags, repeatedFlags, targetAccessFlags } from './flags.js';
import { describeBytes, describePlan } from './image-set-messages.js';
import { getNaming, getWorkspace, readVerification } from './image-set-options.js';
import { getCopyLimits } from './oc-mirror-flags.js';
import { encodeReport, finishTransfer } from './options.js';
import { prune, readPruneAge } from './prune.js';
import { writeAll } from '../output.js';
import { NothingMirroredError } from '../../mirror/image-set/image-set-mirror.js';

/** Validated arguments of a run over an image set. */
interface ImageSetRequest {
  options: ImageSetOptions;
  /** As the command line has it. */
  target: string;
  destination: MirrorDestination;
  /** Names files in messages. */
  workspace: Workspace;
  mirror: MirrorOptions;
}

/** Reads the flags of a run. Throws UsageError for invalid values and mutually exclusive flags. */
export function readImageSetRequest(
  context: CommandContext,
  options: ImageSetOptions,
  target: string,
): ImageSetRequest {
  const { workingDirectory } = context;
  const { maxNestedPaths, maxPerRegistry } = options;
  const destination = parseDestination(target, context, maxNestedPaths);
  const naming = { ...getNaming(options), icsp: options.icsp };
  const verification = readVerification(options);
  const shard = parseShard(options.shard, options.locked === true ? context.environment : {});
  const directory = getWorkspace(
    options,
    context,
    destination.kind === 'disk' ? destination.directory : undefined,
  );
  requireCompatibleFlags(options, destination, shard !== undefined);
  if (options.base !== undefined) getArchiveDirectory(options.base);
  const { locked, allowLocal, dependencies, strictArchive, helmCharts, avoidRisks, ignoreReleaseSignature } =
    options;
  const workspace = new Workspace(workingDirectory, directory, options.lock);
  return {
    options,
    target,
    destination,
    workspace,
    mirror: {
      workspace,
      locked,
      allowLocal,
      maxNestedPaths,
      maxPerRegistry,
      naming,
      verification,
      shard,
      shardWaitMs: options.shardWait,
      dependencies,
      onError: options.onError,
      base: options.base,
      strictArchive,
      helmCharts,
      avoidRisks,
      ignoreReleaseSignature,
      graphBase: options.graphBaseImage,
      graphData: options.graphData,
      retryFailed: options.retryFailed,
      plan: options.plan ?? (locked === true ? context.environment['OPMATE_PLAN'] : undefined),
      signatures: options.removeSignatures === true ? false : undefined,
      ...getCopyLimits(options),
    },
  };
}

function requireCompatibleFlags(
  options: ImageSetOptions,
  { kind }: MirrorDestination,
  hasShard: boolean,
): void {
  const { plan } = options;
  if (hasShard && kind === 'disk') {
    throw new UsageError('--shard: shards mirror to a registry', { hint: 'use docker://REGISTRY[/PATH]' });
  }
  if (plan !== undefined && !isDigest(plan)) {
    const hint = 'use the plan ID that opmate mirror plan prints: sha256:…';
    throw invalidValue('--plan', plan, 'not a plan ID', { hint });
  }
  if (
    options.locked === true &&
    options.onError !== undefined &&
    options.onError !== 'stop' &&
    kind === 'disk'
  ) {
    throw new UsageError('--on-error: the archive of a lock has all of its images', {
      hint: 'create a lock without them with opmate mirror plan and the same --on-error',
    });
  }
  if (options.signBy !== undefined && kind === 'registry') {
    throw new UsageError('--sign-by: signs an archive', { hint: 'mirror to file://DIRECTORY' });
  }
  if (kind === 'registry' && (options.base !== undefined || options.strictArchive === true)) {
    const hint = 'mirror to file://DIRECTORY';
    throw new UsageError('--base and --strict-archive are for archives', { hint });
  }
  if (options.from !== undefined && kind === 'disk') {
    const hint = 'use docker://REGISTRY[/PATH]';
    throw new UsageError('--from: an archive is copied to a registry', { hint });
  }
}

/** Returns the options of a run that reports its plan and copies on stderr. Throws OpmateError for an invalid key. */
export async function openImageSetRun(
  context: CommandContext,
  { options, mirror }: ImageSetRequest,
  { logger }: CommandSession,
): Promise<MirrorOptions> {
  const { signBy, icsp = false } = options;
  const itemLevel = options.dryRun === true ? 'info' : 'debug';
  return {
    ...mirror,
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
  const { options, destination, workspace } = request;
  const { config = '', from, dryRun = false, locked = false } = options;
  const pruneAge = readPruneAge(request);
  if (options.retryFailed && !(await needsRetry(workspace, session))) return exitCodes.done;
  const mirror = await openImageSetRun(context, request, session);
  if (from !== undefined) {
    const directories = from.map(getArchiveDirectory);
    const archives: MirrorArchivesOptions = {
      ...mirror,
      configFile: options.config,
      proof: await readProof(options, context),
    };
    if (dryRun)
      return finishMapping(request, await mapArchives(directories, destination, session, archives), session);
    const result = await mirrorArchives(directories, destination, session, archives);
    logUsedLock(`of archive ${from[0]}`, session);
    return finishRun(context, request, result, session);
  }
  if (dryRun) return finishMapping(request, await mapImageSet(config, destination, session, mirror), session);
  if (destination.kind === 'disk') {
    const { directory } = destination;
    const archive = await archiveImageSet(config, destination, session, mirror);
    return finishArchive(context, { ...request, directory }, archive, session);
  }
  const result = await mirrorImageSet(config, destination, session, mirror).catch(async (error: unknown) => {
    if (error instanceof NothingMirroredError && options.output === 'json') {
      const { removedBundles } = error.report;
      await writeAll(context.stdout, encodeReport(error.report, { removedBundles }));
    }
    throw error;
  });
  for (const change of result.changes) session.logger.log('warn', change);
  if (locked) logUsedLock(workspace.shownLock, session);
  else logWrittenLock(workspace, session);
  logRemovedImages(result.removed, request, session);
  const code = await finishRun(context, request, result, session);
  if (pruneAge === undefined || code !== exitCodes.done || result.waiting > 0) return code;
  return prune(context, request, pruneAge, session);
}

/** Reports whether the last run of a workspace failed for an image, was interrupted, or is unknown. */
async function needsRetry(workspace: Workspace, { logger }: CommandSession): Promise<boolean> {
  const [last] = await workspace.readImageSetRuns();
  if (last?.ended?.result !== 'done') return true;
  logger.log('info', `the run of ${last.started.time} failed for no image: nothing to retry`);
  return false;
}

/** Returns the command that runs the copies of a plan or dry run, with `changes` to its options. */
export function getCopyCommand(
  { options, target }: Pick<ImageSetRequest, 'options' | 'target'>,
  changes: Partial<ImageSetOptions> = {},
): string {
  return `opmate mirror${formatFlags(repeatedFlags, { ...options, ...changes })} ${shellWord(target)}`;
}

/** Logs the path of the written lock. */
export function logWrittenLock(workspace: Workspace, { logger }: CommandSession): void {
  logger.log('info', `wrote the lock to ${workspace.shownLock}`);
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

function describeResources(resources: ReadonlyMap<string, string>, workspace: Workspace): string {
  const names = [...resources.keys()].sort().join(', ');
  return `wrote ${names || 'no manifests'} to ${workspace.show('cluster-resources')}`;
}

function finishMapping(
  request: ImageSetRequest,
  { mapping, missing, resources }: MirrorMapping,
  session: CommandSession,
): number {
  const { workspace } = request;
  const { logger } = session;
  const describe = (file: string, lines: readonly string[]): string =>
    `${workspace.show('dry-run', file)}: ${count(lines.length, 'image')}`;
  const summary = [describe('mapping.txt', mapping)];
  if (missing.length > 0) summary.push(describe('missing.txt', missing));
  if (resources !== undefined) summary.push(describeResources(resources, workspace));
  reportEnding(logger, summary, getCopyCommand(request));
  return exitCodes.done;
}

function finishRun(
  context: CommandContext,
  { options: { output, from }, workspace }: ImageSetRequest,
  { report, removedBundles, removed, resources, waiting, lock }: MirrorResult,
  session: CommandSession,
): Promise<number> {
  session.logger.log('info', describeResources(resources, workspace));
  if (waiting > 0) {
    const what = `waiting for ${count(waiting, 'image')} of other shards`;
    session.logger.log('info', `${what}: the last shard to end copies the catalogs`);
  }
  const directory = shellWord(workspace.show('cluster-resources'));
  // Cluster resources refer to images that other shards still copy.
  const next = resources.size === 0 || waiting > 0 ? undefined : `kubectl apply -f ${directory}`;
  const results = {
    lock: from?.[0] ?? workspace.shownLock,
    plan: planOf(lock),
    resources: [...resources.keys()].sort().map((name) => workspace.show('cluster-resources', name)),
    waiting,
    removedBundles,
    removedImages: removed.names,
  };
  return finishTransfer(context, session.logger, report, {
    output,
    dryRun: false,
    removedBundles,
    next,
    results,
  });
}

function finishArchive(
  context: CommandContext,
  { options, workspace, directory }: ImageSetRequest & { directory: string },
  { index, keptBytes, lock, changes, removedBundles, report }: MirrorArchive,
  session: CommandSession,
): Promise<number> {
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
  if (options.locked === true) logUsedLock(workspace.shownLock, session);
  else logWrittenLock(workspace, session);
  for (const change of changes) logger.log('warn', change);
  const shown = path.relative(context.workingDirectory, directory) || '.';
  const results = {
    lock: workspace.shownLock,
    plan: planOf(lock),
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
