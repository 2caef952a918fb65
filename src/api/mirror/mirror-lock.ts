import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { ErrorList } from '../../core/diagnostics-error.js';
import { invalidValue, OpmateError, UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { type Reference, parseReference } from '../../core/reference.js';
import { quoteShort } from '../../document/field.js';
import type { ImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import { archiveTarget } from '../../mirror/naming/mirror-target.js';
import { requireSameTemplates } from '../../mirror/image-set/catalog-source-template.js';
import { planOf } from '../../mirror/lock/encode-lock.js';
import { type ImageSetLock, isSameName, withoutHeld } from '../../mirror/lock/lock.js';
import type { LockMirrorOptions } from '../../mirror/lock/lock-mirror.js';
import { createOnDemandCatalogs } from '../../mirror/lock/locked-catalogs.js';
import { getTargetName, planLock, toTransfers } from '../../mirror/lock/lock-plan.js';
import { joinReports } from '../../mirror/transfer/transfer-step.js';
import { isComplete } from '../../mirror/transfer/transfer-types.js';
import { surveyTransfers } from '../../mirror/transfer/transfer.js';
import type { ImageSetRun, MirrorMapping, MirrorResult, MirrorArchive } from './image-set-run.js';
import { planForRun } from './plan-image-set.js';
import { getLockOptions, readConfiguration, readTemplates, warnOfOmitted } from './run-configuration.js';
import { verifyLocked } from './verification.js';
import { writeArchive } from './write-archive.js';
import { copyLocked, writeMapping } from './write-results.js';

const defaultShardWait = 10_000;

/** Maps the images of the lock; see `writeMapping`. */
export async function mapLock(run: ImageSetRun): Promise<MirrorMapping> {
  const { lock, templates } = await readSameLock(run);
  return writeMapping(run, planLock(withoutHeld(lock), run.destination), templates);
}

/** Copies the images of a lock to a registry, without resolving tags. */
export async function mirrorLock(run: ImageSetRun): Promise<MirrorResult> {
  const { shard, shardWaitMs = defaultShardWait } = run.options;
  return withLock(run, async ({ lock, templates, open }) => {
    const set = planLock(await withoutLost(run, lock), run.destination);
    return copyLocked(run, { lock, set, templates }, { open, shard, shardWaitMs });
  });
}

/** Returns the lock without content of earlier runs that the target does not hold, such as another one than theirs. */
async function withoutLost(run: ImageSetRun, lock: ImageSetLock): Promise<ImageSetLock> {
  const current = withoutHeld(lock);
  const held = lock.images.filter(({ isHeld }) => isHeld === true);
  if (held.length === 0) return lock;
  const { target } = run.destination;
  const transfers = toTransfers({ ...lock, images: held }, { target });
  const { surveyed } = await surveyTransfers(transfers, run.transfer);
  const present = new Set(surveyed.filter(isComplete).map(({ targetName }) => targetName));
  const images = held.filter((image) => present.has(getTargetName(image, target)));
  const catalogs = lock.catalogs.filter(
    (catalog) => catalog.isHeld !== true || images.some((image) => isSameName(catalog, image)),
  );
  return { ...lock, catalogs, images: [...current.images, ...images] };
}

/** Writes an archive of the images of a lock. */
export async function archiveLock(run: ImageSetRun): Promise<MirrorArchive> {
  return withLock(run, async ({ lock: whole, config, open }) => {
    const lock = withoutHeld(whole);
    const transfers = toTransfers(lock, { target: archiveTarget, open });
    const skip = (_name: string, error: OpmateError): Promise<void> => Promise.reject(error);
    const written = await writeArchive(run, { transfers: () => transfers, lock: () => lock, skip }, config);
    return { ...written, report: joinReports(), changes: [], removedBundles: [] };
  });
}

async function withLock<T>(
  run: ImageSetRun,
  work: (set: Awaited<ReturnType<typeof readSameLock>> & Pick<LockMirrorOptions, 'open'>) => Promise<T>,
): Promise<T> {
  const { lock: planned, config, templates } = await readSameLock(run);
  const { session } = run;
  const lock = await verifyLocked(run, planned);
  return withOpen(
    createOnDemandCatalogs(lock, session, () => planForRun(run, config, lock)),
    (rebuilt) => work({ lock, config, templates, open: (image) => rebuilt.findOpener(image) }),
  );
}

/** Reads the lock and its configuration. Throws OpmateError for a lock of another configuration. */
async function readSameLock(run: ImageSetRun) {
  const lock = run.options.lock ?? (await run.workspace?.readLock());
  if (lock === undefined) throw new UsageError('no lock', { hint: 'specify a lock or a workspace' });
  requirePlan(run, lock);
  warnOfOmitted(lock, getShownLock(run), run);
  const config = await requireSame(run, lock);
  refuseLocalSources(run, lock, config);
  const templates = await readTemplates(run, config);
  requireSameTemplates(lock, templates);
  return { lock, config, templates };
}

/** Throws OpmateError for images that a lock, which may be another person's, reads from this machine unasked. */
function refuseLocalSources(run: ImageSetRun, lock: ImageSetLock, config: ImageSetConfiguration): void {
  if (run.options.allowLocal === true) return;
  const { workingDirectory } = run.session;
  const toPath = (reference: Reference): string | undefined =>
    reference.transport === 'docker' ? undefined : path.resolve(workingDirectory, reference.path);
  const named = new Set(
    [...config.operators, ...config.additionalImages].map((item) => toPath(item.reference)),
  );
  const errors = new ErrorList();
  for (const { kind, source } of lock.images) {
    // These are built from charts and graph data, not read from a path.
    if (kind === 'chart' || kind === 'graph') continue;
    const local = toPath(parseReference(source));
    if (local === undefined || named.has(local)) continue;
    const problem = `${quoteGo(source)} is on this machine, and the configuration does not name it`;
    const hint = 'check the lock, or allow local sources with mirror.allowLocal';
    errors.add(new OpmateError('UNSAFE', problem, { subject: getShownLock(run), hint }));
  }
  errors.throwIfAny();
}

function requirePlan(run: ImageSetRun, lock: ImageSetLock): void {
  const { plan } = run.options;
  if (plan === undefined || plan === '') return;
  const own = planOf(lock);
  if (plan === own) return;
  const file = getShownLock(run);
  throw new UsageError(`${file}: is of plan ${own}, expected ${quoteShort(plan)}`, {
    hint: 'use the same lock on all machines',
  });
}

/** Throws UsageError unless a lock was made with the configuration and the options of this run. */
async function requireSame(run: ImageSetRun, lock: ImageSetLock): Promise<ImageSetConfiguration> {
  const { config, digest } = await readConfiguration(run);
  if (digest !== lock.configuration) {
    const problem = `${config.file}: differs from the configuration of the lock`;
    throw new UsageError(problem, { hint: 'mirror without mirror.locked to create a new lock' });
  }
  const wanted = getLockOptions(run, { failed: [] });
  for (const key of ['dependencies', 'platform']) {
    if (wanted[key] === lock.options[key]) continue;
    const [value, had] = [wanted[key], lock.options[key]];
    const problem = `the lock was made ${had === undefined ? 'without it' : `with ${quoteGo(had)}`}`;
    const hint = 'use the same value, or mirror without mirror.locked to create a new lock';
    throw value === undefined
      ? new UsageError(problem, { subject: `--${key}`, hint })
      : invalidValue(`--${key}`, value, problem, { hint });
  }
  const { signatures } = lock.options;
  const hint = 'create a new lock with api.planMirror';
  if (signatures === 'unknown')
    throw new UsageError(`${getShownLock(run)}: made before plans had signatures`, { hint });
  if (!run.options.signatures && signatures === 'yes')
    throw new UsageError('mirror.signatures: the lock was made with signatures', {
      hint: `${hint}, with the same flags`,
    });
  return config;
}

function getShownLock(run: ImageSetRun): string {
  return run.workspace?.shownLock ?? 'lock';
}
