import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, RegistryError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { isJsonObject } from '../../document/json.js';
import type { Connection, Endpoint } from './connection.js';
import { readPages } from './list-pages.js';
import { isRepositoryName } from './registry-names.js';
import { RegistryRequester } from './registry-request.js';
import { isRetryStatus } from '../transport/retry-policy.js';

const repositoriesPerPage = 1_000;

/** A registry without a list of its repositories, or that refuses to show it. */
export class NoCatalogError extends OpmateError {}

/**
 * Lists the repositories of a registry in byte order, without invalid names. Throws NoCatalogError if the registry has no
 * list. (Source: distribution API, `/v2/_catalog`.)
 */
export async function listRepositories(
  connection: Connection,
  registry: string,
  options: CancelOptions = {},
): Promise<string[]> {
  const { signal } = options;
  const choice = { withoutMirrors: true, signal };
  const [endpoint] = (await connection.endpoints(registry, '_catalog', choice)) as [Endpoint];
  const requester = new RegistryRequester(endpoint, registry);
  const first = `${endpoint.baseUrl.replace(/\/+$/, '')}/v2/_catalog?n=${repositoriesPerPage}`;
  const names = new Set<string>();
  const subject = `${registry}: repositories`;
  try {
    for await (const page of readPages(requester, first, subject, options)) {
      if (page.status !== 200) throw await requester.failure(page.response, subject, 'pull');
      const list = isJsonObject(page.document) ? (page.document['repositories'] ?? []) : undefined;
      if (!Array.isArray(list)) {
        throw new NoCatalogError('REGISTRY', 'response is not a list of repositories', { subject });
      }
      for (const name of list) if (typeof name === 'string' && isRepositoryName(name)) names.add(name);
    }
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { code, problem, subject, hint } = error;
    throw new NoCatalogError(code, problem, { subject, hint, cause: error });
  }
  return sortedByBytes(names);
}

/** Reports whether a registry refuses its list for good, as opposed to an overloaded or broken one. */
function isRefusal(error: unknown): error is OpmateError {
  if (!(error instanceof OpmateError)) return false;
  if (error.code === 'AUTH') return true;
  return error instanceof RegistryError && error.status < 500 && !isRetryStatus(error.status);
}
