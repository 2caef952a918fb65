import { deprecateTruncate } from '../../sqlite/remove/deprecate.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import type { CommandContext } from '../context.js';
import { createLogger } from '../logger.js';
import { databaseOf } from '../options.js';
import type { RegistryCommandOptions } from './removals.js';
import { reportDeprecated } from './removals.js';

interface RegistryDeprecateOptions extends RegistryCommandOptions {
  bundleImages?: string[];
  allowPackageRemoval?: boolean;
}

/** `opmate registry deprecatetruncate`: deprecates bundles of a database file, and removes what is older. */
export async function registryDeprecateTruncate(
  context: CommandContext,
  file: string | undefined,
  options: RegistryDeprecateOptions,
): Promise<void> {
  const { bundleImages = [], permissive, allowPackageRemoval, outputDb } = options;
  const { signal } = context;
  const logger = createLogger(context, options);
  const database = databaseOf(file, options.database, 'index.db');
  const report = await editDatabase(
    database,
    { outputFile: outputDb, vacuum: true, signal, logger },
    (opened) => deprecateTruncate(opened, bundleImages, { permissive, allowPackageRemoval, signal }),
  );
  reportDeprecated(logger, outputDb ?? database, report);
}
