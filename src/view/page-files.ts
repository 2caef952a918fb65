import { fileError } from '../core/errors.js';
import { locateOwnFile, readOwnFile } from '../files/own-files.js';

/** Reads files of the built page by name. Throws OpmateError IO. */
export function readPageFiles<T extends string>(names: readonly T[]): Map<T, Buffer> {
  return new Map(names.map((name) => [name, readPageFile(`dist/view/page/${name}`)]));
}

function readPageFile(name: string): Buffer {
  try {
    return readOwnFile(name);
  } catch (error) {
    throw fileError(locateOwnFile(name), error, {
      hint: 'install opmate again, or build it: npm run build',
    });
  }
}
