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
  redact,
  systemCode,
  systemReason,
  throwIfCancelled,
} from '../core/errors.js';

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface RunProgramOptions extends CancelOptions {
  /** What messages call the program. */
  name: string;
  /** All that it has in its environment. */
  environment: Environment;
  /** That of opmate where it is left out. */
  workingDirectory?: string | undefined;
  /** What it reads on its standard input. */
  input?: string | undefined;
  /** How long it may take to end once it is no longer wanted; it is killed at once where this is left out. */
  graceMs?: number | undefined;
  /** It is killed, with all that it has started, after this time; 5 minutes. */
  timeoutMs?: number | undefined;
  /** Code of the error where it takes longer; LIMIT. */
  timeoutCode?: ErrorCode | undefined;
  /** Bytes that it may print where its output is collected; 64 MiB. */
  maxOutput?: number | undefined;
  /** What to do where it is not installed: then the error is UNSUPPORTED instead of IO. */
  installHint?: string | undefined;
}

const defaultTimeoutMs = 5 * 60_000;
const defaultMaxOutput = 64 * 1024 * 1024;
/** What is kept of its messages: the end of them. */
const maxMessages = 256 * 1024;
const maxMessage = 500;

/**
 * Where a program is: the first executable file of that name in the absolute directories of PATH. Others are passed
 * over, for they would look into the directory that is worked on. Undefined if missing.
 */
export async function findProgram(name: string, environment: Environment): Promise<string | undefined> {
  for (const directory of (environment['PATH'] ?? '').split(':')) {
    if (!path.isAbsolute(directory)) continue;
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

/**
 * Runs a program to its end, and gives what it prints. Throws OpmateError INVALID with the last line of its messages
 * where it fails, LIMIT beyond the time and the size.
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

/** How a program has ended. */
export interface ProgramEnd {
  /** The end of what is on stderr. */
  messages: string;
  /** Null where a signal ended it. */
  code: number | null;
  signalName: string | null;
}

/**
 * Runs a program to its end, however it ends. Throws CancelledError, OpmateError LIMIT beyond the time and the size, IO
 * where it cannot be started, UNSUPPORTED where it is not installed and there is an `installHint`.
 */
export async function runToEnd(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<ProgramEnd & { stdout: Buffer }> {
  const { name, maxOutput = defaultMaxOutput } = options;
  throwIfCancelled(options.signal);
  const program = startProgram(file, args, options);
  const chunks: Buffer[] = [];
  let size = 0;
  program.stdout.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxOutput) {
      program.stop(new LimitError(`prints more than ${maxOutput} bytes`, { subject: name }));
    } else chunks.push(chunk);
  });
  // Whatever still holds its output does not matter once it is gone itself.
  program.onLingering(() => program.stdout.destroy());
  const end = await program.end;
  return { ...end, stdout: Buffer.concat(chunks) };
}

/**
 * Runs a program and gives what it prints as a stream, which fails at its end where the program did: with the error that
 * `toError` makes of it, else as `runToEnd` throws. Whoever destroys the stream ends the program.
 */
export function streamProgram(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
  toError: (end: ProgramEnd) => OpmateError,
): Readable {
  const program = startProgram(file, args, options);
  const output = new PassThrough();
  program.stdout.pipe(output, { end: false });
  output.once('close', () => program.stop(new CancelledError()));
  program.end.then(
    (end) => (end.code === 0 ? output.end() : output.destroy(toError(end))),
    (error: unknown) => output.destroy(error as Error),
  );
  return output;
}

/** A program under way. */
interface StartedProgram {
  stdout: Readable;
  /** Fulfilled when it has ended and its output is read; fails as `runToEnd` does. */
  end: Promise<ProgramEnd>;
  /** Ends it and all that it has started; `end` fails with the error. */
  stop: (error: OpmateError) => void;
  /** Calls `fn` where its output is still open a while after its end. */
  onLingering: (fn: () => void) => void;
}

/** How long what a program has started may go on printing after its end. */
const lingeringMs = 2000;

function startProgram(file: string, args: readonly string[], options: RunProgramOptions): StartedProgram {
  const { name, input, signal, graceMs = 0 } = options;
  const { timeoutMs = defaultTimeoutMs, timeoutCode = 'LIMIT' } = options;
  // A group of its own, so that what it has started ends with it, and Ctrl-C on a terminal is for opmate alone.
  const child = spawn(file, args, {
    cwd: options.workingDirectory,
    env: { ...options.environment },
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const { stdin, stdout, stderr } = child as ChildProcess & { stdout: Readable; stderr: Readable };
  let messages = Buffer.alloc(0);
  let fault: OpmateError | undefined;
  let hasEnded = false;
  let lingering: NodeJS.Timeout | undefined;
  let whenLingering = (): void => undefined;
  const killAll = (): void => {
    killGroup(child, 'SIGKILL');
    stdout.destroy();
    stderr.destroy();
  };
  const stop = (error: OpmateError): void => {
    if (fault !== undefined || hasEnded) return;
    fault = error;
    if (graceMs === 0) killAll();
    else {
      killGroup(child, 'SIGTERM');
      lingering = setTimeout(killAll, graceMs);
    }
  };
  const timer = setTimeout(
    () => stop(new OpmateError(timeoutCode, `timed out after ${timeoutMs / 1000} s`, { subject: name })),
    timeoutMs,
  );
  const unwatch = onAbort(signal, () => stop(new CancelledError()));
  stderr.on('data', (chunk: Buffer) => {
    messages = Buffer.concat([messages, chunk]).subarray(-maxMessages);
  });
  // It may end without having read everything; how it ended is told elsewhere.
  stdin?.on('error', () => undefined);
  stdin?.end(input);
  const finish = (): void => {
    hasEnded = true;
    clearTimeout(timer);
    clearTimeout(lingering);
    unwatch();
  };
  const end = new Promise<ProgramEnd>((resolve, reject) => {
    child.once('error', (error) => {
      finish();
      reject(startFault(file, error, options));
    });
    child.once('exit', () => {
      lingering ??= setTimeout(() => {
        killGroup(child, 'SIGKILL');
        stderr.destroy();
        whenLingering();
      }, lingeringMs);
    });
    child.once('close', (code, signalName) => {
      finish();
      killGroup(child, 'SIGKILL');
      if (fault !== undefined) reject(fault);
      else resolve({ messages: messages.toString(), code, signalName });
    });
  });
  return { stdout, end, stop, onLingering: (fn) => (whenLingering = fn) };
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
  const detail = last === undefined ? how : last.trim().slice(0, maxMessage);
  return new OpmateError('INVALID', redact(`${name}: ${detail}`), last === undefined ? {} : { hint: how });
}
