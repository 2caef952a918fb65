import { editDatabase } from '../../sqlite/schema/edit.js';
import { prunePackages } from '../../sqlite/remove/prune.js';
import type { CommandContext } from '../context.js';
import { createLogger } from '../logger.js';
import { databaseOf, requireFlag } from '../options.js';
import type { RegistryCommandOptions } from './removals.js';
import { reportPruned } from './removals.js';

interface RegistryPruneOptions extends RegistryCommandOptions {
  packages?: string[];
}

/** `opmate registry prune`: removes all packages but those that are named from a database file. */
export async function registryPrune(
  context: CommandContext,
  file: string | undefined,
  options: RegistryPruneOptions,
): Promise<void> {
  const names = requireFlag(options.packages, 'packages');
  const { outputDb } = options;
  const { signal } = context;
  const logger = createLogger(context, options);
  const database = databaseOf(file, options.database);
  const report = await editDatabase(
    database,
    { outputFile: outputDb, vacuum: true, signal, logger },
    (opened) => prunePackages(opened, names, { signal }),
  );
  reportPruned(logger, outputDb ?? database, report);
}
