import { addNote } from '../core/diagnostics-error.js';
import { Agent as HttpAgent, STATUS_CODES } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { OpmateError, RegistryError } from '../core/errors.js';
import { guardLookup, rememberLookup } from '../oci/transport/guarded-lookup.js';
import { checkLiteralAddress, type RedirectSource } from '../oci/transport/network-policy.js';
import type { ConnectionHints } from '../oci/transport/transport-faults.js';
import { withRetry } from '../oci/transport/transport-retry.js';
import {
  type Transport,
  type TransportResponse,
  createHttpTransport,
  withRedirects,
} from '../oci/transport/transport.js';
import { type ClientOptions, certificateHint, checkAuthorities, resolveWaits } from './client-options.js';

/** Hints in the words of a client's options and URL. */
const hints: ConnectionHints = {
  untrusted: certificateHint,
  plainHttp: 'use an http:// URL',
  https: 'use an https:// URL',
};

/** Maximum time from the first attempt to the last, unless one attempt may take longer. */
const retryMs = 60_000;

interface CatalogRequest {
  url: string;
  method?: 'GET' | 'HEAD';
  /** Validators of the client's copy; only with these is 304 a valid response. */
  validators?: Validators | undefined;
  signal?: AbortSignal | undefined;
}

/** Validators by which a server recognizes content. */
export interface Validators {
  etag?: string | undefined;
  lastModified?: string | undefined;
}

/** Requests of the HTTP catalog API. */
export class HttpRequests {
  readonly #transport: Transport;
  /** Agents by protocol, and by the kind of address that a redirect came from. */
  readonly #agents = new Map<string, HttpAgent>();

  /** Throws OpmateError INVALID for invalid certificate authorities. */
  constructor({ ca, ...options }: ClientOptions) {
    checkAuthorities(ca);
    const { idleTimeoutMs, maxAttempts, retryDelayMs, random } = resolveWaits(options);
    const tls = { minVersion: 'TLSv1.2' as const, ...(ca !== undefined && { ca }) };
    const { lookup: remembered, getAddress } = rememberLookup();
    const getAgent = (protocol: string, lead: RedirectSource | undefined): HttpAgent => {
      const key = `${protocol} ${lead?.kind}`;
      const lookup = lead === undefined ? remembered : guardLookup(lead.kind, remembered);
      const common = { keepAlive: true, lookup };
      const agent =
        this.#agents.get(key) ??
        (protocol === 'http:' ? new HttpAgent(common) : new HttpsAgent({ ...common, ...tls }));
      this.#agents.set(key, agent);
      return agent;
    };
    const trustPaths = [ca === undefined ? 'Node.js' : 'the option ca'];
    const http = createHttpTransport({
      async routeTo(url, lead) {
        if (lead) checkLiteralAddress(url, lead, hints);
        return { agent: getAgent(url.protocol, lead), trustPaths, hints, getAddress };
      },
      idleTimeoutMs,
    });
    this.#transport = withRetry(withRedirects(http), {
      maxAttempts,
      timeoutMs: Math.max(retryMs, idleTimeoutMs),
      baseDelayMs: retryDelayMs,
      random,
      now: () => performance.now(),
    });
  }

  /**
   * Sends a request, and retries temporary failures. Resolves with a 200, or a requested 304; other responses throw
   * OpmateError. The caller must read or destroy the body.
   */
  async send({ url, method = 'GET', validators = {}, signal }: CatalogRequest): Promise<TransportResponse> {
    const { etag, lastModified } = validators;
    const headers: Record<string, string> = {};
    if (etag !== undefined) headers['if-none-match'] = etag;
    if (lastModified !== undefined) headers['if-modified-since'] = lastModified;
    const label = formatLabel(url);
    const response = await this.#transport.send({ method, url, headers, signal }).catch((error: unknown) => {
      throw toCatalogError(error, label);
    });
    const { status } = response;
    const isExpected = status === 200 || (status === 304 && Object.keys(headers).length > 0);
    const coding = response.headers.get('content-encoding') ?? 'identity';
    if (isExpected && (status === 304 || coding === 'identity')) return response;
    response.discard();
    if (isExpected) {
      throw new OpmateError('INVALID', 'unexpected content encoding in the response', { subject: label });
    }
    throw toResponseError(label, status);
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

/** Returns a URL for messages, without query. */
export function formatLabel(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

export function getValidators({ headers }: TransportResponse): Validators {
  return usableValidators(headers.get('etag'), headers.get('last-modified'));
}

/** Returns the validators that can be sent again. */
export function usableValidators(etag: unknown, lastModified: unknown): Validators {
  const usable = (text: unknown): string | undefined =>
    typeof text === 'string' && /^[\x20-\x7e]{1,1000}$/.test(text) ? text : undefined;
  return { etag: usable(etag), lastModified: usable(lastModified) };
}

function toResponseError(label: string, status: number, cause?: RegistryError): RegistryError {
  const text = `server returned ${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
  const context = { subject: label, status, cause };
  switch (status) {
    case 404: {
      const hint = 'check the catalog name, and that the server supports this part of the API';
      return new RegistryError('not found', { ...context, code: 'NOT_FOUND', hint });
    }
    case 304:
      return new RegistryError(`${text} to an unconditional request`, context);
    case 401:
    case 403:
      return new RegistryError(text, { ...context, code: 'AUTH' });
    default:
      return new RegistryError(text, context);
  }
}

/** Replaces the registry terms in error responses. */
function toCatalogError(error: unknown, label: string): unknown {
  if (!(error instanceof RegistryError)) return error;
  const responseError = toResponseError(label, error.status, error);
  return error.note === undefined ? responseError : addNote(responseError, error.note);
}
