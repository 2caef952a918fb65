import { prunePackages } from '../../sqlite/remove/prune.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { reportPruned } from '../registry/removals.js';
import { type IndexImageFlags, changeIndex } from './edit.js';

interface IndexPruneOptions extends IndexImageFlags {
  packages?: string[];
}

/** `opmate index prune`: removes all packages but those that are named from an index image. */
export async function indexPrune(context: CommandContext, options: IndexPruneOptions): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  const names = requireFlag(options.packages, 'packages');
  await changeIndex(
    context,
    options,
    (database, { signal }) => prunePackages(database, names, { signal }),
    reportPruned,
  );
}
