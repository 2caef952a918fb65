import { type AddFlags, addToDatabase, planAdd, reportAdded } from './add-bundles.js';
import type { CommandContext } from '../context.js';
import { databaseOf, listAndDatabase } from '../options.js';
import { itemsOf } from '../command/values.js';
import { useSession } from '../session.js';

interface RegistryAddOptions extends AddFlags {
  database?: string;
  outputDb?: string;
  bundleImages?: string[];
  batch?: string[];
}

/**
 * `opmate registry add`: adds bundles to a database file, all or none of them. Makes the database where there
 * is none; without bundles that is all, besides bringing it to the latest schema. Returns the exit code.
 */
export async function registryAdd(
  context: CommandContext,
  images: string | undefined,
  second: string | undefined,
  options: RegistryAddOptions,
): Promise<number> {
  const { bundleImages, batch, outputDb } = options;
  const flag = bundleImages
    ? '--bundle-images'
    : batch
      ? '--batch'
      : options.fromFile === undefined
        ? undefined
        : '--from-file';
  const { list, file } = listAndDatabase([images, second], 'bundles', flag);
  const database = databaseOf(file, options.database);
  const references = [...itemsOf(list ?? ''), ...(bundleImages ?? []), ...(batch ?? [])];
  const plan = await planAdd(context, options, references);
  return useSession(context, options, async (session) => {
    const outcome = await addToDatabase(session, plan, database, { create: true, outputFile: outputDb });
    return reportAdded(session.logger, outcome, outputDb ?? database);
  });
}
