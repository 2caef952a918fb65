import { openCharts } from '../../mirror/helm/open-charts.js';
import type { ImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import { type ImageSetPlan, type PlanOptions, planImageSet } from '../../mirror/image-set/image-set-plan.js';
import { openPinnedCatalog } from '../../mirror/image-set/select-catalogs.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import { createLiveAccess } from '../../mirror/release/live-releases.js';
import { createLockedAccess } from '../../mirror/release/locked-access.js';
import { openReleases } from '../../mirror/release/open-releases.js';
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
): Promise<ImageSetPlan> {
  warnOfOtherPlatforms(run, config);
  const { session, destination, options } = run;
  const { dependencies, helmCharts } = options;
  const { logger, signal, platform } = session;
  return planImageSet(config, {
    ...{ target: destination.target, dependencies, logger, signal },
    withCharts: helmCharts === true || destination.kind === 'disk',
    platforms: platform === undefined ? undefined : [platform],
    ...openersOf(options, session, lock),
    digestOfRebuilt: async (source, platforms) => {
      const rebuilt = await rebuildFrom(source, session, { platforms });
      await rebuilt.close();
      return rebuilt.digest;
    },
  });
}

/** Returns how a plan opens catalogs, charts and releases: those of `lock`, if there is one. */
export function openersOf(
  options: Pick<MirrorOptions, 'graphBase' | 'graphData' | 'avoidRisks' | 'ignoreReleaseSignature'>,
  session: Session,
  lock?: ImageSetLock,
): Pick<PlanOptions, 'openCatalog' | 'openCharts' | 'openReleases'> {
  const { graphBase, graphData, avoidRisks = false, ignoreReleaseSignature = false } = options;
  return {
    openCatalog: (reference) => {
      const digest = lock?.catalogs.find(({ catalog }) => catalog === reference.text)?.sourceDigest;
      return openPinnedCatalog(digest === undefined ? reference : { ...reference, digest }, session);
    },
    openCharts: (helm) => openCharts(helm, session),
    openReleases: (releases) => {
      const live = { session, graphBase, graphData };
      const access =
        lock?.releases === undefined ? createLiveAccess(live) : createLockedAccess(lock.releases, live);
      const { signal } = session;
      return openReleases(releases, { access, avoidRisks, ignoreSignature: ignoreReleaseSignature, signal });
    },
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
