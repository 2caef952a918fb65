import { UsageError } from '../../core/errors.js';

/** Returns the value of a required flag. Throws UsageError, worded as in `opm`. */
export function requireFlag<T>(value: T | undefined, name: string): T {
  if (value !== undefined && value !== '') return value;
  throw new UsageError(`required flag(s) "${name}" not set`);
}
