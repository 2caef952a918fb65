import { UsageError } from '../../core/errors.js';
import { parsePullFrom } from '../../source/bundles.js';
import { deleteBundle } from '../../sqlite/delete-bundle.js';
import { editDatabase } from '../../sqlite/edit.js';
import { removePackages } from '../../sqlite/remove.js';
import type { CommandContext } from '../context.js';
import { createLogger } from '../logger.js';
import { databaseOf, requireFlag, separated } from '../options.js';
import type { RegistryCommandOptions } from '../removals.js';
import { manifestFetcher, reportDeleted, reportRemoved } from '../removals.js';
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
  file: string | undefined,
  options: RegistryRemoveOptions,
): Promise<void> {
  if (options.bundle !== undefined) return removeBundle(context, options.bundle, packageName, file, options);
  if (packageName !== undefined && options.packages !== undefined) {
    throw new UsageError(`${packageName}: packages are named by --packages already`, {
      hint: `for the database, write --database ${packageName}`,
    });
  }
  const named = packageName === undefined ? options.packages : separated(packageName, []);
  const names = requireFlag(named, 'packages');
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
