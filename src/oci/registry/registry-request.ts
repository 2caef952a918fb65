import { addContext } from '../../core/diagnostics-error.js';
import { CancelledError, OpmateError, RegistryError } from '../../core/errors.js';
import type { Endpoint } from './connection.js';
import type { TransportRequest, TransportResponse } from '../transport/transport.js';
import { type RegistryComplaint, readRegistryErrors } from '../transport/transport-answers.js';

type RequestOptions = Pick<TransportRequest, 'headers' | 'body' | 'bodySize' | 'signal'>;

/** Hint of errors about an image that a registry does not have. */
export const missingImageHint = 'check the name and tag, or log in if the repository is private';

/** Codes of the distribution specification that say no more than the status 404. */
const unknownCodes: readonly string[] = ['BLOB_UNKNOWN', 'MANIFEST_UNKNOWN', 'NAME_UNKNOWN'];

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
    const complaint = await readRegistryErrors(response);
    const { codes } = complaint;
    const problem =
      access === 'pull' ? describeRefusal(status, complaint) : `${access} failed: ${complaint.summary}`;
    const code =
      status === 401 || status === 403
        ? 'AUTH'
        : status === 404 || status === 410
          ? 'NOT_FOUND'
          : status === 405 || codes.includes('UNSUPPORTED')
            ? 'UNSUPPORTED'
            : 'REGISTRY';
    return new RegistryError(`${problem}${this.where}`, {
      subject,
      status,
      registryCodes: codes,
      code,
      hint: this.#hint(status, access),
    });
  }

  /** Returns an error about this registry or repository as one about an image; that of a mirror names it, too. */
  nameImage(error: unknown, image: string): unknown {
    if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
    const { baseUrl, repository, isMirror } = this.#endpoint;
    const { host } = new URL(baseUrl);
    const names = [host, `${host}/${repository}`, this.name];
    if (error.subject === undefined || !names.includes(error.subject)) return error;
    return addContext(error, { subject: image, replaces: isMirror ? [] : names });
  }

  #hint(status: number, access: Access): string | undefined {
    const { registry } = this.#endpoint;
    if (status === 401) return `log in to ${registry}, or specify a credentials file with --authfile`;
    if (status === 403) return `check the credentials for ${registry}: they do not allow ${access} here`;
    if (status === 404 && access === 'pull') return missingImageHint;
    if (status === 413) return 'raise the request size limit of the proxy before the registry';
    return undefined;
  }
}

/** Returns what is wrong with reading: content that is missing is `not found`, whatever words a registry has for it. */
function describeRefusal(status: number, { summary, detail, codes }: RegistryComplaint): string {
  if (status !== 404) return summary;
  const isPlain = detail === '' || codes.some((code) => unknownCodes.includes(code));
  return isPlain ? 'not found' : `not found: ${detail}`;
}

/** Whether the next endpoint is to be asked after this failure. */
export function mayBeElsewhere(error: unknown): boolean {
  if (error instanceof RegistryError && (error.status === 429 || error.status >= 500)) return true;
  return error instanceof OpmateError && ['NOT_FOUND', 'NETWORK', 'AUTH'].includes(error.code);
}
