import { withOpen } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { throwAbout } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import type { CatalogSource, Source } from '../source/source-types.js';
import { openSource } from '../source/source.js';

/** References that name a catalog, in words. */
export const catalogForms =
  'directory, image, sqlite index, tar archive, configmap:FILE[#NAME], ' +
  'or URL of a served catalog, archive or git repository';

/**
 * Opens the catalog that a reference names while `work` runs; errors name the reference. Throws OpmateError, UNSUPPORTED
 * for a bundle.
 */
export async function withCatalog<T>(
  reference: string,
  session: Session,
  work: (source: CatalogSource) => Promise<T>,
): Promise<T> {
  return withOpen(openCatalog(reference, session), work);
}

/** Opens the catalog that a reference names; the caller closes it. Throws OpmateError, UNSUPPORTED for a bundle. */
export async function openCatalog(
  reference: string,
  session: Session,
  refusal?: BundleRefusal,
): Promise<CatalogSource> {
  const source = await openSource(reference, session).catch(throwAbout(reference));
  return requireCatalog(source, reference, refusal);
}

/** Problem and hint of the error for a bundle. */
export interface BundleRefusal {
  problem?: string;
  hint?: string;
}

/** Returns a source that is a catalog; closes a bundle and throws OpmateError UNSUPPORTED. */
export async function requireCatalog(
  source: Source,
  reference: string,
  { problem = 'is a bundle, not a catalog', hint = `specify a catalog: ${catalogForms}` }: BundleRefusal = {},
): Promise<CatalogSource> {
  if (source.kind === 'catalog') return source;
  await source.close();
  throw new OpmateError('UNSUPPORTED', problem, { subject: reference, hint });
}
