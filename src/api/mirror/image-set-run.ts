import path from 'node:path';
import type { KeyObject } from 'node:crypto';
import { isDigest } from '../../core/digest.js';
import { UsageError, invalidValue } from '../../core/errors.js';
import type { BasePlace } from '../../mirror/image-set/archive-base.js';
import type { OnError } from '../../mirror/plan/planned-image.js';
import type { ImageSetPlan } from '../../mirror/image-set/image-set-plan.js';
import {
  type ClusterResourceOptions,
  isObjectName,
  isObjectPrefix,
} from '../../mirror/image-set/image-set-resources.js';
import { Workspace } from '../../mirror/image-set/workspace.js';
import type { BytePlan } from '../../mirror/lock/byte-plan.js';
import type { ImageSetLock, LockedImage } from '../../mirror/lock/lock.js';
import { type Shard, parseShard } from '../../mirror/lock/shard.js';
import type { DependencyMode } from '../../mirror/selection/dependencies.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { PolicyRequest } from '../../mirror/verification/signature-policy.js';
import type { ArchiveIndex } from '../../oci/archive-set/archive-index.js';
import type { ArchiveForecast } from '../../oci/archive-set/archive-set-writer.js';
import { type Session, withChanges } from '../../source/session.js';
import { type MirrorDestination, parseDestination } from './destination.js';

/** Signature policy of a run. */
export interface VerificationOptions extends PolicyRequest {
  /** Fail for images that the policy refuses; default true. Otherwise they are warnings. */
  isStrict?: boolean | undefined;
  /** `registries.d` directory with the stores of OpenPGP signatures; default none. */
  registriesDirectory?: string | undefined;
}

/** Options of planning and mirroring image sets. Paths are relative to the working directory of the session. */
export interface MirrorOptions extends Partial<
  Pick<TransferOptions, 'imagesAtOnce' | 'layersAtOnce' | 'imageTimeoutMs'>
> {
  /**
   * Parent directory of the `working-dir` with the lock and cluster resources, `DIRECTORY` or `file://DIRECTORY`; true for the
   * directory of the archive, of a registry the working directory. Default none: nothing is written.
   */
  workspace?: string | true | undefined;
  /** Lock file to write, or with `locked` to read; default `opmate.lock.json` in the `working-dir` of the workspace. */
  lockFile?: string | undefined;
  /** Mirror exactly what the lock of the workspace pins; default false. */
  locked?: boolean | undefined;
  /** Mirror exactly what this lock pins; takes precedence over the lock of the workspace. */
  lock?: ImageSetLock | undefined;
  /** Read images of a lock from this machine that the configuration does not name; default false. */
  allowLocal?: boolean | undefined;
  /** ID of the plan that the lock must have, `sha256:…`; default `OPMATE_PLAN` of the environment with `locked`, else any. */
  plan?: string | undefined;
  /**
   * Read and copy only images that the last run of the workspace could not mirror, with the catalogs and releases that it
   * read; default false. After a run that did not end, or with another configuration, all images are mirrored.
   */
  retryFailed?: boolean | undefined;
  /**
   * Copy only this shard of the lock, `I/N` with a zero-based I; default with `locked` that of the variables of an indexed Job,
   * else all.
   */
  shard?: string | undefined;
  /** Time without progress after which a shard stops waiting for blobs of others, in milliseconds; default 10,000. */
  shardWaitMs?: number | undefined;
  /** Handling of bundles that selected ones depend on; default `report`. */
  dependencies?: DependencyMode | undefined;
  /** Handling of images that cannot be copied; default `stop`, which locked image sets require. */
  onError?: OnError | undefined;
  /** Copy signatures too; default true. */
  signatures?: boolean | undefined;
  /** Signature policy to verify every image by before anything is copied; default none. */
  verification?: VerificationOptions | undefined;
  /** Names of cluster resources. */
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
  /** URL or file of the graph data; default that of the public update service. */
  graphData?: string | undefined;
  /** Base archive or inventory of an archive, whose content is omitted; default none. */
  base?: string | undefined;
  /** Fail if a blob is larger than a part of the archive; default false. */
  strictArchive?: boolean | undefined;
  /** Private key that signs the archive; default none. */
  signingKey?: KeyObject | undefined;
  /** Maximum number of path components at the target; default unlimited. */
  maxNestedPaths?: number | undefined;
  /** Maximum parallel requests per registry; default 6, or `imagesAtOnce` if that is more. */
  maxPerRegistry?: number | undefined;
  /** Called with the selection before anything is copied. */
  onPlanned?: ((plan: ImageSetPlan) => void) | undefined;
  /** Called with the amounts to copy before the first blob is copied. */
  onSurveyed?: ((bytes: BytePlan) => void) | undefined;
}

