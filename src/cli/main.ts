import { tmpdir } from 'node:os';
import path from 'node:path';
import { getHomeDirectory } from '../api/own-process.js';
import type { Writable } from 'node:stream';
import { encodeDiagnostic, formatDiagnostic, formatWithHint } from '../core/diagnostic.js';
import { diagnosticsFrom, findSharedHint, namesLine } from '../core/diagnostics-error.js';
import {
  CancelledError,
  type ErrorCode,
  OpmateError,
  getMessage,
  redactForeign,
  redactUrls,
  reportedError,
} from '../core/errors.js';
import type { CommandContext } from './context.js';
import { getExitCode, exitCodes } from './exit-codes.js';
import { encodeJsonLine } from './reports/json-line.js';
import type { JsonLines } from './json-lines.js';
import { OutputClosedError } from './output.js';
import { type Paint, loadPaint, paintSeverity, plain } from './paint.js';
import { withFlags } from './reports/option-words.js';
import { printable, printableLine } from './printable.js';
import { type RunState, runCommandLine } from './program.js';

/** Signals that cancel a command or stop a server; SIGHUP when its terminal closes. */
const stopSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** A program that preceded `opm`. */
interface OldProgram {
  command: readonly string[];
  /** Flags for its input; without one of them the first is reported as missing. */
  sources?: readonly string[];
  /** Its short flags that the command has for something else. */
  shortFlags?: Readonly<Record<string, string>>;
}

/** Programs that preceded `opm`, and the commands that replace them: links with these names run them. */
const opmPrograms: Readonly<Record<string, OldProgram>> = {
  'operator-registry': { command: [] },
  initializer: { command: ['registry', 'init'] },
  'registry-server': { command: ['registry', 'serve'] },
  'configmap-server': {
    command: ['registry', 'serve'],
    sources: ['--configmap', '--configMapName', '--configmap-name'],
    shortFlags: { c: '--configMapName', n: '--configMapNamespace', k: '--kubeconfig' },
  },
  'appregistry-server': { command: ['registry', 'serve'], sources: ['--appregistry-namespace'] },
};

/** Returns the arguments with the command of a program. A missing source becomes a flag without value, which is reported. */
function withProgram(name: string, args: readonly string[]): string[] {
  const program = Object.hasOwn(opmPrograms, name) ? opmPrograms[name] : undefined;
  const { command = [], sources: [first, ...others] = [], shortFlags = {} } = program ?? {};
  const long = args.map((arg) => {
    const [, letter = '', value = ''] = /^-(\w)=?(.*)$/s.exec(arg) ?? [];
    const flag = Object.hasOwn(shortFlags, letter) ? shortFlags[letter] : undefined;
    if (flag === undefined) return arg;
    return value === '' ? flag : `${flag}=${value}`;
  });
  const known = new Set(['-h', '--help', first, ...others]);
  const isOptional = long.some((arg) => known.has(arg.split('=', 1)[0]));
  return [...command, ...long, ...(first === undefined || isOptional ? [] : [first])];
}

/** Runs the command line and sets the exit code: only here the process is read and errors become text. */
export async function main(): Promise<void> {
  const cancel = new AbortController();
  let interrupted = false;
  const onSignal = (name: NodeJS.Signals): void => {
    // The second time, the user no longer wants to wait for things to be tidied up. A closing terminal may send several.
    if (interrupted && name !== 'SIGHUP') process.exit(exitCodes.interrupted);
    interrupted = true;
    cancel.abort(new CancelledError('interrupted'));
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  reportUncaught(process.argv.slice(2));
  // Opening a stream takes milliseconds, and many commands use one of the three.
  const context: CommandContext = {
    environment: process.env,
    workingDirectory: process.cwd(),
    homeDirectory: getHomeDirectory(),
    temporaryDirectory: tmpdir(),
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return ignoreFailure(process.stdout);
    },
    get stderr() {
      return ignoreFailure(process.stderr);
    },
    signal: cancel.signal,
    now: () => new Date(),
    architecture: process.arch,
  };
  const called = path.basename(process.argv[1] ?? 'opmate').replace(/\.c?js$/, '');
  const args = withProgram(called, process.argv.slice(2));
  reportWarnings(args, context);
  process.exitCode = await run(args, context, Object.hasOwn(opmPrograms, called) ? 'opm' : called);
  for (const signal of stopSignals) process.off(signal, onSignal);
}

/** Reports uncaught errors in the log format. */
function reportUncaught(args: readonly string[]): void {
  const debug = args.includes('--debug');
  const isJson = wantsJson(args);
  process.on('uncaughtException', (thrown) => {
    const error = reportedError(thrown);
    const text = isJson ? encodeError(error, new Date(), debug) : describeError(error, debug, plain);
    process.stderr.write(text, () => process.exit(exitCodes.failed));
  });
}

/** Reports warnings of Node.js with `--debug`. */
function reportWarnings(args: readonly string[], context: CommandContext): void {
  const debug = args.includes('--debug');
  const isJson = wantsJson(args);
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    if (!debug) return;
    const line = `warn: Node.js: ${name}: ${message}\n`;
    if (isJson) void loadJsonLines(context).then((lines) => lines.write(line));
    else context.stderr.write(line);
  });
}

/** Its module loads the streams of Node.js, which text does not need. */
async function loadJsonLines(context: CommandContext): Promise<JsonLines> {
  const { JsonLines } = await import('./json-lines.js');
  return new JsonLines(context);
}

const ignored = new WeakSet<Writable>();

