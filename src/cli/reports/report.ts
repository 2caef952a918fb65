import type { Diagnostic } from '../../core/diagnostic.js';
import { redactUrls } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import type { CommandContext } from '../context.js';
import { encodeData } from './encode-data.js';
import { writeAll } from '../output.js';
import type { ReportFormat } from './formats.js';
import type { ReportRule } from './sarif.js';
import { nameFlags } from './option-words.js';

/** Findings of a command. */
export interface FindingsReport {
  /** `opmate catalog doctor`. */
  command: string;
  diagnostics: readonly Diagnostic[];
  /** Selects findings that fail the command; default: errors. */
  isFailure?(diagnostic: Diagnostic): boolean;
  /** All checked rules; default: those of the findings. */
  rules?: readonly ReportRule[];
  /** Returns the text; undefined for commands that print it to stderr. */
  text?(): string | AsyncIterable<string>;
  /** Returns the data for JSON and YAML, without secrets. */
  value(): JsonObject;
  /** Escapes `<`, `>` and `&` in JSON, as `opm` does. */
  escapeHtml?: boolean;
}

/** Writes a report to stdout. */
export async function writeReport(
  context: CommandContext,
  report: FindingsReport,
  format: ReportFormat,
): Promise<void> {
  await writeAll(context.stdout, await encodeReport(report, format), context.signal);
}

async function encodeReport(
  report: FindingsReport,
  format: ReportFormat,
): Promise<string | AsyncIterable<string>> {
  const { command, isFailure = isError, escapeHtml = false } = report;
  switch (format) {
    case 'text':
      return report.text?.() ?? '';
    case 'json':
    case 'yaml':
      return encodeData(report.value(), format, { escapeHtml });
    case 'sarif': {
      const { encodeSarif } = await import('./sarif.js');
      const { ownVersion } = await import('../../api/own-process.js');
      const diagnostics = report.diagnostics.map(redactDiagnostic);
      const rules = report.rules ?? deriveRules(diagnostics);
      return encodeSarif(diagnostics, rules, { name: 'opmate', version: ownVersion() });
    }
    case 'junit': {
      const { encodeJUnit } = await import('./junit.js');
      return encodeJUnit(report.diagnostics.map(redactDiagnostic), { name: command, isFailure });
    }
    case 'github': {
      const { encodeGitHub } = await import('./github.js');
      return encodeGitHub(report.diagnostics.map(redactDiagnostic));
    }
  }
}

const isError = ({ severity }: Diagnostic): boolean => severity === 'error';

/** Returns a rule per code, with the severity of its first finding. */
function deriveRules(diagnostics: readonly Diagnostic[]): ReportRule[] {
  const rules = new Map<string, ReportRule>();
  for (const { code, severity } of diagnostics) {
    if (!rules.has(code)) rules.set(code, { id: code, level: severity, summary: code.replaceAll('-', ' ') });
  }
  return [...rules.values()];
}

function redactDiagnostic<D extends Diagnostic>(diagnostic: D): D {
  const { subject, problem, hint } = nameFlags(diagnostic);
  return {
    ...diagnostic,
    problem: redactUrls(problem),
    subject: subject === undefined ? undefined : redactUrls(subject),
    hint: hint === undefined ? undefined : redactUrls(hint),
  };
}
