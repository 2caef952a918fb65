import type { Catalog } from '../catalog/catalog.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import type { CancelOptions } from '../core/concurrency.js';
import type { OpmateError } from '../core/errors.js';
import { validateCatalog } from '../graph/validate.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';

/** The result of checking a catalog. */
export interface CatalogVerdict {
  /** The message of `opm validate`; undefined if the catalog is valid. */
  message: string | undefined;
  problems: CatalogDiagnostic[];
  warnings: CatalogDiagnostic[];
}

/**
 * Checks a catalog as `opmate validate` does; parts that cannot be read are problems, with file and line. Throws what
 * reading throws that is no fault of the catalog.
 */
export async function judgeCatalog(catalog: Catalog, options: CancelOptions): Promise<CatalogVerdict> {
  const faults: OpmateError[] = [];
  const onFault = (fault: OpmateError): unknown => faults.push(fault);
  const facts = await collectFacts(catalog, { ...options, withoutManifests: false, onFault });
  if (faults.length > 0) {
    // What the unreadable parts hold is not known, so what the rest lacks cannot be told either.
    return { message: faults[0]?.message, problems: diagnoseFaults(faults), warnings: [] };
  }
  const report = validateCatalog(facts);
  return {
    message: report.passed ? undefined : report.message,
    problems: await placeDiagnostics(catalog, report.problems),
    warnings: await placeDiagnostics(catalog, report.warnings),
  };
}
