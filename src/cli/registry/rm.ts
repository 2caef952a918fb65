import { UsageError } from '../../core/errors.js';
import { parsePullFrom } from '../../source/bundles.js';
import { deleteBundle } from '../../sqlite/remove/delete-bundle.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import { removePackages } from '../../sqlite/remove/remove.js';
import type { CommandContext } from '../context.js';
import { createLogger } from '../logger.js';
import { databaseOf, listAndDatabase, requireFlag } from '../options.js';
import { itemsOf } from '../command/values.js';
import type { RegistryCommandOptions } from './removals.js';
import { manifestFetcher, reportDeleted, reportRemoved } from './removals.js';
import { useSession } from '../session.js';

interface RegistryRemoveOptions extends RegistryCommandOptions {
  packages?: string[];
  bundle?: string;
  pullFrom?: string[];
}

/**
 * `opmate registry rm` and `opmate registry delete`: removes packages from a database file, or with `--bundle`
 * one bundle.
 */
export async function registryRemove(
  context: CommandContext,
  packageName: string | undefined,
  second: string | undefined,
  options: RegistryRemoveOptions,
): Promise<void> {
  if (options.bundle !== undefined)
    return removeBundle(context, options.bundle, packageName, second, options);
  const flag = options.packages && '--packages';
  const { list, file } = listAndDatabase([packageName, second], 'packages', flag);
  const names = requireFlag(list === undefined ? options.packages : itemsOf(list), 'packages');
  if (names.length === 0) throw new UsageError('no package named', { hint: 'name the packages to remove' });
  const { permissive, outputDb } = options;
  const { signal } = context;
  const logger = createLogger(context, options);
  const database = databaseOf(file, options.database);
  const report = await editDatabase(
    database,
    { outputFile: outputDb, vacuum: true, signal, logger },
    (opened) => removePackages(opened, names, { permissive, signal }),
  );
  reportRemoved(logger, outputDb ?? database, report);
}

async function removeBundle(
  context: CommandContext,
  name: string,
  argument: string | undefined,
  file: string | undefined,
  options: RegistryRemoveOptions,
): Promise<void> {
  const { outputDb } = options;
  if (options.packages !== undefined || file !== undefined) {
    throw new UsageError('--bundle removes one bundle, and no package', {
      hint: 'write registry delete --bundle NAME --database FILE',
    });
  }
  const database = databaseOf(argument, options.database);
  const pullFrom = parsePullFrom(options.pullFrom ?? []);
  await useSession(context, options, async (session) => {
    const { signal, logger } = session;
    const report = await editDatabase(
      database,
      { outputFile: outputDb, vacuum: true, signal, logger },
      (opened) => deleteBundle(opened, name, { fetchManifests: manifestFetcher(session, pullFrom) }),
    );
    reportDeleted(logger, outputDb ?? database, report);
  });
}
