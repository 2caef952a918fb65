import path from 'node:path';
import { type OpmateError, RegistryError } from '../core/errors.js';
import type { ArchiveProof } from '../oci/archive-set/archive-index.js';
import { planOf } from '../mirror/lock/encode-lock.js';
import { requireDirectoryOrNothing } from '../mirror/output-files.js';
import { isRetryStatus } from '../oci/transport/retry-policy.js';
import type { Session } from '../source/session.js';
import { requireRegistry } from './mirror/destination.js';
import {
  type ImageSetRun,
  type MirrorArchive,
  type MirrorMapping,
  type MirrorOptions,
  type PlannedRun,
  type MirrorResult,
  type WithPaths,
  type WithPlan,
  prepareRun,
  withPaths,
} from './mirror/image-set-run.js';
import { mapFromArchives, mirrorFromArchives } from './mirror/mirror-archive.js';
import { archiveLock, mapLock, mirrorLock } from './mirror/mirror-lock.js';
import { recordRun } from './mirror/record-run.js';
import { archiveSources, mapSources, mirrorSources, planSources } from './mirror/mirror-sources.js';

/** Options of mirroring from archives. */
export interface MirrorArchivesOptions extends MirrorOptions {
  /** ImageSetConfiguration that limits the content; default all of it. */
  configFile?: string | undefined;
  /** ID and signature that the first archive must have; default any. */
  proof?: ArchiveProof | undefined;
}

/**
 * Plans mirroring the image set in `configFile` to `docker://REGISTRY[/PATH]` or `file://DIRECTORY`: reads manifests,
 * surveys the target, and copies nothing. The lock is written to the workspace, if there is one. Throws OpmateError.
 */
export async function planMirror(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<WithPaths<WithPlan<PlannedRun>>> {
  const run = await openRun(configFile, destination, session, options);
  const planned = await planSources(run);
  return withPaths(run, { ...planned, plan: planOf(planned.lock) });
}

/**
 * Maps the images of the image set in `configFile` to `docker://REGISTRY[/PATH]` or `file://DIRECTORY` without reading
 * images, as `opmate mirror --dry-run` does. Mapping and cluster resources are written to the workspace, if there is one.
 * Throws OpmateError.
 */
export async function mapImageSet(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<WithPaths<MirrorMapping>> {
  const run = await openRun(configFile, destination, session, options);
  return withPaths(run, isLocked(options) ? await mapLock(run) : await mapSources(run));
}

/**
 * Mirrors the image set in `configFile` to `docker://REGISTRY[/PATH]`: what a lock pins, or what the sources have now. A
 * repeated run copies only what is missing. Lock and cluster resources are written to the workspace, if there is one.
 * Throws OpmateError; images that `onError` skips are listed in the report.
 */
export async function mirrorImageSet(
  configFile: string,
  destination: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<WithPaths<WithPlan<MirrorResult>>> {
  const run = await openRun(configFile, requireRegistry(destination), session, options);
  return withPaths(run, await recordRun(run, isLocked(options) ? mirrorLock : mirrorSources));
}

/**
 * Writes the image set in `configFile` into an archive in `DIRECTORY` or `file://DIRECTORY`, for `mirrorArchives` behind an
 * air gap: what a lock pins, or what the sources have now. An interrupted run is continued by the same call. Throws
 * OpmateError.
 */
export async function archiveImageSet(
  configFile: string,
  directory: string,
  session: Session,
  options: MirrorOptions = {},
): Promise<WithPaths<WithPlan<MirrorArchive>>> {
  const destination = directory.startsWith('file://')
    ? directory
    : `file://${path.resolve(session.workingDirectory, directory)}`;
  const run = await openRun(configFile, destination, session, options);
  return withPaths(run, await recordRun(run, isLocked(options) ? archiveLock : archiveSources));
}

/**
 * Copies archives to `docker://REGISTRY[/PATH]`, the first with what it needs of the others: all of its content, or what
 * `configFile` selects. Reads no source. Throws OpmateError; an archive without the required `proof` is not read.
 */
export async function mirrorArchives(
  directories: readonly string[],
  destination: string,
  session: Session,
  options: MirrorArchivesOptions = {},
): Promise<WithPaths<WithPlan<MirrorResult>>> {
  const run = prepareRun(options.configFile, requireRegistry(destination), session, options);
  const mirror = (recorded: ImageSetRun): Promise<MirrorResult> =>
    mirrorFromArchives(recorded, directories, options.proof ?? {});
  return withPaths(run, await recordRun(run, mirror));
}

/** Maps the images of archives as `mirrorArchives` would copy them, and copies nothing. Throws OpmateError. */
export async function mapArchives(
  directories: readonly string[],
  destination: string,
  session: Session,
  options: MirrorArchivesOptions = {},
): Promise<WithPaths<MirrorMapping>> {
  const run = prepareRun(options.configFile, requireRegistry(destination), session, options);
  return withPaths(run, await mapFromArchives(run, directories, options.proof ?? {}));
}

/** Reports whether the same run, started again, may go on where this failure ended it. */
export function isResumable(error: OpmateError): boolean {
  return error instanceof RegistryError ? isRetryStatus(error.status) : error.code === 'NETWORK';
}

/** Throws OpmateError if results could not be written, before a run has worked for them. */
async function openRun(...parameters: Parameters<typeof prepareRun>): Promise<ImageSetRun> {
  const run = prepareRun(...parameters);
  const { destination, session } = run;
  if (destination.kind === 'disk') {
    const { directory } = destination;
    await requireDirectoryOrNothing(directory, path.relative(session.workingDirectory, directory) || '.');
  }
  await run.workspace?.requireWritable();
  return run;
}

function isLocked({ lock, locked = false }: MirrorOptions): boolean {
  return locked || lock !== undefined;
}