/** Ignores errors of a stream; `writeAll` handles those of data. */
function ignoreFailure<T extends Writable>(stream: T): T {
  if (!ignored.has(stream)) stream.on('error', () => undefined);
  ignored.add(stream);
  return stream;
}

/** Runs a command line in a context and returns its exit code. Never throws. */
export async function run(args: readonly string[], outer: CommandContext, name = 'opmate'): Promise<number> {
  const lines = wantsJson(args) ? await loadJsonLines(outer) : undefined;
  const context = lines === undefined ? outer : withStderr(outer, lines);
  const state: RunState = { debug: false, usageCode: name === 'opm' ? exitCodes.failed : exitCodes.usage };
  try {
    return await runCommandLine(args, context, name, state);
  } catch (thrown) {
    const error = reportedError(thrown);
    if (error instanceof OutputClosedError) return exitCodes.outputClosed;
    if (context.signal.aborted || error instanceof CancelledError) {
      const hint = error instanceof CancelledError ? error.hint : undefined;
      context.stderr.write(`interrupted\n${hint === undefined ? '' : `hint: ${withFlags(hint)}\n`}`);
      return exitCodes.interrupted;
    }
    context.stderr.write(
      lines === undefined
        ? describeError(error, state.debug, await loadPaint(context))
        : encodeError(error, context.now(), state.debug),
    );
    return error instanceof OpmateError && error.code === 'USAGE' ? state.usageCode : getExitCode(error);
  } finally {
    lines?.flush();
  }
}

/** Reports whether the log format is JSON, also for arguments that cannot be parsed. */
function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  const flags = end === -1 ? args : args.slice(0, end);
  const index = flags.findLastIndex((word) => /^--log-format(?:=|$)/.test(word));
  return index !== -1 && (flags[index] === '--log-format=json' || flags[index + 1] === 'json');
}

/** Returns the context with another stderr; other streams stay lazy. */
function withStderr(context: CommandContext, stderr: CommandContext['stderr']): CommandContext {
  const properties = {
    ...Object.getOwnPropertyDescriptors(context),
    stderr: { value: stderr, enumerable: true },
  };
  return Object.defineProperties({}, properties) as CommandContext;
}

/** Returns an error as text: message, place, hint; causes and stacks with `--debug`. */
function describeError(error: unknown, debug: boolean, paint: Paint): string {
  let text: string;
  if (error instanceof OpmateError) {
    const { diagnostics = [] } = error;
    // Several diagnostics have different hints beside them.
    const advice = diagnostics.length > 1 ? findSharedHint(diagnostics) : error.hint;
    const hint = advice === undefined ? '' : `${paint.hint('hint:')} ${shown(advice)}\n`;
    const lines = new Set(getMessages(error).map(shown));
    text = `${[...lines].map((line) => `${paintSeverity('error', paint)} ${line}`).join('\n')}\n${formatPlace(error)}${hint}`;
  } else {
    text = `internal error: ${shown(redactForeign(getMessage(error)))}\nhint: please report this with the output of --debug\n`;
  }
  if (!debug) return text;
  for (
    let cause: unknown = error, depth = 0;
    cause instanceof Error && depth < 10;
    cause = cause.cause, depth++
  ) {
    text += `${shown(getStack(cause))}\n`;
  }
  return text;
}

/** Returns the lines of an error: one per diagnostic or combined error. */
function getMessages(error: OpmateError): string[] {
  if (error.diagnostics !== undefined && error.diagnostics.length > 1) {
    const hasSharedHint = findSharedHint(error.diagnostics) !== undefined;
    return error.diagnostics.map(hasSharedHint ? formatDiagnostic : formatWithHint);
  }
  const { cause } = error;
  if (!(cause instanceof AggregateError)) return [error.message];
  const errors: readonly unknown[] = cause.errors;
  const isReported = errors.every((item) => item instanceof OpmateError);
  return isReported
    ? errors.flatMap((opmateError) => getMessages(opmateError as OpmateError))
    : [error.message];
}

/** Returns an error as a line of `--log-format json`. */
function encodeError(error: unknown, now: Date, debug: boolean): string {
  const message = error instanceof OpmateError ? error.message : redactForeign(getMessage(error));
  const line = { time: now.toISOString(), level: 'error', message };
  const details =
    error instanceof OpmateError
      ? {
          code: toKebab(error.code),
          file: error.file,
          line: error.line,
          column: error.column,
          hint: error.hint,
          diagnostics: diagnosticsFrom(error).map(encodeDiagnostic),
        }
      : { code: 'internal' };
  const stack =
    debug && error instanceof Error && error.stack !== undefined ? { stack: getStack(error) } : {};
  return `${encodeJsonLine({ ...line, ...details, ...stack })}\n`;
}

/** Returns the stack of an error; what a library says in it is foreign text. */
function getStack(error: Error): string {
  const stack = error.stack ?? error.message;
  return error instanceof OpmateError ? stack : redactForeign(stack);
}

/** Spells the code of an error as those of diagnostics. */
function toKebab(code: ErrorCode): string {
  return code.toLowerCase().replaceAll('_', '-');
}

/** Removes credentials in URLs, and control characters. */
function shown(text: string): string {
  return printable(redactUrls(withFlags(text)));
}

function formatPlace(error: OpmateError): string {
  // A diagnostic begins with its place, and so do errors of syntax.
  if (error.diagnostics !== undefined) return '';
  if (error.file === undefined || error.line === undefined || namesLine(error)) return '';
  return `at: ${redactUrls(printableLine(error.file))}:${error.line}\n`;
}
