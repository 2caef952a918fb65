import { promoteCatalog } from '../../api/repo/promote-catalog.js';
import type { PromotedOperator } from '../../repo/promote.js';
import { asJson } from '../../document/json.js';
import { defineCommand } from '../command/declaration.js';
import { flag, required, text } from '../command/flags.js';
import { editDryRun, outputFormat } from '../command/shared-flags.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
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
        `${operator}: ${promotion}${note === undefined ? '' : ` (${note})`}\n`,
    );
    const data =
      output === 'text' ? printable(lines.join('') + promoted.diff) : encodeData(asJson(value), output);
    await writeAll(context.stdout, data, session.signal);
  },
});
