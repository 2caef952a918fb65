import { OpmateError } from '../core/errors.js';
import type { BundleManifests, BundleRecord } from './bundle-record.js';
import type { Database } from './database.js';

/**
 * Writes the rows of one bundle: itself, its APIs, dependencies, properties and images; no channel. Throws
 * OpmateError INVALID when a bundle of that name is there.
 */
export function insertBundle(database: Database, record: BundleRecord, manifests: BundleManifests): void {
  throw new OpmateError('UNSUPPORTED', `${database.name}: ${record.name}: ${manifests.csv.length}: not yet`);
}
