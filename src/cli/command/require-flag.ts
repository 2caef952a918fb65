import { UsageError } from '../../core/errors.js';

/** The value of a flag that a command needs. Throws UsageError, in the words of `opm`, where it was not given. */
export function requireFlag<T>(value: T | undefined, name: string): T {
  if (value !== undefined && value !== '') return value;
  throw new UsageError(`required flag(s) "${name}" not set`);
}
