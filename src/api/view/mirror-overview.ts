import path from 'node:path';
import { OpmateError, redactUrls } from '../../core/errors.js';
import { printableLine } from '../../core/printable.js';
import { type RecordedRun, isOfImageSet } from '../../mirror/history/audit-trail.js';
import type { Generation } from '../../mirror/history/generations.js';
import type { Workspace } from '../../mirror/image-set/workspace.js';
import { type ImageSetLock, getLockBlobs } from '../../mirror/lock/lock.js';
import { diffLocks } from '../../mirror/lock/lock-diff.js';
import { readLock } from '../../mirror/lock/parse-lock.js';
import type {
  MirrorDifference,
  MirrorGeneration,
  MirrorOverview,
  MirrorRun,
  MirrorState,
  MirrorStep,
} from '../../view/responses.js';

const maxRuns = 100;
const maxGenerations = 20;
const maxFailures = 50;
const maxNames = 500;
const maxReason = 1000;

/**
 * Reads the runs and generations of a workspace; `name` is its directory as the user wrote it. Throws OpmateError NOT_FOUND
 * for a directory without either, and the errors of damaged locks.
 */
export async function readMirrorOverview(workspace: Workspace, name: string): Promise<MirrorOverview> {
  const recorded = await workspace.readRuns();
  const generations = await workspace.listGenerations();
  if (recorded.length === 0 && generations.length === 0) {
    throw new OpmateError('NOT_FOUND', `${workspace.show()}: no mirror runs found`, {
      hint: 'specify the parent directory of working-dir',
    });
  }
  const last = recorded.find(isOfImageSet);
  const lastRun = last && toRun(last);
  return {
    workspace: name,
    destination: lastRun?.destination ?? '',
    state: lastRun?.state,
    reason: lastRun?.reason ?? '',
    configuration: toText(last?.started.configuration),
    next: last === undefined ? [] : getNextSteps(last, generations.length),
    runs: recorded.slice(0, maxRuns).map(toRun),
    generations: await compareGenerations(generations, workspace),
    generationsTotal: generations.length,
  };
}

/** Fields of the trail may have any type: it is only appended to, and other programs may write it. */
function toText(value: unknown): string {
  return typeof value === 'string' ? printableLine(redactUrls(value.slice(0, maxReason))) : '';
}

function toAmount(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? value : 0;
}

function toRun({ started, ended, failed, verdicts }: RecordedRun): MirrorRun {
  const state = toState(ended?.result);
  const lost = toAmount(ended?.failed);
  const interrupted = 'interrupted, or still running';
  return {
    time: toText(started.run),
    task: toText(started.task),
    destination: toText(started.destination),
    state,
    reason: ended === undefined ? interrupted : toText(ended.problem),
    images: toAmount(ended?.images),
    bytes: toAmount(ended?.bytes),
    failed: ended === undefined ? failed.length : lost,
    failures: failed
      .slice(0, maxFailures)
      .map(({ image, problem }) => ({ image: toText(image), problem: toText(problem) })),
    verdicts: [...verdicts].map(([status, images]) => ({ status: toText(status), images })),
  };
}

function toState(result: unknown): MirrorState {
  if (result === 'done' || result === 'failed') return result;
  return 'incomplete';
}

function getNextSteps({ started, ended }: RecordedRun, generations: number): MirrorStep[] {
  if (toText(started.configuration) === '' || toText(started.destination) === '') return [];
  if (ended?.result !== 'done') return ['retry'];
  return started.task === 'mirror' && generations > 1 ? ['update', 'prune'] : ['update'];
}

/** Compares the newest generations with the ones before, one pair of locks in memory at a time. */
async function compareGenerations(
  generations: readonly Generation[],
  workspace: Workspace,
): Promise<MirrorGeneration[]> {
  const first = Math.max(0, generations.length - maxGenerations);
  const compared: MirrorGeneration[] = [];
  let before: ImageSetLock | undefined;
  for (const [index, { number, from, file }] of generations.entries()) {
    if (index < first - 1) continue;
    const lock = await readLock(file, workspace.show('generations', path.basename(file)));
    if (index >= first) compared.unshift(toGeneration({ number, from }, before, lock));
    before = lock;
  }
  return compared;
}

function toGeneration(
  { number, from }: Pick<Generation, 'number' | 'from'>,
  before: ImageSetLock | undefined,
  lock: ImageSetLock,
): MirrorGeneration {
  const { bundles, images, bytes } = diffLocks(before ?? { ...lock, catalogs: [], images: [] }, lock);
  const changed = images.changed.map(({ image }) => image);
  return {
    number,
    from: from.toISOString(),
    images: lock.images.length,
    bytes: [...getLockBlobs(lock).values()].reduce((sum, { size }) => sum + size, 0),
    bytesAdded: bytes.added,
    bytesRemoved: bytes.removed,
    differences: [
      toDifference('bundle', 'added', bundles.added),
      toDifference('bundle', 'removed', bundles.removed),
      toDifference('image', 'added', images.added),
      toDifference('image', 'removed', images.removed),
      toDifference('image', 'changed', changed),
    ].filter(({ total }) => total > 0),
  };
}

function toDifference(
  kind: MirrorDifference['kind'],
  sign: MirrorDifference['sign'],
  names: readonly string[],
): MirrorDifference {
  return { kind, sign, total: names.length, names: names.slice(0, maxNames).map(toText) };
}
