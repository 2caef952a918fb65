import type { CommandContext } from './context.js';

/** Colors for messages on a terminal; plain text otherwise. */
export interface Paint {
  hint(text: string): string;
  error(text: string): string;
}

const plain: Paint = { hint: (text) => text, error: (text) => text };

/** Loads colors for a terminal, unless `NO_COLOR` or `CI` is set. */
export async function loadPaint(context: Pick<CommandContext, 'environment' | 'stderr'>): Promise<Paint> {
  const { environment, stderr } = context;
  if (stderr.isTTY !== true || environment['NO_COLOR'] || environment['CI']) return plain;
  const { default: chalk } = await import('chalk');
  return { hint: (text) => chalk.cyan(text), error: (text) => chalk.red(text) };
}
