import { quoteGo } from './go-json-quote.js';

/**
 * The one form of a finding or fault that has a place. Text is made of it at the edge, once; reports for machines
 * (JSON, SARIF, JUnit, GitHub annotations) are made from the same fields.
 */

/** Keys and indexes from the root of a document. */
export type DocumentPath = readonly (string | number)[];

/** A place in a text: line and column, from 1. */
export interface Place {
  line: number;
  column: number;
}

/** `notice` is worth knowing, `warning` worth changing, `error` must be changed. */
export type Severity = (typeof severities)[number];

/** The worst first. */
export const severities = ['error', 'warning', 'notice'] as const;

/** One thing that is wrong, or worth attention, with something that was read. */
export interface Diagnostic {
  severity: Severity;
  /** The rule, kebab-case: `unknown-field`, `skipped-in-chain`. */
  code: string;
  /** Names what it is about, begins the message: a field path, a package. */
  subject?: string | undefined;
  /** Lower case, no full stop. */
  problem: string;
  /** As the user named it. */
  file?: string | undefined;
  /** From 1. */
  line?: number | undefined;
  /** From 1. */
  column?: number | undefined;
  /** Leads to the value in its document. */
  path?: DocumentPath | undefined;
  /** One imperative. */
  hint?: string | undefined;
}

/** Returns an error; `code` is the rule, kebab-case, and `problem` in lower case, without a full stop. */
export function createFault(code: string, problem: string, details: DiagnosticDetails = {}): Diagnostic {
  return createDiagnostic('error', code, problem, details);
}

/** Returns a warning, as `createFault` returns an error. */
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

/** Returns `spec.sources[0]["a.b/c"]`, the path of a field as messages show it. */
export function formatPath(path: DocumentPath): string {
  let text = '';
  for (const key of path) {
    if (typeof key === 'number') text += `[${key}]`;
    else if (!/^[A-Za-z_$][\w-]*$/.test(key)) text += `[${quoteGo(key)}]`;
    else text += text === '' ? key : `.${key}`;
  }
  return text;
}

/** Returns `FILE:LINE:COLUMN`, as far as it is known; undefined without a file. */
export function formatPlace({
  file,
  line,
  column,
}: Pick<Diagnostic, 'file' | 'line' | 'column'>): string | undefined {
  if (file === undefined || line === undefined) return file;
  return column === undefined ? `${file}:${line}` : `${file}:${line}:${column}`;
}

/** Returns `subject: problem`. */
export function formatMessage({ subject, problem }: Pick<Diagnostic, 'subject' | 'problem'>): string {
  return subject === undefined || subject === '' ? problem : `${subject}: ${problem}`;
}

/** Returns `FILE:LINE:COLUMN: subject: problem`, without the hint. */
export function formatDiagnostic(diagnostic: Diagnostic): string {
  const place = formatPlace(diagnostic);
  const message = formatMessage(diagnostic);
  return place === undefined ? message : `${place}: ${message}`;
}

/** Returns a diagnostic whose message begins with one more subject. */
export function withSubject<D extends Diagnostic>(diagnostic: D, subject: string): D {
  const inner = diagnostic.subject ?? '';
  return { ...diagnostic, subject: inner === '' ? subject : `${subject}: ${inner}` };
}

/** Orders diagnostics by file, line and column; what has no place keeps its place in the order. */
export function compareDiagnostics(a: Diagnostic, b: Diagnostic): number {
  if (a.file !== b.file) return (a.file ?? '') < (b.file ?? '') ? -1 : 1;
  return (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0);
}

/** Returns a diagnostic on one line, its hint in parentheses. */
export function formatWithHint(diagnostic: Diagnostic): string {
  const text = formatDiagnostic(diagnostic);
  return diagnostic.hint === undefined ? text : `${text} (${diagnostic.hint})`;
}
