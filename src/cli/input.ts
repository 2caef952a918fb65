import { fileError } from '../core/errors.js';
import { readNamedFile } from '../files/read-file.js';
import { readLimited } from '../oci/image/read-limited.js';
import type { CommandContext } from './context.js';

const maxInputSize = 64 * 1024 * 1024;

/** Reads a file that the user named: at most 64 MiB, also of a pipe. Throws OpmateError. */
export async function readInputFile(file: string): Promise<Buffer> {
  try {
    return await readNamedFile(file, maxInputSize);
  } catch (error) {
    throw fileError(`open ${file}`, error, { file });
  }
}

/** Reads a file that the user named, or standard input for `-`; at most 64 MiB. Throws OpmateError. */
export function readInput(name: string, context: CommandContext): Promise<Buffer> {
  return name === '-' ? readLimited(context.stdin, maxInputSize, 'standard input') : readInputFile(name);
}
