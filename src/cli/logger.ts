import type { Ora } from 'ora';
import { redact } from '../core/errors.js';
import type { LogFields, LogLevel, Logger, ProgressEvent } from '../core/log.js';
import type { CommandContext } from './context.js';
import type { GlobalOptions } from './command/global-flags.js';
import { printable } from './printable.js';
import { type RunningTask, describeProgress, withEvent } from './progress-text.js';

const order: Readonly<Record<LogLevel, number>> = { error: 0, warn: 1, info: 2, debug: 3 };

/** Logger that can clear the terminal. */
export interface ClosableLogger extends Logger {
  /** Logs a line without a level, at level `info`. */
  say(line: string): void;
  close(): void;
}

/** Returns the log level: debug for `--debug` and `-v`, error for `-q`, else `--log-level` or info. */
export function parseLevel(options: GlobalOptions): LogLevel {
  if (options.debug === true || options.verbose === true) return 'debug';
  return options.quiet === true ? 'error' : (options.logLevel ?? 'info');
}

/**
 * Returns a logger for stderr: text, or JSON lines with `--log-format json`. Progress is a spinner on a terminal, JSON
 * lines in JSON, else omitted.
 */
export function createLogger(context: CommandContext, options: GlobalOptions): ClosableLogger {
  const level = parseLevel(options);
  return options.logFormat === 'json' ? new JsonLogger(context, level) : new TextLogger(context, level);
}

function wantsSpinner(context: CommandContext): boolean {
  const { environment, stderr } = context;
  // A terminal without a size, as some tools make, cannot be redrawn: the spinner would never end.
  const hasSize = (stderr.columns ?? 0) > 0;
  return stderr.isTTY === true && hasSize && !environment['CI'] && environment['TERM'] !== 'dumb';
}

/** Columns of the spinner with a space, and the last column, at which some terminals wrap. */
const spinnerWidth = 3;

/** Limits of messages in one write. */
const heldMs = 50;
const maxHeld = 500;

/** Writes messages in order without secrets, one by one or together. */
class LineWriter {
  readonly #context: CommandContext;
  readonly #toShown: (text: string) => string;
  #held: string[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** `toShown` is applied to text without secrets. */
  constructor(context: CommandContext, toShown = (text: string) => text) {
    this.#context = context;
    this.#toShown = toShown;
  }

  write(message: string): void {
    this.flush();
    this.#context.stderr.write(this.#toShown(redact(message)));
  }

  hold(message: string): void {
    this.#held.push(message);
    if (this.#held.length >= maxHeld) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), heldMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const held = this.#held;
    if (held.length === 0) return;
    this.#held = [];
    const text = held.join('');
    // One by one where there are secrets: a pattern must not reach into the next message.
    this.#context.stderr.write(this.#toShown(redact(text) === text ? text : held.map(redact).join('')));
  }
}

class JsonLogger implements ClosableLogger {
  readonly #context: CommandContext;
  readonly #lines: LineWriter;
  readonly #level: LogLevel;

  constructor(context: CommandContext, level: LogLevel) {
    this.#context = context;
    this.#lines = new LineWriter(context);
    this.#level = level;
  }

  shows(level: LogLevel): boolean {
    return order[level] <= order[this.#level];
  }

  log(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (this.shows(level)) this.#lines.write(this.#format({ level, message: redact(message), ...fields }));
  }

  logOften(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (this.shows(level)) this.#lines.hold(this.#format({ level, message: redact(message), ...fields }));
  }

  say(line: string): void {
    this.log('info', line);
  }

  progress(event: ProgressEvent): void {
    if (order.info <= order[this.#level]) this.#lines.write(this.#format({ level: 'info', progress: event }));
  }

  close(): void {
    this.#lines.flush();
  }

  #format(line: object): string {
    const time = this.#context.now().toISOString();
    return `${JSON.stringify({ time, ...line })}\n`;
  }
}

class TextLogger implements ClosableLogger {
  readonly #context: CommandContext;
  readonly #lines: LineWriter;
  readonly #level: LogLevel;
  /** Set at the first progress event. */
  #spins: boolean | undefined;
  #spinner: Ora | undefined;
  #starting = false;
  #closed = false;
  #running: ReadonlyMap<string, RunningTask> = new Map();

  constructor(context: CommandContext, level: LogLevel) {
    this.#context = context;
    this.#lines = new LineWriter(context, printable);
    this.#level = level;
  }

  shows(level: LogLevel): boolean {
    return order[level] <= order[this.#level];
  }

  log(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (!this.shows(level)) return;
    this.#spinner?.clear();
    this.#lines.write(formatText(level, message, fields));
  }

  logOften(level: LogLevel, message: string, fields: LogFields = {}): void {
    if (!this.shows(level)) return;
    this.#spinner?.clear();
    this.#lines.hold(formatText(level, message, fields));
  }

  say(line: string): void {
    if (order.info > order[this.#level]) return;
    this.#spinner?.clear();
    this.#lines.write(`${line}\n`);
  }

  progress(event: ProgressEvent): void {
    this.#spins ??= this.shows('info') && wantsSpinner(this.#context);
    if (!this.#spins || this.#closed) return;
    this.#running = withEvent(this.#running, event, this.#context.now().getTime());
    if (!this.#starting) {
      this.#starting = true;
      void this.#start();
    }
    if (this.#spinner === undefined) return;
    // Between tasks there is nothing to show.
    if (this.#running.size === 0) this.#spinner.stop();
    else {
      this.#spinner.text = this.#text();
      if (!this.#spinner.isSpinning) this.#spinner.start();
    }
  }

  close(): void {
    this.#lines.flush();
    this.#closed = true;
    this.#spinner?.stop();
    this.#spinner = undefined;
  }

  /** Loads the spinner on first use; most commands need none. */
  async #start(): Promise<void> {
    const { default: ora } = await import('ora');
    if (this.#closed) return;
    this.#spinner = ora({
      text: this.#text(),
      stream: this.#context.stderr as NodeJS.WriteStream,
      // Standard input belongs to the command, and Ctrl-C to the terminal.
      discardStdin: false,
    }).start();
  }

  #text(): string {
    const { stderr, now } = this.#context;
    const width = Math.max(1, (stderr.columns ?? Infinity) - spinnerWidth);
    return describeProgress(this.#running.values(), now().getTime(), width);
  }
}

function formatText(level: LogLevel, message: string, fields: LogFields): string {
  let text = message;
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) text += ` ${key}=${String(value)}`;
  }
  return `${level}: ${text}\n`;
}
