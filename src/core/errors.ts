import { type Diagnostic, type DocumentPath, formatMessage } from './diagnostic.js';

/**
 * The errors that opmate reports.
 *
 * Every failure that a user can cause or meet is an OpmateError: a subject, what is wrong, and where it
 * helps, a hint that says what to do. The command line prints exactly `message`, then `hint: …`; a
 * library caller switches on `code`.
 */

/** Which kind of failure this is; the set is closed, so callers can switch on it. */
export type ErrorCode =
  | 'USAGE' // wrong flags or arguments
  | 'NOT_FOUND' // a file, directory, manifest, blob, package … that does not exist
  | 'IO' // reading or writing failed: permissions, disk full, broken pipe
  | 'SYNTAX' // bytes that do not parse
  | 'INVALID' // parsed, but breaks a rule
  | 'UNSUPPORTED' // valid, but nothing that opmate handles (yet)
  | 'LIMIT' // a size, count or ratio cap was reached
  | 'DIGEST' // content does not have the digest or size that was promised
  | 'UNSAFE' // a path, link or reference that would leave its place
  | 'AUTH' // credentials are missing, refused or unreadable
  | 'NETWORK' // connection, TLS, proxy, time-out
  | 'REGISTRY' // a registry answered with an error
  | 'CANCELLED' // stopped by the caller's AbortSignal
  | 'INTERNAL'; // a defect of opmate itself

/** What an error may carry in addition to its message. */
export interface ErrorDetails {
  /** Names what the error is about, begins the message: a file, a reference, a package. */
  subject?: string | undefined;
  /** What the reader should do, as one sentence without a final full stop. */
  hint?: string | undefined;
  /** The file that the message is about, as the user named it. */
  file?: string | undefined;
  /** Line in `file`, from 1. */
  line?: number | undefined;
  /** Column in `line`, from 1. */
  column?: number | undefined;
  /** Leads to the value in its document. */
  path?: DocumentPath | undefined;
  /** The error that led to this one; shown with `--debug` only. */
  cause?: unknown;
  /** All that is wrong, where the message sums up several things. */
  diagnostics?: readonly Diagnostic[] | undefined;
}

/**
 * Base of all reported errors. `message` is one line, `subject: problem`, has no final full stop, and never contains
 * a credential (see `redact`).
 */
export class OpmateError extends Error {
  override readonly name: string = 'OpmateError';
  readonly code: ErrorCode;
  /** Names what the error is about; undefined where the problem names it. */
  readonly subject: string | undefined;
  readonly problem: string;
  readonly hint: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly path: DocumentPath | undefined;
  readonly diagnostics: readonly Diagnostic[] | undefined;
  /** What was tried before giving up; ends the message in parentheses. See `addNote`. */
  declare readonly note?: string;

  constructor(code: ErrorCode, problem: string, details: ErrorDetails = {}) {
    const { subject, cause } = details;
    super(formatMessage({ subject, problem }), cause === undefined ? undefined : { cause });
    this.code = code;
    this.subject = subject;
    this.problem = problem;
    this.hint = details.hint;
    this.file = details.file;
    this.line = details.line;
    this.column = details.column;
    this.path = details.path;
    this.diagnostics = details.diagnostics;
  }
}

/** Wrong use of a command: unknown flag, missing or contradictory argument. Exit code 2. */
export class UsageError extends OpmateError {
  override readonly name: string = 'UsageError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('USAGE', message, details);
  }
}

/** A cap was reached; the message names the cap and the hint names the flag that raises it. */
export class LimitError extends OpmateError {
  override readonly name: string = 'LimitError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('LIMIT', message, details);
  }
}

/** Content whose digest or size differs from what its descriptor promised. */
export class DigestMismatchError extends OpmateError {
  override readonly name: string = 'DigestMismatchError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('DIGEST', message, details);
  }
}

/** An answer of a registry that is not a success. */
export class RegistryError extends OpmateError {
  override readonly name: string = 'RegistryError';
  /** HTTP status of the last answer. */
  readonly status: number;
  /** Error codes of the distribution specification that the body carried, e.g. `MANIFEST_UNKNOWN`. */
  readonly registryCodes: readonly string[];
  constructor(
    message: string,
    details: ErrorDetails & { status: number; registryCodes?: readonly string[]; code?: ErrorCode },
  ) {
    super(details.code ?? 'REGISTRY', message, details);
    this.status = details.status;
    this.registryCodes = details.registryCodes ?? [];
  }
}

