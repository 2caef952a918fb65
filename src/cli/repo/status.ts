import { readRepositoryStatus } from '../../api/repo/repository-status.js';
import { asJson } from '../../document/json.js';
import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { writeAll } from '../output.js';
import { printable } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { repositoryFlag } from './flags.js';

/** `opmate repo status`. */
export const command = defineCommand({
  summary: 'list catalogs and bundles that are out of date, and why; exit with 3 if there are any',
  arguments: [argument('[operator...]', 'operators (default: all)')],
  flags: { ...repositoryFlag, output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: {
    'Show what is to be rendered or released': 'opmate repo status',
    'Print it as data': 'opmate repo status -o json',
  },
  async runInSession({ context, args: [operators], options, session }) {
    const { repository, output } = options;
    const named = operators.length === 0 ? undefined : operators;
    const parts = await readRepositoryStatus(repository, session, { operators: named });
    session.logger.close();
    const lines = parts.length === 0 ? ['up to date'] : parts.map(({ path, reason }) => `${path}: ${reason}`);
    const text = lines.map((line) => `${printable(line)}\n`).join('');
    await writeAll(
      context.stdout,
      output === 'text' ? text : encodeData(asJson({ parts }), output),
      session.signal,
    );
    return parts.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});
