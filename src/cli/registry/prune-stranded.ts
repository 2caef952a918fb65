import { editDatabase } from '../../sqlite/schema/edit.js';
import { pruneStranded } from '../../sqlite/remove/stranded.js';
import type { CommandContext } from '../context.js';
import { createLogger } from '../logger.js';
import { databaseOf } from '../options.js';
import type { RegistryCommandOptions } from './removals.js';
import { reportStranded } from './removals.js';

/** `opmate registry prune-stranded`: removes the bundles of a database file that are in no channel. */
export async function registryPruneStranded(
  context: CommandContext,
  file: string | undefined,
  options: RegistryCommandOptions,
): Promise<void> {
  const { outputDb } = options;
  const { signal } = context;
  const logger = createLogger(context, options);
  const database = databaseOf(file, options.database);
  const report = await editDatabase(
    database,
    { outputFile: outputDb, vacuum: true, signal, logger },
    pruneStranded,
  );
  reportStranded(logger, outputDb ?? database, report);
}
