import { captureImageSet } from '../../api/mirror-capture.js';
import type { ClusterText } from '../../cluster/snapshot-files.js';
import { invalidValue } from '../../core/errors.js';
import { repeated, text } from '../command/flags.js';
import type { CommandSession } from '../session.js';

/** Flags of commands that write the image set of a cluster. */
export const imageSetInputFlags = {
  catalog: repeated('[image=]reference', 'check against this catalog; an image is the source of IMAGE', {
    group: 'Input',
  }),
  lock: text('lock', 'map mirrored catalogs to their sources by this lock', { group: 'Input' }),
};

/** Returns the image set of the operators among objects of a cluster, and reports its warnings. Throws OpmateError. */
export async function createImageSet(
  places: readonly (string | ClusterText)[],
  { catalog, lock }: { catalog?: readonly string[] | undefined; lock?: string | undefined },
  session: CommandSession,
): Promise<string> {
  const { configuration, warnings } = await captureImageSet(places, session, {
    catalogs: (catalog ?? []).map(parseCatalog),
    locks: lock === undefined ? [] : [lock],
  });
  session.logger.close();
  for (const warning of warnings) session.logger.report(warning);
  return configuration;
}

function parseCatalog(value: string): { image: string; reference: string } {
  const [, image = '', reference = image] = /^([^=]*)(?:=(.*))?$/s.exec(value) ?? [];
  if (image !== '' && reference !== '') return { image, reference };
  throw invalidValue('--catalog', value, 'not a catalog', {
    hint: 'use IMAGE, or IMAGE=REFERENCE',
  });
}
