import type { Ora } from 'ora';
import { redactUrls } from '../core/errors.js';
import { type Diagnostic, formatWithHint } from '../core/diagnostic.js';
import {
  type LogFields,
  type LogLevel,
  type Logger,
  type ProgressEvent,
  severityLevels,
} from '../core/log.js';
import type { CommandContext } from './context.js';
import type { GlobalOptions } from './command/global-flags.js';
import { encodeJsonLine, encodeLine } from './reports/json-line.js';
import { printable } from './printable.js';
import { withFlags } from './reports/option-words.js';
import { type RunningTask, describeProgress, withEvent } from './progress-text.js';

const order: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

/** Logger that can clear the terminal. */
export interface ClosableLogger extends Logger {
  /** Logs a line without a level, at level `info`. */
  say(line: string): void;
  report(diagnostic: Diagnostic): void;
  close(): void;
}

/** Returns the log level: debug for `--debug` and `-v`, error for `-q`, else `--log-level` or info. */
export function parseLevel(options: GlobalOptions): LogLevel {
  if (options.debug === true || options.verbose === true) return 'debug';
  return options.quiet === true ? 'error' : (options.logLevel ?? 'info');
}

/**
 * Returns a logger for stderr: text, or JSON lines with `--log-format json`. Progress is a spinner on a terminal, JSON
 * lines in JSON, else a line every ten seconds; in JSON, too, what goes on is reported that often.
 */
export function createLogger(context: CommandContext, options: GlobalOptions): ClosableLogger {
  const minimum = parseLevel(options);
  const isJson = options.logFormat === 'json';
  const lines = createLineWriter(
    context,
    isJson ? (text) => text : (text) => printable(redactUrls(withFlags(text))),
  );
  const hasSpinner = !isJson && wantsSpinner(context);
  const spinner = createSpinner(context);
  const shows = (level: LogLevel): boolean => order[level] <= order[minimum];
  const toJson = (line: object): string =>
    `${encodeJsonLine({ time: context.now().toISOString(), ...line })}\n`;
  const log = (
    put: (line: string) => void,
    level: LogLevel,
    message: string,
    fields: LogFields = {},
  ): void => {
    if (!shows(level)) return;
    spinner.clear();
    put(isJson ? toJson({ level, message, ...fields }) : formatText(level, message, fields));
  };
  const heartbeat = createHeartbeat((running) => {
    if (isJson) for (const { event } of running) lines.write(toJson({ level: 'info', progress: event }));
    else log(lines.write, 'info', describeProgress(running, context.now().getTime()));
  });
  return {
    shows,
    log: (level, message, fields) => log(lines.write, level, message, fields),
    logOften: (level, message, fields) => log(lines.hold, level, message, fields),
    say: (line) => log((text) => lines.write(isJson ? text : `${line}\n`), 'info', line),
    report(diagnostic) {
      const level = severityLevels[diagnostic.severity];
      if (!isJson) log(lines.write, level, formatWithHint(diagnostic));
      else if (shows(level)) lines.write(toJson(encodeLine(diagnostic)));
    },
    progress(event) {
      if (!shows('info')) return;
      if (hasSpinner) return spinner.show(event);
      if (isJson) lines.write(toJson({ level: 'info', progress: event }));
      heartbeat.note(event, context.now().getTime());
    },
    close() {
      heartbeat.close();
      lines.flush();
      spinner.close();
    },
  };
}

/** Limits of messages in one write. */
const heldMs = 50;
const maxHeld = 500;

/** Writes messages in order, one by one or together, as `toShown` returns them. */
function createLineWriter(context: CommandContext, toShown: (text: string) => string) {
  let held: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (held.length === 0) return;
    context.stderr.write(toShown(held.join('')));
    held = [];
  };
  return {
    flush,
    write(message: string): void {
      flush();
      context.stderr.write(toShown(message));
    },
    hold(message: string): void {
      held.push(message);
      if (held.length >= maxHeld) flush();
      else timer ??= setTimeout(flush, heldMs);
    },
  };
}

/** Interval of progress lines where stderr is no terminal: a log shows that a run lives, and does not fill a disk. */
const heartbeatMs = 10_000;

/** Calls `beat` with the running tasks every ten seconds while there are any. Close it at the end. */
function createHeartbeat(beat: (running: readonly RunningTask[]) => void) {
  let running: ReadonlyMap<string, RunningTask> = new Map();
  let timer: NodeJS.Timeout | undefined;
  return {
    /** `now` is in milliseconds. */
    note(event: ProgressEvent, now: number): void {
      running = withEvent(running, event, now);
      timer ??= setInterval(() => running.size > 0 && beat([...running.values()]), heartbeatMs).unref();
    },
    close(): void {
      clearInterval(timer);
      running = new Map();
    },
  };
}

/** Columns of the spinner with a space, and the last column, at which some terminals wrap. */
const spinnerWidth = 3;

/** Shows the running tasks on a terminal. The spinner is loaded on first use; most commands need none. */
function createSpinner(context: CommandContext) {
  let loading: Promise<void> | undefined;
  let spinner: Ora | undefined;
  let isClosed = false;
  let running: ReadonlyMap<string, RunningTask> = new Map();
  const describe = (): string => {
    const width = Math.max(1, (context.stderr.columns ?? Infinity) - spinnerWidth);
    return describeProgress(running.values(), context.now().getTime(), width);
  };
  const load = async (): Promise<void> => {
    const { default: ora } = await import('ora');
    if (isClosed) return;
    const stream = context.stderr as NodeJS.WriteStream;
    // Standard input belongs to the command, and Ctrl-C to the terminal.
    spinner = ora({ text: describe(), stream, discardStdin: false }).start();
  };
  return {
    clear: () => void spinner?.clear(),
    show(event: ProgressEvent): void {
      if (isClosed) return;
      running = withEvent(running, event, context.now().getTime());
      loading ??= load();
      if (spinner === undefined) return;
      // Between tasks there is nothing to show.
      if (running.size === 0) spinner.stop();
      else {
        spinner.text = describe();
        if (!spinner.isSpinning) spinner.start();
      }
    },
    close(): void {
      isClosed = true;
      spinner?.stop();
      spinner = undefined;
    },
  };
}

function wantsSpinner({ environment, stderr }: CommandContext): boolean {
  // A terminal without a size, as some tools make, cannot be redrawn: the spinner would never end.
  const hasSize = (stderr.columns ?? 0) > 0;
  return stderr.isTTY === true && hasSize && !environment['CI'] && environment['TERM'] !== 'dumb';
}

function formatText(level: LogLevel, message: string, fields: LogFields): string {
  let text = message;
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) text += ` ${key}=${String(value)}`;
  }
  return `${level}: ${text}\n`;
}
