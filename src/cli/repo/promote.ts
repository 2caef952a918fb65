import { type PromotedCatalog, promoteCatalog } from '../../api/repo/promote-catalog.js';
import type { PromotedOperator } from '../../repo/promote.js';
import { asJson } from '../../document/json.js';
import { defineCommand } from '../command/declaration.js';
import { flag, required, text } from '../command/flags.js';
import { editDryRun, outputFormat } from '../command/shared-flags.js';
import { reportEnding } from '../ending.js';
import { writeAll } from '../output.js';
import { count, printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { repositoryFlag } from './flags.js';

/** `opmate repo promote`. */
export const command = defineCommand({
  summary: 'create the catalog of an OpenShift version from another one',
  description:
    'Operators are handled by version_promotion_strategy in ci.yaml: always, review-needed or never.',
  flags: {
    ...repositoryFlag,
    output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }),
    from: required(text('catalog', 'catalog to copy, e.g. v4.22')),
    to: required(text('catalog', 'catalog to create, e.g. v5.0')),
    rerender: flag('render mapped operators from their templates instead of copying'),
    dryRun: editDryRun,
  },
  examples: {
    'Show which operators a new catalog gets': 'opmate repo promote --from v4.18 --to v4.19 --dry-run',
    'Print them as data': 'opmate repo promote --from v4.18 --to v4.19 --dry-run -o json',
  },
  async runInSession({ context, options, session }) {
    const { repository, output, from, to, rerender, dryRun } = options;
    const promoted = await promoteCatalog(repository, session, { from, to, rerender, dryRun });
    session.logger.close();
    const list = (kind: PromotedOperator['promotion']): string[] =>
      promoted.operators.filter(({ promotion }) => promotion === kind).map(({ operator }) => operator);
    const value = {
      always: list('always'),
      review: list('review'),
      never: list('never'),
      diff: promoted.diff,
    };
    const lines = promoted.operators.map(
      ({ operator, promotion, note }) =>
        `${operator}: ${strategies[promotion]}${note === undefined ? '' : ` (${note})`}\n`,
    );
    const data =
      output === 'text' ? printable(lines.join('') + promoted.diff) : encodeData(asJson(value), output);
    await writeAll(context.stdout, data, session.signal);
    reportEnding(session.logger, [`${to}: ${summarizePromotion(promoted, dryRun)}`]);
  },
});

/** Values of `version_promotion_strategy` by what they cause. */
const strategies = { always: 'always', review: 'review-needed', never: 'never' } as const;

function summarizePromotion({ operators, rendered }: PromotedCatalog, dryRun: boolean): string {
  const created = operators.filter(({ copiesCatalog }) => copiesCatalog).length;
  const configs = operators.filter(({ config }) => config !== undefined).length;
  if (created === 0 && configs === 0 && rendered.length === 0) return 'up to date';
  const ending = (action: string): string => (dryRun ? `to be ${action}` : action);
  const parts = [
    `${count(created, 'catalog')} ${ending('created')}`,
    ...(rendered.length === 0 ? [] : [`${count(rendered.length, 'catalog')} ${ending('rendered')}`]),
    `${count(configs, 'ci.yaml file')} ${ending('changed')}`,
  ];
  return parts.join(', ');
}
