import { type Diagnostic, formatWithHint } from './diagnostic.js';
import { diagnosticsFrom } from './diagnostics-error.js';
import type { OpmateError } from './errors.js';

/** Log levels. The library logs through the caller's Logger and never prints. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

/** Additional fields of a log line; values must not hold credentials. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Receives log messages. Its methods must not throw and must return quickly: work waits for them. */
export interface Logger {
  /** Logs one message; the logger decides which levels to show. */
  log(level: LogLevel, message: string, fields?: LogFields): void;
  /** Logs one of many messages; the logger may delay and batch them. */
  logOften?(level: LogLevel, message: string, fields?: LogFields): void;
  /** Logs a diagnostic at the level of its severity. If missing, its text is logged. */
  report?(diagnostic: Diagnostic): void;
  /** Reports whether a level is shown, for messages that are expensive to create. If missing, all levels are shown. */
  shows?(level: LogLevel): boolean;
  /** Reports the progress of an operation; `total` is omitted if unknown. */
  progress(event: ProgressEvent): void;
}

/** Progress of an operation: at most one `start`, any number of `update`, one `done` or `failed`. */
export interface ProgressEvent {
  /** Name of the operation, constant through its events: `pull quay.io/ns/name:v1`. */
  task: string;
  state: 'start' | 'update' | 'done' | 'failed';
  current?: number;
  total?: number;
  unit?: 'bytes' | 'items';
  /** Names the part that is under way, e.g. an image; of several the one that began first. */
  item?: string;
}

/** Logger that drops everything; the default of library functions. */
export const silentLogger: Logger = {
  log: () => undefined,
  shows: () => false,
  progress: () => undefined,
};

/** Runs `work` as a task: reports its start, and its end as done or failed. Throws what `work` throws. */
export async function runTask<T>(logger: Logger, task: string, work: () => Promise<T>): Promise<T> {
  logger.progress({ task, state: 'start' });
  try {
    const result = await work();
    logger.progress({ task, state: 'done' });
    return result;
  } catch (error) {
    logger.progress({ task, state: 'failed' });
    throw error;
  }
}

/** Levels of severities. */
export const severityLevels = { error: 'error', warning: 'warn', notice: 'info' } as const;

/** Logs a diagnostic; see `Logger.report`. */
export function logDiagnostic(logger: Logger, diagnostic: Diagnostic): void {
  if (logger.report !== undefined) logger.report(diagnostic);
  else logger.log(severityLevels[diagnostic.severity], formatWithHint(diagnostic));
}

/** Logs the diagnostics of an error. */
export function logError(logger: Logger, error: OpmateError): void {
  for (const diagnostic of diagnosticsFrom(error)) logDiagnostic(logger, diagnostic);
}
