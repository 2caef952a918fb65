import { removePackages } from '../../sqlite/remove/remove.js';
import type { FlagValues } from '../command/flags.js';
import type { GlobalOptions } from '../command/global-flags.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../command/require-flag.js';
import { permissiveFlag, removedPackagesFlag } from '../registry/database.js';
import { reportRemoved } from '../registry/removals.js';
import { changeIndex } from './edit.js';
import { fromIndex, indexImageFlags, toolFlags } from './index-image-flags.js';

/** Flags of the commands that remove packages from an index image. */
export const removeFlags = {
  package: removedPackagesFlag,
  fromIndex: fromIndex('index image to edit'),
  permissive: permissiveFlag,
  ...indexImageFlags,
  ...toolFlags,
};

/** Removes packages from an index image, and logs what was removed. Throws what `changeIndex` throws. */
export async function removeFromIndex(
  context: CommandContext,
  options: FlagValues<typeof removeFlags> & GlobalOptions,
): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  const names = requireFlag(options.package, 'package');
  const { permissive } = options;
  await changeIndex(
    context,
    options,
    (database, { signal }) => removePackages(database, names, { permissive, signal }),
    reportRemoved,
  );
}
