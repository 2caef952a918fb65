import { openTarget } from '../../oci/image/open.js';
import type { SourceSession } from '../../source/session.js';
import { type ImageSetConfiguration, targetOfCatalog } from './image-set-config.js';
import { type MirrorTarget, nameOfImage, pathBelow, targetReference } from './image-set-names.js';

/**
 * Asks the target for the first image that a configuration names, so that a registry that is away or refuses access is
 * an error before catalogs are read. Throws what asking throws; an image that is not there is none.
 */
export async function requireTargetAccess(
  { operators: [operator], additionalImages: [additional] }: ImageSetConfiguration,
  target: MirrorTarget,
  { maxNestedPaths, session }: { maxNestedPaths: number | undefined; session: SourceSession },
): Promise<void> {
  const repository =
    operator === undefined
      ? (additional?.targetRepo ?? (additional && nameOfImage(additional.reference).repository))
      : targetOfCatalog(operator).repository;
  if (repository === undefined) return;
  const reference = targetReference(target, pathBelow(target, repository, maxNestedPaths), 'latest');
  const opened = await openTarget(reference, session);
  try {
    await opened.repository.headManifest(opened.reference, session);
  } finally {
    await opened.close();
  }
}
