import { groupBy } from '../../core/groups.js';
import {
  type CheckName,
  type Severity,
  checks,
  chooseChecks,
  severities,
} from '../../catalog/doctor/checks.js';
import { diagnoseCatalog } from '../../catalog/doctor/diagnose.js';
import type { Finding } from '../../catalog/doctor/finding.js';
import { parseOpenShiftVersion } from '../../catalog/doctor/openshift.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { inReference } from '../../source/reference-error.js';
import { withCatalog } from './input.js';
import type { CommandContext, GlobalOptions } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { count, countMore, printable } from '../printable.js';
import { encodeJUnit } from '../report-formats/junit.js';
import type { ReportItem, ReportRule } from '../report-formats/report.js';
import { encodeSarif } from '../report-formats/sarif.js';
import { useSession } from '../session.js';
import { ownVersion } from '../root/version.js';

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
  const { output = 'text', package: packages } = options;
  if (!['text', 'json', 'sarif', 'junit'].includes(output)) {
    throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|sarif|junit)`);
  }
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
  const isFailure = ({ severity }: Pick<Finding, 'severity'>): boolean =>
    severities.indexOf(severity) <= limit;
  const passed = !findings.some(isFailure);
  let text: string | AsyncIterable<string>;
  if (output === 'json') text = encodeJson(findings, passed);
  else if (output === 'sarif') {
    text = encodeSarif(findings.map(itemOf), [...chosen.checks].map(ruleOf), {
      name: 'opmate',
      version: await ownVersion(),
    });
  } else if (output === 'junit') {
    const isItemFailure = ({ level }: ReportItem): boolean => isFailure({ severity: level });
    text = encodeJUnit(findings.map(itemOf), { name: 'opmate catalog doctor', isFailure: isItemFailure });
  } else text = describe(findings);
  await writeAll(context.stdout, text, context.signal);
  return passed ? exitCodes.done : exitCodes.findings;
}

function severityOf(flag: string, value: string): Severity {
  const severity = severities.find((name) => name === value);
  if (severity !== undefined) return severity;
  throw new UsageError(`invalid ${flag} value ${quoteGo(value)}, expected (${severities.join('|')})`);
}

function ruleOf(id: CheckName): ReportRule {
  const { severity, summary } = checks[id];
  return { id, level: severity, summary };
}

function itemOf({ check, severity, message, hint, file, line, ...finding }: Finding): ReportItem {
  const names = (['package', 'channel', 'bundle'] as const).flatMap((kind) =>
    finding[kind] === undefined ? [] : [{ kind, name: finding[kind] }],
  );
  return { rule: check, level: severity, message, hint: hint === '' ? undefined : hint, names, file, line };
}

function countOf(findings: readonly Finding[], severity: Severity): number {
  return findings.filter((finding) => finding.severity === severity).length;
}

/** The shape is `schemas/catalog-doctor-output.schema.json`. */
function encodeJson(findings: readonly Finding[], passed: boolean): string {
  const counts = Object.fromEntries(severities.map((severity) => [severity, countOf(findings, severity)]));
  const list = findings.map(
    ({ check, severity, message, package: name, channel, bundle, file, line, hint }) => ({
      check,
      severity,
      message,
      package: name,
      channel,
      bundle,
      file,
      line,
      hint: hint === '' ? undefined : hint,
    }),
  );
  return `${JSON.stringify({ passed, counts, findings: list }, null, 2)}\n`;
}

/** How many findings of one check in one package are shown. */
const maxShown = 3;

/** The worst first, in pieces: the text of a large catalog is long. */
async function* describe(findings: readonly Finding[]): AsyncGenerator<string, void, undefined> {
  const shown = (lines: readonly string[]): string => lines.map((line) => `${printable(line)}\n`).join('');
  if (findings.length === 0) {
    yield 'no problems found\n';
    return;
  }
  const sections = groupBy(findings, ({ severity, package: name = '' }) => `${severity} ${name}`);
  for (const section of sections.values()) {
    const lines = [section[0]?.package || 'catalog'];
    for (const ofCheck of groupBy(section, ({ check }) => check).values()) {
      for (const finding of ofCheck.slice(0, maxShown)) lines.push(...describeFinding(finding));
      const more = ofCheck.length - maxShown;
      const [{ check, severity }] = ofCheck as [Finding];
      if (more > 0) lines.push(`  ${severity} ${check}: ${countMore(more, 'finding')}; -o json shows all`);
    }
    yield shown([...lines, '']);
  }
  const counts = severities
    .map((severity) => ({ severity, number: countOf(findings, severity) }))
    .filter(({ number }) => number > 0)
    .map(({ severity, number }) => count(number, severity));
  yield shown([counts.join(', ')]);
}

function describeFinding({ check, severity, message, channel, bundle, file, line, hint }: Finding): string[] {
  const names = [
    ...(channel === undefined ? [] : [`channel ${quoteGo(channel)}`]),
    ...(bundle === undefined ? [] : [quoteGo(bundle)]),
  ];
  // Those of validation tell their names themselves.
  const subject = check === 'invalid' || names.length === 0 ? '' : `${names.join(', ')}: `;
  const lines = [`  ${severity} ${check}: ${subject}${message}`];
  const place = file === undefined ? '' : `${file}${line === undefined ? '' : `:${line}`}`;
  if (place !== '' && !message.startsWith(place)) lines.push(`    at ${place}`);
  if (hint !== undefined && hint !== '') lines.push(`    hint: ${hint}`);
  return lines;
}
