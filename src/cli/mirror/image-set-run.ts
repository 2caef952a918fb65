import path from 'node:path';
import {
  type ImageSetRun,
  type ImageSetRunOptions,
  type MirrorArchive,
  type MirrorNames,
  type MirrorResult,
  prepareRun,
} from '../../api/mirror/image-set-run.js';
import { parseDestination } from '../../api/mirror/destination.js';
import { mirrorFromArchives, planArchiveNames } from '../../api/mirror/mirror-archive.js';
import { archiveLock, mirrorLock, planLockNames } from '../../api/mirror/mirror-lock.js';
import { archiveSources, mirrorSources, planSourceNames } from '../../api/mirror/mirror-sources.js';
import { isDigest } from '../../core/digest.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { parseShard } from '../../mirror/lock/shard.js';
import { parseSigningKey } from '../../trust/signing-key.js';
import { getArchiveDirectory, readProof } from '../archive/options.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { readInputFile } from '../../files/read-file.js';
import { amountOfBytes, count, shellWord } from '../printable.js';
import type { CommandSession } from '../session.js';
import type { ImageSetOptions } from './flags.js';
import { describeBytes, describePlan } from './image-set-messages.js';
import { findMaxNestedPaths, getMaxPerRegistry, getNaming, getWorkspace } from './image-set-options.js';
import { getCopyLimits } from './oc-mirror-flags.js';
import { finishTransfer } from './options.js';
import { readVerification } from './verification.js';

/** A run over an image set as its flags describe it; nothing is read yet. */
interface RunFlags {
  options: ImageSetOptions;
  run: ImageSetRunOptions & { workspace: Workspace };
}

/** Reads the flags of a run. Throws UsageError for values that are invalid, and for flags that exclude each other. */
export function readRunFlags(context: CommandContext, options: ImageSetOptions, target: string): RunFlags {
  const { workingDirectory } = context;
  const destination = parseDestination(target, context, findMaxNestedPaths(options));
  const maxPerRegistry = getMaxPerRegistry(options);
  const naming = { ...getNaming(options), icsp: options.icsp };
  const verification = readVerification(options, context, maxPerRegistry);
  const shard = parseShard(options.shard, options.locked === true ? context.environment : {});
  // That of an archive that came from elsewhere is nothing to write to.
  const otherwise = destination.kind === 'disk' ? destination.directory : undefined;
  const workspace = new Workspace({
    workingDirectory,
    directory: getWorkspace(options, context, otherwise),
    lockFile: options.lock === undefined ? undefined : path.resolve(workingDirectory, options.lock),
  });
  const { onError = 'stop' } = options;
  const isLocked = options.locked === true || options.from !== undefined;
  if (isLocked && onError !== 'stop') {
    const hint = 'remove --on-error: locked image sets are mirrored as a whole';
    throw new UsageError(`--on-error ${onError}: not with --locked or --from`, { hint });
  }
  if (shard !== undefined && (options.locked !== true || destination.kind === 'disk')) {
    const hint = 'add --locked and a target registry: every machine must use the same plan';
    throw new UsageError('--shard: only with --locked', { hint });
  }
  const { plan } = options;
  const sharedPlan = plan ?? (options.locked === true ? context.environment['OPMATE_PLAN'] : undefined);
  if (plan !== undefined && (options.locked !== true || !isDigest(plan))) {
    const hint = 'use the plan ID that opmate mirror plan prints, with --locked: sha256:…';
    throw new UsageError(`--plan ${quoteGo(plan)}: not a plan ID`, { hint });
  }
  if (options.signBy !== undefined && destination.kind === 'registry') {
    throw new UsageError('--sign-by: signs an archive', { hint: 'mirror to file://DIRECTORY' });
  }
  if (options.from === undefined && (options.id !== undefined || options.verifyKey !== undefined)) {
    throw new UsageError('--id and --verify-key are for archives', {
      hint: 'specify the archive with --from',
    });
  }
  if (destination.kind === 'registry' && (options.base !== undefined || options.strictArchive === true)) {
    const hint = 'mirror to file://DIRECTORY';
    throw new UsageError('--base and --strict-archive are for archives', { hint });
  }
  if (options.from !== undefined && destination.kind === 'disk') {
    const hint = 'use docker://REGISTRY[/PATH]';
    throw new UsageError('--from: an archive is copied to a registry', { hint });
  }
  const { base, dependencies, strictArchive, helmCharts, avoidRisks, ignoreReleaseSignature } = options;
  const run = {
    ...{ destination, workspace, maxPerRegistry, naming, verification, shard },
    ...{ dependencies, onError, plan: sharedPlan, shardWaitMs: options.shardWait },
    ...{ configFile: options.config, strictArchive, helmCharts, avoidRisks, ignoreReleaseSignature },
    ...{ graphBase: options.graphBaseImage, graphData: options.graphData },
    signatures: options.removeSignatures !== true,
    copyLimits: getCopyLimits(options),
    base: base === undefined ? undefined : { path: getArchiveDirectory(base, context), text: base },
  };
  return { options, run };
}

