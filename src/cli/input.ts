import { decodeFile } from '../document/document.js';
import { maxInputSize, readInputFile } from '../files/read-file.js';
import { readLimited } from '../oci/image/read-limited.js';
import type { CommandContext } from './context.js';

const stdinName = 'stdin';

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
