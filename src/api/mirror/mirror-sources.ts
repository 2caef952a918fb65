import { withOpen } from '../../core/concurrency.js';
import { type ImageSetConfiguration, getCatalogTarget } from '../../mirror/image-set/image-set-config.js';
import { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import { nameBelow } from '../../mirror/naming/mirror-target.js';
import type { ArchivableSet } from '../../mirror/image-set/set-archive.js';
import type { ImageSetPlan } from '../../mirror/image-set/image-set-plan.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { type ImageSetLock, type LockedImage, withoutHeld } from '../../mirror/lock/lock.js';
import { listRemovedImages } from '../../mirror/lock/lock-diff.js';
import { getTargetName, planLock } from '../../mirror/lock/lock-plan.js';
import { findSubjectOfTag } from '../../oci/signatures/attached-signatures.js';
import type {
  ImageSetRun,
  MirrorArchive,
  MirrorMapping,
  PlannedRun,
  MirrorResult,
  RemovedImages,
} from './image-set-run.js';
import { planForRun } from './plan-image-set.js';
import { readConfiguration, readTemplates, getLockOptions } from './run-configuration.js';
import { requireTargetAccess } from './target-access.js';
import { verifySources } from './verification.js';
import { forecastRun, writeArchive, surveyArchive, readBase } from './write-archive.js';
import { writeResources, writeMapping, renderResources } from './write-results.js';

/** Plans in bytes, and writes the lock. Of images no blob is read but the layers of catalogs. */
export async function planSources(run: ImageSetRun): Promise<PlannedRun> {
  const { config, digest } = await readConfiguration(run);
  const { destination } = run;
  return withMirror(run, config, { isPlan: true }, async (mirror, plan) => {
    const templates = await readTemplates(run, config);
    renderResources(run, plan, templates);
    await mirror.prepare();
    const bytes = destination.kind === 'registry' ? await mirror.survey() : await surveyArchive(run, mirror);
    const lock = mirror.lock(digest, getLockOptions(run, mirror.report()), templates);
    const archive = destination.kind === 'disk' ? await forecastRun(run, mirror, lock, config) : undefined;
    const removed = await replaceLock(run, lock);
    const kept = plan.catalogs.flatMap(({ operator, selection }) =>
      selection.kept.map((bundle) => ({ catalog: operator.catalog, ...bundle })),
    );
    const { changes, ...report } = mirror.report();
    return { bytes, lock, kept, report, changes, removed, archive };
  });
}

/** Writes the lock of a run, and returns the images of the previous one that are no longer selected. */
async function replaceLock(run: ImageSetRun, lock: ImageSetLock): Promise<RemovedImages> {
  const { workspace, session } = run;
  if (workspace === undefined) return { names: [], lock: undefined };
  const previous = await readPrevious(run);
  const names = previous === undefined ? [] : listRemovedImages(previous, lock);
  await workspace.writeLock(lock, session.now(), names.length > 0 ? previous : undefined);
  return { names, lock: names.length > 0 ? workspace.shownReplaced : undefined };
}

/** Returns the lock of the last run to a registry; undefined for none, or one that is no longer readable. */
async function readPrevious({ workspace, destination }: ImageSetRun): Promise<ImageSetLock | undefined> {
  return destination.kind === 'registry' ? workspace?.readLock().catch(() => undefined) : undefined;
}

/** Maps images only: nothing is read but catalogs. */
export async function mapSources(run: ImageSetRun): Promise<MirrorMapping> {
  const { config } = await readConfiguration(run);
  return withPlan(run, config, undefined, async (plan) =>
    writeMapping(run, plan, await readTemplates(run, config)),
  );
}

/** Copies the current content of the sources to a registry, and writes its lock. */
export async function mirrorSources(run: ImageSetRun): Promise<MirrorResult> {
  const { config, digest } = await readConfiguration(run);
  const templates = await readTemplates(run, config);
  await requireTargetAccess(run, findFirstRepository(config));
  const retry = await readRetry(run, digest);
  return withMirror(run, config, { retry }, async (mirror, plan) => {
    // Invalid resource names are errors before anything is copied.
    renderResources(run, plan, templates);
    await mirror.prepare();
    await verifySources(run, mirror);
    const bytes = await mirror.survey();
    run.options.onSurveyed?.(bytes);
    await run.onCopying?.();
    const { changes, removedBundles, ...report } = await mirror.copy();
    const lock = mirror.lock(digest, getLockOptions(run, mirror.report()), templates);
    const resources = await writeResources(run, planLock(lock, run.destination), templates);
    const removed = await replaceLock(run, lock);
    return { report, changes, removedBundles, removed, resources, bytes, lock, waiting: 0 };
  });
}

/** Writes an archive to the directory of the destination. */
export async function archiveSources(run: ImageSetRun): Promise<MirrorArchive> {
  const { config, digest } = await readConfiguration(run);
  // An unusable base is an error before anything is read.
  await readBase(run);
  return withMirror(run, config, {}, async (mirror, plan) => {
    const templates = await readTemplates(run, config);
    renderResources(run, plan, templates);
    await mirror.prepare();
    await verifySources(run, mirror);
    await mirror.addSignatures();
    const lock = () => mirror.lock(digest, getLockOptions(run, mirror.report()), templates);
    const set: ArchivableSet = {
      lock,
      transfers: () => mirror.transfers(),
      skip: (name, error) => mirror.skip(name, error),
    };
    const written = await writeArchive(run, set, config);
    await run.workspace?.writeLock(written.lock, run.session.now());
    const { changes, removedBundles, ...report } = mirror.report();
    return { ...written, report, changes, removedBundles };
  });
}

async function withMirror<T>(
  run: ImageSetRun,
  config: ImageSetConfiguration,
  { retry, isPlan }: { retry?: Retry | undefined; isPlan?: boolean },
  work: (mirror: ImageSetMirror, plan: ImageSetPlan) => Promise<T>,
): Promise<T> {
  const { session, transfer, options } = run;
  const { onError, signatures } = options;
  const { target } = run.destination;
  const previous = retry?.lock ?? (await readPrevious(run));
  const mirrored = retry?.mirrored;
  return withPlan(run, config, retry, async (plan) =>
    withOpen(
      new ImageSetMirror(plan, {
        target,
        session,
        transfer,
        onError,
        isPlan,
        signatures,
        previous,
        mirrored,
      }),
      (mirror) => work(mirror, plan),
    ),
  );
}

async function withPlan<T>(
  run: ImageSetRun,
  config: ImageSetConfiguration,
  retry: Retry | undefined,
  work: (plan: ImageSetPlan) => Promise<T>,
): Promise<T> {
  return withOpen(planForRun(run, config, retry?.lock, run.options.onError), (plan) => {
    for (const { error } of plan.faults) run.session.logger?.log('error', error.message);
    run.options.onPlanned?.(plan);
    return work(plan);
  });
}

/** Work that the last run left to do. */
interface Retry {
  lock: ImageSetLock;
  /** Images that it mirrored. */
  mirrored: LockedImage[];
}

/** Returns the work that the last run left to do; undefined to mirror everything, such as after a run that did not end. */
async function readRetry(run: ImageSetRun, configuration: string): Promise<Retry | undefined> {
  const { workspace, options, destination } = run;
  if (options.retryFailed !== true || workspace === undefined) return undefined;
  // The newest one is this run.
  const [, last] = await workspace.readImageSetRuns();
  const lock = await readPrevious(run);
  if (last?.ended?.result !== 'partly' || lock === undefined) return undefined;
  const wanted = getLockOptions(run, { failed: [] });
  const isSame =
    lock.configuration === configuration &&
    last.started.destination === destination.text &&
    last.ended.plan === planOf(lock) &&
    ['dependencies', 'platform', 'signatures'].every((key) => lock.options[key] === wanted[key]);
  if (!isSame) return undefined;
  const failed = new Set(last.failed.map(({ image }) => image));
  // An image whose signature failed is read again, which finds the signature.
  const subjects = new Set(
    [...failed].map((name) => findSubjectOfTag(name.slice(name.lastIndexOf(':') + 1))),
  );
  const mirrored = withoutHeld(lock).images.filter(
    (image) =>
      !failed.has(getTargetName(image, destination.target)) &&
      !image.contents.manifests.some(({ descriptor }) => subjects.has(descriptor.digest)),
  );
  return { lock, mirrored };
}

/** Returns the repository of the first configured image, without that of the target. */
function findFirstRepository({
  operators: [operator],
  additionalImages: [additional],
}: ImageSetConfiguration): string | undefined {
  if (operator !== undefined) return getCatalogTarget(operator).repository;
  return additional?.targetRepo ?? (additional && nameBelow(additional.reference).repository);
}
