import { type Catalog, createEmptyCatalog } from '../catalog/catalog.js';
import { withOpen } from '../core/concurrency.js';
import { createWarning } from '../core/diagnostic.js';
import { OpmateError } from '../core/errors.js';
import { logDiagnostic } from '../core/log.js';
import { openReference } from '../oci/image/open.js';
import { parseCatalogPlace, parseImageReference } from '../source/parse-place.js';
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

/**
 * Opens a released catalog while `work` runs. With `allowMissing`, an image that its registry does not have is an empty
 * catalog, with a warning: nothing was released yet. A missing path stays an error. Throws OpmateError.
 */
export async function withReleasedCatalog<T>(
  reference: string,
  session: Session,
  { allowMissing = false }: { allowMissing?: boolean | undefined },
  work: (source: { catalog: Catalog }) => Promise<T>,
): Promise<T> {
  if (!allowMissing || !(await isMissingImage(reference, session))) {
    return withCatalog(reference, session, work);
  }
  const hint = 'check the name if a catalog was released before';
  const problem = 'not found: compared with an empty catalog';
  logDiagnostic(session.logger, createWarning('not-released', problem, { subject: reference, hint }));
  return work({ catalog: createEmptyCatalog(reference) });
}

async function isMissingImage(reference: string, session: Session): Promise<boolean> {
  const place = await parseCatalogPlace(reference, session);
  if (place.kind !== 'image') return false;
  const parsed = parseImageReference(place.ref);
  if (parsed.transport !== 'docker') return false;
  return withOpen(openReference(parsed, session), async ({ repository, reference: name }) =>
    repository.headManifest(name, session).then((descriptor) => descriptor === undefined),
  ).catch(throwAbout(reference));
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
