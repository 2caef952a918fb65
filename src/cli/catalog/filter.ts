import { argument, defineCommand } from '../command/declaration.js';
import { type FlagValues, choice, flag, text } from '../command/flags.js';
import { filterFlags } from './filter-request.js';
import { catalogForms, migrateLevel } from '../command/shared-flags.js';
import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { Assembly } from '../../catalog/assemble.js';
import { writeCatalogDirectory } from '../../catalog/directory-writer.js';
import { collectFacts } from '../../catalog/facts.js';
import { type CatalogFilter, emptyFilter } from '../../catalog/selection/catalog-filter.js';
import { creationDayOf } from '../../catalog/selection/creation-days.js';
import { filterCatalog } from '../../catalog/selection/filter-catalog.js';
import type { CatalogSelection } from '../../catalog/selection/selection.js';
import { KeptCatalog } from '../../catalog/selection/kept-catalog.js';
import type { Catalog } from '../../catalog/catalog.js';
import { UsageError, fileError } from '../../core/errors.js';
import { decodeUtf8, quoteGo } from '../../document/go-json.js';
import { withoutCredentials } from '../../core/reference.js';
import type { BlobOrigin, CatalogFacts } from '../../model/facts.js';
import type { CatalogFormat } from '../../model/encode.js';
import { resolveMigrationLevel } from '../../model/migrations.js';
import { requireEmptyDirectory } from '../../files/fill-directory.js';
import { replaceFiles, replacedFile } from '../../files/replace-file.js';
import { inReference } from '../../source/reference-error.js';
import { readFilterFile } from '../../catalog/selection/filter-file.js';
import { addFlags } from './filter-request.js';
import { type FilterReport, filterReport, filterText } from './filter-text.js';
import { withCatalog } from './input.js';
import type { CommandContext } from '../context.js';
import { readInput } from '../input.js';
import { writeAll } from '../output.js';
import { type CommandSession, useSession } from '../session.js';

const flags = {
  ...filterFlags,
  filter: text('file', 'CatalogFilter file with these criteria; - for stdin', {
    short: 'f',
    group: 'Selection',
  }),
  directory: text('directory', 'new or empty directory to write to; - for stdout', {
    short: 'o',
    group: 'Output',
  }),
  output: choice('format', ['json', 'yaml'], 'output format (default: json)', { group: 'Output' }),
  migrateLevel,
  report: text('file', 'write kept bundles and reasons to a JSON file', { group: 'Output' }),
  dryRun: flag('print what would be kept, with reasons, without writing a catalog', { group: 'Output' }),
};

/** `opmate catalog filter`: a part of a catalog as a valid catalog, and what it needed in addition to what was asked. */
export const command = defineCommand({
  summary: 'keep part of a catalog as a valid catalog',
  arguments: [argument('<catalog>', `catalog: ${catalogForms}`)],
  flags,
  examples: [
    [
      'Keep the channel heads of one package',
      'opmate catalog filter ./catalog -p demo --heads-only -o small-catalog',
    ],
    ['Print what would be kept, and why', 'opmate catalog filter ./catalog -p demo --dry-run'],
    ['Filter by a file', 'opmate catalog filter ./catalog -f filter.yaml -o -'],
  ],
  async run({ context, args: [reference], options }) {
    const { directory, output, dryRun, report: reportFile } = options;
    const format = output ?? 'json';
    const migrationLevel = resolveMigrationLevel(options.migrateLevel ?? '');
    if (directory === undefined && output === undefined && !dryRun) {
      throw new UsageError('nothing says where the catalog goes', {
        hint: 'give -o DIRECTORY, or -o - for standard output; --dry-run only tells what would be kept',
      });
    }
    const filter = await readFilter(context, options);
    const isForStdout = directory === undefined || directory === '-';
    await useSession(context, options, async (session) => {
      if (!isForStdout && !dryRun) await requireEmptyDirectory(directory);
      if (reportFile !== undefined) await requirePlace(reportFile);
      await withCatalog(reference, session, async ({ catalog }) => {
        const shown = withoutCredentials(reference);
        const chosen = await choose(catalog, filter, reference, session);
        tell(chosen.filtered, session);
        const report = filterReport(shown, chosen.before, chosen.filtered);
        const made = { catalog, ...chosen, format, migrationLevel };
        const writeOutput = (): Promise<void> =>
          dryRun
            ? writeDryRun(context, report, output, session)
            : write(context, made, isForStdout ? undefined : directory, session);
        const { signal } = session;
        const files = reportFile === undefined ? [] : [{ target: reportFile, text: jsonOf(report) }];
        await replaceFiles(files, { signal, then: writeOutput });
      });
    });
  },
});

