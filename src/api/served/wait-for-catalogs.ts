import { sleep } from '../../core/concurrency.js';
import { OpmateError, getMessage, throwIfCancelled } from '../../core/errors.js';
import type { Session } from '../../source/session.js';
import { getName } from '../../kube/object.js';
import { type ServedCatalogs, findCondition, readCatalogStatuses } from './catalog-statuses.js';

const defaultTimeoutMs = 60_000;
const pollMs = 200;

/** Options of waiting for served catalogs. */
export interface WaitOptions {
  /** Names of the catalogs; default all, at least one. */
  names?: readonly string[] | undefined;
  /** Default `Serving`. */
  condition?: 'Serving' | 'Progressing' | undefined;
  /** Default `True`. */
  state?: 'True' | 'False' | undefined;
  /** Maximum time to wait; default 60 s. */
  timeoutMs?: number | undefined;
}

/**
 * Waits until served catalogs have a condition; `findServed` is called again until a server is found. Throws OpmateError
 * NOT_FOUND with what is missing when the time is over, and CancelledError.
 */
export async function waitForCatalogs(
  findServed: () => ServedCatalogs | Promise<ServedCatalogs>,
  session: Session,
  { names = [], condition = 'Serving', state = 'True', timeoutMs = defaultTimeoutMs }: WaitOptions = {},
): Promise<void> {
  const { signal } = session;
  const until = performance.now() + timeoutMs;
  for (;;) {
    throwIfCancelled(signal);
    let missing: string;
    try {
      const all = await readCatalogStatuses(await findServed(), session);
      const waited = names.length === 0 ? all.map(getName) : names;
      const left = waited.filter((name) => {
        const status = all.find((value) => getName(value) === name);
        return status === undefined || findCondition(status, condition)?.['status'] !== state;
      });
      if (waited.length > 0 && left.length === 0) return;
      missing = left.length === 0 ? 'no catalogs' : `${left.join(', ')}: not ${condition}=${state}`;
    } catch (error) {
      // The server may not have started yet.
      if (!(error instanceof OpmateError) || error.code === 'USAGE') throw error;
      missing = getMessage(error);
    }
    if (performance.now() >= until) {
      throw new OpmateError('NOT_FOUND', `${missing} within the time`, {
        hint: 'run api.readCatalogStatuses to see the reason, or increase options.timeoutMs',
      });
    }
    await sleep(pollMs, signal);
  }
}
