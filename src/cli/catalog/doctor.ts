import { catalogForms } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { choice, grouped, list, text } from '../command/flags.js';
import { reportOutput } from '../command/shared-flags.js';
import { type CheckName, checkNames, checks, chooseChecks } from '../../catalog/doctor/checks.js';
import { diagnoseCatalog } from '../../api/diagnose-catalog.js';
import { parseOpenShiftVersion } from '../../core/openshift-version.js';
import { type Diagnostic, severities } from '../../core/diagnostic.js';
import { encodeFinding } from '../reports/option-words.js';
import type { JsonObject } from '../../document/json.js';
import type { CatalogDiagnostic } from '../../model/catalog-diagnostic.js';
import { exitCodes } from '../exit-codes.js';
import { countFindings, formatFindings } from './finding-text.js';
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
      text: () => formatFindings(findings),
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

/** Returns data as in `schemas/catalog-doctor-output.schema.json`. */
function toValue(findings: readonly Finding[], passed: boolean): JsonObject {
  const counts = Object.fromEntries(
    severities.map((severity) => [severity, countFindings(findings, severity)]),
  );
  return { passed, counts, findings: findings.map(encodeFinding) };
}
