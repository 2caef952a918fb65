import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { openTarget } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import type { SourceSession } from '../../source/session.js';
import { type ImageSetConfiguration, getCatalogTarget } from './image-set-config.js';
import { type MirrorTarget, getImageName, pathBelow, targetReference } from './image-set-names.js';

/**
 * Requests the manifest of the first configured image from the target, so that an unavailable registry or denied
 * access fails before catalogs are read. Throws the error of the request; a missing image is not an error.
 */
export async function requireTargetAccess(
  { operators: [operator], additionalImages: [additional] }: ImageSetConfiguration,
  target: MirrorTarget,
  session: SourceSession,
): Promise<void> {
  const repository =
    operator === undefined
      ? (additional?.targetRepo ?? (additional && getImageName(additional.reference).repository))
      : getCatalogTarget(operator).repository;
  if (repository === undefined) return;
  const reference = targetReference(target, pathBelow(target, repository), 'latest');
  const opened = await openTarget(reference, session);
  try {
    await opened.repository.headManifest(opened.reference, session);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const { name } = opened.repository;
    // The tag is arbitrary.
    throw addContext(error, { subject: name, replaces: [getSubject(name, opened.reference)] });
  } finally {
    await opened.close();
  }
}
