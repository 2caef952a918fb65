import { withOpen } from '../../core/concurrency.js';
import { isDigest } from '../../core/digest.js';
import { UsageError } from '../../core/errors.js';
import { type Reference, parseTargetReference } from '../../core/reference.js';
import { type CopyResult, copyImage } from '../../oci/image/copy.js';
import { openImage } from '../../oci/image/image.js';
import { openReference, openTarget } from '../../oci/image/open.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';

/** Options of `copyReference`. */
export interface CopyReferenceOptions {
  /** Also copy referrers such as signatures. */
  referrers?: boolean | undefined;
}

/**
 * Copies an image between registries, layouts and archives; of an index, with a platform of the session, one image. A
 * target without a tag gets that of the source. Throws UsageError for a target that cannot be written to, and OpmateError.
 */
export async function copyReference(
  source: string,
  target: string,
  session: Session,
  { referrers }: CopyReferenceOptions = {},
): Promise<CopyResult> {
  const parsedTarget = parseTargetReference(target);
  const { logger, signal, platform } = session;
  return withOpen(openReference(await parseSourceImage(source, session), session), async (from) => {
    const named = setTag(parsedTarget, from.reference);
    // Read before the target is opened, which makes a layout: there is nothing to make it for otherwise.
    // One platform's image is copied alone: an index without its other images is of no use.
    const { descriptor } =
      platform === undefined
        ? await from.repository.getManifest(from.reference, session)
        : await openImage(from.repository, from.reference, session);
    return withOpen(openTarget(named, session), (to) =>
      copyImage(from.repository, descriptor.digest, to.repository, to.reference, {
        referrers,
        logger,
        signal,
      }),
    );
  });
}

/** Sets the tag of the source if the target has no tag or digest. Throws UsageError. */
function setTag(target: Reference, tag: string): Reference {
  if (target.tag !== undefined || target.digest !== undefined) return target;
  if (isDigest(tag)) {
    throw new UsageError(`${target.text}: missing tag`, {
      hint: 'add a tag: the source has only a digest',
    });
  }
  // An image in a saved archive has a whole name, of which only the tag counts elsewhere.
  return { ...target, tag: tag.slice(tag.lastIndexOf(':') + 1) };
}
