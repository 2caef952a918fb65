import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { kill } from 'node:process';
import { type CancelOptions, onAbort } from '../../core/concurrency.js';
import {
  CancelledError,
  LimitError,
  OpmateError,
  redact,
  systemReason,
  throwIfCancelled,
} from '../../core/errors.js';

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface RunProgramOptions extends CancelOptions {
  /** What messages call the program. */
  name: string;
  /** All that it has in its environment. */
  environment: Environment;
  workingDirectory: string;
  /** What it reads on its standard input. */
  input?: string | undefined;
  /** How long it may take to end once it is no longer wanted; it is killed at once where this is left out. */
  graceMs?: number | undefined;
  /** It is killed, with all that it has started, after this time; 5 minutes. */
  timeoutMs?: number | undefined;
  /** Bytes that it may print; 64 MiB. */
  maxOutput?: number | undefined;
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
  const { stdout, messages, code, signalName } = await runToEnd(file, args, options);
  if (code === 0) return stdout;
  throw failure(options.name, code, signalName, messages);
}

/** How a program has ended, and what it said. */
interface ProgramEnd {
  stdout: Buffer;
  /** The end of what is on stderr. */
  messages: string;
  /** Null where a signal ended it. */
  code: number | null;
  signalName: string | null;
}

/**
 * The same, however it ends. Throws OpmateError LIMIT beyond the time and the size, IO where it cannot be started.
 */
export async function runToEnd(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<ProgramEnd> {
  const { name, environment, workingDirectory, signal, input, graceMs = 0 } = options;
  const { timeoutMs = defaultTimeoutMs, maxOutput = defaultMaxOutput } = options;
  throwIfCancelled(signal);
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it has started ends with it, and Ctrl-C on a terminal is for opmate alone.
    const child = spawn(file, args, {
      cwd: workingDirectory,
      env: { ...environment },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: true,
    });
    const { stdin, stdout, stderr } = child as ChildProcess & { stdout: Readable; stderr: Readable };
    const chunks: Buffer[] = [];
    let size = 0;
    let messages = Buffer.alloc(0);
    let fault: OpmateError | undefined;
    let lingering: NodeJS.Timeout | undefined;
    const end = (): void => {
      killGroup(child, 'SIGKILL');
      stdout.destroy();
      stderr.destroy();
    };
    const stop = (error: OpmateError): void => {
      if (fault !== undefined) return;
      fault = error;
      if (graceMs === 0) end();
      else {
        killGroup(child, 'SIGTERM');
        lingering = setTimeout(end, graceMs);
      }
    };
    const timer = setTimeout(
      () => stop(new LimitError(`timed out after ${timeoutMs / 1000} s`, { subject: name })),
      timeoutMs,
    );
    const unwatch = onAbort(signal, () => stop(new CancelledError()));
    stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) stop(new LimitError(`prints more than ${maxOutput} bytes`, { subject: name }));
      else chunks.push(chunk);
    });
    stderr.on('data', (chunk: Buffer) => {
      messages = Buffer.concat([messages, chunk]).subarray(-maxMessages);
    });
    // It may end without having read everything; how it ended is told elsewhere.
    stdin?.on('error', () => undefined);
    stdin?.end(input);
    const finish = (): void => {
      clearTimeout(timer);
      clearTimeout(lingering);
      unwatch();
    };
    child.once('error', (error) => {
      finish();
      reject(
        new OpmateError('IO', `cannot be started: ${systemReason(error)}`, { subject: name, cause: error }),
      );
    });
    // Whatever still holds its output does not matter once it is gone itself.
    child.once('exit', () => {
      lingering ??= setTimeout(end, lingeringMs);
    });
    child.once('close', (code, signalName) => {
      finish();
      killGroup(child, 'SIGKILL');
      if (fault !== undefined) reject(fault);
      else resolve({ stdout: Buffer.concat(chunks), messages: messages.toString(), code, signalName });
    });
  });
}

/** How long what a program has started may go on printing after its end. */
const lingeringMs = 2000;

function killGroup({ pid }: ChildProcess, signalName: NodeJS.Signals): void {
  if (pid === undefined) return;
  try {
    kill(-pid, signalName);
  } catch {
    // All of it has ended.
  }
}

function failure(
  name: string,
  code: number | null,
  signalName: string | null,
  messages: string,
): OpmateError {
  const last = messages.split('\n').findLast((line) => line.trim() !== '');
  const how = code === null ? `ended by ${signalName}` : `exit code ${code}`;
  const detail = last === undefined ? how : last.trim().slice(0, maxMessage);
  return new OpmateError('INVALID', redact(`${name}: ${detail}`), last === undefined ? {} : { hint: how });
}
