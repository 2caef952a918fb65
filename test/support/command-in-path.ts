/** `opmate` for scripts of tests, run by the process of the test: starting a process for each command takes most of the time. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { type Server, type Socket, createServer } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import { afterAll, beforeAll } from 'vitest';
import {
  canRunHere,
  commandFile,
  commandWords,
  isExecutable,
  runHere,
  type Sandbox,
} from './command-line.js';

/** Commands that go on until they are stopped, by a signal to a process of their own. */
const servesUntilStopped = /^(?:view|serve|registry serve|oci serve)(?: |$)/;
const endsAtOnce = /(?:^| )(?:--export|--help|-h)(?:[ =]|$)/;

/** A process of a script that waits for its command. */
interface Caller {
  args: string[];
  cwd: string;
  env: Record<string, string>;
}

/** Output of a command in the order in which it was written: what scripts send to one file stays in order. */
class OrderedOutput {
  readonly pieces: { to: 1 | 2; chunks: Buffer[] }[] = [];

  stream(to: 1 | 2): Writable {
    return new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        if (this.pieces.at(-1)?.to !== to) this.pieces.push({ to, chunks: [] });
        this.pieces.at(-1)?.chunks.push(chunk);
        done();
      },
    });
  }
}

/**
 * Puts `opmate` into the directory `bin` of a sandbox, for PATH, before the tests of a file or block: scripts call it as they
 * call what is installed, and this process runs the command. Tests must not block it meanwhile: `runProgram` does not.
 */
export function useCommandInPath(sandbox: Sandbox): void {
  const sockets = new Set<Socket>();
  const running = new Set<Promise<unknown>>();
  const server = createServer((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)).on('error', () => undefined));
    const answered = answer(socket, path.join(sandbox.work, '..', 'printed'))
      .catch(() => socket.destroy())
      .finally(() => running.delete(answered));
    running.add(answered);
  });
  beforeAll(async () => {
    const bin = path.join(sandbox.work, 'bin');
    await mkdir(bin, { recursive: true });
    if (isExecutable) return symlink(commandFile, path.join(bin, 'opmate'));
    await mkdir(path.join(sandbox.work, '..', 'printed'));
    await writeFile(path.join(bin, 'opmate'), scriptOf(await listen(server)), { mode: 0o755 });
  });
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await Promise.all(running);
  });
}

/** A script says which process it is, and is told to read stdin into a file, what to print from files, and how to end. */
const scriptOf = (port: number): string => `#!/bin/bash
exec {test}<>/dev/tcp/127.0.0.1/${port}
echo $$ >&$test
while read -r what value <&$test; do
  case $what in
  0) cat >"$value"; echo read >&$test ;;
  1) cat "$value" ;;
  2) cat "$value" >&2 ;;
  exit) exit "$value" ;;
  own) exec {test}>&-; exec ${commandWords.map((word) => `'${word}'`).join(' ')} "$@" ;;
  esac
done
exit 70
`;

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port));
  });
}

/** Runs the command of a script, unless that must do so itself. */
async function answer(script: Socket, directory: string): Promise<void> {
  const lines = createInterface(script)[Symbol.asyncIterator]();
  const newFile = (): string => path.join(directory, randomUUID());
  async function* readStdin(): AsyncGenerator<Buffer> {
    const file = newFile();
    script.write(`0 ${file}\n`);
    await lines.next();
    yield* createReadStream(file) as AsyncIterable<Buffer>;
  }
  const { args, cwd, env } = await readCaller(String((await lines.next()).value));
  const line = args.join(' ');
  const serves = servesUntilStopped.test(line) && !endsAtOnce.test(line);
  if (serves || !canRunHere(cwd, env)) return void script.end('own\n');
  // A command ends with its script, as a process of its group would.
  const end = new AbortController();
  script.once('close', () => end.abort(new Error('interrupted')));
  const printed = new OrderedOutput();
  const stdin = Readable.from(readStdin());
  const streams = { stdin: () => stdin, stdout: printed.stream(1), stderr: printed.stream(2) };
  const code = await runHere(args, { cwd, env, ...streams, signal: end.signal });
  for (const { to, chunks } of printed.pieces) {
    const file = newFile();
    await writeFile(file, Buffer.concat(chunks));
    script.write(`${to} ${file}\n`);
  }
  script.end(`exit ${code}\n`);
}

/** Reads from /proc how a script was called; its words begin with the shell and the file. */
async function readCaller(pid: string): Promise<Caller> {
  const of = (name: string): string => path.join('/proc', pid, name);
  const [, , ...args] = (await readFile(of('cmdline'), 'utf8')).split('\0').slice(0, -1);
  const variables = (await readFile(of('environ'), 'utf8')).split('\0').slice(0, -1);
  const env = variables.map((text) => [text.split('=', 1)[0], text.replace(/^[^=]*=/, '')]);
  return { args, cwd: await readlink(of('cwd')), env: Object.fromEntries(env) as Record<string, string> };
}
