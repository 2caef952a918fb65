import { UsageError } from '../../core/errors.js';
import { defineCommand } from '../command/declaration.js';
import { changeDatabase, getDatabase, pullFromFlag, removedBundleFlag } from './database.js';
import { planDelete } from './removals.js';
import { removeArguments, removeFlags, removeFromDatabase } from './remove-packages.js';

/** `opmate registry delete`: removes packages from a database file, or with `--bundle` one bundle. */
export const command = defineCommand({
  summary: 'remove packages, or one bundle',
  arguments: removeArguments,
  flags: {
    ...removeFlags,
    bundle: removedBundleFlag,
    pullFrom: pullFromFlag,
  },
  examples: [
    ['Remove a package', 'opmate registry delete demo index.db'],
    ['Remove one bundle', 'opmate registry delete --bundle demo.v1.1.0 --database index.db'],
  ],
  async run({ context, args, options }) {
    const { bundle, package: packages } = options;
    if (bundle === undefined) return removeFromDatabase(context, args, options);
    const [file, ...more] = args;
    if (packages !== undefined || more.some((word) => word !== undefined)) {
      throw new UsageError('--bundle removes one bundle, and no package', {
        hint: 'use opmate registry delete --bundle NAME --database FILE',
      });
    }
    await changeDatabase(context, options, getDatabase(file, options.database), planDelete(bundle, options));
  },
});
