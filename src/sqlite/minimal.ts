import { OpmateError } from '../core/errors.js';
import type { Database } from './database.js';

/**
 * Drops the manifests of every bundle that heads no channel and that can be pulled from its image. Returns
 * how many lost theirs.
 */
export function dropManifestsOfNonHeads(database: Database): number {
  throw new OpmateError('UNSUPPORTED', `${database.name}: not yet`);
}
