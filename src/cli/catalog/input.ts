import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { inReference } from '../../source/reference-error.js';
import type { CatalogSource } from '../../source/source-types.js';
import { openSource } from '../../source/source.js';
import { catalogForms } from '../command/shared-flags.js';
import type { CommandSession } from '../session.js';

/**
 * Opens the catalog that a reference names for as long as `work` takes; what fails names the reference. Throws
 * OpmateError, UNSUPPORTED for a bundle.
 */
export async function withCatalog<T>(
  reference: string,
  session: CommandSession,
  work: (source: CatalogSource) => Promise<T>,
): Promise<T> {
  const source = await openCatalog(reference, session);
  try {
    return await work(source);
  } finally {
    await source.close();
  }
}

/** Opens the catalog that a reference names; the caller closes it. Throws OpmateError, UNSUPPORTED for a bundle. */
export async function openCatalog(reference: string, session: CommandSession): Promise<CatalogSource> {
  const source = await openSource(reference, session).catch((error: unknown) => {
    throw inReference(error, reference);
  });
  if (source.kind === 'catalog') return source;
  await source.close();
  throw new OpmateError('UNSUPPORTED', `${quoteGo(reference)} is a bundle, not a catalog`, {
    hint: `name a catalog: ${catalogForms}`,
  });
}
