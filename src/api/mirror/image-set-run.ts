import type { KeyObject } from 'node:crypto';
import path from 'node:path';
import { computeDigest } from '../../core/digest.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { quoteShort } from '../../document/field.js';
import { readNamedFile } from '../../files/read-file.js';
import { type BasePlace, readArchiveBase } from '../../mirror/image-set/archive-base.js';
import {
  limitLock,
  planArchivedSet,
  requireAllowedImages,
  requireListedImages,
  withPlannedReleases,
} from '../../mirror/image-set/archived-set.js';
import {
  type ImageSetConfiguration,
  readImageSetConfiguration,
} from '../../mirror/image-set/image-set-config.js';
import { ImageSetMirror, type OnError } from '../../mirror/image-set/image-set-mirror.js';
import { type MirrorTarget, pathBelow } from '../../mirror/image-set/image-set-names.js';
import { type ImageSetPlan, type NamedImage, mappingLines } from '../../mirror/image-set/image-set-plan.js';
import {
  type CatalogSourceTemplate,
  type ClusterResourceOptions,
  type MirroredSet,
  clusterResources,
  readCatalogSourceTemplates,
  requireSameTemplates,
  templatesOfLock,
} from '../../mirror/image-set/image-set-resources.js';
import { type NarrowedCatalogs, narrowCatalogs } from '../../mirror/image-set/narrowed-catalogs.js';
import { type ArchivableSet, archiveImageSet, listCarried } from '../../mirror/image-set/set-archive.js';
import { requireTargetAccess } from '../../mirror/image-set/target-access.js';
import type { Workspace } from '../../mirror/image-set/workspace.js';
import { BaseContent } from '../../mirror/lock/base-content.js';
import { type BytePlan, planBytes } from '../../mirror/lock/byte-plan.js';
import { LockMirror, mirroredOfLock } from '../../mirror/lock/lock-mirror.js';
import {
  type ImageSetLock,
  type LockedImage,
  parseLock,
  planOf,
  withoutCharts,
} from '../../mirror/lock/lock.js';
import { rebuiltOnDemand } from '../../mirror/lock/locked-catalogs.js';
import { transfersOfLock } from '../../mirror/lock/locked-transfers.js';
import type { Shard } from '../../mirror/lock/shard.js';
import { requireSignedReleases } from '../../mirror/release/locked-access.js';
import type { DependencyMode } from '../../mirror/selection/dependencies.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import {
  type ArchiveIndex,
  type ArchiveProof,
  readArchiveIndex,
  signArchive,
} from '../../oci/archive-set/archive-index.js';
import { type OpenedArchive, openArchiveSets } from '../../oci/archive-set/archive-set-reader.js';
import type { OpenedReference } from '../../oci/image/open.js';
import { formatPlatform } from '../../oci/image/platform.js';
import { type Session, withChanges } from '../../source/session.js';
import { writeCatalogCache } from '../catalog-cache.js';
import { planImageSet } from './plan-image-set.js';
import type { Verification } from './verification.js';

type Templates = ReadonlyMap<string, CatalogSourceTemplate>;

/** Where an image set goes. */
export type MirrorDestination =
  | { kind: 'registry'; target: MirrorTarget }
  /** Absolute. */
  | { kind: 'disk'; directory: string; target: MirrorTarget };

