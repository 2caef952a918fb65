import { type OutdatedPart, readRepositoryStatus } from '../../api/repo/repository-status.js';
import { diagnosticsFrom } from '../../core/diagnostics-error.js';
import { logDiagnostic } from '../../core/log.js';
import { asJson } from '../../document/json.js';
import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { reportEnding } from '../ending.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import type { CommandSession } from '../session.js';
import { count, printable, shellWord } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { encodeFinding, nameFlags } from '../reports/option-words.js';
import { repositoryFlag } from './flags.js';

/** Default total retry time of a status, which shows what can be compared now, in milliseconds. */
const statusRetryMs = 5000;

/** `opmate repo status`. */
export const command = defineCommand({
  summary: 'list catalogs and bundles that are out of date, and why; exit with 3 if there are any',
  description:
    'Exits with 4 if a part cannot be compared, e.g. because its registry is unreachable; requests are retried for 5 seconds.',
  arguments: [argument('[operator...]', 'operators (default: all)')],
  flags: { ...repositoryFlag, output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: {
    'Show what is to be rendered or released': 'opmate repo status',
    'Print it as data': 'opmate repo status -o json',
  },
  async runInSession({ context, args: [operators], options, session }) {
    const { repository, output } = options;
    const named = operators.length === 0 ? undefined : operators;
    const status = await readRepositoryStatus(repository, session, {
      operators: named,
      retryTimeoutMs: options.retryTimeout === undefined ? statusRetryMs : undefined,
    });
    const { parts, errors } = status;
    const problems = errors.flatMap(diagnosticsFrom);
    for (const problem of problems) logDiagnostic(session.logger, nameFlags(problem));
    session.logger.close();
    const isDone = errors.length === 0;
    const rest = isDone ? 'up to date' : 'nothing else is out of date';
    const lines = parts.length === 0 ? [rest] : parts.map(formatPart);
    const text = lines.map((line) => `${printable(line)}\n`).join('');
    const value = asJson({ parts, errors: problems.map(encodeFinding) });
    await writeAll(context.stdout, output === 'text' ? text : encodeData(value, output), session.signal);
    reportStatus(session.logger, parts);
    if (!isDone) return exitCodes.partly;
    return parts.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

/** Logs the number of outdated catalogs and bundles, and the command that writes the catalogs. */
function reportStatus(logger: CommandSession['logger'], parts: readonly OutdatedPart[]): void {
  if (parts.length === 0) return;
  const catalogs = parts.filter(({ path }) => path.startsWith('catalogs/'));
  const bundles = parts.length - catalogs.length;
  const numbers = [
    ...(catalogs.length === 0 ? [] : [`${count(catalogs.length, 'catalog')} out of date`]),
    ...(bundles === 0 ? [] : [`${count(bundles, 'bundle')} not released`]),
  ];
  const [operator, ...others] = new Set(catalogs.map((catalog) => catalog.operator));
  const named = operator === undefined || others.length > 0 ? '' : ` ${shellWord(operator)}`;
  reportEnding(
    logger,
    [numbers.join(', ')],
    operator === undefined ? undefined : `opmate repo render${named}`,
  );
}

/** Returns an outdated part as text; the reason of an unreadable one may start with its file. */
function formatPart({ path, reason }: OutdatedPart): string {
  return reason.startsWith(path) ? reason : `${path}: ${reason}`;
}
