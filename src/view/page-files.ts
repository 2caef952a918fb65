import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { throwFileError } from '../core/errors.js';

/** Reads files of the built page by name. Throws OpmateError IO. */
export async function readPageFiles<T extends string>(names: readonly T[]): Promise<Map<T, Buffer>> {
  const files = new Map<T, Buffer>();
  for (const name of names) {
    const file = fileURLToPath(new URL(`./page/${name}`, import.meta.url));
    const content = await readFile(file).catch(
      throwFileError(file, { hint: 'install opmate again, or build it: npm run build' }),
    );
    files.set(name, content);
  }
  return files;
}
