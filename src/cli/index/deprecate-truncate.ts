import { deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { reportDeprecated } from '../registry/removals.js';
import { type IndexImageFlags, changeIndex } from './edit.js';

interface IndexDeprecateOptions extends IndexImageFlags {
  bundles?: string[];
  allowPackageRemoval?: boolean;
  permissive?: boolean;
}

/** `opmate index deprecatetruncate`: deprecates bundles of an index image, and removes what is older. */
export async function indexDeprecateTruncate(
  context: CommandContext,
  options: IndexDeprecateOptions,
): Promise<void> {
  const images = requireFlag(options.bundles, 'bundles');
  const { permissive, allowPackageRemoval } = options;
  await changeIndex(
    context,
    options,
    (database, { signal }) =>
      deprecateTruncate(database, images, { permissive, allowPackageRemoval, signal }),
    reportDeprecated,
  );
}