type Defaulted = 'dependencies' | 'onError' | 'signatures';

/** One run over an image set. */
export interface ImageSetRun {
  readonly options: Omit<MirrorOptions, 'shard'> & {
    [K in Defaulted]: NonNullable<MirrorOptions[K]>;
  } & { shard: Shard | undefined };
  /** Limits and error handling of copying. */
  readonly transfer: TransferOptions;
  /** The ImageSetConfiguration; undefined for all content of an archive. */
  readonly configFile: string | undefined;
  readonly destination: MirrorDestination;
  readonly workspace: Workspace | undefined;
  readonly base: BasePlace | undefined;
  readonly session: Session;
  /** Called before the first image is copied or archived. */
  readonly onCopying?: (() => Promise<void>) | undefined;
  /** Called with the verified images of a run with a signature policy. */
  readonly onVerified?: ((images: readonly LockedImage[]) => void) | undefined;
}

const configuredHints = {
  missing: 'check the name and tag, or omit it with mirror.onError skip-image',
  unreachable: 'exclude it with blockedImages, or skip it with mirror.onError skip-image',
};
/** Hints where images are skipped already. */
const skippingHints = {
  missing: 'check the name and tag',
  unreachable: 'make the registry reachable, or exclude it with blockedImages',
};
const lockedHints = {
  missing: 'plan again: the lock pins an image that is gone',
  unreachable: 'make the registry reachable, or plan again without the image',
};

