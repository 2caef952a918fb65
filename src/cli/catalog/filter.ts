import { withOpen } from '../../core/concurrency.js';
import { catalogForms } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, grouped, requiredUnless, text } from '../command/flags.js';
import { migrateLevel, outputFormat } from '../command/shared-flags.js';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { filterCatalog } from '../../api/filter-catalog.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import { writeError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { withoutCredentials } from '../../core/reference.js';
import { replaceFiles, resolveReplacedFile } from '../../files/replace-file.js';
import { filterFlags, getFilterRequest } from './filter-request.js';
import { type FilterReport, filterReport, filterText } from './filter-text.js';
import type { CommandContext } from '../context.js';
import { readTextInput } from '../input.js';
import { reportEnding, summarizeItems } from '../ending.js';
import { encodeData } from '../reports/encode-data.js';
import { count, shellWord } from '../printable.js';
import { type CommandSession, writePieces } from '../session.js';

const flags = {
  ...filterFlags,
  filter: text('file', 'CatalogFilter file with these criteria; - for stdin', {
    short: 'f',
    group: 'Selection',
  }),
  to: requiredUnless(
    ['output', 'dryRun'],
    text('directory', 'new or empty directory to write to; - for stdout', {
      aliases: ['directory'],
      group: 'Output',
    }),
  ),
  output: outputFormat(['json', 'yaml'], { otherwise: 'to', defaultText: 'json' }),
  migrateLevel,
  ...grouped('Output', {
    report: text('file', 'write kept bundles and reasons to a JSON file'),
    dryRun: flag('print what would be kept, with reasons, without writing a catalog', {
      excludes: ['output=yaml'],
    }),
  }),
};

/** `opmate catalog filter`. */
export const command = defineCommand({
  summary: 'filter a catalog by package, channel, version or bundle',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags,
  commonFlags: [
    'package',
    'channel',
    'version',
    'minVersion',
    'maxVersion',
    'reachableFrom',
    'latest',
    'headsOnly',
    'to',
    'output',
  ],
  examples: {
    'Keep the channel heads of one package':
      'opmate catalog filter ./catalog -p demo --heads-only --to small-catalog',
    'Print the bundles that would be kept, with reasons': 'opmate catalog filter ./catalog -p demo --dry-run',
    'Filter by a file': 'opmate catalog filter ./catalog -f filter.yaml -o yaml',
  },
  async runInSession({ context, args: [reference], options, session }) {
    const { to: directory, output, dryRun, report: reportFile, migrateLevel } = options;
    const format = output ?? 'json';
    const isForStdout = directory === undefined || directory === '-';
    if (reportFile !== undefined) await requirePlace(reportFile);
    const request = {
      ...getFilterRequest(options),
      document: options.filter === undefined ? undefined : await readTextInput(options.filter, context),
      directory: isForStdout || dryRun ? undefined : directory,
      format,
      migrateLevel,
    };
    await withOpen(filterCatalog(reference, session, request), async (filtered) => {
      logSelection(filtered.selection, session);
      const shown = withoutCredentials(reference);
      const report = filterReport(shown, filtered.before, filtered.selection);
      const writeOutput = async (): Promise<void> => {
        if (dryRun) await writeDryRun(context, report, output, session);
        else if (isForStdout) {
          await writePieces(context, session, filtered.write());
        } else {
          await filtered.writeDirectory(directory);
          const { facts, packages } = filtered.selection;
          const kept = `${packages.length} of ${count(filtered.before.packages.length, 'package')}`;
          const bundles = `${facts.bundles.length} of ${count(filtered.before.bundles.length, 'bundle')}`;
          reportEnding(
            session.logger,
            [`wrote ${kept}, ${bundles} to ${directory}`],
            `opmate serve ${shellWord(directory)}`,
          );
        }
      };
      const { signal } = session;
      const files =
        reportFile === undefined ? [] : [{ target: reportFile, text: encodeData(report, 'json') }];
      await replaceFiles(files, { signal, then: writeOutput });
    });
  },
});

/** Throws OpmateError if a file cannot be written. */
async function requirePlace(file: string): Promise<void> {
  const target = await resolveReplacedFile(file);
  await access(path.dirname(target), constants.W_OK).catch((error: unknown) => {
    throw writeError(file, error, { file });
  });
}

/** Logs the bundles kept in addition to the criteria, the changes and the removals. */
function logSelection({ kept, changes, warnings }: CatalogSelection, { logger }: CommandSession): void {
  const additions = kept.map(({ package: of, channel, bundle, reason }) => {
    const subject = `package ${quoteGo(of)}, channel ${quoteGo(channel)}`;
    return `${subject}: keeps ${quoteGo(bundle)}, which ${reason}`;
  });
  for (const line of summarizeItems([...additions, ...changes], 'change', logger)) logger.log('info', line);
  for (const warning of warnings) logger.log('warn', warning);
}

async function writeDryRun(
  context: CommandContext,
  report: FilterReport,
  output: string | undefined,
  session: CommandSession,
): Promise<void> {
  const text = output === 'json' ? encodeData(report, output) : filterText(report);
  await writePieces(context, session, text);
}
