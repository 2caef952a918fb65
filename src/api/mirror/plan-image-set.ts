import { openCharts } from '../../mirror/helm/open-charts.js';
import type { ImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import type { OnError } from '../../mirror/plan/planned-image.js';
import { type ImageSetPlan, type PlanOptions, planImageSet } from '../../mirror/image-set/image-set-plan.js';
import { openPinnedCatalog } from '../../mirror/image-set/select-catalogs.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import { createLiveAccess } from '../../mirror/release/live-releases.js';
import { createLockedAccess } from '../../mirror/release/locked-access.js';
import { rebuildFrom } from '../../mirror/selection/rebuilt-catalog.js';
import { formatPlatform } from '../../oci/image/platform.js';
import type { Session } from '../../source/session.js';
import type { ImageSetRun, MirrorOptions } from './image-set-run.js';

/**
 * Selects the images of a run, from the catalogs and releases of `lock` if there is one. Only catalogs and charts are
 * read. Close the plan at the end. Throws OpmateError with everything that the catalogs lack.
 */
export async function planForRun(
  run: ImageSetRun,
  config: ImageSetConfiguration,
  lock?: ImageSetLock,
  // A lock says what the run that wrote it skipped.
  onError: OnError = lock === undefined ? run.options.onError : 'skip-image',
): Promise<ImageSetPlan> {
  warnOfOtherPlatforms(run, config);
  const { session, destination, options } = run;
  return planImageSet(config, {
    ...getPlanOptions(run),
    ...getPlanSources(options, session, lock),
    onError,
    withCharts: options.helmCharts === true || destination.kind === 'disk',
    digestOfRebuilt: async (source, changes) => {
      const rebuilt = await rebuildFrom(source, session, changes);
      await rebuilt.close();
      return rebuilt.digest;
    },
  });
}

/** Returns the options of a plan that do not depend on its sources. */
export function getPlanOptions({ options, destination, session }: ImageSetRun) {
  const { logger, signal, platform } = session;
  const platforms = platform === undefined ? undefined : [platform];
  return { ...options, target: destination.target, logger, signal, platforms };
}

/** Returns the sources of catalogs, charts and releases: those of `lock`, if there is one. */
export function getPlanSources(
  { graphBase, graphData }: Pick<MirrorOptions, 'graphBase' | 'graphData'>,
  session: Session,
  lock?: ImageSetLock,
): Pick<PlanOptions, 'openCatalog' | 'openCharts' | 'releaseAccess'> {
  const live = { session, graphBase, graphData };
  return {
    openCatalog: (reference) => {
      const digest = lock?.catalogs.find(({ catalog }) => catalog === reference.text)?.sourceDigest;
      return openPinnedCatalog(digest === undefined ? reference : { ...reference, digest }, session);
    },
    openCharts: (helm) => openCharts(helm, session),
    releaseAccess:
      lock?.releases === undefined ? createLiveAccess(live) : createLockedAccess(lock.releases, live),
  };
}

function warnOfOtherPlatforms(
  { session: { platform, logger } }: ImageSetRun,
  { operators, additionalImages, helm }: ImageSetConfiguration,
): void {
  const charts = [...helm.local, ...helm.repositories.flatMap((repository) => repository.charts ?? [])];
  const isNamed = [...operators, ...additionalImages, ...charts].some((item) => item.platforms.length > 0);
  if (platform === undefined && !isNamed) return;
  const which =
    platform === undefined
      ? 'those that the configuration names are'
      : `that for ${formatPlatform(platform)} is`;
  const what = `of images for several platforms only ${which} copied`;
  logger?.log(
    'warn',
    `${what}: their index keeps its digest, and the registry must take it without the others`,
  );
}
