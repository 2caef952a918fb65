import { catalogForms } from '../../api/open-catalog.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import { argument, defineCommand } from '../command/declaration.js';
import { flag, list, text } from '../command/flags.js';
import { allowMissing, outputFormat } from '../command/shared-flags.js';
import { encodeFinding, formatFindingText } from '../reports/option-words.js';
import { readTextInput } from '../input.js';
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
    profile: text('file', 'profile of catalog gate with allowed breaking changes', { needs: 'breaking' }),
    output: outputFormat(['text', 'json', 'markdown'], { default: 'text' }),
  },
  examples: {
    'Show the changes of a new catalog': 'opmate catalog diff ./older-catalog ./catalog',
    'Write release notes': 'opmate catalog diff ./older-catalog ./catalog -o markdown',
  },
  async runInSession({ context, args: [from, to], options, session }) {
    const { output, package: names, breaking, allowMissing: allow, profile: file } = options;
    const compared = { packages: names, allowMissing: allow };
    if (breaking) {
      const profile = file === undefined ? undefined : await readTextInput(file, context);
      const changes = await findBreaking(from, to, session, { ...compared, profile });
      const lines = changes.map(formatChange);
      const report = lines.length === 0 ? 'no breaking changes\n' : lines.join('');
      const data = output === 'json' ? encodeData({ breaking: changes.map(encodeFinding) }, output) : report;
      await writePieces(context, session, [data]);
      return changes.some(({ severity }) => severity === 'error') ? exitCodes.findings : exitCodes.done;
    }
    const { diff, isSame } = await diffCatalogs(from, to, session, compared);
    const report =
      output === 'json'
        ? encodeData(diff, output)
        : output === 'markdown'
          ? diffMarkdown(diff)
          : diffText(diff);
    await writePieces(context, session, report);
    return isSame ? exitCodes.done : exitCodes.findings;
  },
});

function formatChange(change: Diagnostic): string {
  const isAllowed = change.severity === 'notice';
  return `${isAllowed ? 'notice: ' : ''}${printable(formatFindingText(change))} [${change.code}]\n`;
}
