import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import path from 'node:path';
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

export interface RunProgramOptions extends CancelOptions {
  /** What messages call the program. */
  name: string;
  /** All that it has in its environment. */
  environment: Environment;
  workingDirectory: string;
  /** It is killed, with all that it has started, after this time; 5 minutes. */
  timeoutMs?: number | undefined;
  /** Bytes that it may print; 64 MiB. */
  maxOutput?: number | undefined;
}

const defaultTimeoutMs = 5 * 60_000;
const defaultMaxOutput = 64 * 1024 * 1024;
/** What is kept of its messages: the end of them. */
const maxMessages = 64 * 1024;
const maxMessage = 500;

/**
 * Where a program is: the first executable file of that name in the absolute directories of PATH. Others are passed
 * over, for they would look into the directory that is worked on. Undefined where there is none.
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
 * Runs a program to its end, without input, and gives what it prints. Throws OpmateError INVALID with the last line
 * of its messages where it fails, LIMIT beyond the time and the size.
 */
export async function runProgram(
  file: string,
  args: readonly string[],
  options: RunProgramOptions,
): Promise<Buffer> {
  const { name, environment, workingDirectory, signal } = options;
  const { timeoutMs = defaultTimeoutMs, maxOutput = defaultMaxOutput } = options;
  throwIfCancelled(signal);
  return new Promise((resolve, reject) => {
    // A group of its own, so that what it has started ends with it.
    const child = spawn(file, args, {
      cwd: workingDirectory,
      env: { ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const chunks: Buffer[] = [];
    let size = 0;
    let messages = '';
    let fault: OpmateError | undefined;
    const stop = (error: OpmateError): void => {
      fault ??= error;
      killGroup(child);
      child.stdout.destroy();
      child.stderr.destroy();
    };
    const timer = setTimeout(
      () => stop(new LimitError(`${name}: no end after ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
    const unwatch = onAbort(signal, () => stop(new CancelledError()));
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) stop(new LimitError(`${name}: prints more than ${maxOutput} bytes`));
      else chunks.push(chunk);
    });
    child.stderr.on('data', (chunk: Buffer) => {
      messages = (messages + chunk.toString()).slice(-maxMessages);
    });
    const finish = (): void => {
      clearTimeout(timer);
      unwatch();
    };
    child.once('error', (error) => {
      finish();
      reject(new OpmateError('IO', `${name}: cannot be started: ${systemReason(error)}`, { cause: error }));
    });
    // Whatever still holds its output does not matter once it is gone itself.
    child.once('exit', () => setTimeout(() => child.stdout.destroy(), graceMs).unref());
    child.once('close', (code, signalName) => {
      finish();
      killGroup(child);
      if (fault !== undefined) reject(fault);
      else if (code === 0) resolve(Buffer.concat(chunks));
      else reject(failure(name, code, signalName, messages));
    });
  });
}

/** How long what a program has started may go on printing after its end. */
const graceMs = 2000;

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    kill(-pid, 'SIGKILL');
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
  const said = last === undefined ? how : last.trim().slice(0, maxMessage);
  return new OpmateError('INVALID', redact(`${name}: ${said}`), last === undefined ? {} : { hint: how });
}
