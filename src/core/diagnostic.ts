import { quoteGo } from './go-json-quote.js';
import { printableLine } from './printable.js';
import { redactUrls } from './redact.js';

/**
 * The only form of a finding or fault with a place. The command line formats it as text; machine-readable reports
 * (JSON, SARIF, JUnit, GitHub annotations) use the same fields.
 */

/** Keys and indexes from the root of a document. */
export type DocumentPath = readonly (string | number)[];

/** A place in a text: one-based line and column. */
export interface TextPosition {
  line: number;
  column: number;
}

/** `error` must be fixed, `warning` should be, `notice` is informational. */
export type Severity = (typeof severities)[number];

/** Severities, worst first. */
export const severities = ['error', 'warning', 'notice'] as const;

/** A problem, or something noteworthy, in an input. */
export interface Diagnostic {
  severity: Severity;
  /** Rule in kebab case: `unknown-field`, `skipped-in-chain`. */
  code: string;
  /** Start of the message: a field path, a package. */
  subject?: string | undefined;
  /** Problem in lower case, without a full stop. */
  problem: string;
  /** File as the user named it. */
  file?: string | undefined;
  /** One-based line. */
  line?: number | undefined;
  /** One-based column. */
  column?: number | undefined;
  /** Path of the value in its document. */
  path?: DocumentPath | undefined;
  /** Suggested action, in the imperative. */
  hint?: string | undefined;
}

/** Returns an error diagnostic. `code` is in kebab case, `problem` in lower case without a full stop. */
export function createFault(code: string, problem: string, details: DiagnosticDetails = {}): Diagnostic {
  return createDiagnostic('error', code, problem, details);
}

/** Returns a warning diagnostic; see `createFault`. */
export function createWarning(code: string, problem: string, details: DiagnosticDetails = {}): Diagnostic {
  return createDiagnostic('warning', code, problem, details);
}

type DiagnosticDetails = Omit<Diagnostic, 'severity' | 'code' | 'problem'>;

/** Keeps the fields in the order in which `--log-format json` prints them. */
function createDiagnostic(
  severity: Severity,
  code: string,
  problem: string,
  { subject, ...place }: DiagnosticDetails,
): Diagnostic {
  return { severity, code, ...(subject !== undefined && { subject }), problem, ...place };
}

/** Returns a field path as messages show it: `spec.sources[0]["a.b/c"]`. */
export function formatPath(path: DocumentPath): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else if (!/^[A-Za-z_$][\w-]*$/.test(key)) text += `[${quoteGo(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** Returns `FILE:LINE:COLUMN` on one line, without the unknown parts; undefined without a file. */
export function formatLocation({
  file,
  line,
  column,
}: Pick<Diagnostic, 'file' | 'line' | 'column'>): string | undefined {
  if (file === undefined) return undefined;
  const name = printableLine(file);
  if (line === undefined) return name;
  return column === undefined ? `${name}:${line}` : `${name}:${line}:${column}`;
}

/** Returns `subject: problem`, with the subject, which may be a file name of others, on one line. */
export function formatMessage({ subject, problem }: Pick<Diagnostic, 'subject' | 'problem'>): string {
  return subject === undefined || subject === '' ? problem : `${printableLine(subject)}: ${problem}`;
}

/** Returns `FILE:LINE:COLUMN: subject: problem`, without the hint. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const place = formatLocation(diagnostic);
  const message = formatMessage(diagnostic);
  return place === undefined ? message : `${place}: ${message}`;
}

/** Returns a diagnostic with another subject in front of its message. */
export function withSubject<D extends Diagnostic>(diagnostic: D, subject: string): D {
  const inner = diagnostic.subject ?? '';
  return { ...diagnostic, subject: inner === '' ? subject : `${subject}: ${inner}` };
}

/** Compares diagnostics by file, line and column; those without a place keep their order. */
export function compareDiagnostics(a: Diagnostic, b: Diagnostic): number {
  if (a.file !== b.file) return (a.file ?? '') < (b.file ?? '') ? -1 : 1;
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** Returns a diagnostic on one line, with its hint in parentheses. */
export function formatWithHint(diagnostic: Diagnostic): string {
  const text = formatDiagnostic(diagnostic);
  return diagnostic.hint === undefined ? text : `${text} (${diagnostic.hint})`;
}

/**
 * Returns a diagnostic as all JSON output has it, without secrets: its defined fields, those of its kind, such as
 * `package`, and `message`, which is `subject: problem`.
 */
export function encodeDiagnostic({
  severity,
  code,
  subject,
  problem,
  ...details
}: Diagnostic): EncodedDiagnostic {
  const { file, line, column, path, hint, ...others } = details;
  const message = formatMessage({ subject, problem });
  const own = Object.entries(others).filter(([, value]) => typeof value === 'string');
  const fields = { severity, code, subject, problem, message, ...Object.fromEntries(own) };
  const entries = Object.entries({ ...fields, file, line, column, path, hint })
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, typeof value === 'string' ? redactUrls(value) : value] as const);
  return Object.fromEntries(entries) as EncodedDiagnostic;
}

/** A diagnostic in JSON. */
type EncodedDiagnostic = Record<string, string | number | (string | number)[]>;
