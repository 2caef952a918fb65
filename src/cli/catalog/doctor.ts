import { catalogForms } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { choice, grouped, list, text } from '../command/flags.js';
import { reportOutput } from '../command/shared-flags.js';
import { groupBy } from '../../core/groups.js';
import { type CheckName, checkNames, checks, chooseChecks } from '../../catalog/doctor/checks.js';
import { diagnoseCatalog } from '../../api/diagnose-catalog.js';
import { parseOpenShiftVersion } from '../../core/openshift-version.js';
import {
  type Diagnostic,
  type Severity,
  encodeDiagnostic,
  formatMessage,
  formatLocation,
  severities,
} from '../../core/diagnostic.js';
import { quoteGo } from '../../document/go-json.js';
import type { JsonObject } from '../../document/json.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import { exitCodes } from '../exit-codes.js';
import { count, countMore, printable, printableLine } from '../printable.js';
import { type FindingsReport, writeReport } from '../reports/report.js';
import type { ReportRule } from '../reports/sarif.js';
import { useSession } from '../session.js';

type Finding = CatalogDiagnostic<CheckName>;

/** `opmate catalog doctor`. */
export const command = defineCommand({
  summary: 'report errors and risks of a catalog, most severe first; exit with 3 on findings',
  description: `Checks: ${checkNames.join(', ')}.`,
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags: {
    output: reportOutput,
    ...grouped('Selection', {
      openshift: text('version', 'OpenShift version that the catalog is for, e.g. 4.18'),
      check: list('name', 'run only these checks', { offered: checkNames }),
      skipCheck: list('name', 'skip these checks', { offered: checkNames }),
      package: list('name', 'report only on these packages', { short: 'p' }),
      severity: choice('severity', severities, 'minimum severity to report', { default: 'notice' }),
    }),
    failOn: choice('severity', severities, 'minimum severity of findings that set exit code 3', {
      default: 'warning',
    }),
  },
  commonFlags: ['failOn', 'openshift', 'check', 'skipCheck', 'package', 'severity', 'output'],
  examples: {
    'Check a catalog before a release': 'opmate catalog doctor ./catalog',
    'Fail only on errors, for one OpenShift version':
      'opmate catalog doctor ./catalog --openshift 4.18 --fail-on error',
  },
  async run({ context, args: [reference], options }) {
    const { package: packages, output: format = 'text' } = options;
    const limit = severities.indexOf(options.failOn);
    const chosen = {
      checks: chooseChecks(options.check, options.skipCheck),
      openshift: options.openshift === undefined ? undefined : parseOpenShiftVersion(options.openshift),
      packages: packages === undefined ? undefined : new Set(packages),
      severity: options.severity,
    };
    const findings = await useSession(context, options, (session) =>
      diagnoseCatalog(reference, session, chosen),
    );
    const isFailure = ({ severity }: Diagnostic): boolean => severities.indexOf(severity) <= limit;
    const passed = !findings.some(isFailure);
    const report: FindingsReport = {
      command: 'opmate catalog doctor',
      diagnostics: findings,
      isFailure,
      rules: [...chosen.checks].map(toRule),
      text: () => describe(findings),
      value: () => toValue(findings, passed),
    };
    await writeReport(context, report, format);
    return passed ? exitCodes.done : exitCodes.findings;
  },
});

function toRule(id: CheckName): ReportRule {
  const { severity, summary } = checks[id];
  return { id, level: severity, summary };
}

function getCount(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

/** Returns data as in `schemas/catalog-doctor-output.schema.json`. */
function toValue(findings: readonly Finding[], passed: boolean): JsonObject {
  const counts = Object.fromEntries(severities.map((severity) => [severity, getCount(findings, severity)]));
  return { passed, counts, findings: findings.map(encodeDiagnostic) };
}

/** Maximum number of findings shown per check and package. */
const maxShown = 3;
/** Maximum number of packages shown, those with the worst findings first. */
const maxSections = 100;

/** Yields the findings as text, most severe first. */
async function* describe(findings: readonly Finding[]): AsyncGenerator<string, void, undefined> {
  const shown = (lines: readonly string[]): string => lines.map((line) => `${printable(line)}\n`).join('');
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
      for (const finding of ofCheck.slice(0, limit)) lines.push(...describeFinding(finding));
      const more = ofCheck.length - limit;
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
    .map((severity) => ({ severity, number: getCount(findings, severity) }))
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
  const place = formatLocation(finding);
  if (place !== undefined) lines.push(`    at ${place}`);
  if (hint !== undefined) lines.push(`    hint: ${hint}`);
  return lines;
}
