import { argument, defineCommand } from '../command/declaration.js';
import { outputFormat } from '../command/shared-flags.js';
import { mirrorFlags } from './flags.js';
import { quoteIfNeeded } from '../../core/go-json-quote.js';
import type { LockDiff } from '../../mirror/lock/lock-diff.js';
import { exitCodes } from '../exit-codes.js';
import { diffNamedLocks } from '../../api/mirror/find-lock.js';
import { encodeData } from '../reports/encode-data.js';
import { writeAll } from '../output.js';
import { amountOfBytes, count } from '../printable.js';

/** `opmate mirror diff`; exit code 3 for differences. */
export const command = defineCommand({
  summary: 'show the differences of two locks or archives',
  description: 'Exits with 3 if there are any.',
  arguments: [
    argument('<from>', 'lock file, or directory of an archive'),
    argument('<to>', 'lock file, or directory of an archive'),
  ],
  inherits: mirrorFlags,
  flags: { output: outputFormat(['text', 'json'], { default: 'text' }) },
  examples: {
    'Compare two archives': 'opmate mirror diff older-archive archive',
    'Print the differences as JSON': 'opmate mirror diff older-archive archive -o json',
  },
  async run({ context, args: [from, to], options: { output } }) {
    const { diff, isSame } = await diffNamedLocks(from, to, context);
    const differences = isSame ? 'no differences\n' : formatText(diff);
    const text = output === 'json' ? encodeData(diff, output) : differences;
    await writeAll(context.stdout, text, context.signal);
    return isSame ? exitCodes.done : exitCodes.findings;
  },
});

function formatText(diff: LockDiff): string {
  const { packages, channels, bundles, images, bytes } = diff;
  const change = (name: string, from: string, to: string): string =>
    `~ ${quoteIfNeeded(name)}: ${from} -> ${to}`;
  const sections: [string, string[]][] = [
    ['packages', formatLines(packages)],
    [
      'channels',
      formatLines(
        channels,
        channels.changed.map(({ channel, from, to }) =>
          change(channel, quoteIfNeeded(from), quoteIfNeeded(to)),
        ),
      ),
    ],
    ['bundles', formatLines(bundles)],
    [
      'images',
      formatLines(
        images,
        images.changed.map(({ image, from, to }) => change(image, shortDigest(from), shortDigest(to))),
      ),
    ],
  ];
  const filled = sections.filter(([, lines]) => lines.length > 0);
  const parts = filled.map(([heading, lines]) => `${[heading, ...lines].join('\n')}\n\n`);
  const sums = filled.map(([heading, lines]) => count(lines.length, heading.slice(0, -1)));
  const added = amountOfBytes(bytes.added);
  const removed = amountOfBytes(bytes.removed);
  return `${parts.join('')}${sums.length === 0 ? '' : `${sums.join(', ')}: `}${added} more, ${removed} less\n`;
}

function formatLines(
  { added, removed }: { added: readonly string[]; removed: readonly string[] },
  changed: readonly string[] = [],
): string[] {
  return [
    ...added.map((name) => `+ ${quoteIfNeeded(name)}`),
    ...removed.map((name) => `- ${quoteIfNeeded(name)}`),
    ...changed,
  ];
}

function shortDigest(digest: string): string {
  return digest.slice(0, digest.indexOf(':') + 13);
}
