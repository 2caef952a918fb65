import { argument, defineCommand } from '../command/declaration.js';
import { writeAll } from '../output.js';
import { printableLine } from '../printable.js';
import { namesFor } from './names.js';
import { offerFor } from './words.js';

/** Maximum time to wait for names. */
const patienceMs = 1500;

/**
 * Completes the last word of a line for the scripts of `completion`. Prints each candidate with a tab and a description,
 * then `:files`, `:directories` or `:none`. For `--flag=VALUE` it prints values only.
 */
export const command = defineCommand({
  summary: 'complete a word, for completion scripts',
  arguments: [argument('[word...]')],
  async run({ context, args: [words], commands }) {
    const { program } = commands;
    const named = await commands.loadNamed(words);
    await commands.loadBelow(named);
    const offer = offerFor(program, words, context.homeDirectory);
    const lines = offer.words.map(({ word, description }) => `${word}\t${description.split('\n', 1)[0]}`);
    const { name } = offer;
    if (name !== undefined && /^[A-Za-z0-9._,-]*$/.test(name.before)) {
      const patience = new AbortController();
      const timer = setTimeout(() => patience.abort(), patienceMs);
      const signal = AbortSignal.any([context.signal, patience.signal]);
      const names = await namesFor(name, context, { signal });
      clearTimeout(timer);
      lines.push(
        ...names
          .filter((text) => printableLine(text) === text && !name.before.split(',').includes(text))
          .map((text) => `${name.before}${text}\t`),
      );
    }
    lines.push(`:${offer.paths ?? 'none'}`);
    await writeAll(context.stdout, lines.map((line) => `${line}\n`).join(''));
  },
});
