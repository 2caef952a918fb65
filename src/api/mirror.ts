import { digestOf } from '../core/digest.js';
import { openCharts } from '../mirror/helm/open-charts.js';
import { liveReleases } from '../mirror/release/live-releases.js';
import { lockedReleases } from '../mirror/release/locked-access.js';
import { openReleases } from '../mirror/release/open-releases.js';
import {
  type ImageSetConfiguration,
  readImageSetConfiguration,
} from '../mirror/image-set/image-set-config.js';
import { ImageSetMirror, type OnError } from '../mirror/image-set/image-set-mirror.js';
import { requireTargetAccess } from '../mirror/image-set/target-access.js';
import { type MirrorTarget, parseMirrorTarget } from '../mirror/image-set/image-set-names.js';
import {
  type ImageSetPlan,
  openPinnedCatalog,
  planImageSet as selectImages,
} from '../mirror/image-set/image-set-plan.js';
import { clusterResources, readCatalogSourceTemplates } from '../mirror/image-set/image-set-resources.js';
import type { BytePlan } from '../mirror/lock/byte-plan.js';
import type { ImageSetLock } from '../mirror/lock/lock.js';
import { type LockStatus, readRegistryStatus } from '../mirror/lock/lock-status.js';
import type { DependencyMode } from '../mirror/selection/dependencies.js';
import { rebuildFrom } from '../mirror/selection/rebuilt-source.js';
import type { TransferOptions, TransferReport } from '../mirror/transfer/transfer-types.js';
import { fileError } from '../core/errors.js';
import { writeCatalogCache } from './catalog-cache.js';
import { readNamedFile } from '../files/read-file.js';
import { formatPlatform } from '../oci/image/platform.js';
import type { Session } from '../source/session.js';

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

/** Options of mirroring to a registry. */
export interface MirrorOptions extends Omit<PlanImageSetOptions, 'target' | 'lock' | 'withCharts'> {
  /** Handling of images that cannot be copied; default `stop`. */
  onError?: OnError | undefined;
  /** Copy signatures too; default true. */
  signatures?: boolean | undefined;
  /** Maximum parallel requests per registry; default 6. */
  maxPerRegistry?: number | undefined;
}

/** Plan of a mirror run. */
export interface MirrorPlan {
  /** Images, blobs and bytes, in total, present at the target, and per package. */
  bytes: BytePlan;
  /** Pins every image; `encodeLock` writes it for `opmate mirror --locked`. */
  lock: ImageSetLock;
}

/** Result of a mirror run. */
export interface MirrorResult extends MirrorPlan {
  report: TransferReport;
  /** Mirror sets and catalog sources for the cluster, by file name. */
  resources: Map<string, string>;
}

/**
 * Plans mirroring the image set in `configFile` to `docker://REGISTRY[/PATH]`: reads manifests and asks the target for
 * what it has, and copies nothing. Throws OpmateError.
 */
export async function planMirror(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<MirrorPlan> {
  return withImageSet(configFile, destination, session, options, async (mirror, { lockOf }) => {
    await mirror.prepare();
    return { bytes: await mirror.survey(), lock: await lockOf('unknown') };
  });
}

/**
 * Mirrors the image set in `configFile` to `docker://REGISTRY[/PATH]`. A repeated run copies only what is missing.
 * Throws OpmateError; images that `onError` skips are listed in the report.
 */
export async function mirrorImageSet(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<MirrorResult> {
  return withImageSet(configFile, destination, session, options, async (mirror, opened) => {
    const { lockOf, config, target, plan } = opened;
    const settings = {
      ...target,
      maxNestedPaths: options.maxNestedPaths,
      byRepository: options.maxNestedPaths !== undefined,
      templates: await templatesOf(config, session),
    };
    // Names that a cluster would refuse are errors before anything is copied.
    clusterResources(plan, settings);
    await mirror.prepare();
    const bytes = await mirror.surveyWithSignatures();
    const report = await mirror.copy();
    const resources = clusterResources(mirror.mirrored(), settings);
    return { bytes, report, resources, lock: await lockOf('yes') };
  });
}

/**
 * Reads which images of a lock `docker://REGISTRY[/PATH]` has, and what is left to copy. Throws OpmateError for a
 * registry that is unavailable.
 */
export async function readMirrorStatus(
  lock: ImageSetLock,
  destination: string,
  session: Session,
  {
    maxNestedPaths,
    maxPerRegistry,
    shards,
  }: Pick<MirrorOptions, 'maxNestedPaths' | 'maxPerRegistry'> & {
    /** Number of shards that share the lock; `shards` of the result says what is left of each. */
    shards?: number | undefined;
  } = {},
): Promise<LockStatus> {
  const target = parseMirrorTarget(destination);
  const transfer = transferOptions(session, { maxPerRegistry });
  return readRegistryStatus(lock, { target, maxNestedPaths, transfer, shards });
}

/** Maximum size of a configuration, in bytes. */
const maxConfigSize = 64 * 1024 * 1024;

interface OpenImageSet {
  config: ImageSetConfiguration;
  target: MirrorTarget;
  plan: ImageSetPlan;
  lockOf: (signatures: 'yes' | 'unknown') => Promise<ImageSetLock>;
}

async function withImageSet<T>(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions,
  work: (mirror: ImageSetMirror, opened: OpenImageSet) => Promise<T>,
): Promise<T> {
  const target = parseMirrorTarget(destination);
  const bytes = await readNamedFile(configFile, maxConfigSize).catch((error: unknown) => {
    throw fileError(`open ${configFile}`, error, { file: configFile });
  });
  const config = readImageSetConfiguration(bytes.toString(), configFile);
  const { dependencies = 'report', maxNestedPaths, onError = 'stop', signatures = true } = options;
  await requireTargetAccess(config, target, { maxNestedPaths, session });
  const plan = await planImageSet(config, session, { ...options, target, dependencies, maxNestedPaths });
  try {
    const { temporaryDirectory, logger } = session;
    const transfer = transferOptions(session, options);
    const mirror = new ImageSetMirror(plan, {
      ...{ config, target, transfer, onError, signatures, temporaryDirectory, logger },
      writeCache: writeCatalogCache,
    });
    const lockOf = async (known: 'yes' | 'unknown'): Promise<ImageSetLock> => {
      const { platform } = session;
      const kept = {
        dependencies,
        ...(platform !== undefined && { platform: formatPlatform(platform) }),
        signatures: signatures ? known : 'none',
      };
      return mirror.lock(digestOf(bytes), kept, await templatesOf(config, session));
    };
    try {
      return await work(mirror, { config, target, plan, lockOf });
    } finally {
      await mirror.close();
    }
  } finally {
    await plan.close();
  }
}

function templatesOf({ operators }: ImageSetConfiguration, { workingDirectory, followLinks }: Session) {
  return readCatalogSourceTemplates(operators, { directory: workingDirectory, followLinks });
}

function transferOptions(
  session: Session,
  { maxPerRegistry = 6, onError = 'stop' }: Pick<MirrorOptions, 'maxPerRegistry' | 'onError'>,
): TransferOptions {
  const { logger, signal } = session;
  const continueOnError = onError !== 'stop';
  return { session, maxPerRegistry, continueOnError, skipMissing: false, logger, signal };
}
