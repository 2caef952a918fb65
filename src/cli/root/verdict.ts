import type { Catalog } from '../../catalog/catalog.js';
import { collectFacts } from '../../catalog/facts.js';
import { placeDiagnostics } from '../../catalog/locate.js';
import { formatPlace } from '../../core/diagnostic.js';
import { type OpmateError, redact } from '../../core/errors.js';
import type { LogLevel } from '../../core/log.js';
import { validateCatalog } from '../../graph/validate.js';
import {
  type CatalogDiagnostic,
  diagnoseFaults,
  formatCatalogMessage,
} from '../../model/catalog-diagnostic.js';
import { countMore, printable } from '../printable.js';

/** The result of checking a catalog. */
export interface Verdict {
  /** The message of `opm validate`; undefined when the catalog passes. */
  message: string | undefined;
  problems: CatalogDiagnostic[];
  warnings: CatalogDiagnostic[];
}

/** Checks a catalog as `opmate validate` does. Throws what reading throws that is no fault of the catalog. */
export async function judge(
  catalog: Catalog,
  options: { signal?: AbortSignal | undefined },
): Promise<Verdict> {
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

/** How many findings are printed as text. */
const maxShown = 20;

/** A verdict as text for people; empty where there is nothing to tell. */
export function describeVerdict(verdict: Verdict, level: LogLevel = 'info'): string {
  const lines: string[] = [];
  if (verdict.message !== undefined) lines.push(verdict.message, '');
  const findings = [...verdict.problems, ...(level === 'error' ? [] : verdict.warnings)];
  for (const finding of findings.slice(0, maxShown)) lines.push(...describeFinding(finding));
  const more = findings.length - maxShown;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}; opmate validate -o json shows all`);
  return lines.map((line) => `${printable(redact(line))}\n`).join('');
}

function describeFinding(finding: CatalogDiagnostic): string[] {
  const message = formatCatalogMessage(finding);
  const place = formatPlace(finding);
  const shown = place === undefined ? '' : `${place}: `;
  const lines = [`${shown}${finding.severity === 'warning' ? 'warning: ' : ''}${message}`];
  if (finding.hint !== undefined) lines.push(`  hint: ${finding.hint}`);
  return lines;
}