/** Thrown when the caller's AbortSignal fires. Exit code 130 on the command line. */
export class CancelledError extends OpmateError {
  override readonly name: string = 'CancelledError';
  constructor(message = 'cancelled', details: ErrorDetails = {}) {
    super('CANCELLED', message, details);
  }
}

/** Throws CancelledError when `signal` has fired. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CancelledError('cancelled', { cause: signal.reason });
}

/** The message of anything that was thrown; that of a system error with a path or address as Go has it, `open FILE: why`. */
export function getMessage(error: unknown): string {
  return systemMessage(error) ?? (error instanceof Error ? error.message : String(error));
}

/** The `code` of a Node.js system error (`ENOENT`, `EPIPE` …), if it is one. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** What system errors mean, in the words that `opm` and the shell use. */
const systemReasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'read-only file system',
  ENOSPC: 'no space left on device',
  ETXTBSY: 'in use',
  EXDEV: 'on another file system',
  ENAMETOOLONG: 'name too long',
  ENOTEMPTY: 'directory not empty',
  EEXIST: 'already exists',
  EMFILE: 'too many open files',
  ELOOP: 'too many levels of symbolic links',
  EIO: 'input/output error',
  EADDRINUSE: 'address already in use',
  EADDRNOTAVAIL: 'address not available on this machine',
  ENOTFOUND: 'no such host',
};

/** Why a file operation failed, in a few words without the path. */
export function systemReason(error: unknown): string {
  return systemReasons[systemCode(error) ?? ''] ?? getMessage(error);
}

/** The operation of a system error, what it was about, and why it failed; undefined for any other error. */
function systemMessage(error: unknown): string | undefined {
  const reason = systemReasons[systemCode(error) ?? ''];
  if (reason === undefined || !(error instanceof Error)) return undefined;
  const { syscall, path, dest, address, port }: SystemErrorFields = error;
  if (typeof syscall !== 'string') return undefined;
  if (typeof path === 'string') {
    if (syscall.startsWith('spawn')) {
      return `${path}: ${systemCode(error) === 'ENOENT' ? 'command not found' : reason}`;
    }
    return `${syscall} ${path}${typeof dest === 'string' ? ` to ${dest}` : ''}: ${reason}`;
  }
  if (typeof address !== 'string') return undefined;
  const host = address.includes(':') ? `[${address}]` : address;
  return `${syscall} ${host}${typeof port === 'number' ? `:${port}` : ''}: ${reason}`;
}

interface SystemErrorFields extends Error {
  syscall?: unknown;
  path?: unknown;
  dest?: unknown;
  address?: unknown;
  port?: unknown;
}

/**
 * Turns what Node.js throws for a cause outside of opmate into the error that is reported: a system error, a text or
 * buffer beyond the limits of the engine, an invalid URL. Returns any other error as it is.
 */
export function reportedError(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof OpmateError) return error;
  const code = systemCode(error) ?? '';
  const message = systemMessage(error);
  if (message !== undefined) {
    const isMissing = code === 'ENOENT' || code === 'ENOTDIR';
    return new OpmateError(isMissing ? 'NOT_FOUND' : 'IO', message, { cause: error });
  }
  const isTooLarge =
    ['ERR_STRING_TOO_LONG', 'ERR_FS_FILE_TOO_LARGE', 'ERR_BUFFER_TOO_LARGE'].includes(code) ||
    (error instanceof RangeError &&
      /^(?:Invalid string length|Array buffer allocation failed)$/.test(error.message));
  if (isTooLarge) return new LimitError('content too large to hold in memory', { cause: error });
  if (code === 'ERR_INVALID_URL') {
    const { input }: { input?: unknown } = error as { input?: unknown };
    return new OpmateError('INVALID', `${JSON.stringify(input ?? '')}: invalid URL`, { cause: error });
  }
  return error;
}

/** The error of a file operation: `what: why`, NOT_FOUND where there is nothing of that name, else IO. */
export function fileError(what: string, error: unknown, details: ErrorDetails = {}): OpmateError {
  if (error instanceof OpmateError) return error;
  const code = systemCode(error);
  const missing = code === 'ENOENT' || code === 'ENOTDIR';
  return new OpmateError(missing ? 'NOT_FOUND' : 'IO', systemReason(error), {
    subject: what,
    ...details,
    cause: error,
  });
}

export { redact } from './redact.js';
