import path from 'node:path';
import { redact } from '../../core/errors.js';
import { type Diagnostic, formatDiagnostic, withSubject } from '../../core/diagnostic.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import type { CommandSession } from '../session.js';

/**
 * How the files of a bundle are named in messages: by their path where it is a directory. `given` are files that
 * the user named himself.
 */
export function inSource(
  reference: string,
  isDirectory: boolean,
  given: readonly (string | undefined)[] = [],
): (finding: Diagnostic) => Diagnostic {
  return (finding) => {
    const { file } = finding;
    if (file === undefined) return withSubject(finding, reference);
    if (given.includes(file)) return finding;
    return { ...finding, file: fileInSource(reference, file, isDirectory) };
  };
}

/** Returns how messages name a file of a bundle: by its path where the bundle is a directory. */
export function fileInSource(reference: string, file: string, isDirectory: boolean): string {
  return isDirectory ? path.join(reference, file) : `${reference}: ${file}`;
}

/** Prints all findings to stderr, each once with its place and hint. */
export async function tellFindings(context: CommandContext, findings: readonly Diagnostic[]): Promise<void> {
  const lines = findings.flatMap((finding) => [
    formatDiagnostic(finding),
    ...(finding.hint === undefined ? [] : [`  hint: ${finding.hint}`]),
  ]);
  await writeAll(context.stderr, lines.map((line) => `${printable(redact(line))}\n`).join(''));
}

/** Logs what is worth knowing. */
export function tellWarnings(session: CommandSession, warnings: readonly Diagnostic[]): void {
  for (const warning of warnings) session.logger.log('warn', formatDiagnostic(warning));
}
