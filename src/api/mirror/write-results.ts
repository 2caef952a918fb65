import { combineErrors } from '../../core/diagnostics-error.js';
import { ifFound } from '../../core/errors.js';
import { type MirroredContent, formatMappingLines, limitContent } from '../../mirror/plan/mirror-plan.js';
import {
  type ClusterResourceOptions,
  encodeClusterResources,
} from '../../mirror/image-set/image-set-resources.js';
import { type LockMirrorOptions, LockMirror } from '../../mirror/lock/lock-mirror.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import { readArchiveIndex } from '../../oci/archive-set/archive-index.js';
import type { ImageSetRun, MirrorMapping, MirrorResult } from './image-set-run.js';
import type { Templates } from './run-configuration.js';
import { requireTargetAccess } from './target-access.js';

/** Writes cluster resources to the workspace, if there is one, and returns them by file name. */
export async function writeResources(
  run: ImageSetRun,
  set: MirroredContent,
  templates: Templates,
): Promise<Map<string, string>> {
  const { workspace } = run;
  const resources = renderResources(run, set, templates, await workspace?.readSignatures());
  await workspace?.writeResults({ clusterResources: resources }, run.session);
  return resources;
}

/** Writes the mapping, its unarchived part, and cluster resources to the workspace, if there is one. */
export async function writeMapping(
  run: ImageSetRun,
  set: MirroredContent,
  templates: Templates,
): Promise<MirrorMapping> {
  const { destination, workspace } = run;
  const all = renderResources(run, set, templates, await workspace?.readSignatures());
  const mapping = formatMappingLines(set, getScheme(run));
  const missing = await listMissing(run, set);
  const toText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
  const dryRun = new Map([['mapping.txt', toText(mapping)]]);
  if (missing.length > 0) dryRun.set('missing.txt', toText(missing));
  const resources = destination.kind === 'registry' ? all : undefined;
  await workspace?.writeResults({ dryRun, clusterResources: resources }, run.session);
  return { mapping, missing, resources };
}

/** Returns the lines of the mapping whose images are in no archive yet. */
async function listMissing(run: ImageSetRun, { images }: MirroredContent): Promise<string[]> {
  const { destination, base } = run;
  if (destination.kind === 'registry') return [];
  const known = new Set<string>();
  for (const place of [destination.directory, ...(base === undefined ? [] : [base.path])]) {
    const index = await ifFound(readArchiveIndex(place));
    for (const { repository, tag } of index?.images ?? []) known.add(`${repository}:${tag ?? ''}`);
  }
  const missing = { images: images.filter((image) => !known.has(image.destination)) };
  return formatMappingLines(missing, getScheme(run));
}

function getScheme({ destination }: ImageSetRun): string {
  return destination.kind === 'registry' ? 'docker://' : 'file://';
}

/** Returns cluster resources by file name. Throws OpmateError for invalid resource names. */
export function renderResources(
  run: ImageSetRun,
  set: MirroredContent,
  templates: Templates,
  signatures?: ClusterResourceOptions['signatures'],
): Map<string, string> {
  const { target } = run.destination;
  return encodeClusterResources(set, { target, ...run.options.naming, signatures, templates });
}

/** Surveys the target, copies missing images of a lock, and writes cluster resources. */
export async function copyLocked(
  run: ImageSetRun,
  { lock, set, templates }: { lock: ImageSetLock; set: MirroredContent; templates: Templates },
  content: Pick<LockMirrorOptions, 'archive' | 'base' | 'open' | 'shard' | 'shardWaitMs'>,
): Promise<MirrorResult> {
  const mirror = new LockMirror(lock, {
    target: run.destination.target,
    transfer: run.transfer,
    ...content,
  });
  // Invalid resource names are errors before anything is copied.
  renderResources(run, set, templates);
  await requireTargetAccess(run, lock.images[0]?.repository);
  const bytes = await mirror.survey();
  run.options.onSurveyed?.(bytes);
  await run.onCopying?.();
  const { waiting, ...report } = await mirror.copy();
  if (report.done.length === 0 && report.failed.length > 0)
    throw combineErrors(report.failed.map(({ error }) => error));
  const lost = new Set(
    [...report.missing, ...report.failed.map((item) => item.transfer)].map(({ targetName }) => targetName),
  );
  const copied = limitContent(set, (destination) => !lost.has(destination));
  const resources = await writeResources(run, copied, templates);
  const removed = { names: [], lock: undefined };
  return { report, changes: [], removedBundles: [], removed, resources, bytes, lock, waiting };
}
