import { UsageError } from '../../core/errors.js';
import { type Flag, flag, text } from '../command/flags.js';
import { getItems } from '../command/values.js';

/** Description of `[database]`, for help. */
export const databaseSummary = 'database file of the index';

/** Returns `--database` with a default. */
export function databaseFlag(defaultName = 'bundles.db'): Flag<string> {
  return text('file', databaseSummary, {
    short: 'd',
    default: defaultName,
    mayBeEmpty: true,
    group: 'Input',
  });
}

/** Flags of every command that edits a database file. */
export const editFlags = {
  database: databaseFlag(),
  outputDb: text('file', 'write the result to this file instead of editing in place', { group: 'Output' }),
};

/** `--permissive`. */
export const permissiveFlag = flag('continue on errors and report them', { group: 'Behavior' });

/** Returns the database of an argument or of `--database`. Throws UsageError. */
export function getDatabase(
  argument: string | undefined,
  option: string | undefined,
  defaultName = 'bundles.db',
): string {
  if (argument !== undefined && option !== undefined && ![defaultName, argument].includes(option)) {
    throw new UsageError(`${argument}: --database says ${option}`, { hint: 'specify the database once' });
  }
  const name = argument ?? option ?? defaultName;
  if (name === '') throw new UsageError('database: empty file name', { hint: 'specify the database file' });
  return name;
}

/** Reads a list and a database from arguments; only the database if `option` has the list. Throws UsageError. */
export function listAndDatabase(
  [first, second]: readonly (string | undefined)[],
  what: string,
  option: string | undefined,
): { list: string[] | undefined; file: string | undefined } {
  if (option === undefined) return { list: first === undefined ? undefined : getItems(first), file: second };
  if (second === undefined) return { list: undefined, file: first };
  throw new UsageError(`${first}: ${what} are named by ${option} already`, {
    hint: `remove ${first}, or use --database ${first} for that database`,
  });
}
