import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { count } from '../../core/printable.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import {
  limitLock,
  planArchivedSet,
  requireAllowedImages,
  requireListedImages,
  withPlannedReleases,
} from '../../mirror/image-set/archived-set.js';
import { pathBelow } from '../../mirror/naming/mirror-target.js';
import type { ImageSetPlan } from '../../mirror/image-set/image-set-plan.js';
import { readLockedTemplates } from '../../mirror/image-set/catalog-source-template.js';
import type { MirroredContent } from '../../mirror/plan/mirror-plan.js';
import { type NarrowedCatalogs, narrowCatalogs } from '../../mirror/image-set/narrowed-catalogs.js';
import { planLock } from '../../mirror/lock/lock-plan.js';
import { type BaseContent, createBaseContent } from '../../mirror/lock/base-content.js';
import { type ImageSetLock, type LockedImage, withoutCharts } from '../../mirror/lock/lock.js';
import { parseLock } from '../../mirror/lock/parse-lock.js';
import { requireSignedReleases } from '../../mirror/release/locked-access.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { holdOpen } from '../../oci/image/open.js';
import { type OpenedArchive, openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import { reportingAllDamage } from '../images/verify-archive.js';
import type { ImageSetRun, MirrorMapping, MirrorResult } from './image-set-run.js';
import { getPlanOptions } from './plan-image-set.js';
import { type Templates, readConfiguration, readTemplates, warnOfOmitted } from './run-configuration.js';
import { verifyArchived } from './verification.js';
import { copyLocked, writeMapping } from './write-results.js';

/** Maps the content of archives; see `writeMapping`. */
export async function mapFromArchives(
  run: ImageSetRun,
  directories: readonly string[],
  proof: ArchiveProof,
): Promise<MirrorMapping> {
  return withArchives(run, directories, proof, ({ set, templates }) => writeMapping(run, set, templates));
}

/**
 * Copies archives to a registry, the first with what it needs of the others: all of its content, or what the
 * configuration selects.
 */
export async function mirrorFromArchives(
  run: ImageSetRun,
  directories: readonly string[],
  proof: ArchiveProof,
): Promise<MirrorResult> {
  return withArchives(run, directories, proof, async ({ archive, base, locked, narrowed, ...content }) => {
    await verifyArchived(run, locked, (name) => base.repository(name));
    const lock = narrowed?.locked ?? locked;
    const openImage = ({ repository, contents }: LockedImage) =>
      holdOpen({ repository: base.repository(repository), digest: contents.root.digest });
    return copyLocked(
      run,
      { ...content, lock },
      {
        archive,
        base,
        open: (image) => narrowed?.getOpener(image) ?? (() => Promise.resolve(openImage(image))),
      },
    );
  });
}

/** Content of archives to mirror. */
interface ArchivedContent {
  archive: OpenedArchive;
  base: BaseContent;
  set: MirroredContent;
  templates: Templates;
  locked: ImageSetLock;
  narrowed?: NarrowedCatalogs | undefined;
}

/**
 * Runs `work` with the content of archives: all of it, or what the configuration selects. Throws OpmateError for an
 * archive with unlisted images.
 */
async function withArchives<T>(
  run: ImageSetRun,
  directories: readonly string[],
  proof: ArchiveProof,
  work: (content: ArchivedContent) => Promise<T>,
): Promise<T> {
  const { session, options, workspace } = run;
  const { target } = run.destination;
  const places = directories.map((directory) => path.resolve(session.workingDirectory, directory));
  const mirror = async (archive: OpenedArchive): Promise<T> => {
    await workspace?.requireWritable();
    const base = createBaseContent(archive, target.registry, session);
    const lock = parseLock(archive.index.lock, 'the lock of the archive', 'reference');
    requireListedImages(archive, lock);
    warnOfOmitted(lock, 'the lock of the archive', run);
    const wanted = options.helmCharts === true ? lock : withoutCharts(lock);
    if (run.configFile === undefined) {
      const templates = readLockedTemplates(lock, 'the lock of the archive');
      await requireSignedReleases(wanted, { ...options, session });
      return work({ archive, base, set: planLock(wanted, { target }), templates, locked: wanted });
    }
    const { config, digest } = await readConfiguration(run);
    const isOther = digest !== lock.configuration;
    const templates = await readTemplates(run, config);
    const findContent = ({ repository }: LockedImage) =>
      base.repository(repository, pathBelow(target, repository));
    const planning = planArchivedSet(config, { ...getPlanOptions(run), session, lock, findContent });
    return withOpen(planning, async (plan) => {
      const limited = limitArchive(run, lock, wanted, plan, isOther);
      if (!isOther) return work({ archive, base, templates, ...limited });
      const narrowing = narrowCatalogs(limited, plan, findContent, { target, session });
      return withOpen(narrowing, (narrowed) => {
        const { set } = narrowed;
        return work({ archive, base, templates, locked: limited.locked, set, narrowed });
      });
    });
  };
  return withOpen(openArchiveSets(places, proof), (archive) =>
    reportingAllDamage(directories, session, () => mirror(archive)),
  );
}

/** Returns the part of an archive's lock that a plan of the configuration selects, and its names. */
function limitArchive(
  run: ImageSetRun,
  lock: ImageSetLock,
  wanted: ImageSetLock,
  plan: ImageSetPlan,
  isOther: boolean,
): Pick<ArchivedContent, 'set' | 'locked'> {
  try {
    const released = withPlannedReleases(wanted, plan);
    const locked = isOther ? limitLock(released, plan) : released;
    const left = (wanted.releases?.releases.length ?? 0) - (locked.releases?.releases.length ?? 0);
    if (left > 0)
      run.session.logger?.log(
        'info',
        `${count(left, 'release')} of the archive omitted: not in the configuration`,
      );
    return { set: requireAllowedImages(locked, plan), locked };
  } catch (error) {
    const had = lock.options['dependencies'];
    if (!(error instanceof OpmateError) || had !== 'add' || run.options.dependencies === had) throw error;
    throw addContext(error, {
      hint: 'add mirror.dependencies add, as in the run that wrote the archive',
    });
  }
}
