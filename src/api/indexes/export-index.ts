import path from 'node:path';
import { withOpen } from '../../core/concurrency.js';
import { parseReference } from '../../core/reference.js';
import { statIfPresent } from '../../files/file-status.js';
import { withTemporaryDirectory } from '../../files/temporary-directory.js';
import { openImage } from '../../oci/image/image.js';
import { openReference } from '../../oci/image/open.js';
import type { Session } from '../../source/session.js';
import { type ExportReport, exportPackages } from '../../sqlite/read/export.js';
import { openForReading } from '../../sqlite/schema/edit.js';
import { pullDatabase } from './index-image.js';

/** Options of `exportIndex`. */
export interface ExportIndexOptions {
  /** Names of packages; default all. */
  packages?: readonly string[] | undefined;
}

/**
 * Writes packages of an index, a database file or an image, as directories of package manifests below `directory`, all of
 * them or none. Manifests come from the images of bundles, or from the index for bundles without one.
 *
 * Throws OpmateError: NOT_FOUND for an unknown package; IO for a package directory that exists; INVALID for a bundle
 * without manifests; and what pulling throws.
 */
export async function exportIndex(
  index: string,
  directory: string,
  session: Session,
  { packages = [] }: ExportIndexOptions = {},
): Promise<ExportReport> {
  const { limits, logger, signal } = session;
  return withTemporaryDirectory(session, async (temporary) => {
    const isFile = (await statIfPresent(index))?.isFile() === true;
    const file = isFile ? index : await pullDatabase(index, path.join(temporary, 'from-index'), session);
    return withOpen(openForReading(file, session, { name: index }), ({ database }) =>
      exportPackages(database, packages, directory, {
        limits,
        logger,
        signal,
        openImage: async (reference) => {
          const opened = await openReference(parseReference(reference), session);
          const image = await openImage(opened.repository, opened.reference, session);
          return { image, close: opened.close };
        },
      }),
    );
  });
}
