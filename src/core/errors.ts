import { type Diagnostic, type DocumentPath, formatMessage } from './diagnostic.js';
import { quoteGo } from './go-json-quote.js';
import { isSecretName, redactUrls } from './redact.js';

/**
 * The errors that opmate reports.
 *
 * Every failure that a user can cause or meet is an OpmateError: a subject, a problem and, where useful, a hint. The
 * command line prints `message`, then `hint: …`; library callers switch on `code`.
 */

/** Kind of a failure; the set is closed, so callers can switch on it. */
export type ErrorCode =
  | 'USAGE' // invalid flags or arguments
  | 'NOT_FOUND' // file, directory, manifest, blob, package … not found
  | 'IO' // reading or writing failed: permissions, disk full, broken pipe
  | 'SYNTAX' // content does not parse
  | 'INVALID' // content parses, but breaks a rule
  | 'UNSUPPORTED' // valid, but not supported
  | 'LIMIT' // size, count or ratio limit exceeded
  | 'DIGEST' // content differs from the expected digest or size
  | 'UNSAFE' // a path, link or reference leaves its directory
  | 'AUTH' // credentials are missing, rejected or unreadable
  | 'NETWORK' // connection, TLS, proxy, time-out
  | 'REGISTRY' // error response of a registry
  | 'CANCELLED' // cancelled by the caller's AbortSignal
  | 'INTERNAL'; // a defect of opmate itself

/** Optional fields of an error. */
export interface ErrorDetails {
  /** File that is both `subject` and `file`. */
  about?: string | undefined;
  /** Start of the message: a file, a reference, a package. */
  subject?: string | undefined;
  /** Suggested action, one sentence without a full stop; by default that of `findWriteHint` for the cause. */
  hint?: string | undefined;
  /** File as the user named it. */
  file?: string | undefined;
  /** One-based line in `file`. */
  line?: number | undefined;
  /** One-based column in `line`. */
  column?: number | undefined;
  /** Path of the value in its document. */
  path?: DocumentPath | undefined;
  /** Cause of the error; shown with `--debug` only. */
  cause?: unknown;
  /** All problems, where the message summarizes several. */
  diagnostics?: readonly Diagnostic[] | undefined;
}

/**
 * Base class of all reported errors. `message` is one line, `subject: problem`, without a full stop, and never
 * contains a credential: foreign text is redacted where it enters (see `redactForeign`).
 */
export class OpmateError extends Error {
  override readonly name: string = 'OpmateError';
  readonly code: ErrorCode;
  /** Subject; undefined where the problem names it. */
  readonly subject: string | undefined;
  readonly problem: string;
  readonly hint: string | undefined;
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  readonly path: DocumentPath | undefined;
  readonly diagnostics: readonly Diagnostic[] | undefined;
  /** Attempts before the failure, appended to the message in parentheses. See `addNote`. */
  declare readonly note?: string;

  constructor(code: ErrorCode, problem: string, details: ErrorDetails = {}) {
    const { about, subject = about, file = about, cause } = details;
    super(formatMessage({ subject, problem }), cause === undefined ? undefined : { cause });
    this.code = code;
    this.subject = subject;
    this.problem = problem;
    this.hint = details.hint ?? findWriteHint(cause);
    this.file = file;
    this.line = details.line;
    this.column = details.column;
    this.path = details.path;
    this.diagnostics = details.diagnostics;
  }
}

/** Invalid use of a command: unknown flag, missing or conflicting argument. Exit code 2. */
export class UsageError extends OpmateError {
  override readonly name: string = 'UsageError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('USAGE', message, details);
  }
}

/** Returns the error for a value of a flag or argument: `--port "x": not a port`. */
export function invalidValue(
  name: string,
  value: string,
  problem: string,
  details: Omit<ErrorDetails, 'subject'> = {},
): UsageError {
  const subject = isSecretName(name) ? name : `${name} ${quoteGo(redactUrls(value))}`;
  return new UsageError(problem, { subject, ...details });
}

/** Returns what `read` makes of the text of a flag, argument or option. Throws UsageError that names it and the text. */
export function readValue<T>(name: string, text: string, read: (text: string) => T): T {
  try {
    return read(text);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw invalidValue(name, text, error.message, { hint: error.hint });
  }
}

/** A limit is exceeded; the message names the limit and the hint the flag that raises it. */
export class LimitError extends OpmateError {
  override readonly name: string = 'LimitError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('LIMIT', message, details);
  }
}

/** Content differs from the digest or size in its descriptor. */
export class DigestMismatchError extends OpmateError {
  override readonly name: string = 'DigestMismatchError';
  constructor(message: string, details: ErrorDetails = {}) {
    super('DIGEST', message, details);
  }
}