/** Opens a run that tells what it plans and copies. Throws OpmateError where its results could not be written. */
export async function openRun(
  context: CommandContext,
  { options, run }: RunFlags,
  session: CommandSession,
): Promise<ImageSetRun> {
  const { logger } = session;
  const { signBy, icsp = false } = options;
  const signingKey =
    signBy === undefined
      ? undefined
      : await parseSigningKey(
          await readInputFile(path.resolve(context.workingDirectory, signBy)),
          signBy,
          context.environment['COSIGN_PASSWORD'],
        );
  if (options.from === undefined) await run.workspace.requireWritable();
  const itemLevel = options.dryRun === true ? 'info' : 'debug';
  const onPlanned: ImageSetRunOptions['onPlanned'] = (plan) =>
    describePlan(plan, logger, { icsp, itemLevel });
  const onSurveyed: ImageSetRunOptions['onSurveyed'] = (bytes) => describeBytes(bytes, logger);
  return prepareRun({ ...run, signingKey, onPlanned, onSurveyed }, session);
}

/** Does what the flags say, prints the result, and returns the exit code. */
export async function runImageSet(
  context: CommandContext,
  flags: RunFlags,
  session: CommandSession,
): Promise<number> {
  const { options } = flags;
  const { destination, workspace } = flags.run;
  const { from, dryRun = false, locked = false } = options;
  const run = await openRun(context, flags, session);
  if (from !== undefined) {
    const directories = from.map((text) => getArchiveDirectory(text, context));
    const proof = await readProof(options, context);
    if (dryRun) return finishNames(await planArchiveNames(run, directories, proof), workspace, session);
    const result = await mirrorFromArchives(run, directories, proof);
    tellUsedLock(`of archive ${from[0]}`, session);
    return finishRun(context, flags, result, session);
  }
  if (dryRun) {
    const names = await (locked ? planLockNames(run) : planSourceNames(run));
    return finishNames(names, workspace, session);
  }
  if (destination.kind === 'disk') {
    const archive = await (locked ? archiveLock(run) : archiveSources(run));
    return finishArchive(context, { ...flags, directory: destination.directory }, archive, session);
  }
  if (locked) {
    const result = await mirrorLock(run);
    tellUsedLock(workspace.shownLock, session);
    return finishRun(context, flags, result, session);
  }
  const result = await mirrorSources(run);
  for (const change of result.changes) session.logger.log('warn', change);
  tellLock(workspace, session);
  return finishRun(context, flags, result, session);
}

/** Names the file of the lock. */
export function tellLock(workspace: Workspace, { logger }: CommandSession): void {
  logger.log('info', `wrote the lock to ${workspace.shownLock}`);
}

