import path from 'node:path';
import type { OnError } from '../mirror/image-set/image-set-mirror.js';
import { Workspace } from '../mirror/image-set/workspace.js';
import type { ArchiveProof } from '../oci/archive-set/archive-index.js';
import type { Session } from '../source/session.js';
import { parseDestination, requireRegistry } from './mirror/destination.js';
import {
  type ImageSetRun,
  type ImageSetRunOptions,
  type MirrorArchive,
  type MirrorPlan,
  type MirrorResult,
  prepareRun,
} from './mirror/image-set-run.js';
import { mirrorFromArchives } from './mirror/mirror-archive.js';
import { archiveLock, mirrorLock } from './mirror/mirror-lock.js';
import { archiveSources, mirrorSources, planSources } from './mirror/mirror-sources.js';

/** Options of planning and mirroring image sets. */
export interface MirrorOptions extends Pick<
  ImageSetRunOptions,
  | 'avoidRisks'
  | 'dependencies'
  | 'graphBase'
  | 'graphData'
  | 'helmCharts'
  | 'ignoreReleaseSignature'
  | 'lock'
  | 'maxPerRegistry'
  | 'naming'
  | 'signatures'
  | 'signingKey'
  | 'strictArchive'
> {
  /** Handling of images that cannot be copied; default `stop`. */
  onError?: OnError | undefined;
  /** Directory for `working-dir` with the lock and cluster resources; default none: nothing is written. */
  workspace?: string | undefined;
  /** Maximum number of path components at the target; default unlimited. */
  maxNestedPaths?: number | undefined;
  /** Base archive or inventory of an archive: what it holds is omitted. */
  base?: string | undefined;
}

/**
 * Plans mirroring the image set in `configFile` to `docker://REGISTRY[/PATH]` or `file://DIRECTORY`: reads manifests, asks
 * the target for what it has, and copies nothing. `encodeLock` writes the lock for `opmate mirror --locked`. Throws
 * OpmateError.
 */
export async function planMirror(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<MirrorPlan> {
  return planSources(readRun(configFile, destination, session, options));
}

/**
 * Mirrors the image set in `configFile` to `docker://REGISTRY[/PATH]`: with `lock` what that pins, else what the sources
 * have now. A repeated run copies only what is missing. Throws OpmateError; images that `onError` skips are listed in
 * the report.
 */
export async function mirrorImageSet(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<MirrorResult> {
  const run = readRun(configFile, requireRegistry(destination), session, options);
  return options.lock === undefined ? mirrorSources(run) : mirrorLock(run);
}

/**
 * Writes the image set in `configFile` into an archive in `directory`, for `mirrorArchives` behind an air gap: with `lock`
 * what that pins. An interrupted run is continued by the same call. Throws OpmateError.
 */
export async function archiveImageSet(
  configFile: string,
  directory: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<MirrorArchive> {
  const run = readRun(
    configFile,
    `file://${path.resolve(session.workingDirectory, directory)}`,
    session,
    options,
  );
  return options.lock === undefined ? archiveSources(run) : archiveLock(run);
}

/**
 * Copies archives to `docker://REGISTRY[/PATH]`, the first with what it needs of the others: all that it holds, or what
 * `configFile` asks for. Reads no source. Throws OpmateError; `proof` refuses a forged archive before it is read.
 */
export async function mirrorArchives(
  directories: readonly string[],
  destination: string,
  session: Session,
  { configFile, proof = {}, ...options }: MirrorOptions & { configFile?: string; proof?: ArchiveProof } = {},
): Promise<MirrorResult> {
  const places = directories.map((directory) => path.resolve(session.workingDirectory, directory));
  const run = readRun(configFile, requireRegistry(destination), session, options);
  return mirrorFromArchives(run, places, proof);
}

function readRun(
  configFile: string | undefined,
  destination: string,
  session: Session,
  { workspace, base, maxNestedPaths, ...options }: MirrorOptions,
): ImageSetRun {
  const { workingDirectory } = session;
  const resolve = (file: string): string => path.resolve(workingDirectory, file);
  return prepareRun(
    {
      ...options,
      configFile,
      destination: parseDestination(destination, session, maxNestedPaths),
      ...(workspace !== undefined && {
        workspace: new Workspace({ workingDirectory, directory: resolve(workspace) }),
      }),
      ...(base !== undefined && { base: { path: resolve(base), text: base } }),
    },
    session,
  );
}
