import { catalogForms } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list } from '../command/flags.js';
import { allowMissing, outputFormat } from '../command/shared-flags.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import { printable } from '../printable.js';
import { diffCatalogs, findBreaking } from '../../api/diff-catalogs.js';
import { diffMarkdown, diffText } from './diff-text.js';
import { exitCodes } from '../exit-codes.js';
import { encodeData } from '../reports/encode-data.js';
import { writePieces } from '../session.js';

/** `opmate catalog diff`; exit code 3 for differences. */
export const command = defineCommand({
  summary: 'show the differences between two catalogs; exit with 3 if there are any',
  arguments: [
    argument('<from>', `older catalog: ${catalogForms}`),
    argument('<to>', 'newer catalog; same forms as FROM'),
  ],
  flags: {
    package: list('name', 'compare only these packages', { short: 'p', group: 'Selection' }),
    breaking: flag('show only changes that break clusters which use the older catalog', {
      group: 'Selection',
    }),
    allowMissing: allowMissing(),
    output: outputFormat(['text', 'json', 'markdown'], { default: 'text' }),
  },
  examples: {
    'Show the changes of a new catalog': 'opmate catalog diff ./older-catalog ./catalog',
    'Write release notes': 'opmate catalog diff ./older-catalog ./catalog -o markdown',
  },
  async runInSession({ context, args: [from, to], options, session }) {
    const { output, package: names, breaking, allowMissing: allow } = options;
    const compared = { packages: names, allowMissing: allow };
    if (breaking) {
      const changes = await findBreaking(from, to, session, compared);
      const lines = changes.map((change) => `${printable(formatFindingText(change))} [${change.code}]\n`);
      const text = lines.length === 0 ? 'no breaking changes\n' : lines.join('');
      const data = output === 'json' ? encodeData({ breaking: changes.map(encodeFinding) }, output) : text;
      await writePieces(context, session, [data]);
      return changes.length === 0 ? exitCodes.done : exitCodes.findings;
    }
    const { diff, isSame } = await diffCatalogs(from, to, session, compared);
    const text =
      output === 'json'
        ? encodeData(diff, output)
        : output === 'markdown'
          ? diffMarkdown(diff)
          : diffText(diff);
    await writePieces(context, session, text);
    return isSame ? exitCodes.done : exitCodes.findings;
  },
});
