import { notFound } from '../../core/suggest.js';
import { OpmateError } from '../../core/errors.js';
import { type PackageModel, readPackages } from '../../graph/package-model.js';
import type { BlobPlace, EditableCatalog } from './editable-catalog.js';

/** Changes of an edit with their descriptions. */
export interface EditPlan<Edit> {
  edits: Edit[];
  /** One sentence each. */
  changes: string[];
}

/** Returns a package by name. Throws OpmateError NOT_FOUND with the nearest name. */
export function requirePackage(catalog: EditableCatalog, name: string): PackageModel {
  const models = readPackages(catalog.facts);
  const model = models.get(name);
  if (model !== undefined) return model;
  throw notFound('package', name, models.keys(), { scope: catalog.name });
}

/** Returns a blob by schema and name in a package, the first of duplicates. */
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

/** Returns a blob like `findBlob`, for a name known to exist. Throws OpmateError INTERNAL if missing. */
export function requireBlob(
  catalog: EditableCatalog,
  schema: string,
  packageName: string,
  name?: string,
): BlobPlace {
  const blob = findBlob(catalog, schema, packageName, name);
  if (blob !== undefined) return blob;
  throw new OpmateError('INTERNAL', `${schema} ${name ?? ''} of package ${packageName} not found`, {
    subject: catalog.name,
  });
}
