/** The command as users run it, in a world that holds nothing of this machine. */
import { type ChildProcess, type ExecFileOptions, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import type { CommandContext } from '../../src/cli/context.js';

/** The directory of the repository. */
export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));
/** A single executable that takes the place of the installed command: `OPMATE_EXECUTABLE`. */
const executable = process.env['OPMATE_EXECUTABLE'];
export const isExecutable = executable !== undefined;
/** The file that `opmate` is linked to when installed. */
export const commandFile = executable ?? path.join(projectRoot, 'bin', 'opmate.cjs');
/** The words that begin a command line of `opmate`. */
export const commandWords: readonly [string, ...string[]] =
  executable === undefined ? [process.execPath, commandFile] : [executable];
export const bundlesDirectory = path.join(projectRoot, 'fixtures', 'bundles');

export interface RunOptions {
  cwd?: string;
  /** All that the process has in its environment, besides PATH. */
  env?: Record<string, string | undefined>;
  stdin?: string;
  /** Ends the process with SIGKILL after this time; 30 s. */
  timeoutMs?: number;
  /** What is called; `bin/opmate.cjs` of the project. */
  file?: string;
  /** A file descriptor that takes the place of stdout; `stdout` of the result is then empty. */
  stdoutTo?: number;
  /** Run in a process of its own, where the process is what is tested: memory, signals, the end. */
  ownProcess?: boolean;
}

export interface CommandResult {
  /** Null when a signal ended the process. */
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A command under way. */
export interface CommandUnderWay {
  /** What has been printed so far. */
  stdout(): string;
  stderr(): string;
  /** The first line of stdout. Rejects when the process ends without one. */
  firstLine(): Promise<string>;
  result: Promise<CommandResult>;
  /** Tells it to end, by SIGTERM where it has a process of its own, and waits for that. */
  stop(): Promise<CommandResult>;
}

/** A command with a process of its own. */
export interface RunningCommand extends CommandUnderWay {
  child: ChildProcess;
  /** Sends a signal, SIGTERM unless told, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<CommandResult>;
}

/** Starts `opmate ARGS`. */
export function startOpmate(args: readonly string[], options: RunOptions = {}): RunningCommand {
  const { cwd, env = {}, stdin, timeoutMs = 120_000, file = commandFile, stdoutTo } = options;
  const isProgram = executable !== undefined && !/\.[cm]?js$/.test(file);
  const [program, first] = isProgram ? [file, []] : [process.execPath, [file]];
  const child = spawn(program, [...first, ...args], {
    cwd,
    env: { PATH: process.env['PATH'], ...env },
    stdio: [stdin === undefined ? 'ignore' : 'pipe', stdoutTo ?? 'pipe', 'pipe'],
  });
  const printed: Record<'stdout' | 'stderr', Buffer[]> = { stdout: [], stderr: [] };
  child.stdout?.on('data', (chunk: Buffer) => printed.stdout.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => printed.stderr.push(chunk));
  child.stdin?.on('error', () => undefined).end(stdin);
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  const stdout = (): string => Buffer.concat(printed.stdout).toString();
  const stderr = (): string => Buffer.concat(printed.stderr).toString();
  const result = new Promise<CommandResult>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      clearTimeout(timer);
      resolve({ code, stdout: stdout(), stderr: stderr() });
    });
  });
  return {
    child,
    stdout,
    stderr,
    result,
    firstLine: () => firstLineOf(stdout, (look) => child.stdout?.on('data', look), result),
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      return result;
    },
  };
}

/** Waits for a line, looking whenever more is printed. */
function firstLineOf(
  printed: () => string,
  onMore: (look: () => void) => void,
  result: Promise<CommandResult>,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (printed().includes('\n')) resolve(printed().split('\n')[0] as string);
    };
    onMore(look);
    look();
    void result.then(({ code, stderr }) => reject(new Error(`ended with ${code}: ${stderr}`)));
  });
}

/** Waits until a server has logged what a pattern matches; returns its first group. */
export async function readLogged(server: CommandUnderWay, pattern: RegExp): Promise<string> {
  for (;;) {
    const [, value] = pattern.exec(server.stderr()) ?? [];
    if (value !== undefined) return value;
    const ended = await Promise.race([server.result, new Promise((resolve) => setTimeout(resolve, 10))]);
    if (ended !== undefined) throw new Error(`ended: ${server.stderr()}`);
  }
}

