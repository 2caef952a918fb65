import { UsageError } from '../../core/errors.js';
import { migrateFile } from '../../sqlite/schema/edit.js';
import { latestVersion } from '../../sqlite/schema/schema.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { useSession } from '../session.js';

interface RegistryMigrateOptions extends GlobalOptions {
  to?: string;
  outputDb?: string;
}

/**
 * `opmate registry migrate`: brings an index to the latest schema version, or to that of `--to`, in place or
 * into `--output-db`. One that is there already stays as it is.
 */
export async function registryMigrate(
  context: CommandContext,
  file: string,
  options: RegistryMigrateOptions,
): Promise<void> {
  const to = options.to === undefined ? latestVersion : requireVersion(options.to);
  await useSession(context, options, async ({ logger, signal }) => {
    const from = await migrateFile(file, { to, outputFile: options.outputDb, signal });
    const done = from === to ? `is at schema version ${to}` : `migrated from schema version ${from} to ${to}`;
    logger.log('info', `${options.outputDb ?? file}: ${done}`);
  });
}

function requireVersion(text: string): number {
  const version = Number(text);
  // -1 is what a file without any table has; nobody can go back to it, but scripts may name it.
  if (/^(?:\d+|-1)$/.test(text) && version <= latestVersion) return version;
  throw new UsageError(`--to ${text}: not a schema version`, {
    hint: `use a version from 0 to ${latestVersion}`,
  });
}
