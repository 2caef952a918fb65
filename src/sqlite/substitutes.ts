import { OpmateError } from '../core/errors.js';
import type { Database } from './database.js';

/**
 * Rewrites the edges of a bundle that substitutes for another, and of those around it; its row is there
 * already. Throws OpmateError INVALID for a cycle, equal versions, or more than one substitute.
 */
export function applySubstitution(database: Database, bundle: string): void {
  throw new OpmateError('UNSUPPORTED', `${database.name}: ${bundle}: not yet`);
}
