import { createInterface } from 'node:readline/promises';
import { CancelledError } from '../core/errors.js';
import { decodeFile } from '../document/document.js';
import { maxInputSize, readInputFile } from '../files/read-file.js';
import { readLimited } from '../oci/image/read-limited.js';
import type { CommandContext } from './context.js';
import { printable } from './printable.js';

/** Name of stdin in messages. */
export const stdinName = 'stdin';

/** Reads a file that the user named, or standard input for `-`; at most 64 MiB. Throws OpmateError. */
export function readInput(name: string, context: CommandContext): Promise<Buffer> {
  return name === '-' ? readLimited(context.stdin, maxInputSize, stdinName) : readInputFile(name, context);
}

/** Reads a text as `readInput` does, with the name of its file for messages. Throws OpmateError SYNTAX for other data. */
export async function readTextInput(
  name: string,
  context: CommandContext,
): Promise<{ text: string; file: string }> {
  const { content, name: file } = await readNamedInput(name, context);
  return { text: decodeFile(content, file), file };
}

/** Reads as `readInput` does, with the name of the file for messages. */
export async function readNamedInput(
  name: string,
  context: CommandContext,
): Promise<{ content: Buffer; name: string }> {
  return { content: await readInput(name, context), name: name === '-' ? stdinName : name };
}

/** Asks a question on the terminal; true for yes, undefined without a terminal. */
export async function askOnTerminal(
  { stdin, stderr, signal }: CommandContext,
  question: string,
): Promise<boolean | undefined> {
  if ((stdin as { isTTY?: boolean }).isTTY !== true || stderr.isTTY !== true) return undefined;
  // Without terminal mode Ctrl-C remains a signal for the process.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false });
  try {
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const reply = await Promise.race([lines.question(printable(`${question} [y/N] `), { signal }), closed]);
    return /^y(?:es)?$/i.test(reply.trim());
  } catch (error) {
    if (signal.aborted) throw new CancelledError();
    throw error;
  } finally {
    lines.close();
  }
}
