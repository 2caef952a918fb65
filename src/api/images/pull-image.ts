import { withOpen } from '../../core/concurrency.js';
import type { FileTree } from '../../archive/file-tree.js';
import { type Image, openImage, readImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import { parseSourceImage } from '../../source/parse-place.js';
import type { Session } from '../../source/session.js';

/** Content of an image, or of directories of it. */
export interface PulledImage {
  image: Image;
  /** Files by path, as a container would see them; links are followed, inside the image only. */
  files: FileTree;
}

/**
 * Pulls an image from a registry, layout or archive and applies its layers in memory. Keeps files below `roots` (default
 * all), at most 256 MiB. Throws OpmateError.
 */
export async function pullImage(
  reference: string,
  session: Session,
  options: { roots?: readonly string[] } = {},
): Promise<PulledImage> {
  const { limits, logger, signal } = session;
  return withOpen(openReference(await parseSourceImage(reference, session), session), async (opened) => {
    const image = await openImage(opened.repository, opened.reference, session);
    const files = await readImage(image, { roots: options.roots ?? [''], limits, logger, signal });
    return { image, files };
  });
}