/** Names the lock that decided what was mirrored. */
function tellUsedLock(lock: string, { logger }: CommandSession): void {
  logger.log('info', `used the lock ${lock}`);
}

function tellResources(
  resources: ReadonlyMap<string, string>,
  workspace: Workspace,
  { logger }: CommandSession,
): void {
  const names = [...resources.keys()].sort().join(', ');
  logger.log('info', `wrote ${names || 'no manifests'} to ${workspace.show('cluster-resources')}`);
}

function finishNames(
  { mapping, missing, resources }: MirrorNames,
  workspace: Workspace,
  session: CommandSession,
): number {
  const { logger } = session;
  logger.close();
  logger.log('info', `${workspace.show('dry-run', 'mapping.txt')}: ${count(mapping.length, 'image')}`);
  if (missing.length > 0)
    logger.log('info', `${workspace.show('dry-run', 'missing.txt')}: ${count(missing.length, 'image')}`);
  if (resources !== undefined) tellResources(resources, workspace, session);
  return exitCodes.done;
}

function finishRun(
  context: CommandContext,
  { options: { output, from }, run: { workspace } }: RunFlags,
  { report, resources, waiting, lock }: MirrorResult,
  session: CommandSession,
): Promise<number> {
  tellResources(resources, workspace, session);
  if (waiting > 0) {
    const what = `waiting for ${count(waiting, 'image')} of other shards`;
    session.logger.log('info', `${what}: the last shard to end copies the catalogs`);
  }
  const directory = shellWord(workspace.show('cluster-resources'));
  // What a cluster is told to use is not all there while other shards copy.
  const next = resources.size === 0 || waiting > 0 ? undefined : `kubectl apply -f ${directory}`;
  const results = {
    lock: from?.[0] ?? workspace.shownLock,
    plan: planOf(lock),
    resources: [...resources.keys()].sort().map((name) => workspace.show('cluster-resources', name)),
    waiting,
  };
  return finishTransfer(context, session.logger, report, { output, dryRun: false, next, results });
}

function finishArchive(
  context: CommandContext,
  { options, run: { workspace }, directory }: RunFlags & { directory: string },
  { index, keptBytes, lock, changes, report }: MirrorArchive,
  session: CommandSession,
): Promise<number> {
  const { logger } = session;
  const { id, base, parts, blobs, inBase, holders } = index;
  const bytes = parts.reduce((sum, part) => sum + part.size, 0);
  const size = amountOfBytes(bytes);
  const kept = keptBytes > 0 ? `, ${amountOfBytes(keptBytes)} from an earlier run` : '';
  const amounts = [
    count(lock.images.length, 'image'),
    count(parts.length, 'part'),
    count(blobs.size, 'blob'),
  ];
  logger.log('info', `archive ${id}: ${amounts.join(', ')}, ${size}${kept}`);
  if (base !== undefined) {
    const omittedBytes = [...inBase.values()].reduce((sum, blob) => sum + blob, 0);
    const kind = holders === undefined ? 'archive' : 'inventory';
    const omitted = `${count(inBase.size, 'blob')}, ${amountOfBytes(omittedBytes)} omitted`;
    logger.log('info', `based on ${kind} ${base}: ${omitted}`);
  }
  if (options.locked === true) tellUsedLock(workspace.shownLock, session);
  else tellLock(workspace, session);
  for (const change of changes) logger.log('warn', change);
  const shown = path.relative(context.workingDirectory, directory) || '.';
  const results = {
    lock: workspace.shownLock,
    plan: planOf(lock),
    archive: {
      directory: shown,
      id,
      ...(base !== undefined && { base }),
      images: lock.images.length,
      parts: parts.map((part) => part.file),
      blobs: blobs.size,
      bytes,
    },
  };
  const next = `opmate mirror --from ${shellWord(shown)} --id ${id} docker://REGISTRY`;
  return finishTransfer(context, logger, report, {
    output: options.output,
    dryRun: false,
    isReported: true,
    next,
    results,
  });
}
