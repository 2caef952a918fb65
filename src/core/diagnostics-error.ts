import { type Diagnostic, formatDiagnostic, formatPlace, formatWithHint, withSubject } from './diagnostic.js';
import { type ErrorCode, OpmateError } from './errors.js';

const errorCodes: Readonly<Record<string, ErrorCode>> = {
  syntax: 'SYNTAX',
  limit: 'LIMIT',
  unsupported: 'UNSUPPORTED',
  'not-found': 'NOT_FOUND',
};

/** Everything that is wrong with one input. The message has all of it; the command line writes each on its own line. */
export class DiagnosticsError extends OpmateError {
  override readonly name: string = 'DiagnosticsError';
  declare readonly diagnostics: readonly Diagnostic[];

  /** `diagnostics` must not be empty. */
  constructor(diagnostics: readonly Diagnostic[], options: { code?: ErrorCode; cause?: unknown } = {}) {
    const [first] = diagnostics as [Diagnostic];
    const isAlone = diagnostics.length === 1;
    const message = diagnostics.map(isAlone ? formatDiagnostic : formatWithHint).join('; ');
    super(options.code ?? errorCodes[first.code] ?? 'INVALID', message, {
      hint: isAlone ? first.hint : undefined,
      file: isAlone ? first.file : undefined,
      line: isAlone ? first.line : undefined,
      cause: options.cause,
      diagnostics,
    });
  }
}

/** Returns what an error says as diagnostics: its own, or one made of its message, place and hint. */
export function diagnosticsFrom(error: OpmateError): readonly Diagnostic[] {
  if (error.diagnostics !== undefined) return error.diagnostics;
  const { message, file, line, hint } = error;
  const code = error.code.toLowerCase().replace('_', '-');
  // Many messages begin with their file already.
  const place = [formatPlace({ file, line }), file].find((one) => message.startsWith(`${one}: `));
  const problem = place === undefined ? message : message.slice(place.length + 2);
  const isNamed = file === undefined || (place === undefined && message.startsWith(file));
  return [{ severity: 'error', code, problem, ...(!isNamed && { file, line }), hint }];
}

/** Returns one error for several, each of whose diagnostics is kept; a single one as it is. Must not be empty. */
export function combineErrors(errors: readonly OpmateError[]): OpmateError {
  const [first] = errors as [OpmateError];
  if (errors.length === 1) return first;
  return new DiagnosticsError(errors.flatMap(diagnosticsFrom), { code: first.code });
}

/** What `addContext` may add to an error that lacks it. */
export interface ErrorContext {
  /** Begins the message, unless the message begins with it already. */
  subject?: string | undefined;
  file?: string | undefined;
  line?: number | undefined;
  hint?: string | undefined;
}

/**
 * Returns the same error with a subject, place or hint added. Its class, code, fields and diagnostics stay; what it
 * has already is not replaced. The original becomes its cause.
 */
export function addContext<E extends OpmateError>(error: E, { subject, ...context }: ErrorContext): E {
  const message =
    subject === undefined || error.message.startsWith(`${subject}:`)
      ? error.message
      : `${subject}: ${error.message}`;
  const fields: Record<string, unknown> = { message, cause: error, stack: error.stack };
  let diagnostics = error.diagnostics;
  const { file, line } = context;
  const lacksLine = error.file === file && error.line === undefined;
  if (file !== undefined && (error.file === undefined || lacksLine)) {
    Object.assign(fields, { file, line });
    diagnostics = diagnostics?.map((one) =>
      one.file === undefined || (one.file === file && one.line === undefined) ? { ...one, file, line } : one,
    );
  }
  if (error.hint === undefined && context.hint !== undefined) fields['hint'] = context.hint;
  if (subject !== undefined) {
    diagnostics = diagnostics?.map((one) =>
      formatDiagnostic(one).startsWith(`${subject}:`) ? one : withSubject(one, subject),
    );
  }
  if (diagnostics !== undefined) fields['diagnostics'] = diagnostics;
  const copy = Object.create(
    Object.getPrototypeOf(error) as object,
    Object.getOwnPropertyDescriptors(error),
  ) as E;
  for (const [key, value] of Object.entries(fields)) {
    const enumerable = !['message', 'cause', 'stack'].includes(key);
    Object.defineProperty(copy, key, { value, enumerable, configurable: true, writable: true });
  }
  return copy;
}
