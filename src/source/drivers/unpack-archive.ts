import { type ExtractedLayers, extractLayers } from '../../archive/layers.js';
import type { ArchiveLimits } from '../../archive/limits.js';
import type { CancelOptions } from '../../core/concurrency.js';
import type { Logger } from '../../core/log.js';
import { openRegularFile } from '../../files/read-file.js';

interface UnpackOptions extends CancelOptions {
  /** Name of the archive in messages. */
  label: string;
  roots: readonly string[];
  limits?: ArchiveLimits | undefined;
  logger?: Logger | undefined;
}

/**
 * Unpacks the files under `roots` of an optionally compressed tar archive to `destination`, which must not exist.
 * Throws OpmateError.
 */
export function unpackArchive(
  file: string,
  destination: string,
  { label, roots, limits, signal, logger }: UnpackOptions,
): Promise<ExtractedLayers> {
  const layer = { label, open: async () => (await openRegularFile(file)).createReadStream() };
  return extractLayers([layer], destination, { roots, limits, signal, logger });
}
