import { onboardOperator } from '../../api/repo/onboard-operator.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { argument, defineCommand } from '../command/declaration.js';
import { repeated, required } from '../command/flags.js';
import { editDryRun } from '../command/shared-flags.js';
import { shellWord } from '../printable.js';
import { repositoryFlag } from './flags.js';
import { reportRepositoryEdit } from './report-edit.js';

/** `opmate repo onboard`. */
export const command = defineCommand({
  summary: 'convert an operator to file-based catalogs',
  description:
    'Creates a template per index that has the package, maps it in ci.yaml, and renders the catalogs.',
  arguments: [argument('<operator>', 'operator')],
  flags: {
    ...repositoryFlag,
    index: required(repeated('catalog=reference', 'published index of a catalog, e.g. v4.18=REF')),
    dryRun: editDryRun,
  },
  examples: {
    'Show the templates of an operator':
      'opmate repo onboard demo --index v4.18=registry.example.com/demo/catalog:v1 --dry-run',
    'Write them': 'opmate repo onboard demo --index v4.18=registry.example.com/demo/catalog:v1',
  },
  async runInSession({ context, args: [operator], options, session }) {
    const { repository, index, dryRun } = options;
    const indexes = Object.fromEntries(index.map(parseIndex));
    const edit = await onboardOperator(repository, session, { operator, indexes, dryRun });
    for (const catalog of edit.absent) {
      session.logger.log('warn', `${catalog}: package ${quoteGo(edit.packageName)} not found`);
    }
    // Onboarded catalogs have the form of the indexes of old versions, as the pipeline writes them.
    const next = `opmate repo render ${shellWord(operator)}`;
    await reportRepositoryEdit(context, session, edit, { dryRun, unchanged: 'up to date', next });
  },
});

function parseIndex(text: string): [catalog: string, reference: string] {
  const at = text.indexOf('=');
  if (at > 0 && at < text.length - 1) return [text.slice(0, at), text.slice(at + 1)];
  throw new UsageError(`invalid index ${quoteGo(text)}`, { hint: 'use CATALOG=REFERENCE, e.g. v4.18=REF' });
}
