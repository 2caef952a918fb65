import { UsageError } from '../../core/errors.js';
import { type AddFlags, addToDatabase, planAdd, reportAdded } from '../add-bundles.js';
import type { CommandContext } from '../context.js';
import { databaseOf, separated } from '../options.js';
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
  file: string | undefined,
  options: RegistryAddOptions,
): Promise<number> {
  const { bundleImages, batch, outputDb } = options;
  if (images !== undefined && (bundleImages ?? batch ?? options.fromFile) !== undefined) {
    const flag =
      bundleImages !== undefined ? '--bundle-images' : batch !== undefined ? '--batch' : '--from-file';
    throw new UsageError(`${images}: bundles are named by ${flag} already`, {
      hint: `for the database, write --database ${images}`,
    });
  }
  const database = databaseOf(file, options.database);
  const references = [
    ...(images === undefined ? [] : separated(images, [])),
    ...(bundleImages ?? []),
    ...(batch ?? []),
  ];
  const plan = await planAdd(context, options, references);
  return useSession(context, options, async (session) => {
    const outcome = await addToDatabase(session, plan, database, { create: true, outputFile: outputDb });
    return reportAdded(session.logger, outcome, outputDb ?? database);
  });
}
