import { type CancelOptions } from '../../core/concurrency.js';
import { createFault } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import type { Logger } from '../../core/log.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { DiagnosticList } from '../../document/document.js';
import type { JsonObject } from '../../document/json.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import type { BlobOrigin } from '../../model/facts.js';
import { type Lifecycle, lifecycleSchema, readLifecycle } from '../../model/lifecycle.js';
import type { Catalog } from '../catalog.js';
import { placeDiagnostics, readLocated } from '../locate.js';

/** A lifecycle blob of a package. */
export interface LifecycleBlob {
  lifecycle: Lifecycle;
  value: JsonObject;
  origin: BlobOrigin;
}

interface ReadLifecyclesOptions extends CancelOptions {
  logger?: Logger | undefined;
  /** Other blobs are errors. */
  onlyLifecycles?: boolean | undefined;
}

/**
 * Returns the lifecycle blobs of a catalog by package. Throws DiagnosticsError with all problems, among them a second blob
 * of a package.
 */
export async function readLifecycles(
  catalog: Pick<Catalog, 'metas' | 'lineOf'>,
  { onlyLifecycles = false, ...reading }: ReadLifecyclesOptions = {},
): Promise<Map<string, LifecycleBlob>> {
  const blobs = new Map<string, LifecycleBlob>();
  const faults: CatalogDiagnostic[] = [];
  await readLocated(catalog, reading, ({ schema, value, origin }) => {
    if (schema !== lifecycleSchema) {
      if (!onlyLifecycles) return;
      const problem = `unexpected schema ${quoteGo(schema)}, expected ${quoteGo(lifecycleSchema)}`;
      faults.push({ ...createFault('schema', problem), origin, path: ['schema'] });
      return;
    }
    const diagnostics = new DiagnosticList();
    const lifecycle = readLifecycle(value, diagnostics);
    const { package: packageName } = lifecycle;
    // The place takes the place of the subject.
    for (const fault of diagnostics.errors) {
      faults.push({ ...fault, subject: undefined, package: packageName, origin });
    }
    if (blobs.has(packageName)) {
      const problem = `duplicate lifecycle of package ${quoteGo(packageName)}`;
      faults.push({ ...createFault('duplicate', problem, { hint: 'keep one of them' }), origin });
    } else blobs.set(packageName, { lifecycle, value, origin });
  });
  if (faults.length > 0) throw new DiagnosticsError(await placeDiagnostics(catalog, faults, reading));
  return blobs;
}
