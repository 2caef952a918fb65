import { type Severity, formatMessage, formatLocation, severities } from '../../core/diagnostic.js';
import { groupBy } from '../../core/groups.js';
import { quoteGo } from '../../document/go-json.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import { withFlags } from '../reports/option-words.js';
import { count, countMore, printable, printableLine } from '../printable.js';

/** Returns the number of findings of a severity. */
export function countFindings(findings: readonly CatalogDiagnostic[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

/** Maximum number of findings shown per check and package. */
const maxShown = 3;
/** Maximum number of packages shown, those with the worst findings first. */
const maxSections = 100;

/** Yields the findings of a catalog as text, most severe first. */
export async function* formatFindings(
  findings: readonly CatalogDiagnostic[],
): AsyncGenerator<string, void, undefined> {
  const shown = (lines: readonly string[]): string =>
    lines.map((line) => `${printable(withFlags(line))}\n`).join('');
  if (findings.length === 0) {
    yield 'no problems found\n';
    return;
  }
  const sections = groupBy(findings, ({ severity, package: name = '' }) => `${severity} ${name}`);
  const ordered = [...sections.values()];
  for (const section of ordered.slice(0, maxSections)) {
    const lines = [printableLine(section[0]?.package || 'catalog')];
    for (const ofCheck of groupBy(section, ({ code }) => code).values()) {
      // The line that counts a single one would take its place.
      const limit = ofCheck.length === maxShown + 1 ? maxShown + 1 : maxShown;
      for (const finding of ofCheck.slice(0, limit)) lines.push(...formatFinding(finding));
      const more = ofCheck.length - limit;
      const [{ code, severity }] = ofCheck as [CatalogDiagnostic];
      if (more > 0) lines.push(`  ${severity} ${code}: ${countMore(more, 'finding')}; -o json shows all`);
    }
    yield shown([...lines, '']);
  }
  const rest = ordered.slice(maxSections);
  if (rest.length > 0) {
    const more = rest.reduce((sum, section) => sum + section.length, 0);
    yield shown([`… and ${countMore(more, 'finding')} in other packages; -o json shows all`, '']);
  }
  const counts = severities
    .map((severity) => ({ severity, number: countFindings(findings, severity) }))
    .filter(({ number }) => number > 0)
    .map(({ severity, number }) => count(number, severity));
  yield shown([counts.join(', ')]);
}

function formatFinding(finding: CatalogDiagnostic): string[] {
  const { code, severity, channel, bundle, hint } = finding;
  const message = formatMessage(finding);
  const names = [
    ...(channel === undefined ? [] : [`channel ${quoteGo(channel)}`]),
    ...(bundle === undefined ? [] : [quoteGo(bundle)]),
  ];
  // Those of validation name their subjects themselves.
  const subject = code === 'invalid' || names.length === 0 ? '' : `${names.join(', ')}: `;
  const lines = [`  ${severity} ${code}: ${subject}${message}`];
  const place = formatLocation(finding);
  if (place !== undefined) lines.push(`    at ${place}`);
  if (hint !== undefined) lines.push(`    hint: ${hint}`);
  return lines;
}
