import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import { kill } from 'node:process';
import { PassThrough, type Readable } from 'node:stream';
import { type CancelOptions, onAbort } from '../core/concurrency.js';
import {
  CancelledError,
  type ErrorCode,
  LimitError,
  OpmateError,
  redactForeign,
  systemCode,
  systemReason,
  throwIfCancelled,
} from '../core/errors.js';

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface RunProgramOptions extends CancelOptions {
  /** Name of the program in messages. */
  name: string;
  /** Complete environment of the program. */
  environment: Environment;
  /** Working directory; default: that of opmate. */
  workingDirectory?: string | undefined;
  /** Standard input. */
  input?: string | undefined;
  /** Grace period after cancellation, in milliseconds; default: none. */
  graceMs?: number | undefined;
  /** Time-out in milliseconds, after which the program and its descendants are killed; default: 5 minutes. */
  timeoutMs?: number | undefined;
  /** Error code of a time-out; default: LIMIT. */
  timeoutCode?: ErrorCode | undefined;
  /** Maximum bytes of collected output; default: 64 MiB. */
  maxOutput?: number | undefined;
  /** Hint for a program that is not installed, whose error is then UNSUPPORTED instead of IO. */
  installHint?: string | undefined;
}

const defaultTimeoutMs = 5 * 60_000;
const defaultMaxOutput = 64 * 1024 * 1024;
/** Maximum kept of stderr: its end. */
const maxMessages = 256 * 1024;
const maxMessage = 500;

/**
 * Returns the path of a program: the first executable file of that name in the absolute directories of PATH. Relative
 * ones are skipped, as they depend on the working directory. Undefined if missing.
 */
export async function findProgram(name: string, environment: Environment): Promise<string | undefined> {
  for (const directory of listDirectories(environment)) {
    const file = path.join(directory, name);
    try {
      await access(file, constants.X_OK);
      if ((await stat(file)).isFile()) return file;
    } catch {
      // Not here.
    }
  }
  return undefined;
}

function listDirectories({ PATH = '' }: Environment): string[] {
  return PATH.split(':').filter((directory) => path.isAbsolute(directory));
}

/** Returns an environment in which programs, and those that they run, are found as by `findProgram`. */
function withAbsolutePath(environment: Environment): NodeJS.ProcessEnv {
  if (environment['PATH'] === undefined) return { ...environment };
  // An empty PATH would be the working directory.
  return { ...environment, PATH: listDirectories(environment).join(':') || '/dev/null' };
}

/**
 * Runs a program and returns its output. Throws OpmateError INVALID with its last line of stderr if it fails, LIMIT
 * for time-out and size.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<Buffer> {
  const { stdout, ...end } = await runToEnd(file, args, options);
  if (end.code === 0) return stdout;
  throw failure(options.name, end);
}

/** Exit of a program. */
export interface ProgramEnd {
  /** End of stderr. */
  messages: string;
  /** Exit code; null if ended by a signal. */
  code: number | null;
  signalName: string | null;
}

/**
 * Runs a program to its end, successful or not. Throws CancelledError; OpmateError LIMIT for time-out and size, IO if
 * it cannot be started, UNSUPPORTED if it is not installed and there is an `installHint`.
 */
export async function runToEnd(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<ProgramEnd & { stdout: Buffer }> {
  const { name, maxOutput = defaultMaxOutput } = options;
  throwIfCancelled(options.signal);
  // Descendants that still hold the output do not matter once the program ended.
  const program = new RunningProgram(file, args, options, (stdout) => stdout.destroy());
  const chunks: Buffer[] = [];
  let size = 0;
  program.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxOutput) {
      program.stop(new LimitError(`prints more than ${maxOutput} bytes`, { subject: name }));
    } else chunks.push(chunk);
  });
  const end = await program.end;
  return { ...end, stdout: Buffer.concat(chunks) };
}

/**
 * Runs a program and returns its output as a stream, which fails at its end if the program fails: with the error of
 * `toError`, else as `runToEnd`. Destroying the stream ends the program.
 */
export function streamProgram(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
  toError: (end: ProgramEnd) => OpmateError,
): Readable {
  const program = new RunningProgram(file, args, options);
  const output = new PassThrough();
  program.stdout.pipe(output, { end: false });
  output.once('close', () => program.stop(new CancelledError()));
  program.end.then(
    (end) => (end.code === 0 ? output.end() : output.destroy(toError(end))),
    (error: unknown) => output.destroy(error as Error),
  );
  return output;
}

