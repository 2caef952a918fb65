import type { CheckName } from '../catalog/doctor/checks.js';
import { type DiagnoseOptions, examineCatalog } from '../catalog/doctor/diagnose.js';
import type { CatalogDiagnostic } from '../model/catalog-diagnostic.js';
import { throwAbout } from '../source/reference-error.js';
import type { Session } from '../source/session.js';
import { withCatalog } from './open-catalog.js';

/**
 * Reports errors and risks of a catalog, most severe first. `chooseChecks` makes the set of checks, `parseOpenShiftVersion`
 * the version. Unreadable blobs are findings. Throws OpmateError, NOT_FOUND for packages that the catalog lacks.
 */
export async function diagnoseCatalog(
  reference: string,
  session: Session,
  options: Omit<DiagnoseOptions, 'signal' | 'logger'> = {},
): Promise<CatalogDiagnostic<CheckName>[]> {
  const { signal, logger } = session;
  return withCatalog(reference, session, ({ catalog }) =>
    examineCatalog(catalog, { ...options, signal, logger }).catch(throwAbout(reference)),
  );
}
