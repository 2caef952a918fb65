/** How the library tells what it does. It never prints: whoever calls it decides where this goes. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

/** Fields of a log line besides its message; values must not hold credentials. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Logger {
  log(level: LogLevel, message: string, fields?: LogFields): void;
  /** Tells how far a named piece of work is; `total` is left out where it is not known. */
  progress(event: ProgressEvent): void;
}

export interface ProgressEvent {
  /** What is being done, e.g. `pull quay.io/ns/name:v1`; stays the same through one piece of work. */
  task: string;
  state: 'start' | 'update' | 'done' | 'failed';
  current?: number;
  total?: number;
  unit?: 'bytes' | 'items';
}

/** A logger that drops everything; the default of every library function. */
export const silentLogger: Logger = { log: () => undefined, progress: () => undefined };
