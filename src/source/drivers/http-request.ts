import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { decompress } from '../../archive/decompress.js';
import { defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { addNote } from '../../core/diagnostics-error.js';
import { LimitError, OpmateError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import {
  isDamaged,
  maxBrokenAttempts,
  maxContentAttempts,
  pauseBeforeAttempt,
} from '../../oci/transport/retry-policy.js';
import { NetworkError } from '../../oci/transport/transport-faults.js';
import type { TransportResponse } from '../../oci/transport/transport.js';
import { type HttpPlace, type ServedPlace, credentialsInUrl, formatUrl } from '../place.js';
import type { NetworkOptions, SourceSession } from '../session.js';
import { type PlaceState, type ResolvedPlace, nothingToClose } from './driver.js';

/**
 * Throws OpmateError UNSAFE for plain HTTP unless allowed: anyone on the network path could read credentials and change
 * content. `shown` is the URL in messages.
 */
export function requireHttps(
  url: URL,
  shown: string,
  network: NetworkOptions | undefined,
  hint = 'use https, or allow it with registry.useHttp',
): void {
  if (url.protocol !== 'http:' || isLoopback(url.hostname) || network?.allowHttp === true) return;
  throw new OpmateError('UNSAFE', 'plain HTTP is insecure', {
    subject: shown,
    hint,
  });
}

function isLoopback(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '').toLowerCase();
  return (
    name === 'localhost' || name.endsWith('.localhost') || name === '::1' || /^127(?:\.\d+){3}$/.test(name)
  );
}

/** Parses the URL of a place. Throws OpmateError for credentials in it, and UNSAFE for plain HTTP unless allowed. */
export function checkUrl(
  { url: text, insecure }: HttpPlace | ServedPlace,
  network: NetworkOptions | undefined,
): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('INVALID', 'source: not an http or https URL');
  }
  if (url.username !== '' || url.password !== '') throw credentialsInUrl(formatUrl(url));
  const hint = 'use https, or allow it with registry.useHttp, or with insecure: true in a manifest';
  requireHttps(url, formatUrl(url), insecure === true ? { ...network, allowHttp: true } : network, hint);
  return url;
}

interface PlaceRequest {
  url: URL;
  /** The last known state; required for the response 304. */
  known?: PlaceState | undefined;
  headers?: Record<string, string>;
  /** Ignores the credentials of the auth file. */
  isAnonymous?: boolean;
}

/**
 * Sends a GET request with the credentials of the place, or else those of the auth file for the host. Resolves to a
 * response 200, or 304 if a state is known; closing it ends the response and its connection. Throws OpmateError.
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
  let response: TransportResponse | undefined;
  const close = (): void => {
    response?.body.destroy();
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
    throw toStatusError(formatUrl(url), response.status, credentials !== undefined);
  } catch (error) {
    close();
    throw error;
  }
}

/** A response that ends when it is closed. */
interface OpenedResponse {
  response: TransportResponse;
  close: () => void;
}

/**
 * Reads the response to a request with `use`, and closes it. Requests it again if its body is cut off or stalls, five
 * times in all, and if `use` reports damaged content, three times in all. Throws OpmateError.
 */
export async function readResponse<R extends OpenedResponse, T>(
  request: () => Promise<R>,
  use: (opened: R) => Promise<T>,
  { signal, logger }: Pick<SourceSession, 'signal' | 'logger'>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    // A request without a response has been repeated already.
    const opened = await request();
    try {
      return await use(opened);
    } catch (error) {
      throwIfCancelled(signal);
      const maxAttempts = isDamaged(error) ? maxContentAttempts : isBroken(error) ? maxBrokenAttempts : 1;
      if (attempt >= maxAttempts) throw isBroken(error) ? addNote(error, `after ${attempt} attempts`) : error;
      logger?.log('debug', `${getMessage(error)}; requesting it again`);
    } finally {
      opened.close();
    }
    await pauseBeforeAttempt(attempt + 1, { signal });
  }
}

/** Reads a place with `use`, which gets its response 200, as `readResponse` does. */
export function readHttpPlace<T>(
  request: PlaceRequest,
  session: SourceSession,
  use: (response: TransportResponse) => Promise<T>,
): Promise<T> {
  const send = () => requestPlace(request, {}, session);
  return readResponse(send, ({ response }) => use(response), session);
}

/** Reports whether a connection broke so that another attempt is useful. */
function isBroken(error: unknown): error is NetworkError {
  return error instanceof NetworkError && error.temporary;
}

/**
 * Resolves a request with `use`, as `readResponse` does, which downloads to a temporary directory kept until the place
 * is closed; a response 304 resolves to the known state.
 */
export function withDownload<R extends OpenedResponse & { shown: string }>(
  request: () => Promise<R>,
  known: PlaceState | undefined,
  session: SourceSession,
  use: (opened: R, directory: string) => Promise<ResolvedPlace>,
): Promise<ResolvedPlace> {
  const resolve = async (opened: R): Promise<ResolvedPlace> => {
    if (opened.response.status === 304 && known !== undefined) return toUnchanged(known, opened.shown);
    return openInTemporaryDirectory(session, (directory) => use(opened, directory));
  };
  return readResponse(request, resolve, session);
}

/** Returns the place for an unchanged state; it has no download to open. */
function toUnchanged(known: PlaceState, shown: string): ResolvedPlace {
  const open = (): Promise<never> =>
    Promise.reject(new OpmateError('INTERNAL', 'not downloaded', { subject: shown }));
  return { state: known, isImmutable: true, open, close: nothingToClose };
}

/** Returns the headers of a conditional request; a validator is a quoted entity tag or a date. */
function getConditions(known: PlaceState | undefined): Record<string, string> {
  const { validator } = known ?? {};
  if (validator === undefined) return {};
  return validator.endsWith('"') ? { 'if-none-match': validator } : { 'if-modified-since': validator };
}

function toStatusError(shown: string, status: number, hasSecret: boolean): OpmateError {
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
 * Writes a response to a new file, decompressing it if `isCompressed`, and returns the digest of the file. Throws
 * LimitError beyond the limit for unpacked files.
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
        new LimitError(`more than ${maximum}`, {
          subject: shown,
          hint: 'raise it with limits.maxUnpackedSize',
        }),
      );
    },
  });
  // The size is limited above; repetitive catalogs exceed any decompression ratio.
  const unbounded = { ...limits, maxUnpackedSize: Infinity, maxRatio: Infinity };
  const bytes = isCompressed
    ? decompress(response.body, { label: shown, limits: unbounded, signal })
    : response.body;
  await pipeline(bytes, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
  return `sha256:${hash.digest('hex')}`;
}

/** Returns the validator for later conditional requests: ETag, else Last-Modified. */
export function getValidator({ headers }: TransportResponse): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(tag)) return tag;
  const modified = headers.get('last-modified');
  return modified !== null && /^[A-Za-z0-9 ,:-]{1,60}$/.test(modified) ? modified : undefined;
}
