import { withOpen } from '../core/concurrency.js';
import { writeCatalogDirectory } from '../catalog/directory-writer.js';
import { withoutCredentials } from '../core/reference.js';
import { requireEmptyDirectory } from '../files/fill-directory.js';
import { wrapped } from '../source/reference-error.js';
import { renderReferences } from '../source/render.js';
import type { Session } from '../source/session.js';
import { type CatalogOutput, resolveOutput } from './catalog-output.js';

/**
 * Writes a catalog to a new or empty directory, one file per package. The directory appears whole or not at all. Returns the
 * names of the packages. Throws OpmateError.
 */
export async function migrateCatalog(
  reference: string,
  directory: string,
  session: Session,
  output: CatalogOutput = {},
): Promise<string[]> {
  const { format, migrationLevel } = resolveOutput(output);
  await requireEmptyDirectory(directory);
  session.logger.log('info', `rendering ${withoutCredentials(reference)} as file-based catalog`);
  const allowed = { catalogs: true, bundles: false };
  const options = { format, migrationLevel, allowed };
  const rendered = await renderReferences([reference], session, options).catch((error: unknown) => {
    throw wrapped(error, 'render catalog image');
  });
  return withOpen(rendered, async ({ assembly }) => {
    await writeCatalogDirectory(assembly, directory, format, session);
    return assembly.packages().filter((name) => name !== '');
  });
}