/** An error response of a registry. */
export class RegistryError extends OpmateError {
  override readonly name: string = 'RegistryError';
  /** HTTP status of the last response. */
  readonly status: number;
  /** Error codes in the response body, such as `MANIFEST_UNKNOWN`. (Source: OCI distribution specification.) */
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

/** The caller's AbortSignal was aborted. Exit code 130 on the command line. */
export class CancelledError extends OpmateError {
  override readonly name: string = 'CancelledError';
  constructor(message = 'cancelled', details: ErrorDetails = {}) {
    super('CANCELLED', message, details);
  }
}

/** Throws CancelledError if `signal` is aborted. */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CancelledError('cancelled', { cause: signal.reason });
}

/** Returns the message of any thrown value; that of a system error with a path or address is `FILE: reason`. */
export function getMessage(error: unknown): string {
  return systemMessage(error) ?? (error instanceof Error ? error.message : String(error));
}

/** Returns the `code` of a Node.js system error (`ENOENT`, `EPIPE` …); undefined for other errors. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Meanings of system errors, in the words of `opm` and the shell. */
const systemReasons: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  ENOTDIR: 'not a directory',
  EISDIR: 'is a directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EROFS: 'read-only file system',
  ENOSPC: 'no space left on device',
  EDQUOT: 'disk quota exceeded',
  ETXTBSY: 'in use',
  EXDEV: 'invalid cross-device link',
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

/** Returns why a file operation failed, in a few words without the path. */
export function systemReason(error: unknown): string {
  return systemReasons[systemCode(error) ?? ''] ?? getMessage(error);
}

/** Operations that write, of which alone a refused permission is one to write. */
const writing: ReadonlySet<unknown> = new Set([
  'mkdir',
  'mkdtemp',
  'rename',
  'link',
  'symlink',
  'unlink',
  'rmdir',
  'chmod',
  'copyfile',
  'ftruncate',
  'write',
]);

/**
 * Returns the hint for a system error of an operation that writes; undefined for other errors. That an opened file was
 * to be written does not show in the error: `isWriting` says so.
 */
function findWriteHint(error: unknown, { isWriting = false } = {}): string | undefined {
  if (!(error instanceof Error) || error instanceof OpmateError) return undefined;
  const { syscall }: SystemErrorFields = error;
  switch (systemCode(error)) {
    case 'EROFS':
    case 'SQLITE_READONLY':
      return 'specify a writable directory';
    case 'EACCES':
    case 'EPERM':
      return isWriting || writing.has(syscall) ? 'specify a writable directory' : undefined;
    case 'ENOSPC':
    case 'EDQUOT':
    case 'SQLITE_FULL':
      // Watches have a limit of their own under this code.
      return syscall === 'watch' ? undefined : 'free space, or write to another disk';
    default:
      return undefined;
  }
}

/** Operations that messages omit, as every file is opened. */
const finding: ReadonlySet<string> = new Set([
  'open',
  'stat',
  'lstat',
  'access',
  'scandir',
  'opendir',
  'realpath',
]);

/** Returns the operation, path or address, and reason of a system error; undefined for other errors. */
function systemMessage(error: unknown): string | undefined {
  const reason = systemReasons[systemCode(error) ?? ''];
  if (reason === undefined || !(error instanceof Error)) return undefined;
  const { syscall, path, dest, address, port }: SystemErrorFields = error;
  if (typeof syscall !== 'string') return undefined;
  if (typeof path === 'string') {
    if (syscall.startsWith('spawn')) {
      return `${path}: ${systemCode(error) === 'ENOENT' ? 'command not found' : reason}`;
    }
    if (finding.has(syscall)) return `${path}: ${reason}`;
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
 * Converts what Node.js throws for an external cause into a reported error: a system error, a text or buffer beyond
 * the limits of the engine, an invalid URL. Returns other errors unchanged.
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
    return new OpmateError('INVALID', `${JSON.stringify(redactUrls(String(input ?? '')))}: invalid URL`, {
      cause: error,
    });
  }
  return error;
}

/** Returns the error of a file operation: `what: reason`, NOT_FOUND for a missing file, otherwise IO. */
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

/** Returns the error of `fileError` for a file that is written, with a hint where it cannot be. */
export function writeError(what: string, error: unknown, details: ErrorDetails = {}): OpmateError {
  return fileError(what, error, { hint: findWriteHint(error, { isWriting: true }), ...details });
}

/** Returns a handler of a rejected file operation, which throws the error of `fileError`. */
export function throwFileError(what: string, details?: ErrorDetails): (error: unknown) => never {
  return (error) => {
    throw fileError(what, error, details);
  };
}

/** Returns what is read, or undefined if it is missing. */
export function ifFound<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: unknown) => {
    if (error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  });
}

export { redactForeign, redactUrls } from './redact.js';
