import type { Severity } from '../core/diagnostic.js';
import type { CommandContext } from './context.js';

/** Colors for messages on a terminal; plain text otherwise. */
export interface Paint {
  hint(text: string): string;
  error(text: string): string;
  warning(text: string): string;
}

const same = (text: string): string => text;
export const plain: Paint = { hint: same, error: same, warning: same };

/** Returns the severity that a finding begins with: `error:`. */
export function paintSeverity(severity: Severity, paint: Paint): string {
  const label = `${severity}:`;
  if (severity === 'error') return paint.error(label);
  return severity === 'warning' ? paint.warning(label) : label;
}

/** Loads colors for a terminal, unless `NO_COLOR` or `CI` is set. */
export async function loadPaint(context: Pick<CommandContext, 'environment' | 'stderr'>): Promise<Paint> {
  const { environment, stderr } = context;
  if (stderr.isTTY !== true || environment['NO_COLOR'] || environment['CI']) return plain;
  const { default: chalk } = await import('chalk');
  return {
    hint: (text) => chalk.cyan(text),
    error: (text) => chalk.red(text),
    warning: (text) => chalk.yellow(text),
  };
}
