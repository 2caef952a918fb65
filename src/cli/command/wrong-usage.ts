import type { Command, CommanderError } from 'commander';
import { UsageError } from '../../core/errors.js';
import { NameIndex } from '../../core/suggest.js';

/** Returns the error for words that commander refuses for a command; a similar flag becomes part of the hint. */
export function wrongUsage({ message }: CommanderError, command: Command, help?: string): UsageError {
  const [, problem = message, suggestion] =
    /^(?:error: )?([^]*?)(?:\n\(Did you mean (?:one of )?([^?]*)\?\))?$/.exec(message) ?? [];
  // commander quotes words with apostrophes, and an unknown option with its value, which may be a secret.
  const quoted = problem.replace(/'([^']*)'/g, '"$1"').replace(/^(unknown option "-[^=]*)=.*"$/s, '$1"');
  const similar = suggestion ?? findSimilarFlag(problem, command);
  const instead = similar === undefined ? [] : [`did you mean ${similar}?`];
  const hint = [...instead, ...(help === undefined ? [] : [help])].join(' ') || undefined;
  return new UsageError(quoted, { hint });
}

/** Returns the flag that an unknown one with a value stands for: commander compares names with their values. */
function findSimilarFlag(problem: string, command: Command): string | undefined {
  const [, name] = /^unknown option '(--[^=']+)=/.exec(problem) ?? [];
  if (name === undefined) return undefined;
  const known: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent)
    for (const { long, hidden } of at.options) if (long && !hidden) known.push(long);
  return new NameIndex(known).nearest(name);
}
