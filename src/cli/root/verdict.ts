import type { CatalogVerdict } from '../../api/validate-catalog.js';
import { formatPlace } from '../../core/diagnostic.js';
import { redactUrls } from '../../core/errors.js';
import type { LogLevel } from '../../core/log.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { countMore, printable } from '../printable.js';

/** Maximum number of findings printed as text. */
const maxShown = 20;

/** Returns a verdict as text; empty without findings. */
export function describeVerdict(verdict: CatalogVerdict, level: LogLevel = 'info'): string {
  const lines: string[] = [];
  if (verdict.message !== undefined) lines.push(verdict.message, '');
  const findings = [...verdict.problems, ...(level === 'error' ? [] : verdict.warnings)];
  for (const finding of findings.slice(0, maxShown)) lines.push(...describeFinding(finding));
  const more = findings.length - maxShown;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}; opmate validate -o json shows all`);
  return lines.map((line) => `${printable(redactUrls(line))}\n`).join('');
}

function describeFinding(finding: CatalogDiagnostic): string[] {
  const message = formatCatalogMessage(finding);
  const place = formatPlace(finding);
  const shown = place === undefined ? '' : `${place}: `;
  const lines = [`${shown}${finding.severity === 'warning' ? 'warning: ' : ''}${message}`];
  if (finding.hint !== undefined) lines.push(`  hint: ${finding.hint}`);
  return lines;
}
