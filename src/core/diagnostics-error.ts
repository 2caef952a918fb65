import {
  type Diagnostic,
  formatDiagnostic,
  formatMessage,
  formatLocation,
  formatWithHint,
  withSubject,
} from './diagnostic.js';
import { type ErrorCode, type ErrorDetails, OpmateError, throwIfCancelled } from './errors.js';

const errorCodes: Readonly<Record<string, ErrorCode>> = {
  syntax: 'SYNTAX',
  limit: 'LIMIT',
  unsupported: 'UNSUPPORTED',
  'not-found': 'NOT_FOUND',
};

/** All problems of one input. The message lists all of them; the command line prints one per line. */
export class DiagnosticsError extends OpmateError {
  override readonly name: string = 'DiagnosticsError';
  declare readonly diagnostics: readonly Diagnostic[];

  /** Requires at least one diagnostic. */
  constructor(diagnostics: readonly Diagnostic[], options: { code?: ErrorCode; cause?: unknown } = {}) {
    const [first] = diagnostics as [Diagnostic];
    const { file, line, column, path, hint } = first;
    const code = options.code ?? errorCodes[first.code] ?? 'INVALID';
    const { cause } = options;
    if (diagnostics.length > 1) {
      const shared = findSharedHint(diagnostics);
      const format = shared === undefined ? formatWithHint : formatDiagnostic;
      super(code, diagnostics.map(format).join('; '), { cause, diagnostics, hint: shared });
    } else {
      const place = formatLocation(first);
      const { subject, problem } =
        place === undefined ? first : { subject: place, problem: formatMessage(first) };
      super(code, problem, { subject, file, line, column, path, hint, cause, diagnostics });
    }
  }
}

/** Returns the hint of several diagnostics that all have the same. */
export function findSharedHint([first, ...others]: readonly Diagnostic[]): string | undefined {
  if (first === undefined || others.length === 0) return undefined;
  return others.every(({ hint }) => hint === first.hint) ? first.hint : undefined;
}

/** Returns the diagnostics of an error, or one made from its fields. */
export function diagnosticsFrom(error: OpmateError): readonly Diagnostic[] {
  if (error.diagnostics !== undefined) return error.diagnostics;
  const { problem, file, line, column, path, hint } = error;
  const code = error.code.toLowerCase().replace('_', '-');
  // A place is the subject of a message, not of a diagnostic.
  const subject = isPlace(error) ? undefined : error.subject;
  return [{ severity: 'error', code, subject, problem, file, line, column, path, hint }];
}

/** Reports whether the message of an error, or of the error it wraps, starts with its line. */
export function namesLine(error: OpmateError): boolean {
  const place = formatLocation(error);
  for (let item: unknown = error; item instanceof OpmateError; item = item.cause) {
    if (item.subject === place) return true;
  }
  return false;
}

function isPlace(error: OpmateError): boolean {
  return error.file !== undefined && [error.file, formatLocation(error)].includes(error.subject);
}

/** Reports whether the message of an error starts with a subject, or with a place in a file of that name. */
function hasSubject(error: OpmateError, subject: string): boolean {
  const { diagnostics: [first, second] = [] } = error;
  if (first !== undefined && second !== undefined) return isAbout(first, subject);
  return error.subject === subject || (error.file === subject && isPlace(error));
}

function isAbout(diagnostic: Diagnostic, subject: string): boolean {
  const { file } = diagnostic;
  if (file === undefined) return diagnostic.subject === subject;
  return file === subject || formatLocation(diagnostic) === subject;
}

/**
 * Returns one error for several, with all of their diagnostics; a single error unchanged. Requires at least one
 * error.
 */
export function combineErrors(errors: readonly OpmateError[]): OpmateError {
  const [first] = errors as [OpmateError];
  if (errors.length === 1) return first;
  return new DiagnosticsError(errors.flatMap(diagnosticsFrom), { code: first.code });
}

