import { compareLifecycles } from '../../api/lifecycle/compare-lifecycles.js';
import type { LifecycleChange } from '../../catalog/lifecycle/diff-lifecycles.js';
import { groupBy } from '../../core/groups.js';
import { quoteIfNeeded } from '../../core/go-json-quote.js';
import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { exitCodes } from '../exit-codes.js';
import { printableLine } from '../printable.js';
import { encodeData } from '../reports/encode-data.js';
import { writePieces } from '../session.js';

/** `opmate catalog lifecycle diff`. */
export const command = defineCommand({
  summary: 'show the differences of lifecycles; exit with 3 if there are any',
  arguments: [
    argument('<from>', 'older catalog, or file with lifecycle blobs'),
    argument('<to>', 'newer catalog, or file with lifecycle blobs'),
  ],
  flags: { output: outputFormat(['text', 'json'], { default: 'text' }) },
  examples: {
    'Show what new lifecycles would change': 'opmate catalog lifecycle diff ./catalog lifecycle.json',
    'Write what a catalog has beyond a file as JSON':
      'opmate catalog lifecycle diff lifecycle.json ./catalog -o json',
  },
  async runInSession({ context, args: [from, to], options: { output }, session }) {
    const changes = await compareLifecycles(from, to, session);
    const text = output === 'json' ? encodeData({ changes }, output) : formatChanges(changes);
    await writePieces(context, session, [text]);
    return changes.length === 0 ? exitCodes.done : exitCodes.findings;
  },
});

function formatChanges(changes: readonly LifecycleChange[]): string {
  if (changes.length === 0) return 'no differences\n';
  const groups = groupBy(changes, (change) => change.package);
  const lines = [...groups].flatMap(([name, own]) => [quoteIfNeeded(name), ...own.map(formatChange)]);
  return lines.map((line) => `${printableLine(line)}\n`).join('');
}

function formatChange({ version, phase, platform, from, to }: LifecycleChange): string {
  const sign = from === undefined ? '+' : to === undefined ? '-' : '~';
  const subject = [
    ...(version === undefined ? ['lifecycle'] : [`version ${version}`]),
    ...(phase === undefined ? [] : [`phase ${quoteIfNeeded(phase)}`]),
    ...(platform === undefined ? [] : [`platform ${quoteIfNeeded(platform)}`]),
  ];
  const value = sign === '~' ? `${from} -> ${to}` : (from ?? to);
  return `  ${sign} ${subject.join(', ')}: ${value}`;
}
