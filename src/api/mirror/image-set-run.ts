import type { KeyObject } from 'node:crypto';
import type { BasePlace } from '../../mirror/image-set/archive-base.js';
import type { OnError } from '../../mirror/image-set/image-set-mirror.js';
import type { ImageSetPlan } from '../../mirror/image-set/image-set-plan.js';
import type { ClusterResourceOptions } from '../../mirror/image-set/image-set-resources.js';
import type { Workspace } from '../../mirror/image-set/workspace.js';
import type { BytePlan } from '../../mirror/lock/byte-plan.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import type { Shard } from '../../mirror/lock/shard.js';
import type { DependencyMode } from '../../mirror/selection/dependencies.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import type { ArchiveIndex } from '../../oci/archive-set/archive-index.js';
import { type Session, withChanges } from '../../source/session.js';
import type { MirrorDestination } from './destination.js';
import type { Verification } from './verification.js';

/** Options of a run over an image set. */
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

/** A run over an image set as its options describe it. */
export interface ImageSetRun {
  readonly options: ImageSetRunOptions;
  readonly session: Session;
}

/** Prepares a run; nothing is read yet. */
export function prepareRun(options: ImageSetRunOptions, session: Session): ImageSetRun {
  // What is verified is looked at again to be copied.
  const hasReads = options.verification !== undefined;
  return { options, session: hasReads ? withChanges(session, { signatureReads: new Map() }) : session };
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
