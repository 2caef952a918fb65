import { diffPredictions } from '../../api/cluster/diff-predictions.js';
import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { readTextInput } from '../input.js';
import { writeAll } from '../output.js';
import { encodeData } from '../reports/encode-data.js';
import { formatTable } from '../table.js';

/** `opmate cluster diff`; exit code 3 for differences. */
export const command = defineCommand({
  summary: 'compare two saved plans; exit with 3 on differences',
  arguments: [
    argument('<old>', 'JSON output of opmate cluster predict or upgrade'),
    argument('<new>', 'later output; same form as OLD'),
  ],
  flags: { output: outputFormat(['text', 'json', 'yaml'], { default: 'text' }) },
  examples: {
    'Compare a saved plan with a later one': 'opmate cluster diff plan.json later.json',
    'Print the differences as JSON': 'opmate cluster diff plan.json later.json -o json',
  },
  async runInSession({ context, args: [oldFile, newFile], options: { output }, session }) {
    const [before, after] = [await readTextInput(oldFile, context), await readTextInput(newFile, context)];
    const differences = diffPredictions(
      { name: before.file, text: before.text },
      { name: after.file, text: after.text },
    );
    session.logger.close();
    const rows = differences.map((item) => [
      item.namespace,
      item.subject,
      item.before || '-',
      item.after || '-',
    ]);
    const table =
      rows.length === 0 ? 'no differences\n' : formatTable(['NAMESPACE', 'PACKAGE', 'OLD', 'NEW'], rows);
    await writeAll(
      context.stdout,
      output === 'text' ? table : encodeData({ differences }, output),
      session.signal,
    );
    return differences.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});
