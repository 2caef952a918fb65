import { argument, defineCommand } from '../command/declaration.js';
import { namesFor } from './names.js';
import { wantedName } from './words.js';
import { writeAll } from '../output.js';
import { printableLine } from '../printable.js';

/** Whoever presses a key waits no longer than this. */
const patienceMs = 1500;

/**
 * What completion scripts call: names of packages or channels that the last word may become, one a line. The words
 * are those of the line after the command's name, as they were typed. Says nothing where it knows nothing.
 */
export const command = defineCommand({
  summary: 'complete a name, for completion scripts',
  arguments: [argument('[word...]')],
  async run({ context, args: [words], commands }) {
    const { program } = commands;
    await commands.loadNamed(words);
    const wanted = wantedName(program, words, context.homeDirectory);
    if (wanted === undefined || !/^[A-Za-z0-9._,-]*$/.test(wanted.before)) return;
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), patienceMs);
    const names = await namesFor(wanted, context, {
      signal: AbortSignal.any([context.signal, patience.signal]),
    });
    clearTimeout(timer);
    const safe = names.filter((name) => printableLine(name) === name);
    await writeAll(context.stdout, safe.map((name) => `${wanted.before}${name}\n`).join(''));
  },
});
