import { readFile, stat } from 'node:fs/promises';
import { LimitError, OpmateError, fileError } from '../core/errors.js';
import { readLimited } from '../oci/read-limited.js';
import type { CommandContext } from './context.js';

const maxInputSize = 64 * 1024 * 1024;

/** Reads a file that the user named: an ordinary file of at most 64 MiB. Throws OpmateError. */
export async function readInputFile(file: string): Promise<Buffer> {
  try {
    const found = await stat(file);
    if (!found.isFile()) {
      const what = found.isDirectory() ? 'is a directory' : 'not an ordinary file';
      throw new OpmateError('IO', `open ${file}: ${what}`, { file });
    }
    if (found.size > maxInputSize) throw new LimitError(`${file}: more than ${maxInputSize} bytes`, { file });
    return await readFile(file);
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
}

/** Reads a file that the user named, or standard input for `-`; at most 64 MiB. Throws OpmateError. */
export function readInput(name: string, context: CommandContext): Promise<Buffer> {
  return name === '-' ? readLimited(context.stdin, maxInputSize, 'standard input') : readInputFile(name);
}
