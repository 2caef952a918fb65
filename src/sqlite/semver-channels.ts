import { OpmateError } from '../core/errors.js';
import type { BundleRecord } from './bundle-record.js';
import type { Database } from './database.js';

/**
 * Puts bundles of one package, whose rows are there already, into its channels by their versions, and writes
 * the entries. Throws OpmateError INVALID, with the package left as it was, for a version that is there
 * already, one that is no semantic version, and a graph that has no single head.
 */
export async function addToSemverChannels(
  database: Database,
  packageName: string,
  records: readonly BundleRecord[],
  options: { skipPatch: boolean },
): Promise<void> {
  throw new OpmateError(
    'UNSUPPORTED',
    `${database.name}: ${packageName}: ${records.length} ${options.skipPatch}`,
  );
}
