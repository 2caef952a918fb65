import { catalogForms } from '../../api/open-catalog.js';
import { argument, defineCommand } from '../command/declaration.js';
import { list } from '../command/flags.js';
import { outputFormat } from '../command/shared-flags.js';
import { diffCatalogs } from '../../api/diff-catalogs.js';
import { isSameCatalog } from '../../catalog/diff/diff.js';
import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { diffMarkdown, diffText } from './diff-text.js';
import { exitCodes } from '../exit-codes.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { useSession } from '../session.js';

/** `opmate catalog diff`; exit code 3 for differences. */
export const command = defineCommand({
  summary: 'show the differences between two catalogs; exit with 3 if there are any',
  arguments: [argument('<from>', `catalog: ${catalogForms}`), argument('<to>', 'the same')],
  flags: {
    package: list('name', 'compare only these packages', { group: 'Selection' }),
    output: outputFormat(['text', 'json', 'markdown'], { default: 'text' }),
  },
  examples: [
    ['Show what a new catalog changes', 'opmate catalog diff ./older-catalog ./catalog'],
    ['Write release notes', 'opmate catalog diff ./older-catalog ./catalog -o markdown'],
  ],
  async run({ context, args: [from, to], options }) {
    const { output, package: names } = options;
    if (!['text', 'json', 'markdown'].includes(output)) {
      throw new UsageError(`invalid --output value ${quoteGo(output)}, expected (text|json|markdown)`);
    }
    const diff = await useSession(context, options, (session) =>
      diffCatalogs(from, to, session, { packages: names }),
    );
    const text =
      output === 'json'
        ? encodeData(diff, output)
        : output === 'markdown'
          ? diffMarkdown(diff)
          : diffText(diff);
    await writeAll(context.stdout, text, context.signal);
    return isSameCatalog(diff) ? exitCodes.done : exitCodes.findings;
  },
});