/** Returns the port of a gRPC server, once it serves. */
export async function readGrpcPort(server: CommandUnderWay): Promise<number> {
  return Number(await readLogged(server, /serving registry.*?port[=":]+(\d+)/));
}

/** Runs `opmate ARGS` to its end. */
export function runOpmate(args: readonly string[], options: RunOptions = {}): Promise<CommandResult> {
  return startOpmate(args, options).result;
}

/** Runs a program to its end, while this process goes on: the program may call the `opmate` of `useCommandInPath`. */
export function runProgram(
  file: string,
  args: readonly string[],
  options: ExecFileOptions = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const settings = { maxBuffer: 64 * 1024 * 1024, ...options, encoding: 'utf8' } as const;
  return new Promise((resolve) => {
    execFile(file, args, settings, (error, stdout, stderr) => {
      // A program that a signal ended has no code.
      resolve({ code: error === null ? 0 : Number(error.code ?? 1), stdout, stderr });
    });
  });
}

/** What a command that runs in this process has in place of that of a process of its own. */
export interface Surroundings {
  cwd: string;
  env: Record<string, string | undefined>;
  stdin(): Readable;
  stdout: Writable;
  stderr: Writable;
  signal?: AbortSignal;
  timeoutMs?: number | undefined;
}

/** Commands under way in this process, all with its working directory. */
let runningHere = 0;

/** Whether a command can run in this process, also beside those under way. */
export function canRunHere(cwd: string, env: Record<string, string | undefined> = {}): boolean {
  const isFree = runningHere === 0 || path.resolve(cwd) === process.cwd();
  return isFree && executable === undefined && env['NODE_OPTIONS'] === undefined;
}

/** Runs `opmate ARGS` in this process, whose working directory it changes; returns the exit code. */
export async function runHere(args: readonly string[], surroundings: Surroundings): Promise<number> {
  const { cwd, env, stdin, stdout, stderr, signal, timeoutMs = 120_000 } = surroundings;
  const timeout = AbortSignal.timeout(timeoutMs);
  process.chdir(cwd);
  runningHere++;
  try {
    const { run } = (await import(path.join(projectRoot, 'dist', 'cli', 'main.js'))) as {
      run: (args: readonly string[], context: CommandContext) => Promise<number>;
    };
    return await run(args, {
      environment: { PATH: process.env['PATH'], ...env },
      workingDirectory: path.resolve(cwd),
      homeDirectory: env['HOME'] ?? '/nonexistent',
      temporaryDirectory: env['TMPDIR'] ?? tmpdir(),
      get stdin() {
        return stdin();
      },
      stdout,
      stderr,
      signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
      now: () => new Date(),
      architecture: process.arch,
    });
  } finally {
    if (--runningHere === 0) process.chdir(projectRoot);
  }
}

/** Starts `opmate ARGS` in this process. */
function startHere(
  args: readonly string[],
  { cwd = '.', env = {}, stdin, timeoutMs }: RunOptions,
): CommandUnderWay {
  const stdout = new Capture();
  const stderr = new Capture();
  const input = Readable.from(stdin === undefined ? [] : [Buffer.from(stdin)]);
  const end = new AbortController();
  const surroundings = { cwd, env, stdin: () => input, stdout, stderr, signal: end.signal, timeoutMs };
  const result = runHere(args, surroundings).then((code) => ({
    code,
    stdout: stdout.text,
    stderr: stderr.text,
  }));
  return {
    stdout: () => stdout.text,
    stderr: () => stderr.text,
    firstLine: () =>
      firstLineOf(
        () => stdout.text,
        (look) => stdout.on('written', look),
        result,
      ),
    result,
    stop() {
      end.abort(new Error('interrupted'));
      return result;
    },
  };
}

/** Keeps what is written. */
class Capture extends Writable {
  readonly #chunks: Buffer[] = [];

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    this.emit('written');
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

/** A directory to work in, with an empty home and an empty directory for temporary files beside it. */
export interface Sandbox {
  /** The working directory of the commands. */
  readonly work: string;
  readonly home: string;
  readonly temporary: string;
  /** Writes files below the working directory; objects become JSON. Keys are slash paths. */
  write(files: Record<string, string | Buffer | object>): Promise<void>;
  /** The environment of the commands, with some more. */
  environment(more?: Record<string, string | undefined>): Record<string, string | undefined>;
  /** Runs a command to its end, in this process unless the options need another. */
  run(args: readonly string[], options?: RunOptions): Promise<CommandResult>;
  /** Starts a command in a process of its own. */
  start(args: readonly string[], options?: RunOptions): RunningCommand;
  /** Starts a command, such as a server, in this process unless the options need another. */
  serve(args: readonly string[], options?: RunOptions): CommandUnderWay;
  /** What lies in the directory for temporary files. */
  leftovers(): Promise<string[]>;
}

/** A sandbox for the tests of a file or block. Commands that still run at the end are killed. */
export function useSandbox(): Sandbox {
  let root = '';
  const running = new Set<ChildProcess>();
  const runningInside = new Set<CommandUnderWay>();
  const at = (name: string): string => path.join(root, name);
  beforeAll(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'opmate-e2e-'));
    for (const name of ['work', 'home', 'temporary']) await mkdir(at(name));
    // What registries this machine prefers is none of our business.
    await writeFile(at('registries.conf'), '');
  });
  afterAll(async () => {
    for (const child of running) child.kill('SIGKILL');
    await Promise.all([...runningInside].map((command) => command.stop()));
    await rm(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });
  const sandbox: Sandbox = {
    get work() {
      return at('work');
    },
    get home() {
      return at('home');
    },
    get temporary() {
      return at('temporary');
    },
    async write(files) {
      for (const [name, content] of Object.entries(files)) {
        const file = path.join(at('work'), name);
        await mkdir(path.dirname(file), { recursive: true });
        const isText = typeof content === 'string' || Buffer.isBuffer(content);
        await writeFile(file, isText ? content : JSON.stringify(content));
      }
    },
    environment: (more = {}) => ({
      OPMATE_CATALOG_CACHE: 'none',
      HOME: at('home'),
      TMPDIR: at('temporary'),
      CONTAINERS_REGISTRIES_CONF: at('registries.conf'),
      NODE_DISABLE_COMPILE_CACHE: '1',
      ...more,
    }),
    run: (args, options) => sandbox.serve(args, options).result,
    serve(args, options = {}) {
      const here = { cwd: at('work'), ...options, env: sandbox.environment(options.env) };
      const needsProcess =
        options.ownProcess === true || options.file !== undefined || options.stdoutTo !== undefined;
      if (needsProcess || !canRunHere(here.cwd, here.env)) return sandbox.start(args, options);
      const command = startHere(args, here);
      runningInside.add(command);
      void command.result.then(() => runningInside.delete(command));
      return command;
    },
    start(args, { env, ...options } = {}) {
      const command = startOpmate(args, { cwd: at('work'), ...options, env: sandbox.environment(env) });
      running.add(command.child);
      void command.result.then(() => running.delete(command.child));
      return command;
    },
    leftovers: () => readdir(at('temporary')),
  };
  return sandbox;
}
