import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { decompress } from '../../archive/decompress.js';
import { defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { readBody } from '../../oci/transport/response-body.js';
import type { TransportResponse } from '../../oci/transport/transport.js';
import { type HttpPlace, type ServedPlace, credentialsInUrl, formatUrl } from '../place.js';
import type { NetworkOptions, SourceSession } from '../session.js';
import { type PlaceState, type ResolvedPlace, nothingToClose } from './driver.js';

/**
 * Throws OpmateError UNSAFE for plain HTTP that is not allowed: content and credentials would be open to anybody on
 * the way. `shown` is how messages name the URL.
 */
export function requireHttps(
  url: URL,
  shown: string,
  network: NetworkOptions | undefined,
  hint = 'use https, or allow it with --use-http',
): void {
  if (url.protocol !== 'http:' || isLoopback(url.hostname) || network?.allowHttp === true) return;
  throw new OpmateError('UNSAFE', 'plain HTTP is insecure', {
    subject: shown,
    hint,
  });
}

/** Returns whether requests to a host never leave this machine. */
function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(?:\.\d+){3}$/.test(name)
  );
}

/** Returns a URL that may be requested. Throws OpmateError for credentials in it, and UNSAFE for plain HTTP. */
export function checkUrl(
  { url: text, insecure }: HttpPlace | ServedPlace,
  network: NetworkOptions | undefined,
): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('INVALID', 'source: not a URL of http or https');
  }
  if (url.username !== '' || url.password !== '') throw credentialsInUrl(formatUrl(url));
  const hint = 'use https, or allow it with --use-http, or with insecure: true in a manifest';
  requireHttps(url, formatUrl(url), insecure === true ? { ...network, allowHttp: true } : network, hint);
  return url;
}

interface PlaceRequest {
  url: URL;
  /** The state that is known: it alone may be the response 304. */
  known?: PlaceState | undefined;
  headers?: Record<string, string>;
  /** Without the credentials of the auth file. */
  isAnonymous?: boolean;
}

/**
 * Sends a GET request with the credentials of a place, else those that the auth file has for the host. Resolves with
 * 200, or with 304 where a state is known; the body must be read or destroyed. Throws OpmateError.
 */
export async function requestPlace(
  { url, known, headers, isAnonymous = false }: PlaceRequest,
  { credentials, insecureSkipTlsVerify }: Pick<HttpPlace, 'credentials' | 'insecureSkipTlsVerify'>,
  session: SourceSession,
): Promise<{ response: TransportResponse; close: () => void }> {
  const isOwn = credentials !== undefined || insecureSkipTlsVerify === true;
  const connection = isOwn
    ? await session.connectAnew(insecureSkipTlsVerify === true ? { skipTlsVerify: true } : {})
    : await session.connect();
  const close = (): void => {
    if (isOwn) connection.close();
  };
  try {
    const { signal } = session;
    const request = {
      method: 'GET',
      url: url.href,
      headers: { ...headers, ...getConditions(known) },
      signal,
    };
    let response: TransportResponse;
    if (credentials?.type === 'basic') {
      const { username, password } = credentials;
      const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
      const own = { ...request, headers: { ...request.headers, authorization } };
      response = await connection.plainTransport().send(own);
    } else if (isAnonymous) {
      response = await connection.plainTransport().send(request);
    } else {
      const endpoints = await connection.endpoints(url.host, 'archive', { withoutMirrors: true, signal });
      const endpoint = endpoints.at(-1);
      if (endpoint === undefined)
        throw new OpmateError('INTERNAL', 'no route to host', { subject: formatUrl(url) });
      response = await endpoint.transport.send(request);
    }
    if (response.status === 200 || (response.status === 304 && known !== undefined))
      return { response, close };
    response.body.destroy();
    throw refusal(formatUrl(url), response.status, credentials !== undefined);
  } catch (error) {
    close();
    throw error;
  }
}

/** A response, and how messages name its URL. */
interface Download {
  response: TransportResponse;
  shown: string;
  close: () => void;
}

/**
 * Makes a place of a response by `use`, which puts what it downloads into a temporary directory that stays until the
 * place is closed; of the response 304 the place that is known. Ends the response and closes its connection.
 */
export async function withDownload(
  { response, shown, close }: Download,
  known: PlaceState | undefined,
  session: SourceSession,
  use: (response: TransportResponse, directory: string) => Promise<ResolvedPlace>,
): Promise<ResolvedPlace> {
  try {
    if (response.status === 304 && known !== undefined) return unchanged(known, shown);
    return await openInTemporaryDirectory(session, (directory) => use(response, directory));
  } finally {
    response.body.destroy();
    close();
  }
}

/** A place that is in the state that is known, so that nothing was downloaded. */
function unchanged(known: PlaceState, shown: string): ResolvedPlace {
  const open = (): Promise<never> =>
    Promise.reject(new OpmateError('INTERNAL', 'has not been downloaded', { subject: shown }));
  return { state: known, isImmutable: true, open, close: nothingToClose };
}

/** A validator is an entity tag, which is quoted, or a date. */
function getConditions(known: PlaceState | undefined): Record<string, string> {
  const { validator } = known ?? {};
  if (validator === undefined) return {};
  return validator.endsWith('"') ? { 'if-none-match': validator } : { 'if-modified-since': validator };
}

function refusal(shown: string, status: number, hasSecret: boolean): OpmateError {
  const problem = `the server returned ${status}`;
  if (status === 401 || status === 403) {
    const hint = hasSecret
      ? 'check the Secret that secretRef names'
      : 'add credentials for the host to the auth file';
    return new OpmateError('AUTH', problem, { subject: shown, hint });
  }
  return new OpmateError(status === 404 ? 'NOT_FOUND' : 'NETWORK', problem, { subject: shown });
}

/**
 * Writes a response to a file that is not there yet, `isCompressed` without its compression; returns the digest of the
 * file. Throws LimitError beyond the limit for unpacked files.
 */
export async function receiveFile(
  response: TransportResponse,
  shown: string,
  file: string,
  session: SourceSession,
  { isCompressed = false } = {},
): Promise<string> {
  const { limits = defaultArchiveLimits, signal } = session;
  const hash = createHash('sha256');
  let received = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      hash.update(chunk);
      if (received <= limits.maxUnpackedSize) return done(null, chunk);
      const maximum = showSize(limits.maxUnpackedSize);
      return done(
        new LimitError(`more than ${maximum}`, { subject: shown, hint: 'raise it with --max-unpacked-size' }),
      );
    },
  });
  // The size is limited below; catalogs of much boilerplate compress as well as bombs.
  const unbounded = { ...limits, maxUnpackedSize: Infinity, maxRatio: Infinity };
  const bytes = isCompressed
    ? decompress(Readable.from(readBody(response)), { label: shown, limits: unbounded, signal })
    : readBody(response);
  await pipeline(bytes, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
  return `sha256:${hash.digest('hex')}`;
}

/** Returns what a later request can ask with: an entity tag, else the date of the last change. */
export function getValidator({ headers }: TransportResponse): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(tag)) return tag;
  const modified = headers.get('last-modified');
  return modified !== null && /^[A-Za-z0-9 ,:-]{1,60}$/.test(modified) ? modified : undefined;
}
