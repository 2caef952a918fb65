import { UsageError } from '../../core/errors.js';
import { migrateFile } from '../../sqlite/schema/edit.js';
import { latestVersion } from '../../sqlite/schema/schema.js';
import type { CommandContext, GlobalOptions } from '../context.js';
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
  if (/^-?\d+$/.test(text) && version >= -1 && version <= latestVersion) return version;
  throw new UsageError(`--to ${text}: not a schema version`, {
    hint: `versions go from -1 to ${latestVersion}`,
  });
}
