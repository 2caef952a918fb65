import type { Command } from 'commander';
import { UsageError } from '../../core/errors.js';
import { completionScript, shells } from './scripts.js';
import type { CommandContext } from '../context.js';
import { writeAll } from '../output.js';

/** `opmate completion`: a script that completes commands and options in a shell, on stdout. */
export async function completion(context: CommandContext, shell: string, program: Command): Promise<void> {
  const known = shells.find((name) => name === shell);
  if (known === undefined) {
    throw new UsageError(`${shell}: no completion for this shell`, {
      hint: `use one of ${shells.join(', ')}`,
    });
  }
  await writeAll(context.stdout, completionScript(known, program));
}
