import { UsageError } from '../../core/errors.js';
import { parsePullFrom } from '../../source/bundles.js';
import { deleteBundle } from '../../sqlite/remove/delete-bundle.js';
import { removePackages } from '../../sqlite/remove/remove.js';
import type { CommandContext } from '../context.js';
import { requireFlag } from '../options.js';
import { manifestFetcher, reportDeleted, reportRemoved } from '../registry/removals.js';
import { type IndexImageFlags, changeIndex } from './edit.js';

interface IndexRemoveOptions extends IndexImageFlags {
  operators?: string[];
  bundle?: string;
  pullFrom?: string[];
  permissive?: boolean;
}

/**
 * `opmate index rm` and `opmate index delete`: removes packages from an index image, or with `--bundle` one
 * bundle.
 */
export async function indexRemove(context: CommandContext, options: IndexRemoveOptions): Promise<void> {
  requireFlag(options.fromIndex, 'from-index');
  const { bundle, permissive } = options;
  if (bundle !== undefined) {
    if (options.operators !== undefined) {
      throw new UsageError('--bundle removes one bundle, and no package', {
        hint: 'write index delete --bundle NAME --from-index IMAGE',
      });
    }
    const pullFrom = parsePullFrom(options.pullFrom ?? []);
    return changeIndex(
      context,
      options,
      (database, session) =>
        deleteBundle(database, bundle, { fetchManifests: manifestFetcher(session, pullFrom) }),
      reportDeleted,
    );
  }
  const names = requireFlag(options.operators, 'operators');
  await changeIndex(
    context,
    options,
    (database, { signal }) => removePackages(database, names, { permissive, signal }),
    reportRemoved,
  );
}
