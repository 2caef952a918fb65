import { createDatabase } from '../../sqlite/schema/edit.js';
import type { CommandContext } from '../context.js';
import type { GlobalOptions } from '../command/global-flags.js';
import { databaseOf } from '../options.js';
import { useSession } from '../session.js';

/** `opmate registry create`: an empty index, whole or not at all; refuses a file that holds something. */
export async function registryCreate(
  context: CommandContext,
  file: string,
  options: GlobalOptions,
): Promise<void> {
  await useSession(context, options, async ({ logger, signal }) => {
    await createDatabase(databaseOf(file, undefined), { signal });
    logger.log('info', `created ${file}`);
  });
}
