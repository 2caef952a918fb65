import { openCharts } from '../../mirror/helm/open-charts.js';
import type { ImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import type { MirrorTarget } from '../../mirror/image-set/image-set-names.js';
import {
  type ImageSetPlan,
  openPinnedCatalog,
  planImageSet as selectImages,
} from '../../mirror/image-set/image-set-plan.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import { liveReleases } from '../../mirror/release/live-releases.js';
import { lockedReleases } from '../../mirror/release/locked-access.js';
import { openReleases } from '../../mirror/release/open-releases.js';
import type { DependencyMode } from '../../mirror/selection/dependencies.js';
import { rebuildFrom } from '../../mirror/selection/rebuilt-source.js';
import type { Session } from '../../source/session.js';
import { writeCatalogCache } from '../catalog-cache.js';

/** What a plan of an image set depends on, in addition to the configuration. */
interface PlanImageSetOptions {
  target: MirrorTarget;
  /** Handling of bundles that selected ones depend on; default `report`. */
  dependencies?: DependencyMode | undefined;
  /** Maximum number of path components at the target; default unlimited. */
  maxNestedPaths?: number | undefined;
  /** Include Helm charts themselves, not only their images. */
  withCharts?: boolean | undefined;
  /** Fail instead of using updates with known risks; default false. */
  avoidRisks?: boolean | undefined;
  /** Accept the release image that the configuration names without a signature; default false. */
  ignoreReleaseSignature?: boolean | undefined;
  /** Base of the graph image; default `registry.access.redhat.com/ubi9/ubi:latest`. */
  graphBase?: string | undefined;
  /** URL or file of the graph data; default that of the public update service. */
  graphData?: string | undefined;
  /** Take catalogs and releases from this lock instead of resolving their tags and channels. */
  lock?: ImageSetLock | undefined;
}

/**
 * Selects the images of an image set. Only catalogs and charts are read. Close the plan at the end. Throws OpmateError
 * with everything that the catalogs lack.
 */
export async function planImageSet(
  config: ImageSetConfiguration,
  session: Session,
  options: PlanImageSetOptions,
): Promise<ImageSetPlan> {
  const { lock, graphBase, graphData, ...settings } = options;
  const { avoidRisks = false, ignoreReleaseSignature: ignoreSignature = false } = options;
  const { logger, signal, platform, temporaryDirectory } = session;
  return selectImages(config, {
    ...settings,
    platforms: platform === undefined ? undefined : [platform],
    logger,
    signal,
    openCatalog: (reference) => {
      const digest = lock?.catalogs.find(({ catalog }) => catalog === reference.text)?.sourceDigest;
      return openPinnedCatalog(digest === undefined ? reference : { ...reference, digest }, session);
    },
    openCharts: (helm) => openCharts(helm, { ...session, directory: session.workingDirectory }),
    openReleases: (releases) => {
      const live = { session, directory: session.workingDirectory, graphBase, graphData };
      const access = lock?.releases === undefined ? liveReleases(live) : lockedReleases(lock.releases, live);
      return openReleases(releases, { access, avoidRisks, ignoreSignature, signal });
    },
    digestOfRebuilt: async (source, platforms) => {
      const rebuilt = await rebuildFrom(source, {
        ...{ session, temporaryDirectory, platforms, logger, signal },
        writeCache: writeCatalogCache,
      });
      await rebuilt.close();
      return rebuilt.digest;
    },
  });
}
