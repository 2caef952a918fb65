import { type AddFlags, addToDatabase, planAdd, reportAdded } from '../registry/add-bundles.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { type IndexImageFlags, editIndex } from './edit.js';

interface IndexAddOptions extends AddFlags, IndexImageFlags {
  bundles?: string[];
}

/**
 * `opmate index add`: adds bundles to the database of an index image, or to a new one, all or none of them.
 * Without any bundle the database is brought to the latest schema. Returns the exit code.
 */
export async function indexAdd(context: CommandContext, options: IndexAddOptions): Promise<number> {
  const bundles = options.fromFile === undefined ? requireFlag(options.bundles, 'bundles') : options.bundles;
  const plan = await planAdd(context, { ...options, containerTool: 'none' }, bundles ?? []);
  return editIndex(context, options, async (session, index) => {
    const outcome = await addToDatabase(session, plan, index.file, { create: true, name: index.name });
    return reportAdded(session.logger, outcome, index.name);
  });
}