/** Errors of several items, thrown as one. */
export class ErrorList {
  readonly #errors: OpmateError[] = [];
  readonly #signal: AbortSignal | undefined;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  get isEmpty(): boolean {
    return this.#errors.length === 0;
  }

  get errors(): readonly OpmateError[] {
    return this.#errors;
  }

  add(error: OpmateError): void {
    this.#errors.push(error);
  }

  /**
   * Returns the result of `work`; undefined after an OpmateError that `isListed` accepts, which is added. Throws other
   * errors; CancelledError if the signal is aborted.
   */
  async try<T>(
    work: () => T | Promise<T>,
    isListed: (error: OpmateError) => boolean = () => true,
  ): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      throwIfCancelled(this.#signal);
      if (!(error instanceof OpmateError) || error.code === 'CANCELLED' || !isListed(error)) throw error;
      this.add(error);
      return undefined;
    }
  }

  /** Throws all errors as one, see `combineErrors`; returns if there are none. */
  throwIfAny(): void {
    if (this.#errors.length > 0) throw combineErrors(this.#errors);
  }
}

/** Context that `addContext` adds where the error lacks it. */
interface ErrorContext extends Pick<ErrorDetails, 'file' | 'line' | 'hint'> {
  /** New subject; the previous one becomes the start of the problem. */
  subject?: string | undefined;
  /** Other names of the same thing, which `subject` replaces. */
  replaces?: readonly string[] | undefined;
  /** Replacement for an unsuitable hint. */
  newHint?: string | undefined;
  /** Becomes the cause instead of the original: the other errors that it stands for. */
  cause?: unknown;
}

/**
 * Returns the error with a subject, place or hint added. Its class, code, fields and diagnostics stay; existing
 * values are not replaced. The original becomes its cause.
 */
export function addContext<E extends OpmateError>(
  error: E,
  { subject, replaces = [], ...context }: ErrorContext,
): E {
  const fields: Record<string, unknown> = { cause: context.cause ?? error, stack: error.stack };
  let diagnostics = error.diagnostics;
  const { file, line } = context;
  const lacksLine = error.file === file && error.line === undefined;
  if (file !== undefined && (error.file === undefined || lacksLine)) {
    Object.assign(fields, { file, line });
    diagnostics = diagnostics?.map((diagnostic) =>
      diagnostic.file === undefined || (diagnostic.file === file && diagnostic.line === undefined)
        ? { ...diagnostic, file, line }
        : diagnostic,
    );
  }
  const hint = context.newHint ?? error.hint ?? context.hint;
  if (hint !== error.hint) fields['hint'] = hint;
  if (subject !== undefined) {
    if (!hasSubject(error, subject)) {
      const problem = replaces.includes(error.subject ?? '') ? error.problem : error.message;
      Object.assign(fields, { subject, problem, message: formatMessage({ subject, problem }) });
    }
    diagnostics = diagnostics?.map((diagnostic) => {
      if (isAbout(diagnostic, subject)) return diagnostic;
      return replaces.includes(diagnostic.subject ?? '')
        ? { ...diagnostic, subject }
        : withSubject(diagnostic, subject);
    });
  }
  if (diagnostics !== undefined) fields['diagnostics'] = diagnostics;
  return copyError(error, fields);
}

/** Returns the result of `work`, or its promise; an OpmateError gets context, as by `addContext`. */
export function inContext<T>(context: ErrorContext, work: () => T): T {
  const rethrow = (error: unknown): never => {
    throw error instanceof OpmateError ? addContext(error, context) : error;
  };
  try {
    const result = work();
    return result instanceof Promise ? (result.catch(rethrow) as T) : result;
  } catch (error) {
    return rethrow(error);
  }
}

/** Returns the same error, with a note in parentheses at the end of its message. */
export function addNote<E extends OpmateError>(error: E, note: string): E {
  const problem = `${error.problem} (${note})`;
  return copyError(error, { note, problem, message: `${error.message} (${note})`, stack: error.stack });
}

/**
 * Returns the error with a directory renamed in all texts, including those of programs that ran in it. For content
 * unpacked to a path that means nothing to the user.
 */
export function renameDirectory<E extends OpmateError>(error: E, directory: string, name: string): E {
  const rename = <T extends string | undefined>(text: T): T => text?.replaceAll(directory, name) as T;
  const renamed = <T extends Pick<Diagnostic, 'subject' | 'problem' | 'file'>>(item: T): T => ({
    ...item,
    subject: rename(item.subject),
    problem: rename(item.problem),
    file: rename(item.file),
  });
  const { subject, problem, file } = renamed(error);
  return copyError(error, {
    cause: error,
    stack: error.stack,
    subject,
    problem,
    file,
    message: rename(error.message),
    diagnostics: error.diagnostics?.map(renamed),
  });
}

function copyError<E extends OpmateError>(error: E, fields: Readonly<Record<string, unknown>>): E {
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