export interface ImageSetRunOptions {
  destination: MirrorDestination;
  /** Where results are written and a lock is read; nothing is written without it. */
  workspace?: Workspace | undefined;
  /** Takes precedence over that of the workspace. */
  lock?: ImageSetLock | undefined;
  /** The ImageSetConfiguration, relative to the working directory; optional for an archive. */
  configFile?: string | undefined;
  /** Handling of bundles that selected ones depend on; default `report`. */
  dependencies?: DependencyMode | undefined;
  /** Handling of images that cannot be copied; default `stop`. */
  onError?: OnError | undefined;
  /** Copy signatures too; default true. */
  signatures?: boolean | undefined;
  /** Maximum number of path components at the target; default unlimited. */
  maxNestedPaths?: number | undefined;
  /** Names of the objects for a cluster. */
  naming?:
    Pick<ClusterResourceOptions, 'catalogName' | 'prefix' | 'pollIntervalMinutes' | 'icsp'> | undefined;
  /** Push Helm charts themselves to a registry; default false. Archives always hold them. */
  helmCharts?: boolean | undefined;
  /** Fail instead of using updates with known risks; default false. */
  avoidRisks?: boolean | undefined;
  /** Accept the release image that the configuration names without a signature; default false. */
  ignoreReleaseSignature?: boolean | undefined;
  /** Base of the graph image. */
  graphBase?: string | undefined;
  /** URL or file of the graph data. */
  graphData?: string | undefined;
  /** For an archive: what it need not hold. */
  base?: BasePlace | undefined;
  /** Fail where a blob is larger than a part of the archive; default false. */
  strictArchive?: boolean | undefined;
  /** Signs the archive. */
  signingKey?: KeyObject | undefined;
  /** Mirror only this part of a lock. */
  shard?: Shard | undefined;
  /** How long a shard waits for blobs of others, after the last one has come; default 10 s. */
  shardWaitMs?: number | undefined;
  /** Digest of the plan that the lock must be of. */
  plan?: string | undefined;
  verification?: Verification | undefined;
  /** Maximum parallel requests per registry; default 6. */
  maxPerRegistry?: number | undefined;
  copyLimits?: Pick<TransferOptions, 'imagesAtOnce' | 'layersAtOnce' | 'imageTimeoutMs'> | undefined;
  /** Called with the selection before anything is copied. */
  onPlanned?: ((plan: ImageSetPlan) => void) | undefined;
  /** Called with what is to be copied before the first blob is. */
  onSurveyed?: ((bytes: BytePlan) => void) | undefined;
}

/** Names of an image set that nothing was copied of. */
export interface MirrorNames {
  /** `SOURCE=DESTINATION`, sorted. */
  mapping: string[];
  /** Those of `mapping` whose images are in no archive yet. */
  missing: string[];
  /** Mirror sets and catalog sources for the cluster, by file name; undefined for an archive. */
  resources: Map<string, string> | undefined;
}

/** What a run planned: images and bytes, and the lock that pins them. */
export interface MirrorPlan {
  bytes: BytePlan;
  lock: ImageSetLock;
  /** Bundles that are kept beyond the request, and why. */
  kept: { catalog: string; package: string; channel: string; bundle: string; reason: string }[];
}

/** What a run copied to a registry. */
export interface MirrorResult {
  report: TransferReport;
  /** What became of catalogs for want of images, one sentence each. */
  changes: string[];
  /** Mirror sets and catalog sources for the cluster, by file name. */
  resources: Map<string, string>;
  bytes: BytePlan;
  /** Pins what was mirrored. */
  lock: ImageSetLock;
  /** Images of other shards that are not there yet, so that the catalogs wait. */
  waiting: number;
}

/** What a run wrote to disk. */
export interface MirrorArchive {
  /** Images that were left out. */
  report: TransferReport;
  changes: string[];
  lock: ImageSetLock;
  index: ArchiveIndex;
  /** Bytes that an interrupted run had written. */
  keptBytes: number;
}

/** Maximum size of a configuration, in bytes. */
const maxConfigSize = 64 * 1024 * 1024;
const defaultShardWait = 10_000;
const defaultMaxPerRegistry = 6;

/**
 * One run over an image set: plans it, copies it to a registry or into an archive, by a lock or from an archive, and
 * writes results to the workspace. Nothing is printed.
 */
export class ImageSetRun {
  readonly #options: ImageSetRunOptions;
  readonly #session: Session;

  constructor(options: ImageSetRunOptions, session: Session) {
    this.#options = options;
    // What is verified is looked at again to be copied.
    this.#session =
      options.verification === undefined ? session : withChanges(session, { signatureReads: new Map() });
  }

