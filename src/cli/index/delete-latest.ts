import { parsePullFrom } from '../../source/bundles.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { manifestFetcher, reportDeleted } from '../registry/removals.js';
import { type IndexImageFlags, changeIndex } from './edit.js';

interface IndexDeleteLatestOptions extends IndexImageFlags {
  pullFrom?: string[];
  eachChannel?: boolean;
}

/** `opmate index delete-latest`: removes the newest version of a package from an index image. */
export async function indexDeleteLatest(
  context: CommandContext,
  packageName: string,
  options: IndexDeleteLatestOptions,
): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  const { eachChannel } = options;
  const pullFrom = parsePullFrom(options.pullFrom ?? []);
  await changeIndex(
    context,
    options,
    (database, session) =>
      deleteLatest(database, packageName, manifestFetcher(session, pullFrom), { eachChannel }),
    reportDeleted,
  );
}
