import { pruneStranded } from '../../sqlite/remove/stranded.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { reportStranded } from '../registry/removals.js';
import { type IndexImageFlags, changeIndex } from './edit.js';

/** `opmate index prune-stranded`: removes the bundles of an index image that are in no channel. */
export async function indexPruneStranded(context: CommandContext, options: IndexImageFlags): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  await changeIndex(context, options, pruneStranded, reportStranded);
}
