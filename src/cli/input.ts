import { maxInputSize, readInputFile } from '../files/read-file.js';
import { readLimited } from '../oci/image/read-limited.js';
import type { CommandContext } from './context.js';

/** Reads a file that the user named, or standard input for `-`; at most 64 MiB. Throws OpmateError. */
export function readInput(name: string, context: CommandContext): Promise<Buffer> {
  return name === '-'
    ? readLimited(context.stdin, maxInputSize, 'standard input')
    : readInputFile(name, context);
}
