import { parsePullFrom } from '../../source/bundles.js';
import { deleteLatest } from '../../sqlite/remove/delete-latest.js';
import { editDatabase } from '../../sqlite/schema/edit.js';
import type { CommandContext } from '../context.js';
import { databaseOf } from '../options.js';
import type { RegistryCommandOptions } from './removals.js';
import { manifestFetcher, reportDeleted } from './removals.js';
import { useSession } from '../session.js';

interface RegistryDeleteLatestOptions extends RegistryCommandOptions {
  pullFrom?: string[];
  eachChannel?: boolean;
}

/** `opmate registry delete-latest`: removes the newest version of a package. */
export async function registryDeleteLatest(
  context: CommandContext,
  packageName: string,
  file: string | undefined,
  options: RegistryDeleteLatestOptions,
): Promise<void> {
  const { outputDb, eachChannel } = options;
  const database = databaseOf(file, options.database);
  const pullFrom = parsePullFrom(options.pullFrom ?? []);
  await useSession(context, options, async (session) => {
    const { signal, logger } = session;
    const report = await editDatabase(
      database,
      { outputFile: outputDb, vacuum: true, signal, logger },
      (opened) => deleteLatest(opened, packageName, manifestFetcher(session, pullFrom), { eachChannel }),
    );
    reportDeleted(logger, outputDb ?? database, report);
  });
}
