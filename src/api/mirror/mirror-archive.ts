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
import { pathBelow } from '../../mirror/image-set/image-set-names.js';
import type { ImageSetPlan } from '../../mirror/image-set/image-set-plan.js';
import type { NamedImage } from '../../mirror/image-set/planned-image.js';
import { readLockedTemplates } from '../../mirror/image-set/catalog-source-template.js';
import type { MirroredSet } from '../../mirror/image-set/image-set-resources.js';
import { type NarrowedCatalogs, narrowCatalogs } from '../../mirror/image-set/narrowed-catalogs.js';
import { toMirroredSet } from '../../mirror/lock/lock-mirror.js';
import { type BaseContent, createBaseContent } from '../../mirror/lock/base-content.js';
import { type ImageSetLock, type LockedImage, withoutCharts } from '../../mirror/lock/lock.js';
import { parseLock } from '../../mirror/lock/parse-lock.js';
import { requireSignedReleases } from '../../mirror/release/locked-access.js';
import type { ArchiveProof } from '../../oci/archive-set/archive-index.js';
import { holdOpen } from '../../oci/image/open.js';
import { type OpenedArchive, openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import type { ImageSetRun, MirrorMapping, MirrorResult } from './image-set-run.js';
import { type Templates, readConfiguration, readTemplates } from './run-configuration.js';
import { verifyArchived } from './verification.js';
import { copyLocked, writeMapping } from './write-results.js';

/** Maps the content of archives; see `writeMapping`. */
export async function mapFromArchives(
  run: ImageSetRun,
  directories: readonly string[],
  proof: ArchiveProof,
): Promise<MirrorMapping> {
  return withArchive(run, directories, proof, (content) =>
    withArchived(run, content, ({ set, templates }) => writeMapping(run, set, templates)),
  );
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
  return withArchive(run, directories, proof, (content) =>
    withArchived(run, content, async ({ set, templates, locked, narrowed }) => {
      const { archive, base } = content;
      await verifyArchived(run, locked, (name) => base.repository(name));
      const open = ({ repository, contents }: LockedImage) =>
        Promise.resolve(holdOpen({ repository: base.repository(repository), digest: contents.root.digest }));
      const lock = narrowed?.lock ?? locked;
      return copyLocked(
        run,
        { lock, set, templates },
        {
          ...{ archive, base },
          open: (image) => narrowed?.getOpener(image) ?? (() => open(image)),
        },
      );
    }),
  );
}

interface ArchiveContent {
  archive: OpenedArchive;
  base: BaseContent;
}

async function withArchive<T>(
  run: ImageSetRun,
  directories: readonly string[],
  proof: ArchiveProof,
  work: (content: ArchiveContent) => Promise<T>,
): Promise<T> {
  return withOpen(openArchiveSets(directories, proof), async (archive) => {
    await run.workspace?.requireWritable();
    const base = createBaseContent(archive, run.destination.target.registry, run.session);
    return await work({ archive, base });
  });
}

/** Content of an archive to mirror. */
interface ArchivedSet {
  set: MirroredSet<NamedImage>;
  templates: Templates;
  locked: ImageSetLock;
  narrowed?: NarrowedCatalogs | undefined;
}

/** Runs `work` with the content of an archive to mirror. Throws OpmateError for an archive with unlisted images. */
async function withArchived<T>(
  run: ImageSetRun,
  content: ArchiveContent,
  work: (set: ArchivedSet) => Promise<T>,
): Promise<T> {
  const lock = parseLock(content.archive.index.lock, 'the lock of the archive');
  requireListedImages(content.archive, lock);
  const wanted = run.options.helmCharts === true ? lock : withoutCharts(lock);
  if (run.configFile !== undefined) return withLimited(run, content, lock, wanted, work);
  const templates = readLockedTemplates(lock, 'the lock of the archive');
  await requireSignedReleases(wanted, { ...run.options, session: run.session });
  const set = toMirroredSet(wanted, run.destination.target);
  return work({ set, templates, locked: wanted });
}

/** Runs `work` with the content of an archive that the configuration selects. */
async function withLimited<T>(
  run: ImageSetRun,
  { archive, base }: ArchiveContent,
  lock: ImageSetLock,
  wanted: ImageSetLock,
  work: (set: ArchivedSet) => Promise<T>,
): Promise<T> {
  const { dependencies = 'report', ignoreReleaseSignature } = run.options;
  const { target } = run.destination;
  const { config, digest } = await readConfiguration(run);
  const isOther = digest !== lock.configuration;
  const templates = await readTemplates(run, config);
  const { logger, signal, platform } = run.session;
  const getContent = ({ repository }: LockedImage) =>
    base.repository(repository, pathBelow(target, repository));
  const plan = await planArchivedSet(config, {
    ...{ target, dependencies, logger, signal, archive, lock, contentOf: getContent },
    platforms: platform === undefined ? undefined : [platform],
    ...{ session: run.session, ignoreReleaseSignature },
  });
  let narrowed: NarrowedCatalogs | undefined;
  try {
    const set = limitArchive(run, lock, wanted, plan, isOther);
    if (isOther) narrowed = await narrowCatalogs(set.locked, plan, getContent, run.session);
    return await work({ ...set, templates, narrowed });
  } finally {
    await narrowed?.close();
    await plan.close();
  }
}

function limitArchive(
  run: ImageSetRun,
  lock: ImageSetLock,
  wanted: ImageSetLock,
  plan: ImageSetPlan,
  isOther: boolean,
): Pick<ArchivedSet, 'set' | 'locked'> {
  const { dependencies = 'report' } = run.options;
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
    if (!(error instanceof OpmateError) || had !== 'add' || dependencies === had) throw error;
    throw addContext(error, {
      hint: 'add --dependencies add, as in the run that wrote the archive',
    });
  }
}
