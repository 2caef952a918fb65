import { addContext } from '../../core/diagnostics-error.js';
import { CancelledError, type ErrorCode, OpmateError, RegistryError } from '../../core/errors.js';

import type { Endpoint } from './connection.js';
import type { TransportRequest, TransportResponse } from '../transport/transport.js';
import { type RegistryComplaint, readRegistryErrors } from '../transport/transport-responses.js';

/** Hint for an image that a registry does not have. */
export const missingImageHint = 'check the name and tag, or log in if the repository is private';

/** Codes of the distribution specification that add nothing to the status 404. */
const unknownCodes: readonly string[] = ['BLOB_UNKNOWN', 'MANIFEST_UNKNOWN', 'NAME_UNKNOWN'];

/** Complaints about space, which registries report as 403, 412, 413 or 507. */
const fullPattern = /\bquota\b|\bstorage (limit|resource|space)|insufficient storage|no space left/i;

/** Access of a request, which determines the scope of its token. */
export type Access = 'pull' | 'push' | 'delete';

/** Requests to one repository at one endpoint. */
export class RegistryRequester {
  readonly #endpoint: Endpoint;
  readonly name: string;
  /** Note on the mirror for the end of messages; empty for the registry itself. */
  readonly where: string;
  /** Identifies a registry and the way to reach it. */
  readonly route: object;

  /** `name` is the repository as the user named it, also for a mirror. */
  constructor(endpoint: Endpoint, name: string) {
    const { registry, repository, isMirror, transport } = endpoint;
    this.#endpoint = endpoint;
    this.name = name;
    this.where = isMirror ? ` (at its mirror ${registry}/${repository})` : '';
    this.route = transport;
  }

  /** Returns the URL of `/v2/REPOSITORY/path`; `path` must be checked. */
  url(path: string): string {
    return `${this.#endpoint.baseUrl.replace(/\/+$/, '')}/v2/${this.#endpoint.repository}/${path}`;
  }

  #getHint(status: number, access: Access, isFull: boolean): string | undefined {
    if (isFull) return `free space at ${this.#endpoint.registry}, or raise its storage limit`;
    if (status === 401)
      return `log in to ${this.#endpoint.registry}, or specify a credentials file with registry.authFile`;
    if (status === 403)
      return `check the credentials for ${this.#endpoint.registry}: they do not allow ${access} here`;
    if (status === 404 && access === 'pull') return missingImageHint;
    if (status === 413) return 'raise the request size limit of the proxy before the registry';
    return undefined;
  }

  /** Sends a request. `target` is a path for `url`, or a checked URL. */
  send(
    method: string,
    target: string,
    access: Access,
    options: Pick<TransportRequest, 'headers' | 'body' | 'bodySize' | 'signal' | 'isOptional'> = {},
  ): Promise<TransportResponse> {
    const actions: Access[] = access === 'push' ? ['pull', 'push'] : [access];
    const address = /^https?:/.test(target) ? target : this.url(target);
    return this.#endpoint.transport.send({
      ...options,
      method,
      url: address,
      scope: { repository: this.#endpoint.repository, actions },
    });
  }

  /** Returns the error of a failed request; reads the response body. */
  async failure(response: TransportResponse, subject: string, access: Access): Promise<RegistryError> {
    const { status } = response;
    const complaint = await readRegistryErrors(response);
    const { codes } = complaint;
    const isFull = access === 'push' && fullPattern.test(complaint.summary);
    const problem =
      access === 'pull' ? describeRefusal(status, complaint) : `${access} failed: ${complaint.summary}`;
    return new RegistryError(`${problem}${this.where}`, {
      subject,
      status,
      registryCodes: codes,
      code: isFull ? 'REGISTRY' : toErrorCode(status, codes),
      hint: this.#getHint(status, access, isFull),
    });
  }

  /** Returns an error about this registry or repository with an image as its subject. */
  nameImage(error: unknown, image: string): unknown {
    if (!(error instanceof OpmateError) || error instanceof CancelledError) return error;
    const { host } = new URL(this.#endpoint.baseUrl);
    const names = [host, `${host}/${this.#endpoint.repository}`, this.name];
    if (error.subject === undefined || !names.includes(error.subject)) return error;
    return addContext(error, { subject: image, replaces: this.#endpoint.isMirror ? [] : names });
  }
}

function toErrorCode(status: number, codes: readonly string[]): ErrorCode {
  if (status === 401 || status === 403) return 'AUTH';
  if (status === 404 || status === 410) return 'NOT_FOUND';
  return status === 405 || codes.includes('UNSUPPORTED') ? 'UNSUPPORTED' : 'REGISTRY';
}

/** Returns the problem of a failed read: `not found` for missing content, whatever the registry calls it. */
function describeRefusal(status: number, { summary, detail, codes }: RegistryComplaint): string {
  if (status !== 404) return summary;
  const isPlain = detail === '' || codes.some((code) => unknownCodes.includes(code));
  return isPlain ? 'not found' : `not found: ${detail}`;
}

/** Reports whether the next endpoint is tried after an error. */
export function canTryNext(error: unknown): boolean {
  if (error instanceof RegistryError && (error.status === 429 || error.status >= 500)) return true;
  return error instanceof OpmateError && ['NOT_FOUND', 'NETWORK', 'AUTH'].includes(error.code);
}
