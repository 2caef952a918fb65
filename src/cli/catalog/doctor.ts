import { groupBy } from '../../core/groups.js';
import { type CheckName, checks, chooseChecks, severities } from '../../catalog/doctor/checks.js';
import { diagnoseCatalog } from '../../catalog/doctor/diagnose.js';
import { parseOpenShiftVersion } from '../../catalog/doctor/openshift.js';
import { type Diagnostic, type Severity, formatMessage, formatPlace } from '../../core/diagnostic.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import { inReference } from '../../source/reference-error.js';
import { withCatalog } from './input.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { count, countMore, printable } from '../printable.js';
import { parseReportFormat } from '../reports/formats.js';
import { type Report, pickFields, writeReport } from '../reports/report.js';
import type { ReportRule } from '../reports/sarif.js';
import { useSession } from '../session.js';

type Finding = CatalogDiagnostic<CheckName>;

interface CatalogDoctorOptions extends GlobalOptions {
  output?: string;
  openshift?: string;
  check?: string[];
  skipCheck?: string[];
  package?: string[];
  failOn?: string;
  severity?: string;
}

/** `opmate catalog doctor`: what is wrong with a catalog, or will be; exit code 3 where that is bad enough. */
export async function catalogDoctor(
  context: CommandContext,
  reference: string,
  given: GlobalOptions,
): Promise<number> {
  const options = given as CatalogDoctorOptions;
  const { package: packages } = options;
  const format = parseReportFormat(options.output ?? 'text');
  const limit = severities.indexOf(severityOf('--fail-on', options.failOn ?? 'warning'));
  const chosen = {
    checks: chooseChecks(options.check, options.skipCheck),
    openshift: options.openshift === undefined ? undefined : parseOpenShiftVersion(options.openshift),
    packages: packages === undefined ? undefined : new Set(packages),
    severity: severityOf('--severity', options.severity ?? 'notice'),
  };
  const findings = await useSession(context, given, (session) =>
    withCatalog(reference, session, async ({ catalog }) => {
      const { signal, logger } = session;
      try {
        return await diagnoseCatalog(catalog, { ...chosen, signal, logger });
      } catch (error) {
        throw inReference(error, reference);
      }
    }),
  );
  const isFailure = ({ severity }: Diagnostic): boolean => severities.indexOf(severity) <= limit;
  const passed = !findings.some(isFailure);
  const report: Report = {
    command: 'opmate catalog doctor',
    diagnostics: findings,
    isFailure,
    rules: [...chosen.checks].map(toRule),
    text: () => describe(findings),
    value: () => toValue(findings, passed),
  };
  await writeReport(context, report, format);
  return passed ? exitCodes.done : exitCodes.findings;
}

function severityOf(flag: string, value: string): Severity {
  const severity = severities.find((name) => name === value);
  if (severity !== undefined) return severity;
  throw new UsageError(`invalid ${flag} value ${quoteGo(value)}, expected (${severities.join('|')})`);
}

function toRule(id: CheckName): ReportRule {
  const { severity, summary } = checks[id];
  return { id, level: severity, summary };
}

function countOf(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

/** The shape is `schemas/catalog-doctor-output.schema.json`. */
function toValue(findings: readonly Finding[], passed: boolean): JsonObject {
  const counts = Object.fromEntries(severities.map((severity) => [severity, countOf(findings, severity)]));
  const list = findings.map((finding) => ({
    check: finding.code,
    ...pickFields(finding, ['severity', 'message', 'package', 'channel', 'bundle', 'file', 'line', 'hint']),
  }));
  return { passed, counts, findings: list };
}

/** How many findings of one check in one package are shown. */
const maxShown = 3;
/** How many packages are shown, those with the worst findings first. */
const maxSections = 100;

/** The worst first, in pieces: the text of a large catalog is long. */
async function* describe(findings: readonly Finding[]): AsyncGenerator<string, void, undefined> {
  const shown = (lines: readonly string[]): string => lines.map((line) => `${printable(line)}\n`).join('');
  if (findings.length === 0) {
    yield 'no problems found\n';
    return;
  }
  const sections = groupBy(findings, ({ severity, package: name = '' }) => `${severity} ${name}`);
  const ordered = [...sections.values()];
  for (const section of ordered.slice(0, maxSections)) {
    const lines = [section[0]?.package || 'catalog'];
    for (const ofCheck of groupBy(section, ({ code }) => code).values()) {
      for (const finding of ofCheck.slice(0, maxShown)) lines.push(...describeFinding(finding));
      const more = ofCheck.length - maxShown;
      const [{ code, severity }] = ofCheck as [Finding];
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
    .map((severity) => ({ severity, number: countOf(findings, severity) }))
    .filter(({ number }) => number > 0)
    .map(({ severity, number }) => count(number, severity));
  yield shown([counts.join(', ')]);
}

function describeFinding(finding: Finding): string[] {
  const { code, severity, channel, bundle, hint } = finding;
  const message = formatMessage(finding);
  const names = [
    ...(channel === undefined ? [] : [`channel ${quoteGo(channel)}`]),
    ...(bundle === undefined ? [] : [quoteGo(bundle)]),
  ];
  // Those of validation name their subjects themselves.
  const subject = code === 'invalid' || names.length === 0 ? '' : `${names.join(', ')}: `;
  const lines = [`  ${severity} ${code}: ${subject}${message}`];
  const place = formatPlace(finding);
  if (place !== undefined && !message.startsWith(place)) lines.push(`    at ${place}`);
  if (hint !== undefined) lines.push(`    hint: ${hint}`);
  return lines;
}
