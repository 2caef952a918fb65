import path from 'node:path';
import { statIfPresent } from '../../files/file-status.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { withImage } from '../../source/drivers/image.js';
import type { Session } from '../../source/session.js';
import type { OpenedIndex } from '../../sqlite/read/images.js';

/**
 * Opens a sqlite index, as a file or in an image, for questions about the images that its bundles need. The
 * file is never changed; an image is unpacked below the session's temporary directory until `close`. Throws
 * OpmateError.
 */
export async function openIndex(reference: string, session: Session): Promise<OpenedIndex> {
  const { openIndexFile } = await import('../../sqlite/read/images.js');
  if ((await statIfPresent(reference)) !== undefined) return openIndexFile(reference, session);
  return withImage(reference, session, (image) =>
    openInTemporaryDirectory(session, async (directory) => {
      const { extractDatabase } = await import('../../sqlite/read/index-image.js');
      const file = await extractDatabase(image, path.join(directory, 'image'), session);
      return openIndexFile(file, session, { name: reference });
    }),
  );
}
