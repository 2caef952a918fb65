import { argument, defineCommand } from '../command/declaration.js';
import { UsageError } from '../../core/errors.js';
import { findNearest } from '../../document/field.js';
import { quoteGo } from '../../core/go-json-quote.js';
import { writeAll } from '../output.js';
import { completionScript, shells } from './scripts.js';

/** `opmate completion`. */
export const command = defineCommand({
  summary: 'print a completion script for a shell',
  arguments: [argument('<shell>', 'shell', { choices: shells })],
  examples: {
    'Load completion into the current bash shell': 'source <(opmate completion bash)',
    'Install completion for fish': 'opmate completion fish > ~/.config/fish/completions/opmate.fish',
  },
  async run({ context, args: [shell], commands }) {
    const known = shells.find((name) => name === shell);
    if (known === undefined) {
      const near = findNearest(shell, shells);
      throw new UsageError(`unsupported shell ${quoteGo(shell)}`, {
        hint: `${near === undefined ? '' : `did you mean ${quoteGo(near)}? `}use one of ${shells.join(', ')}`,
      });
    }
    await writeAll(context.stdout, completionScript(known, commands.program.name()));
  },
});
