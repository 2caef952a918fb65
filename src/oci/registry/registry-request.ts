import { OpmateError, RegistryError } from '../../core/errors.js';
import type { Endpoint } from './connection.js';
import type { TransportRequest, TransportResponse } from '../transport/transport.js';
import { readRegistryErrors } from '../transport/transport-answers.js';

type RequestOptions = Pick<TransportRequest, 'headers' | 'body' | 'bodySize' | 'signal'>;

/** What a request is going to do, which decides the scope of a token and the words of a refusal. */
export type Access = 'pull' | 'push' | 'delete';

/** One repository at one endpoint: makes URLs and requests of the distribution API, and errors of its answers. */
export class RegistryRequester {
  readonly name: string;
  readonly #endpoint: Endpoint;
  /** Names the mirror at the end of messages; empty for the registry itself. */
  readonly where: string;

  /** `name` is the repository as the user named it; a mirror is named after it in messages. */
  constructor(endpoint: Endpoint, name: string) {
    this.#endpoint = endpoint;
    const { registry, repository } = endpoint;
    this.where = endpoint.isMirror ? ` (at its mirror ${registry}/${repository})` : '';
    this.name = name;
  }

  /** The same object for all repositories of a registry that are reached in one way. */
  get route(): object {
    return this.#endpoint.transport;
  }

  /** `path` continues `/v2/REPOSITORY/`; its parts have been checked. */
  url(path: string): string {
    return `${this.#endpoint.baseUrl.replace(/\/+$/, '')}/v2/${this.#endpoint.repository}/${path}`;
  }

  /** Sends a request; `target` is a path as `url` takes it, or a whole URL that has been checked. */
  send(
    method: string,
    target: string,
    access: Access,
    options: RequestOptions = {},
  ): Promise<TransportResponse> {
    const actions: Access[] = access === 'push' ? ['pull', 'push'] : [access];
    return this.#endpoint.transport.send({
      ...options,
      method,
      url: /^https?:/.test(target) ? target : this.url(target),
      scope: { repository: this.#endpoint.repository, actions },
    });
  }

  /** The error for an answer that is not what `access` to `subject` should bring. Reads its body. */
  async failure(response: TransportResponse, subject: string, access: Access): Promise<RegistryError> {
    const { status } = response;
    const { summary, codes } = await readRegistryErrors(response);
    const refused = access === 'pull' ? '' : `${access} failed: `;
    const code =
      status === 401 || status === 403
        ? 'AUTH'
        : status === 404 || status === 410
          ? 'NOT_FOUND'
          : status === 405 || codes.includes('UNSUPPORTED')
            ? 'UNSUPPORTED'
            : 'REGISTRY';
    return new RegistryError(`${refused}${summary}${this.where}`, {
      subject,
      status,
      registryCodes: codes,
      code,
      hint: this.#hint(status, access),
    });
  }

  #hint(status: number, access: Access): string | undefined {
    const { registry } = this.#endpoint;
    if (status === 401) return `log in to ${registry}, or specify a credentials file with --authfile`;
    if (status === 403) return `check the credentials for ${registry}: they do not allow ${access} here`;
    if (status === 404 && access === 'pull') {
      return 'check the name, or log in if the repository is private';
    }
    if (status === 413) return 'raise the request size limit of the proxy before the registry';
    return undefined;
  }
}

/** Whether the next endpoint is to be asked after this failure. */
export function mayBeElsewhere(error: unknown): boolean {
  if (error instanceof RegistryError && (error.status === 429 || error.status >= 500)) return true;
  return error instanceof OpmateError && ['NOT_FOUND', 'NETWORK', 'AUTH'].includes(error.code);
}