/** Finds out before anything is written whether a file can be. */
async function requirePlace(file: string): Promise<void> {
  const target = await replacedFile(file);
  try {
    await access(path.dirname(target), constants.W_OK);
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

async function readFilter(
  context: CommandContext,
  options: FlagValues<typeof flags>,
): Promise<CatalogFilter> {
  const { filter: file } = options;
  const today = context.now();
  const filter =
    file === undefined
      ? emptyFilter()
      : readFilterFile(decodeUtf8(await readInput(file, context)), file === '-' ? 'stdin' : file, today);
  addFlags(filter, options, today);
  return filter;
}

interface Chosen {
  before: CatalogFacts;
  filtered: CatalogSelection;
  /** The blobs of other schemas. */
  others: BlobOrigin[];
}

async function choose(
  catalog: Catalog,
  filter: CatalogFilter,
  reference: string,
  { signal, logger }: CommandSession,
): Promise<Chosen> {
  const needsDays = filter.criteria.some(({ criteria }) => criteria.createdSince !== undefined);
  const others: BlobOrigin[] = [];
  const days = new Map<string, string>();
  const before = await collectFacts(catalog, {
    signal,
    logger,
    withoutManifests: !needsDays,
    onOther: (origin) => others.push(origin),
    onBundle: needsDays
      ? (bundle) => {
          const day = creationDayOf(bundle);
          if (day !== undefined) days.set(`${bundle.package}/${bundle.name}`, day);
        }
      : undefined,
  }).catch((error: unknown) => {
    throw inReference(error, reference);
  });
  const dayOf = (packageName: string, bundle: string): string | undefined =>
    days.get(`${packageName}/${bundle}`);
  return {
    before,
    others,
    filtered: filterCatalog(before, filter, { catalog: withoutCredentials(reference), dayOf }),
  };
}

/** What was kept in addition to what was asked for, what was changed, and what was left out. */
function tell({ kept, changes, warnings }: CatalogSelection, { logger }: CommandSession): void {
  for (const { package: of, channel, bundle, reason } of kept) {
    const subject = `package ${quoteGo(of)}, channel ${quoteGo(channel)}`;
    logger.log('info', `${subject}: keeps ${quoteGo(bundle)}, which ${reason}`);
  }
  for (const change of changes) logger.log('info', change);
  for (const warning of warnings) logger.log('warn', warning);
}

function jsonOf(report: FilterReport): string {
  return `${JSON.stringify(report, null, 2)}\n`;
}

async function writeDryRun(
  context: CommandContext,
  report: FilterReport,
  output: string | undefined,
  { logger }: CommandSession,
): Promise<void> {
  if (output === 'yaml') {
    throw new UsageError('--output yaml cannot be used with --dry-run', { hint: 'it tells text, or JSON' });
  }
  logger.close();
  await writeAll(context.stdout, output === 'json' ? jsonOf(report) : filterText(report), context.signal);
}

interface Made extends Chosen {
  catalog: Catalog;
  format: CatalogFormat;
  migrationLevel: string;
}

/** Writes into a directory, or to standard output by default. */
async function write(
  context: CommandContext,
  { catalog, filtered, others, format, migrationLevel }: Made,
  directory: string | undefined,
  session: CommandSession,
): Promise<void> {
  const { logger, signal, temporaryDirectory } = session;
  const kept = new KeptCatalog(catalog, filtered.facts, new Set(), others);
  const assembly = new Assembly({ format, migrationLevel, temporaryDirectory, keepUnknownFields: true });
  try {
    for await (const meta of kept.metas({ signal, logger })) await assembly.add(kept, meta);
    if (directory === undefined) {
      logger.close();
      await writeAll(context.stdout, assembly.write({ signal }), signal);
    } else {
      await writeCatalogDirectory(assembly, directory, format, { signal });
      logger.log('info', `wrote the catalog to ${directory}`);
    }
  } finally {
    await assembly.close();
    await kept.close();
  }
}
