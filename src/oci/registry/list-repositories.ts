import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, RegistryError } from '../../core/errors.js';
import { sortedByBytes } from '../../core/order.js';
import { isJsonObject } from '../../document/json.js';
import type { Connection, Endpoint } from './connection.js';
import { readPages } from './list-pages.js';
import { isRepositoryName } from './registry-names.js';
import { type RegistryRequester, createRequester } from './registry-request.js';

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
  const requester = createRequester(endpoint, registry);
  const first = `${endpoint.baseUrl.replace(/\/+$/, '')}/v2/_catalog?n=${repositoriesPerPage}`;
  const names = new Set<string>();
  const subject = `${registry}: repositories`;
  for await (const page of iteratePages(requester, first, subject, options)) {
    if (page.status !== 200) throw await toRefusal(requester, page.response, subject);
    const list = isJsonObject(page.document) ? (page.document['repositories'] ?? []) : undefined;
    if (!Array.isArray(list)) {
      throw new NoCatalogError('REGISTRY', 'response is not a list of repositories', { subject });
    }
    for (const name of list) if (typeof name === 'string' && isRepositoryName(name)) names.add(name);
  }
  return sortedByBytes(names);
}

/** Reads the pages of the list; an error of authentication becomes NoCatalogError. */
async function* iteratePages(...args: Parameters<typeof readPages>): ReturnType<typeof readPages> {
  try {
    yield* readPages(...args);
  } catch (error) {
    if (!(error instanceof OpmateError) || error.code !== 'AUTH') throw error;
    const { problem, subject, hint, cause } = error;
    throw new NoCatalogError('AUTH', problem, { subject, hint, cause });
  }
}

async function toRefusal(
  requester: RegistryRequester,
  response: Parameters<RegistryRequester['failure']>[0],
  subject: string,
): Promise<OpmateError> {
  const failure = await requester.failure(response, subject, 'pull');
  if (!(failure instanceof RegistryError) || failure.status >= 500) return failure;
  const { code, problem, hint } = failure;
  return new NoCatalogError(code, problem, { subject, hint, cause: failure });
}
