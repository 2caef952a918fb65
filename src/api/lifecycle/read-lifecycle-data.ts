import { DirectoryCatalog } from '../../catalog/catalog.js';
import { type LifecycleBlob, readLifecycles } from '../../catalog/lifecycle/read-lifecycles.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { withOpen } from '../../core/concurrency.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { statIfPresent } from '../../files/file-status.js';
import { fromDirectory } from '../../oci/image/open.js';
import { throwAbout } from '../../source/reference-error.js';
import type { Session } from '../../source/session.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import { withCatalog } from '../open-catalog.js';

/** Returns the lifecycle blobs of a catalog, or of a file with nothing else, by package. Throws OpmateError. */
export async function readLifecycleBlobs(
  reference: string,
  session: Session,
): Promise<Map<string, LifecycleBlob>> {
  const { logger, signal } = session;
  const file = fromDirectory(session, reference);
  if ((await statIfPresent(file))?.isFile() === true && !(await isDatabaseFile(file))) {
    const opening = Promise.resolve(new DirectoryCatalog(file, reference, { isFile: true }));
    return withOpen(opening, (catalog) => readLifecycles(catalog, { logger, signal, onlyLifecycles: true }));
  }
  return withCatalog(reference, session, ({ catalog }) =>
    readLifecycles(catalog, { logger, signal }).catch(throwAbout(reference)),
  );
}

/** Returns the lifecycle blobs of several places by package. Throws OpmateError, also for a package in two of them. */
export async function readLifecycleData(
  references: readonly string[],
  session: Session,
): Promise<Map<string, LifecycleBlob>> {
  const blobs = new Map<string, LifecycleBlob>();
  const faults: OpmateError[] = [];
  for (const reference of references) {
    const found = await readLifecycleBlobs(reference, session).catch((error: unknown) => {
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
      faults.push(error);
      return new Map<string, LifecycleBlob>();
    });
    for (const [name, blob] of found) {
      const other = blobs.get(name)?.origin.file;
      if (other === undefined) blobs.set(name, blob);
      else {
        const problem = `duplicate lifecycle of package ${quoteGo(name)}, first defined in ${other}`;
        faults.push(new OpmateError('INVALID', problem, { about: blob.origin.file }));
      }
    }
  }
  if (faults.length > 0) throw combineErrors(faults);
  if (blobs.size > 0) return blobs;
  throw new OpmateError('NOT_FOUND', 'no lifecycle blobs', {
    subject: references.join(', '),
    hint: 'specify files with blobs of schema io.openshift.operators.lifecycles.v1alpha1',
  });
}