  /** Plans in bytes, and writes the lock. Of images no blob is read but the layers of catalogs. */
  async plan(): Promise<MirrorPlan> {
    const { config, digest } = await this.readConfiguration();
    const { destination, workspace } = this.#options;
    return this.#withMirror(config, async (mirror, plan) => {
      const templates = await this.#readTemplates(config);
      this.#resources(plan, templates);
      await mirror.prepare();
      const bytes =
        destination.kind === 'registry'
          ? await mirror.surveyWithSignatures()
          : await this.#surveyArchive(mirror);
      const lock = mirror.lock(digest, this.#lockOptions(), templates);
      await workspace?.writeLock(lock);
      const kept = plan.catalogs.flatMap(({ operator, selection }) =>
        selection.kept.map((bundle) => ({ catalog: operator.catalog, ...bundle })),
      );
      return { bytes, lock, kept };
    });
  }

  /** Writes names only: nothing is read but catalogs. */
  async planNames(): Promise<MirrorNames> {
    const { config } = await this.readConfiguration();
    return this.#withPlan(config, async (plan) => this.#writeNames(plan, await this.#readTemplates(config)));
  }

  async mirrorToRegistry(): Promise<MirrorResult> {
    const { config, digest } = await this.readConfiguration();
    const templates = await this.#readTemplates(config);
    const { destination, maxNestedPaths, verification } = this.#options;
    const session = this.#session;
    await requireTargetAccess(config, destination.target, { maxNestedPaths, session });
    return this.#withMirror(config, async (mirror, plan) => {
      // What would be wrong with their names is known by now, before anything is copied.
      this.#resources(plan, templates);
      await mirror.prepare();
      await verification?.verify(mirror, session);
      const bytes = await mirror.surveyWithSignatures();
      this.#options.onSurveyed?.(bytes);
      const { changes, ...report } = await mirror.copy();
      const lock = mirror.lock(digest, this.#lockOptions(), templates);
      const resources = await this.#writeResources(mirror.mirrored(), templates);
      await this.#options.workspace?.writeLock(lock);
      return { report, changes, resources, bytes, lock, waiting: 0 };
    });
  }

  /** Writes an archive to the directory of the destination. */
  async mirrorToDisk(): Promise<MirrorArchive> {
    const { config, digest } = await this.readConfiguration();
    // A base that cannot be used is an error before anything is read.
    await this.#readBase();
    return this.#withMirror(config, async (mirror, plan) => {
      const templates = await this.#readTemplates(config);
      this.#resources(plan, templates);
      await mirror.prepare();
      await this.#options.verification?.verify(mirror, this.#session);
      await mirror.addSignatures();
      const set = {
        transfers: () => mirror.transfers(),
        lock: () => mirror.lock(digest, this.#lockOptions(), templates),
        skip: (targetName: string, error: OpmateError) => mirror.skip(targetName, error),
      };
      const written = await this.#writeArchive(set, config);
      await this.#options.workspace?.writeLock(written.lock);
      const { changes, ...report } = mirror.report();
      return { ...written, report, changes };
    });
  }

  /** Names what the lock copies; see `planNames`. */
  async planLockedNames(): Promise<MirrorNames> {
    const { lock, templates } = await this.#readLock();
    return this.#writeNames(this.#getMirrored(lock), templates);
  }

  /** Copies to a registry what a lock names: nothing is looked up. */
  async mirrorLocked(): Promise<MirrorResult> {
    const { shard, shardWaitMs = defaultShardWait } = this.#options;
    return this.#withLock(async ({ lock, templates, open }) => {
      const mirror = new LockMirror(lock, { ...this.#lockMirrorOptions(), open, shard, shardWaitMs });
      return this.#mirrorLock(mirror, { set: this.#getMirrored(lock), templates, lock });
    });
  }

  /** Writes an archive of what a lock names. */
  async archiveLocked(): Promise<MirrorArchive> {
    return this.#withLock(async ({ lock, config, open }) => {
      const transfers = transfersOfLock(lock, { target: this.#options.destination.target, open });
      const skip = (_name: string, error: OpmateError): Promise<void> => Promise.reject(error);
      const written = await this.#writeArchive(
        { transfers: () => transfers, lock: () => lock, skip },
        config,
      );
      return { ...written, report: emptyReport, changes: [] };
    });
  }

  /** Names what archives hold; see `planNames`. */
  async planArchiveNames(directories: readonly string[], proof: ArchiveProof): Promise<MirrorNames> {
    return this.#withArchive(directories, proof, (content) =>
      this.#withArchived(content, ({ set, templates }) => this.#writeNames(set, templates)),
    );
  }

  /**
   * Copies archives to a registry, the first with what it needs of the others: all that it holds, or what the
   * configuration asks for.
   */
  async mirrorArchives(directories: readonly string[], proof: ArchiveProof): Promise<MirrorResult> {
    return this.#withArchive(directories, proof, (content) =>
      this.#withArchived(content, async ({ set, templates, locked, narrowed }) => {
        const { archive, base } = content;
        const { verification } = this.#options;
        await verification?.verifyArchived(locked, (name) => base.repository(name), this.#session);
        const open = ({ repository, contents }: LockedImage) =>
          Promise.resolve({
            repository: base.repository(repository),
            reference: contents.root.digest,
            close: () => Promise.resolve(),
          });
        const lock = narrowed?.lock ?? locked;
        const mirror = new LockMirror(lock, {
          ...this.#lockMirrorOptions(),
          ...{ archive, base },
          open: (image) => narrowed?.getOpener(image) ?? (() => open(image)),
        });
        return this.#mirrorLock(mirror, { set, templates, lock });
      }),
    );
  }

  async #withArchive<T>(
    directories: readonly string[],
    proof: ArchiveProof,
    work: (content: ArchiveContent) => Promise<T>,
  ): Promise<T> {
    const archive = await openArchiveSets(directories, proof);
    try {
      await this.#options.workspace?.requireWritable();
      const base = new BaseContent(archive, this.#options.destination.target.registry, this.#session);
      return await work({ archive, base });
    } finally {
      await archive.close();
    }
  }

  /** Works with what of an archive is to be mirrored. Throws OpmateError for one that holds more than it lists. */
  async #withArchived<T>(content: ArchiveContent, work: (set: ArchivedSet) => Promise<T>): Promise<T> {
    const lock = parseLock(content.archive.index.lock, 'the lock of the archive');
    requireListedImages(content.archive, lock);
    const wanted = this.#options.helmCharts === true ? lock : withoutCharts(lock);
    if (this.#options.configFile !== undefined) return this.#withLimited(content, lock, wanted, work);
    const templates = templatesOfLock(lock, 'the lock of the archive');
    await requireSignedReleases(wanted, this.#releaseSettings());
    return work({ set: this.#getMirrored(wanted), templates, locked: wanted });
  }

  /** Works with what the configuration allows of an archive, which is computed here. */
  async #withLimited<T>(
    { archive, base }: ArchiveContent,
    lock: ImageSetLock,
    wanted: ImageSetLock,
    work: (set: ArchivedSet) => Promise<T>,
  ): Promise<T> {
    const { destination, maxNestedPaths, dependencies = 'report' } = this.#options;
    const { target } = destination;
    const { config, digest } = await this.readConfiguration();
    const isOther = digest !== lock.configuration;
    const templates = await this.#readTemplates(config);
    const { logger, signal, platform, temporaryDirectory } = this.#session;
    const getContent = ({ repository }: LockedImage) =>
      base.repository(repository, pathBelow(target, repository, maxNestedPaths));
    const plan = await planArchivedSet(config, {
      ...{ target, maxNestedPaths, dependencies, logger, signal, archive, lock, contentOf: getContent },
      platforms: platform === undefined ? undefined : [platform],
      ...this.#releaseSettings(),
    });
    let narrowed: NarrowedCatalogs | undefined;
    try {
      const set = this.#limit(lock, wanted, plan, isOther);
      if (isOther) {
        const how = {
          contentOf: getContent,
          temporaryDirectory,
          writeCache: writeCatalogCache,
          logger,
          signal,
        };
        narrowed = await narrowCatalogs(set.locked, plan, how);
      }
      return await work({ ...set, templates, narrowed });
    } finally {
      await narrowed?.close();
      await plan.close();
    }
  }

  #limit(
    lock: ImageSetLock,
    wanted: ImageSetLock,
    plan: ImageSetPlan,
    isOther: boolean,
  ): Pick<ArchivedSet, 'set' | 'locked'> {
    const { dependencies = 'report' } = this.#options;
    try {
      const released = withPlannedReleases(wanted, plan);
      const locked = isOther ? limitLock(released, plan) : released;
      const left = (wanted.releases?.releases.length ?? 0) - (locked.releases?.releases.length ?? 0);
      if (left > 0)
        this.#session.logger?.log(
          'info',
          `${left === 1 ? '1 release' : `${left} releases`} of the archive not in the configuration, left out`,
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

  /** Reads the lock, and what it was made of. Throws OpmateError for a lock of something else. */
  async #readLock(): Promise<{ lock: ImageSetLock; config: ImageSetConfiguration; templates: Templates }> {
    const { workspace } = this.#options;
    const lock = this.#options.lock ?? (await workspace?.readLock());
    if (lock === undefined) throw new UsageError('no lock', { hint: 'name a lock or a workspace' });
    this.#requirePlan(lock);
    const config = await this.#requireSame(lock);
    const templates = await this.#readTemplates(config);
    requireSameTemplates(lock, templates);
    return { lock, config, templates };
  }

  async #withLock<T>(
    work: (set: {
      lock: ImageSetLock;
      config: ImageSetConfiguration;
      templates: Templates;
      open: (image: LockedImage) => (() => Promise<OpenedReference>) | undefined;
    }) => Promise<T>,
  ): Promise<T> {
    const { lock: planned, config, templates } = await this.#readLock();
    const session = this.#session;
    const lock = (await this.#options.verification?.verifyLocked(planned, session)) ?? planned;
    const rebuilt = rebuiltOnDemand(lock, {
      plan: () => this.#planImages(config, lock),
      session,
      temporaryDirectory: session.temporaryDirectory,
      writeCache: writeCatalogCache,
      logger: session.logger,
    });
    try {
      return await work({ lock, config, templates, open: (image) => rebuilt.findOpener(image) });
    } finally {
      await rebuilt.close();
    }
  }

  /** Throws UsageError where a lock is not of the plan that the machines share. */
  #requirePlan(lock: ImageSetLock): void {
    const { plan } = this.#options;
    const own = planOf(lock);
    if (plan === undefined || plan === '' || plan === own) return;
    const file = this.#shownLock();
    throw new UsageError(`${file}: is of plan ${own}, expected ${quoteShort(plan)}`, {
      hint: 'use the same lock on all machines',
    });
  }

  /** Throws UsageError unless a lock was made of the configuration and the options of this run. */
  async #requireSame(lock: ImageSetLock): Promise<ImageSetConfiguration> {
    const { config, digest } = await this.readConfiguration();
    if (digest !== lock.configuration) {
      const problem = `${config.file}: differs from the configuration of the lock`;
      throw new UsageError(problem, { hint: 'mirror without --locked to make a new lock' });
    }
    const wanted = this.#lockOptions();
    for (const key of ['dependencies', 'platform']) {
      if (wanted[key] === lock.options[key]) continue;
      const had = lock.options[key] ?? 'not given';
      const problem = `--${key} ${wanted[key] ?? 'not given'}: the lock was made with ${had}`;
      throw new UsageError(problem, {
        hint: 'use the same value, or mirror without --locked to make a new lock',
      });
    }
    const { signatures } = lock.options;
    const hint = 'opmate mirror plan makes a new lock';
    if (signatures === 'unknown')
      throw new UsageError(`${this.#shownLock()}: made before plans had signatures`, { hint });
    if (this.#options.signatures === false && signatures === 'yes')
      throw new UsageError('--remove-signatures: the lock was made with signatures', {
        hint: `${hint}, with the same flags`,
      });
    return config;
  }

  #shownLock(): string {
    return this.#options.workspace?.shownLock ?? 'lock';
  }

  async #mirrorLock(
    mirror: LockMirror,
    { set, templates, lock }: Pick<ArchivedSet, 'set' | 'templates'> & { lock: ImageSetLock },
  ): Promise<MirrorResult> {
    this.#resources(set, templates);
    const bytes = await mirror.survey();
    this.#options.onSurveyed?.(bytes);
    const { waiting, ...report } = await mirror.copy();
    const resources = await this.#writeResources(set, templates);
    return { report, changes: [], resources, bytes, lock, waiting };
  }

  #getMirrored(lock: ImageSetLock): MirroredSet<NamedImage> {
    return mirroredOfLock(lock, this.#options.destination.target, this.#options.maxNestedPaths);
  }

  #lockMirrorOptions() {
    const { destination, maxNestedPaths } = this.#options;
    const { target } = destination;
    return { target, maxNestedPaths, transfer: this.#transferOptions(), logger: this.#session.logger };
  }

  async #writeArchive(
    set: ArchivableSet,
    { archiveBytes: partBytes }: ImageSetConfiguration,
  ): Promise<Pick<MirrorArchive, 'lock' | 'index' | 'keptBytes'>> {
    const {
      strictArchive: strict = false,
      signingKey,
      maxPerRegistry = defaultMaxPerRegistry,
    } = this.#options;
    const directory = this.#archiveDirectory();
    const { logger, signal } = this.#session;
    const { written, lock } = await archiveImageSet(set, directory, {
      ...{ session: this.#session, partBytes, strict, logger, signal },
      base: await this.#readBase(),
      concurrency: maxPerRegistry,
      imageTimeoutMs: this.#options.copyLimits?.imageTimeoutMs,
    });
    if (signingKey !== undefined) await signArchive(directory, signingKey);
    return { lock, index: written.index, keptBytes: written.keptBytes };
  }

  #archiveDirectory(): string {
    const { destination } = this.#options;
    if (destination.kind === 'disk') return destination.directory;
    throw new UsageError('an archive is written to a directory', { hint: 'write file://DIRECTORY' });
  }

  async #readBase() {
    const { base, destination } = this.#options;
    const directory = destination.kind === 'disk' ? destination.directory : undefined;
    return base && readArchiveBase(base, directory);
  }

  /** What is to be archived: all but what the base holds. */
  async #surveyArchive(mirror: ImageSetMirror): Promise<BytePlan> {
    await mirror.addSignatures();
    const base = await this.#readBase();
    const images = mirror.lockedImages();
    const carried = listCarried(images);
    return planBytes(images, (digest) => base?.sizeOf(digest) !== undefined && !carried.has(digest));
  }

  /** Reads the configuration, and the digest of its bytes. */
  async readConfiguration(): Promise<{ config: ImageSetConfiguration; digest: string }> {
    const { configFile: file } = this.#options;
    if (file === undefined)
      throw new UsageError('missing --config', {
        hint: 'name an ImageSetConfiguration with --config',
      });
    const place = path.resolve(this.#session.workingDirectory, file);
    const bytes = await readNamedFile(place, maxConfigSize).catch((error: unknown) => {
      throw fileError(`open ${place}`, error, { file: place });
    });
    return { config: readImageSetConfiguration(bytes.toString(), file), digest: computeDigest(bytes) };
  }

  /** Plans from the catalogs of a lock if there is one; the caller closes the plan. */
  async #planImages(config: ImageSetConfiguration, lock?: ImageSetLock): Promise<ImageSetPlan> {
    const { platform, logger } = this.#session;
    const charts = [
      ...config.helm.local,
      ...config.helm.repositories.flatMap((helmRepository) => helmRepository.charts ?? []),
    ];
    const isNamed = [...config.operators, ...config.additionalImages, ...charts].some(
      (item) => item.platforms.length > 0,
    );
    if (platform !== undefined || isNamed) {
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
    const { destination, maxNestedPaths, dependencies = 'report', helmCharts } = this.#options;
    const { avoidRisks, ignoreReleaseSignature, graphBase, graphData } = this.#options;
    return planImageSet(config, this.#session, {
      ...{ target: destination.target, maxNestedPaths, dependencies, lock },
      ...{ avoidRisks, ignoreReleaseSignature, graphBase, graphData },
      withCharts: helmCharts === true || destination.kind === 'disk',
    });
  }

  async #withPlan<T>(config: ImageSetConfiguration, work: (plan: ImageSetPlan) => Promise<T>): Promise<T> {
    const plan = await this.#planImages(config);
    try {
      this.#options.onPlanned?.(plan);
      return await work(plan);
    } finally {
      await plan.close();
    }
  }

  async #withMirror<T>(
    config: ImageSetConfiguration,
    work: (mirror: ImageSetMirror, plan: ImageSetPlan) => Promise<T>,
  ): Promise<T> {
    return this.#withPlan(config, async (plan) => {
      const { destination, onError = 'stop', signatures = true } = this.#options;
      const { temporaryDirectory, logger } = this.#session;
      const mirror = new ImageSetMirror(plan, {
        ...{ config, target: destination.target, transfer: this.#transferOptions() },
        ...{ onError, signatures, temporaryDirectory, writeCache: writeCatalogCache, logger },
      });
      try {
        return await work(mirror, plan);
      } finally {
        await mirror.close();
      }
    });
  }

  #transferOptions(): TransferOptions {
    const { maxPerRegistry = defaultMaxPerRegistry, copyLimits, onError = 'stop' } = this.#options;
    const { logger, signal } = this.#session;
    return {
      ...{ session: this.#session, maxPerRegistry, ...copyLimits, logger, signal },
      ...{ continueOnError: onError !== 'stop', skipMissing: false },
    };
  }

  /** What of the options shapes the selection; a lock made with others is not for this run. */
  #lockOptions(): Record<string, string> {
    const { dependencies = 'report', signatures = true } = this.#options;
    const { platform } = this.#session;
    return {
      dependencies,
      ...(platform !== undefined && { platform: formatPlatform(platform) }),
      signatures: signatures ? 'yes' : 'none',
    };
  }

  #readTemplates({ operators }: ImageSetConfiguration): Promise<Map<string, CatalogSourceTemplate>> {
    const { workingDirectory: directory, followLinks } = this.#session;
    return readCatalogSourceTemplates(operators, { directory, followLinks });
  }

  #releaseSettings() {
    const { workingDirectory: directory } = this.#session;
    const { ignoreReleaseSignature = false } = this.#options;
    return { session: this.#session, directory, ignoreReleaseSignature };
  }

  #resources(
    set: MirroredSet,
    templates: Templates,
    signatures?: ClusterResourceOptions['signatures'],
  ): Map<string, string> {
    const { destination, maxNestedPaths, naming } = this.#options;
    const byRepository = maxNestedPaths !== undefined;
    const how = { signatures, maxNestedPaths, byRepository, templates };
    return clusterResources(set, { ...destination.target, ...naming, ...how });
  }

  async #writeResources(set: MirroredSet, templates: Templates): Promise<Map<string, string>> {
    const { workspace } = this.#options;
    const resources = this.#resources(set, templates, await workspace?.readSignatures());
    await workspace?.writeResults({ clusterResources: resources }, this.#session);
    return resources;
  }

  async #writeNames(set: MirroredSet<NamedImage>, templates: Templates): Promise<MirrorNames> {
    const { destination, workspace } = this.#options;
    const all = this.#resources(set, templates, await workspace?.readSignatures());
    const mapping = mappingLines(set.images, destination.target);
    const missing = await this.#listMissing(set);
    const toText = (lines: readonly string[]): string => lines.map((line) => `${line}\n`).join('');
    const dryRun = new Map([['mapping.txt', toText(mapping)]]);
    if (missing.length > 0) dryRun.set('missing.txt', toText(missing));
    const resources = destination.kind === 'registry' ? all : undefined;
    await workspace?.writeResults({ dryRun, clusterResources: resources }, this.#session);
    return { mapping, missing, resources };
  }

  /** Lines of the mapping whose images are in no archive yet. */
  async #listMissing({ images }: MirroredSet<NamedImage>): Promise<string[]> {
    const { destination, base } = this.#options;
    if (destination.kind === 'registry') return [];
    const known = new Set<string>();
    for (const place of [destination.directory, ...(base === undefined ? [] : [base.path])]) {
      const index = await readArchiveIndex(place).catch((error: unknown) => {
        if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
        throw error;
      });
      for (const { repository, tag } of index?.images ?? []) known.add(`${repository}:${tag ?? ''}`);
    }
    return mappingLines(
      images.filter((image) => !known.has(image.destination)),
      destination.target,
    );
  }
}

const emptyReport: TransferReport = { done: [], missing: [], failed: [], blobs: 0, bytes: 0 };

interface ArchiveContent {
  archive: OpenedArchive;
  base: BaseContent;
}

/** What of an archive is to be mirrored. */
interface ArchivedSet {
  /** For the objects of a cluster. */
  set: MirroredSet<NamedImage>;
  templates: Templates;
  /** As the archive holds it. */
  locked: ImageSetLock;
  narrowed?: NarrowedCatalogs | undefined;
}
