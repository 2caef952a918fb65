import { removePackages } from '../../sqlite/remove.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { reportRemoved } from '../removals.js';
import { type IndexImageFlags, changeIndex } from './index-edit.js';

interface IndexRemoveOptions extends IndexImageFlags {
  operators?: string[];
  permissive?: boolean;
}

/** `opmate index rm` and `opmate index delete`: removes packages from an index image. */
export async function indexRemove(context: CommandContext, options: IndexRemoveOptions): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  const names = requireFlag(options.operators, 'operators');
  const { permissive } = options;
  await changeIndex(
    context,
    options,
    (database, { signal }) => removePackages(database, names, { permissive, signal }),
    reportRemoved,
  );
}
