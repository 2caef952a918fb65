// Runs opmate in this process, as the command line does, with its output captured.
import { Readable, Writable } from 'node:stream';
import { run } from '../../dist/cli/main.js';

class Capture extends Writable {
  chunks = [];
  _write(chunk, _encoding, done) {
    this.chunks.push(chunk);
    done();
  }
  get bytes() {
    return Buffer.concat(this.chunks);
  }
}

/** Runs `opmate ARGS` in `directory`; `environment` is all that it sees of the environment. */
export async function opmate(args, directory, environment = {}) {
  const stdout = new Capture();
  const stderr = new Capture();
  const before = process.cwd();
  process.chdir(directory);
  try {
    const exit = await run(args, {
      environment,
      workingDirectory: directory,
      homeDirectory: environment.HOME ?? '/nonexistent',
      temporaryDirectory: environment.TMPDIR ?? '/tmp',
      stdin: Readable.from([]),
      stdout,
      stderr,
      signal: new AbortController().signal,
      now: () => new Date(),
      architecture: process.arch,
    });
    return { exit, stdout: stdout.bytes, stderr: stderr.bytes.toString() };
  } finally {
    process.chdir(before);
  }
}
