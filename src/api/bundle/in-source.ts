import path from 'node:path';
import { type Diagnostic, withSubject } from '../../core/diagnostic.js';

/**
 * Returns a function that names the files of a bundle in findings, by path if the bundle is a directory. `inputs` keep
 * their names.
 */
export function inSource(
  reference: string,
  isDirectory: boolean,
  inputs: readonly (string | undefined)[] = [],
): (finding: Diagnostic) => Diagnostic {
  return (finding) => {
    const { file } = finding;
    if (file === undefined) return withSubject(finding, reference);
    if (inputs.includes(file)) return finding;
    return { ...finding, file: fileInSource(reference, file, isDirectory) };
  };
}

/** Returns the name of a file of a bundle in messages: its path if the bundle is a directory. */
export function fileInSource(reference: string, file: string, isDirectory: boolean): string {
  return isDirectory ? path.join(reference, file) : `${reference}: ${file}`;
}
