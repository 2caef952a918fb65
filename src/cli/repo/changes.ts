import { readRepositoryChanges } from '../../api/repo/repository-changes.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import { asJson } from '../../document/json.js';
import type { RepositoryChanges } from '../../repo/changes.js';
import { defineCommand } from '../command/declaration.js';
import { grouped, repeated, required, text } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { repositoryFlag } from './flags.js';

/** `opmate repo changes`. */
export const command = defineCommand({
  summary: 'list changed operators, bundles and catalogs; exit with 3 if a pull request may not contain them',
  flags: {
    ...repositoryFlag,
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
    ...grouped('Selection', {
      base: required(text('revision', 'revision of Git to compare with')),
      file: repeated('path', 'changed file (default: files that differ from the merge base)'),
    }),
  },
  examples: {
    'Check the changes of a branch': 'opmate repo changes --base origin/main',
    'Print them as data': 'opmate repo changes --base origin/main -o json',
  },
  async runInSession({ context, options, session }) {
    const { repository, output, base, file: files } = options;
    const changes = await readRepositoryChanges(repository, session, { base, files });
    session.logger.close();
    const { result, problems } = changes;
    const value = asJson({ ...result, problems: problems.map(encodeFinding) });
    const data = output === 'text' ? formatChanges(changes) : encodeData(value, output);
    await writeAll(context.stdout, data, session.signal);
    return problems.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

function formatChanges({ result, problems }: RepositoryChanges): string {
  const nouns = { operators: 'operator', bundles: 'bundle', catalog_operators: 'catalog' } as const;
  const lines = (Object.keys(nouns) as (keyof typeof nouns)[]).flatMap((kind) =>
    (['added', 'modified', 'deleted'] as const).flatMap((state) =>
      result[`${state}_${kind}`].map((name) => `${state} ${nouns[kind]} ${name}`),
    ),
  );
  const faults = problems.map((problem) => `error: ${formatFindingText(problem)}`);
  const all = [...lines, ...faults];
  return all.length === 0 ? 'no changes\n' : all.map((line) => `${printable(line)}\n`).join('');
}
