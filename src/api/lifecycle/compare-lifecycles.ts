import { type LifecycleChange, diffLifecycles } from '../../catalog/lifecycle/diff-lifecycles.js';
import type { Lifecycle } from '../../model/lifecycle.js';
import type { Session } from '../../source/session.js';
import { readLifecycleBlobs } from './read-lifecycle-data.js';

/**
 * Compares the lifecycles of two catalogs, or of files with lifecycle blobs: versions, phases and platforms. Throws
 * OpmateError, DiagnosticsError with all invalid blobs.
 */
export async function compareLifecycles(
  from: string,
  to: string,
  session: Session,
): Promise<LifecycleChange[]> {
  const read = async (reference: string): Promise<Map<string, Lifecycle>> => {
    const blobs = await readLifecycleBlobs(reference, session);
    return new Map([...blobs].map(([name, { lifecycle }]) => [name, lifecycle]));
  };
  return diffLifecycles(await read(from), await read(to));
}
