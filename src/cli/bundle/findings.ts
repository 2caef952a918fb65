import { redact } from '../../core/errors.js';
import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { countMore, printable } from '../printable.js';
import type { CommandSession } from '../session.js';

/** Maximum number of findings printed as text. */
const maxShown = 100;

/** Prints up to `limit` findings with place and hint to stderr, and the number of the others. */
export async function tellFindings(
  context: CommandContext,
  findings: readonly Diagnostic[],
  { limit = maxShown }: { limit?: number } = {},
): Promise<void> {
  const lines = findings
    .slice(0, limit)
    .flatMap((finding) => [
      formatDiagnostic(finding),
      ...(finding.hint === undefined ? [] : [`  hint: ${finding.hint}`]),
    ]);
  const more = findings.length - limit;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}`);
  await writeAll(context.stderr, lines.map((line) => `${printable(redact(line))}\n`).join(''));
}

/** Prints the findings that end a command. Returns its exit code, which is 1 in place of another tool. */
export async function endWithFindings(
  { context, session, tool }: { context: CommandContext; session: CommandSession; tool?: string | undefined },
  findings: readonly Diagnostic[],
): Promise<number> {
  session.logger.close();
  await tellFindings(context, findings);
  return tool === undefined ? exitCodes.findings : exitCodes.failed;
}

/** Logs warnings. */
export function tellWarnings(session: CommandSession, warnings: readonly Diagnostic[]): void {
  for (const warning of warnings) session.logger.log('warn', formatDiagnostic(warning));
}
