import { withOpen } from '../../core/concurrency.js';
import { OpmateError } from '../../core/errors.js';
import { parseReference } from '../../core/reference.js';
import { formatRepository, withDockerDefaults } from '../../mirror/naming/image-name.js';
import { formatImageLocation } from '../../mirror/naming/image-location.js';
import { type MappingPair, planPairs } from '../../mirror/mapping/mapping-file.js';
import { toNamedTransfer } from '../../mirror/plan/mirror-plan.js';
import { transferImages } from '../../mirror/transfer/transfer.js';
import type { TransferOptions, TransferReport } from '../../mirror/transfer/transfer-types.js';
import { openReference } from '../../oci/image/open.js';
import type { Session } from '../../source/session.js';
import { type FileRoots, resolveRoots } from './file-roots.js';
import { type MirrorOptions, resolveMaxPerRegistry } from './image-set-run.js';

/** Options of copying images as mappings state. */
export interface MirrorMappingsOptions
  extends
    FileRoots,
    Partial<
      Pick<
        TransferOptions,
        | 'continueOnError'
        | 'dryRun'
        | 'imagesAtOnce'
        | 'imageTimeoutMs'
        | 'layersAtOnce'
        | 'referrers'
        | 'skipMissing'
      >
    >,
    Pick<MirrorOptions, 'maxPerRegistry'> {
  /** Called with the number of images, patterns of tags resolved, before anything is copied. */
  onResolved?: ((images: number) => void) | undefined;
}

/**
 * Copies images as mappings state, which `parseMappings` reads from a file. Images that are missing or cannot be copied
 * are listed in the report with `skipMissing` and `continueOnError`. Throws OpmateError.
 */
export async function mirrorMappings(
  mappings: readonly MappingPair[],
  session: Session,
  options: MirrorMappingsOptions = {},
): Promise<TransferReport> {
  const { directory, fromDirectory, onResolved, ...settings } = options;
  const { continueOnError = false, skipMissing = false } = settings;
  const roots = resolveRoots({ directory, fromDirectory }, session);
  const { images } = await planPairs(
    mappings,
    async (place) => {
      if (place.scheme === 'registry')
        return listTags(formatRepository(withDockerDefaults(place.name)), session);
      throw new OpmateError('UNSUPPORTED', `${formatImageLocation(place)}: name a tag or digest in file://`);
    },
    { roots, signal: session.signal },
  );
  onResolved?.(images.length);
  return transferImages(images.map(toNamedTransfer), {
    ...settings,
    session,
    maxPerRegistry: resolveMaxPerRegistry(settings),
    continueOnError,
    skipMissing,
  });
}

async function listTags(name: string, session: Session): Promise<string[]> {
  // Opening needs a tag, which does not change the list.
  return withOpen(openReference(parseReference(`${name}:latest`), session), ({ repository }) =>
    repository.listTags(session),
  );
}
