import { UsageError } from '../../core/errors.js';
import type { AnyCommand } from './declaration.js';

/** Returns the error for a missing flag; in a command that another tool has too, in the words of that tool. */
export function missingFlag(name: string, hint: string, tool: AnyCommand['tool']): UsageError {
  return tool === undefined
    ? new UsageError('missing', { subject: name, hint })
    : new UsageError(`required flag(s) "${name.slice(2)}" not set`, { hint });
}

/** Returns the value of a required flag of a command of `opm`. Throws UsageError. */
export function requireFlag<T>(value: T | undefined, name: string, placeholder: string): T {
  if (value !== undefined && value !== '') return value;
  throw missingFlag(name, `add ${name} ${placeholder}`, 'opm');
}
