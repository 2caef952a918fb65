import { withOpen } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { pathBelow, targetReference } from '../../mirror/naming/mirror-target.js';
import { openTarget } from '../../oci/image/open.js';
import { getSubject } from '../../oci/image/platform.js';
import type { ImageSetRun } from './image-set-run.js';

/**
 * Requests a manifest of a repository from the target, so that an unavailable registry or denied access fails with one
 * request, before catalogs are read. Throws the error of the request; a missing image is not an error.
 */
export async function requireTargetAccess(
  { destination: { target }, session }: ImageSetRun,
  repository: string | undefined,
): Promise<void> {
  if (repository === undefined) return;
  const reference = targetReference(target, pathBelow(target, repository), 'latest');
  await withOpen(openTarget(reference, session), async ({ repository: { name, ...own }, reference: tag }) => {
    // The tag is arbitrary.
    await own.headManifest(tag, session).catch((error: unknown) => {
      const isOfRepository = error instanceof OpmateError && error.subject?.includes('/') !== false;
      throw isOfRepository ? addContext(error, { subject: name, replaces: [getSubject(name, tag)] }) : error;
    });
  });
}
