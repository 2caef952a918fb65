import { notFound } from '../../core/suggest.js';
import { OpmateError } from '../../core/errors.js';
import { type PackageModel, readPackages } from '../../graph/package-model.js';
import type { BlobPlace, EditableCatalog } from './editable-catalog.js';

/** What an edit changes and how it tells of it. */
export interface EditPlan<Edit> {
  edits: Edit[];
  /** One sentence each. */
  changes: string[];
}

/** The package of a name. Throws OpmateError NOT_FOUND with the nearest one. */
export function requirePackage(catalog: EditableCatalog, name: string): PackageModel {
  const models = readPackages(catalog.facts);
  const model = models.get(name);
  if (model !== undefined) return model;
  throw notFound('package', name, models.keys(), { scope: catalog.name });
}

/** The blob of a schema and name in a package; of several the first, which counts. */
function findBlob(
  { files }: EditableCatalog,
  schema: string,
  packageName: string,
  name?: string,
): BlobPlace | undefined {
  for (const { blobs } of files) {
    for (const blob of blobs) {
      if (blob.schema !== schema || blob.package !== packageName) continue;
      if (name === undefined || blob.name === name) return blob;
    }
  }
  return undefined;
}

/** The same; throws OpmateError INTERNAL if missing, for what is known to be there. */
export function requireBlob(
  catalog: EditableCatalog,
  schema: string,
  packageName: string,
  name?: string,
): BlobPlace {
  const blob = findBlob(catalog, schema, packageName, name);
  if (blob !== undefined) return blob;
  throw new OpmateError('INTERNAL', `${schema} ${name ?? ''} of package ${packageName} is nowhere`, {
    subject: catalog.name,
  });
}
