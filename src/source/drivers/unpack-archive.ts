import { type ExtractedLayers, extractLayers } from '../../archive/layers.js';
import { openRegularFile } from '../../files/read-file.js';
import type { SourceSession } from '../session.js';

/**
 * Unpacks the files under `roots` of an optionally compressed tar archive to `destination`, which must not exist.
 * `label` is its name in messages. Throws OpmateError.
 */
export function unpackArchive(
  file: string,
  destination: string,
  label: string,
  roots: readonly string[],
  session: SourceSession,
): Promise<ExtractedLayers> {
  const layer = { label, open: async () => (await openRegularFile(file)).createReadStream() };
  return extractLayers([layer], destination, { ...session, roots });
}
