import { withOpen } from '../core/concurrency.js';
import type { Catalog, MetasOptions } from '../catalog/catalog.js';
import { collectFacts } from '../catalog/facts.js';
import { placeDiagnostics } from '../catalog/locate.js';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { statIfPresent } from '../files/file-status.js';
import { validateInTurns } from '../graph/validate.js';
import { type CatalogDiagnostic, diagnoseFaults } from '../model/catalog-diagnostic.js';
import { contentFileKind } from '../source/content/file-kind.js';
import type { Session } from '../source/session.js';
import { openSource } from '../source/source.js';
import { isDatabaseFile } from './indexes/database-file.js';
import { catalogForms, requireCatalog } from './open-catalog.js';

/** Options of `validate`. */
export interface ValidateOptions {
  /** Make parts that cannot be read problems of the verdict. By default the first one is thrown. */
  keepFaults?: boolean | undefined;
}

/** The result of checking a catalog. */
export interface CatalogVerdict {
  passed: boolean;
  /** The message of `opm validate`; undefined if the catalog is valid. */
  message: string | undefined;
  /** Every problem, in order of package, channel, bundle, with file and line. */
  problems: CatalogDiagnostic[];
  /** Likely mistakes that `opm` accepts. */
  warnings: CatalogDiagnostic[];
}

/**
 * Checks a catalog as `opmate validate` does and reports every problem. Throws OpmateError, with file and line, for a
 * catalog that cannot be read.
 */
export async function validate(
  reference: string,
  session: Session,
  { keepFaults }: ValidateOptions = {},
): Promise<CatalogVerdict> {
  await requireCatalogFile(reference);
  const source = await requireCatalog(await openSource(reference, session), reference, {
    hint: 'check a bundle with api.validateBundle',
  });
  const { logger, signal } = session;
  return withOpen(source, ({ catalog }) => judgeCatalog(catalog, { logger, signal, keepFaults }));
}

/** Throws OpmateError for files that are no catalogs, and for missing paths. */
async function requireCatalogFile(reference: string): Promise<void> {
  const stats = await statIfPresent(reference);
  if (stats?.isDirectory() === true) return;
  if (stats?.isFile() === true && (await isCatalogFile(reference))) return;
  if (stats !== undefined) {
    throw new OpmateError('UNSUPPORTED', `${quoteGo(reference)} is not a directory`, {
      hint: `specify a catalog: ${catalogForms}`,
    });
  }
  if (!/[:@]/.test(reference)) {
    throw new OpmateError('NOT_FOUND', 'no such file or directory', { subject: reference });
  }
}

async function isCatalogFile(file: string): Promise<boolean> {
  return (await isDatabaseFile(file)) || (await contentFileKind(file)) !== undefined;
}

/** Checks an open catalog; see `validate`. */
export async function judgeCatalog(
  catalog: Catalog,
  { keepFaults = false, ...options }: ValidateOptions & Pick<MetasOptions, 'logger' | 'signal'>,
): Promise<CatalogVerdict> {
  const faults: OpmateError[] = [];
  const onFault = keepFaults ? (fault: OpmateError): unknown => faults.push(fault) : undefined;
  const facts = await collectFacts(catalog, { ...options, withoutManifests: false, onFault });
  const [fault] = faults;
  if (fault !== undefined) {
    // Unreadable parts may define what the rest seems to lack.
    return { passed: false, message: fault.message, problems: diagnoseFaults(faults), warnings: [] };
  }
  const { passed, message, problems, warnings } = await validateInTurns(facts, options);
  return {
    passed,
    message,
    problems: await placeDiagnostics(catalog, problems, options),
    warnings: await placeDiagnostics(catalog, warnings, options),
  };
}