/** Prepares a run; nothing is read yet. Throws UsageError for an invalid destination and options that it excludes. */
export function prepareRun(
  configFile: string | undefined,
  destination: string,
  session: Session,
  options: MirrorOptions,
): ImageSetRun {
  const { workingDirectory, environment } = session;
  const { base, locked = false, verification, imagesAtOnce, layersAtOnce, imageTimeoutMs } = options;
  const { dependencies = 'report', onError = 'stop', signatures = true } = options;
  const place = parseDestination(destination, session, options.maxNestedPaths);
  const shard = parseShard(options.shard, locked ? environment : {});
  const plan = options.plan ?? (locked ? environment['OPMATE_PLAN'] : undefined);
  requireCompatible({ ...options, plan }, place, shard);
  requireObjectNames(options.naming);
  // Signatures are read again when they are copied.
  const own = verification === undefined ? session : withChanges(session, { signatureReads: new Map() });
  return {
    options: { ...options, plan, shard, dependencies, onError, signatures },
    transfer: {
      session: own,
      imagesAtOnce,
      layersAtOnce,
      imageTimeoutMs,
      maxPerRegistry: resolveMaxPerRegistry(options),
      continueOnError: onError !== 'stop',
      hints: locked ? lockedHints : onError === 'stop' ? configuredHints : skippingHints,
    },
    configFile,
    destination: place,
    workspace: openWorkspace(options, place, workingDirectory),
    base:
      base === undefined
        ? undefined
        : { path: path.resolve(workingDirectory, base.replace(/^file:\/\//, '')), text: base },
    session: own,
  };
}

/** Throws UsageError for options that a destination, or one of the others, excludes. */
function requireCompatible(
  { plan, locked, onError, signingKey, base, strictArchive }: MirrorOptions,
  { kind }: MirrorDestination,
  shard: Shard | undefined,
): void {
  if (shard !== undefined && kind === 'disk')
    throw new UsageError('mirror.shard: shards mirror to a registry', {
      hint: 'use docker://REGISTRY[/PATH]',
    });
  if (plan !== undefined && !isDigest(plan)) {
    const hint = 'use the plan ID that api.planMirror returns: sha256:…';
    throw invalidValue('mirror.plan', plan, 'not a plan ID', { hint });
  }
  if (locked === true && onError !== undefined && onError !== 'stop' && kind === 'disk') {
    throw new UsageError('mirror.onError: the archive of a lock has all of its images', {
      hint: 'create a lock without them with api.planMirror and the same mirror.onError',
    });
  }
  if (kind === 'disk') return;
  const hint = 'mirror to file://DIRECTORY';
  if (signingKey !== undefined) throw new UsageError('mirror.signingKey: signs an archive', { hint });
  if (base !== undefined || strictArchive === true)
    throw new UsageError('mirror.base and mirror.strictArchive are for archives', { hint });
}

/** Throws UsageError for names that objects cannot have. */
function requireObjectNames({ catalogName, prefix }: NonNullable<MirrorOptions['naming']> = {}): void {
  const hint = 'use at most 63 characters of a-z, 0-9 and "-", starting with a letter';
  if (catalogName !== undefined && !isObjectName(catalogName))
    throw invalidValue('mirror.catalogName', catalogName, 'invalid object name', { hint });
  if (prefix !== undefined && !isObjectPrefix(prefix))
    throw invalidValue('mirror.prefix', prefix, 'invalid name prefix', { hint });
}

/** Returns the workspace of a run. */
function openWorkspace(
  { workspace, lockFile }: Pick<MirrorOptions, 'workspace' | 'lockFile'>,
  destination: MirrorDestination,
  workingDirectory: string,
): Workspace | undefined {
  if (workspace === undefined) return undefined;
  const usual = destination.kind === 'disk' ? destination.directory : '.';
  return new Workspace(workingDirectory, workspace === true ? usual : workspace, lockFile);
}

/**
 * Returns when the last run of a workspace started, if it mirrored all of its images: nothing is left for `retryFailed`.
 * Throws UsageError for an invalid destination.
 */
export async function findCompleteRun(
  destination: string,
  session: Session,
  options: Pick<MirrorOptions, 'workspace' | 'lockFile'>,
): Promise<string | undefined> {
  const place = parseDestination(destination, session);
  const [last] = (await openWorkspace(options, place, session.workingDirectory)?.readImageSetRuns()) ?? [];
  return last?.ended?.result === 'done' ? last.started.time : undefined;
}

/** Paths of what a run writes, for messages: relative to the working directory. */
export interface RunPaths {
  lock: string;
  /** Directory of the cluster resources. */
  resources: string;
  /** Directory of the mapping. */
  mapping: string;
}

/** Result with the paths of its run, undefined without workspace. */
export type WithPaths<T> = T & { paths: RunPaths | undefined };

/** Adds the paths of a run to its result. */
export function withPaths<T extends object>({ workspace }: ImageSetRun, result: T): WithPaths<T> {
  if (workspace === undefined) return { ...result, paths: undefined };
  const [resources, mapping] = [workspace.show('cluster-resources'), workspace.show('dry-run')];
  return { ...result, paths: { lock: workspace.shownLock, resources, mapping } };
}

/** Result with the ID of the plan that its lock pins. */
export type WithPlan<T> = T & { plan: string };

const defaultMaxPerRegistry = 6;

/** Returns the maximum parallel requests per registry; the default allows for every image that is copied at a time. */
export function resolveMaxPerRegistry({
  maxPerRegistry,
  imagesAtOnce = 0,
}: Pick<MirrorOptions, 'maxPerRegistry' | 'imagesAtOnce'>): number {
  return maxPerRegistry ?? Math.max(defaultMaxPerRegistry, imagesAtOnce);
}

/** Mapping of an image set, without copying. */
export interface MirrorMapping {
  /** `SOURCE=DESTINATION`, sorted. */
  mapping: string[];
  /** Lines of `mapping` whose images are in no archive yet. */
  missing: string[];
  /** Mirror sets and catalog sources for the cluster, by file name; undefined for an archive. */
  resources: Map<string, string> | undefined;
}

/** Images of the previous lock that are no longer selected; they stay at the target until they are deleted. */
export interface RemovedImages {
  /** Below the target: `repository:tag`. */
  names: string[];
  /** Path of the previous lock for messages; undefined if none was replaced. */
  lock: string | undefined;
}

/** Plan of a run: images and bytes, and the lock that pins them. */
export interface PlannedRun extends Pick<MirrorResult, 'bytes' | 'lock' | 'changes' | 'removed'> {
  /** Bundles that are kept beyond the request, and why. */
  kept: { catalog: string; package: string; channel: string; bundle: string; reason: string }[];
  /** Images that `onError` skips, which the lock does not pin. */
  report: TransferReport;
  /** The archive that a run would write, and the space on its disk; undefined for a registry. */
  archive: ArchiveForecast | undefined;
}

/** Result of mirroring to a registry. */
export interface MirrorResult {
  report: TransferReport;
  /** Changes of catalogs that lack images, one sentence each. */
  changes: string[];
  /** Names of the bundles removed from catalogs. */
  removedBundles: string[];
  removed: RemovedImages;
  /** Mirror sets and catalog sources for the cluster, by file name. */
  resources: Map<string, string>;
  bytes: BytePlan;
  /** Pins what was mirrored. */
  lock: ImageSetLock;
  /** Number of missing images of other shards; with any, catalogs are not copied yet. */
  waiting: number;
}

/** Result of mirroring to disk. */
export interface MirrorArchive extends Omit<MirrorResult, 'resources' | 'bytes' | 'waiting' | 'removed'> {
  index: ArchiveIndex;
  /** Bytes that an interrupted run had written. */
  keptBytes: number;
}
