import { UsageError } from '../../core/errors.js';
import { readArchiveBase } from '../../mirror/image-set/archive-base.js';
import type { ImageSetConfiguration } from '../../mirror/image-set/image-set-config.js';
import type { ImageSetMirror } from '../../mirror/image-set/image-set-mirror.js';
import {
  type ArchivableSet,
  forecastArchive,
  listCarried,
  writeImageSetArchive,
} from '../../mirror/image-set/set-archive.js';
import { type BytePlan, planBytes } from '../../mirror/lock/byte-plan.js';
import type { ImageSetLock } from '../../mirror/lock/lock.js';
import type { ArchiveForecast } from '../../oci/archive-set/archive-set-writer.js';
import { signArchive } from '../../oci/archive-set/archive-index.js';
import type { ImageSetRun, MirrorArchive } from './image-set-run.js';

/** Writes the archive of a run without the content of its base, and signs it if the run has a key. */
export async function writeArchive(
  run: ImageSetRun,
  set: ArchivableSet,
  config: ImageSetConfiguration,
): Promise<Pick<MirrorArchive, 'lock' | 'index' | 'keptBytes'>> {
  const { signingKey } = run.options;
  const directory = requireArchiveDirectory(run);
  const options = await getArchiveOptions(run, config);
  await run.onCopying?.();
  const { written, lock } = await writeImageSetArchive(set, directory, options);
  if (signingKey !== undefined) await signArchive(directory, signingKey);
  return { lock, index: written.index, keptBytes: written.keptBytes };
}

/** Plans the archive of a run, and measures the space on its disk; writes nothing. */
export async function forecastRun(
  run: ImageSetRun,
  mirror: ImageSetMirror,
  lock: ImageSetLock,
  config: ImageSetConfiguration,
): Promise<ArchiveForecast> {
  return forecastArchive(mirror, lock, requireArchiveDirectory(run), await getArchiveOptions(run, config));
}

async function getArchiveOptions(run: ImageSetRun, { archiveBytes: partBytes }: ImageSetConfiguration) {
  const { strictArchive: strict = false, imageTimeoutMs } = run.options;
  const { session } = run;
  const concurrency = run.transfer.maxPerRegistry;
  return { session, partBytes, strict, base: await readBase(run), concurrency, imageTimeoutMs };
}

function requireArchiveDirectory(run: ImageSetRun): string {
  const { destination } = run;
  if (destination.kind === 'disk') return destination.directory;
  throw new UsageError('an archive is written to a directory', { hint: 'use file://DIRECTORY' });
}

/** Computes the bytes to archive: all but the content of the base. */
export async function surveyArchive(run: ImageSetRun, mirror: ImageSetMirror): Promise<BytePlan> {
  await mirror.addSignatures();
  const base = await readBase(run);
  const images = mirror.lockedImages();
  const carried = listCarried(images);
  const isPresent = (digest: string): boolean => base?.sizeOf(digest) !== undefined && !carried.has(digest);
  return planBytes(images, isPresent, mirror.lockedCatalogs());
}

/** Reads the base of an archive. Throws OpmateError for one that cannot be used. */
export async function readBase(run: ImageSetRun) {
  const { base, destination } = run;
  const directory = destination.kind === 'disk' ? destination.directory : undefined;
  return base && readArchiveBase(base, directory);
}
