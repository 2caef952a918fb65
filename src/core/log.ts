/** How the library tells what it does. It never prints: whoever calls it decides where this goes. */
export type LogLevel = 'error' | 'warn' | 'info' | 'debug';

/** Fields of a log line in addition to its message; values must not hold credentials. */
export type LogFields = Readonly<Record<string, string | number | boolean | undefined>>;

/** Takes what there is to tell. Neither method may throw, nor take long: work waits for both. */
export interface Logger {
  /** Takes one message; whether a level is shown is for the logger to decide. */
  log(level: LogLevel, message: string, fields?: LogFields): void;
  /** The same for messages that come by the thousand: they may be written together, a moment later. */
  logOften?(level: LogLevel, message: string, fields?: LogFields): void;
  /** Whether a level is shown, for messages that cost something to make; all are where it is missing. */
  shows?(level: LogLevel): boolean;
  /** Tells how far a named piece of work is; `total` is left out where it is not known. */
  progress(event: ProgressEvent): void;
}

/** How far a piece of work is: one `start` or none, any number of `update`, one `done` or `failed`. */
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
