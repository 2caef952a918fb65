import { UsageError } from '../../core/errors.js';
import { argument } from '../command/declaration.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import {
  changeDatabase,
  getDatabase,
  databaseSummary,
  editFlags,
  listAndDatabase,
  permissiveFlag,
  removedPackagesFlag,
} from './database.js';
import { planRemove } from './removals.js';

/** Arguments of the commands that remove packages. */
export const removeArguments = [
  argument('[package]', 'package to remove'),
  argument('[database]', databaseSummary),
] as const;

/** Flags of the commands that remove packages from a database file. */
export const removeFlags = {
  package: removedPackagesFlag,
  ...editFlags,
  permissive: permissiveFlag,
};

/** Removes packages from a database file, and logs what was removed. Throws what `editDatabase` throws. */
export async function removeFromDatabase(
  context: CommandContext,
  args: readonly (string | undefined)[],
  options: FlagValues<typeof removeFlags> & GlobalOptions,
): Promise<void> {
  const { package: packages } = options;
  const { list = packages, file } = listAndDatabase(args, 'packages', packages && '--package');
  if (list?.length === 0)
    throw new UsageError('no package named', { hint: 'specify the packages to remove' });
  const edit = planRemove({ ...options, package: list });
  await changeDatabase(context, options, getDatabase(file, options.database), edit);
}
