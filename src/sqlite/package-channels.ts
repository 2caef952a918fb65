import { OpmateError } from '../core/errors.js';
import type { Database } from './database.js';

/** A package and the heads of its channels, from which its upgrade graph follows. */
export interface PackageChannels {
  packageName: string;
  channels: { name: string; head: string }[];
  /** A package of a single channel needs none. */
  defaultChannel: string;
}

/**
 * Writes a package anew: its channels, and in each the entries that are reached from the head over replaces
 * and skips. Throws OpmateError INVALID with every problem of the graph, and then leaves the package as it
 * was.
 */
export async function writePackageChannels(database: Database, channels: PackageChannels): Promise<void> {
  throw new OpmateError('UNSUPPORTED', `${database.name}: ${channels.packageName}: not yet`);
}
