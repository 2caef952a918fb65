import type { CommanderError } from 'commander';
import { UsageError } from '../../core/errors.js';

/** Returns the error for words that commander refuses; the flag that it suggests becomes part of the hint. */
export function wrongUsage({ message }: CommanderError, help?: string): UsageError {
  const [, problem = message, suggestion] =
    /^(?:error: )?([^]*?)(?:\n\(Did you mean (?:one of )?([^?]*)\?\))?$/.exec(message) ?? [];
  const instead = suggestion === undefined ? [] : [`did you mean ${suggestion}?`];
  const hint = [...instead, ...(help === undefined ? [] : [help])].join(' ') || undefined;
  // commander quotes words with apostrophes, and an unknown option with its value, which may be a secret.
  const quoted = problem.replace(/'([^']*)'/g, '"$1"').replace(/^(unknown option "-[^=]*)=.*"$/s, '$1"');
  return new UsageError(quoted, { hint });
}
