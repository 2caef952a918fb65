import { redactUrls } from '../../core/errors.js';
import { type Diagnostic, formatDiagnostic } from '../../core/diagnostic.js';
import type { CommandContext } from '../context.js';
import { exitCodes } from '../exit-codes.js';
import { encodeJsonLine, encodeLine } from '../reports/json-line.js';
import { JsonLines } from '../json-lines.js';
import { writeAll } from '../output.js';
import { type Paint, loadPaint, paintSeverity } from '../paint.js';
import { countMore, printable } from '../printable.js';
import type { CommandSession } from '../session.js';
import { withFlags } from '../reports/option-words.js';

/** Maximum number of findings printed as text. */
const maxShown = 100;

interface PrintOptions {
  limit?: number | undefined;
  /** Names files as the user does. */
  toNamed?: (finding: Diagnostic) => Diagnostic;
}

/**
 * Prints up to `limit` findings with place and hint to stderr, and the number of the others. With `--log-format json`,
 * each is a line with its diagnostic.
 */
export async function printFindings(
  context: CommandContext,
  findings: readonly Diagnostic[],
  { limit = maxShown, toNamed = (finding) => finding }: PrintOptions = {},
): Promise<void> {
  const paint = await loadPaint(context);
  const encode =
    context.stderr instanceof JsonLines
      ? (finding: Diagnostic) => [
          encodeJsonLine({ time: context.now().toISOString(), ...encodeLine(toNamed(finding)) }),
        ]
      : (finding: Diagnostic) => formatLines(toNamed(finding), paint);
  const lines = findings.slice(0, limit).flatMap(encode);
  const more = findings.length - limit;
  if (more > 0) lines.push(`… and ${countMore(more, 'finding')}`);
  await writeAll(context.stderr, lines.map((line) => `${line}\n`).join(''));
}

function formatLines(finding: Diagnostic, paint: Paint): string[] {
  const { severity, hint } = finding;
  return [
    `${paintSeverity(severity, paint)} ${shown(formatDiagnostic(finding))}`,
    ...(hint === undefined ? [] : [`  ${paint.hint('hint:')} ${shown(hint)}`]),
  ];
}

function shown(text: string): string {
  return printable(redactUrls(withFlags(text)));
}

/** Prints the findings that end a command. Returns its exit code, which is 1 in place of another tool. */
export async function endWithFindings(
  { context, session, tool }: { context: CommandContext; session: CommandSession; tool?: string | undefined },
  findings: readonly Diagnostic[],
): Promise<number> {
  session.logger.close();
  await printFindings(context, findings);
  return tool === undefined ? exitCodes.findings : exitCodes.failed;
}

/** Logs warnings. */
export function logWarnings(session: CommandSession, warnings: readonly Diagnostic[]): void {
  for (const warning of warnings) session.logger.report(warning);
}
