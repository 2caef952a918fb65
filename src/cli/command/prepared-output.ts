import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { exitCodes } from '../exit-codes.js';
import { versionText } from '../version-text.js';

/** Columns of help, unless the terminal has fewer. */
export const helpWidth = 80;

/** Longest command line with a prepared output, in words. */
const maxWords = 6;

/**
 * Encodes outputs by command line as a file: a JSON object with the start and end of each in bytes after its line, then
 * the outputs. Equal ones are stored once.
 */
export function encodePrepared(outputs: ReadonlyMap<string, string>): Buffer {
  const places = new Map<string, string>();
  const texts: Buffer[] = [];
  let end = 0;
  const index = [...outputs].map(([line, output]) => {
    let place = places.get(output);
    if (place === undefined) {
      const bytes = Buffer.from(output);
      place = `[${end},${(end += bytes.length)}]`;
      texts.push(bytes);
      places.set(output, place);
    }
    return `"${line}":${place}`;
  });
  return Buffer.concat([Buffer.from(`{${index.join(',')}}\n`), ...texts]);
}

/**
 * Prints the version, or the output that the build prepared for a command line: help and others that depend on nothing
 * but the words. Returns false where the program has to run. `name` is that of the program as called, `read` returns the
 * file that `encodePrepared` made.
 */
export function printPrepared(name: string, args: readonly string[], read: () => Buffer): boolean {
  if (name !== 'opmate' || args.length === 0 || args.length > maxWords) return false;
  if (!args.every((word) => /^[a-z_-]+$/.test(word)) || process.env['HELP_ALPHA'] === 'true') return false;
  const line = args.join(' ');
  const output = line === 'version' ? Buffer.from(versionText()) : findPrepared(line, read());
  if (output === undefined) return false;
  if (isatty(1) && (process.stdout.columns || helpWidth) < helpWidth) return false;
  return writeWhole(output);
}

function findPrepared(line: string, content: Buffer): Buffer | undefined {
  const texts = content.indexOf('\n') + 1;
  const key = `"${line}":[`;
  const start = content.indexOf(key);
  if (start < 0 || start >= texts) return undefined;
  const place = content.toString('latin1', start + key.length, content.indexOf(']', start));
  const [from = 0, to = 0] = place.split(',').map((offset) => texts + Number(offset));
  return content.subarray(from, to);
}

/** Writes to stdout without its stream, which takes milliseconds to open. Returns false if nothing could be written. */
function writeWhole(output: Buffer): boolean {
  for (let written = 0; written < output.length;) {
    try {
      written += writeSync(1, output, written);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'EAGAIN') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      else if (written === 0) return false;
      else return endAfterPart(code);
    }
  }
  return true;
}

/** Ends as commands do whose output cannot be written whole. */
function endAfterPart(code: string | undefined): true {
  process.exitCode = code === 'EPIPE' ? exitCodes.outputClosed : exitCodes.failed;
  if (code !== 'EPIPE') process.stderr.write(`error: standard output: ${code ?? 'write failed'}\n`);
  return true;
}
