import type { CatalogVerdict } from '../../api/validate-catalog.js';
import { formatLocation } from '../../core/diagnostic.js';
import { redactUrls } from '../../core/errors.js';
import type { LogLevel } from '../../core/log.js';
import { type CatalogDiagnostic, formatCatalogMessage } from '../../model/catalog-diagnostic.js';
import { withFlags } from '../reports/option-words.js';
import { countMore, printable } from '../printable.js';

/** Maximum number of findings printed as text. */
const maxShown = 20;

/** Column below a line of the message at which its place and hint begin. */
const detailIndent = 2;

/**
 * Returns a verdict as text; empty without findings. Below each line of the message of `opm` stands the place and hint of
 * the problem that ends with it; other problems and warnings follow on lines of their own.
 */
export function describeVerdict(verdict: CatalogVerdict, level: LogLevel = 'info'): string {
  const shown = [...verdict.problems, ...(level === 'error' ? [] : verdict.warnings)];
  const left = new Set(shown.slice(0, maxShown));
  const lines = (verdict.message?.split('\n') ?? []).flatMap((line) => {
    const { text, column } = splitBranch(line);
    const finding = [...left].find((candidate) => isAbout(candidate, text));
    if (finding === undefined) return [line];
    left.delete(finding);
    return [line, ...describeDetails(finding, column + detailIndent)];
  });
  if (lines.length > 0 && left.size > 0) lines.push('');
  for (const finding of left) lines.push(...describeFinding(finding));
  const more = shown.length - maxShown;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}; opmate validate -o json shows all`);
  return lines.map((line) => `${printable(redactUrls(withFlags(line)))}\n`).join('');
}

/** Splits a line of a tree into its branches and its text. */
function splitBranch(line: string): { text: string; column: number } {
  const column = /^[\s\u2500-\u257f]*/.exec(line)?.[0].length ?? 0;
  return { text: line.slice(column), column };
}

/** Reports whether a problem repeats a line, perhaps after the names that the lines above have. */
function isAbout({ severity, problem }: CatalogDiagnostic, text: string): boolean {
  const [first = ''] = problem.split('\n');
  return severity === 'error' && text !== '' && (first === text || first.endsWith(`: ${text}`));
}

function describeDetails(finding: CatalogDiagnostic, column: number): string[] {
  const place = formatLocation(finding);
  const details = [
    ...(place === undefined ? [] : [`at ${place}`]),
    ...(finding.hint === undefined ? [] : [`hint: ${finding.hint}`]),
  ];
  return details.map((detail) => `${' '.repeat(column)}${detail}`);
}

function describeFinding(finding: CatalogDiagnostic): string[] {
  const place = formatLocation(finding);
  const shown = place === undefined ? '' : `${place}: `;
  const lines = [`${finding.severity}: ${shown}${formatCatalogMessage(finding)}`];
  if (finding.hint !== undefined) lines.push(`  hint: ${finding.hint}`);
  return lines;
}