/** Time that descendants may keep the output open after the end. */
const lingeringMs = 2000;

/** A program with its descendants, from its start to its end. */
class RunningProgram {
  readonly #graceMs: number;
  /** A separate process group: descendants end with it, and Ctrl-C on a terminal reaches opmate alone. */
  readonly #child: ChildProcess;
  readonly stdout: Readable;
  readonly #stderr: Readable;
  #fault: OpmateError | undefined;
  #hasEnded = false;
  #lingering: NodeJS.Timeout | undefined;
  readonly #timer: NodeJS.Timeout;
  readonly #unwatch: () => void;
  /** Resolves when the program ended and its output is read; rejects as `runToEnd`. */
  readonly end: Promise<ProgramEnd>;

  /** Starts the program; `onLingering` is called if the output is still open some time after the end. */
  constructor(
    file: string,
    args: readonly string[],
    options: RunProgramOptions,
    onLingering?: (stdout: Readable) => void,
  ) {
    const { name, input, signal, graceMs = 0, timeoutMs = defaultTimeoutMs, timeoutCode = 'LIMIT' } = options;
    this.#graceMs = graceMs;
    this.#child = spawn(file, args, {
      cwd: options.workingDirectory,
      env: withAbsolutePath(options.environment),
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    const { stdin, stdout, stderr } = this.#child as ChildProcess & { stdout: Readable; stderr: Readable };
    this.stdout = stdout;
    this.#stderr = stderr;
    let messages = Buffer.alloc(0);
    this.#timer = setTimeout(() => {
      const problem = `timed out after ${timeoutMs / 1000} s`;
      this.stop(new OpmateError(timeoutCode, problem, { subject: name }));
    }, timeoutMs);
    this.#unwatch = onAbort(signal, () => this.stop(new CancelledError()));
    this.#stderr.on('data', (chunk: Buffer) => {
      messages = Buffer.concat([messages, chunk]).subarray(-maxMessages);
    });
    // The program may end before reading everything; its exit is reported elsewhere.
    stdin?.on('error', () => undefined);
    stdin?.end(input);
    this.end = new Promise<ProgramEnd>((resolve, reject) => {
      this.#child.once('error', (error) => {
        this.#finish();
        reject(startFault(file, error, options));
      });
      this.#child.once('exit', () => {
        this.#lingering ??= setTimeout(() => {
          killGroup(this.#child, 'SIGKILL');
          this.#stderr.destroy();
          onLingering?.(this.stdout);
        }, lingeringMs);
      });
      this.#child.once('close', (code, signalName) => {
        this.#finish();
        killGroup(this.#child, 'SIGKILL');
        if (this.#fault !== undefined) reject(this.#fault);
        else resolve({ messages: messages.toString(), code, signalName });
      });
    });
  }

  #killAll(): void {
    killGroup(this.#child, 'SIGKILL');
    this.stdout.destroy();
    this.#stderr.destroy();
  }

  /** Ends the program and its descendants; `end` rejects with the error. */
  stop(error: OpmateError): void {
    if (this.#fault !== undefined || this.#hasEnded) return;
    this.#fault = error;
    if (this.#graceMs === 0) this.#killAll();
    else {
      killGroup(this.#child, 'SIGTERM');
      this.#lingering = setTimeout(() => this.#killAll(), this.#graceMs);
    }
  }

  #finish(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lingering);
    this.#unwatch();
  }
}

function killGroup({ pid }: ChildProcess, signalName: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    kill(-pid, signalName);
  } catch {
    // All of it has ended.
  }
}

function startFault(file: string, error: Error, { name, installHint }: RunProgramOptions): OpmateError {
  if (installHint === undefined) {
    const problem = `cannot be started: ${systemReason(error)}`;
    return new OpmateError('IO', problem, { subject: name, cause: error });
  }
  const isMissing = systemCode(error) === 'ENOENT';
  const problem = isMissing ? 'not installed' : systemReason(error);
  return new OpmateError(isMissing ? 'UNSUPPORTED' : 'IO', problem, {
    subject: file,
    hint: installHint,
    cause: error,
  });
}

function failure(name: string, { code, signalName, messages }: ProgramEnd): OpmateError {
  const last = messages.split('\n').findLast((line) => line.trim() !== '');
  const how = code === null ? `ended by ${signalName}` : `exit code ${code}`;
  const detail = last === undefined ? how : `${redactForeign(last.trim()).slice(0, maxMessage)} (${how})`;
  return new OpmateError('INVALID', `${name}: ${detail}`);
}
