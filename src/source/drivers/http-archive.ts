import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { makeTemporaryDirectory, openInTemporaryDirectory } from '../../files/temporary-directory.js';
import { LimitError, OpmateError } from '../../core/errors.js';
import type { TransportResponse } from '../../oci/registry/transport.js';
import { unpackArchive } from './unpack-archive.js';
import { isLoopback } from './loopback.js';
import type { ContentOptions, HttpSource } from '../content/content-types.js';
import { catalogWithin } from './directory-below.js';
import type { CatalogOrigin, FoundOrigin, OriginOptions, OriginState } from '../place.js';
import type { SourceOptions } from '../source.js';

/**
 * Asks for an archive unless it is still the one that is known (ETag, else Last-Modified), and downloads it. The
 * archive is known by the digest of its bytes. Throws OpmateError.
 */
export async function lookAtArchive(
  origin: Extract<CatalogOrigin, { type: 'HTTP' }>,
  known: OriginState | undefined,
  options: OriginOptions,
): Promise<FoundOrigin> {
  const { directory } = origin;
  const url = new URL(origin.url);
  const shown = shownUrl(url);
  if (origin.insecure !== true) {
    requireHttps(
      url,
      options.network,
      'use https, or allow it with insecure: true in the source, or --use-http',
    );
  }
  const response = await request(url, conditionsOf(known), options);
  try {
    if (response.status === 304 && known !== undefined) {
      return { state: known, isImmutable: true, open: () => Promise.reject(gone(shown)) };
    }
    const temporary = await makeTemporaryDirectory(options.temporaryDirectory, options.now());
    try {
      const file = path.join(temporary.path, 'archive');
      const digest = await receive(response, shown, file, options);
      const ref = `${shown}@${digest}`;
      return {
        state: {
          id: `archive ${digest}${directory === undefined ? '' : ` ${directory}`}`,
          ref,
          validator: validatorOf(response),
        },
        isImmutable: true,
        open: () =>
          openInTemporaryDirectory(options, async (other) => {
            const root = path.join(other, 'tree');
            await unpackArchive(file, root, { ...options, label: ref, roots: [directory ?? ''] });
            const catalog = await catalogWithin(root, directory, ref);
            return { kind: 'catalog', catalog, close: () => catalog.close() };
          }),
        close: () => temporary.remove(),
      };
    } catch (error) {
      await temporary.remove();
      throw error;
    }
  } finally {
    response.body.destroy();
  }
}

/** A URL without its query, which may hold secrets. */
export function shownUrl(url: URL): string {
  return `${url.origin}${url.pathname}`;
}

/**
 * Downloads what a source names into a file that is not there yet, and returns its digest; another than its checksum
 * is refused. Throws OpmateError.
 */
export async function downloadArchive(
  source: HttpSource,
  file: string,
  options: ContentOptions,
): Promise<string> {
  const url = checkedUrl(source, options);
  const shown = shownUrl(url);
  const { credentials } = source;
  const changes = {
    ...(source.insecureSkipTlsVerify === true && { skipTlsVerify: true }),
  };
  const own = credentials === undefined && Object.keys(changes).length === 0 ? undefined : changes;
  const connection = own === undefined ? undefined : await options.connectAnew(own);
  try {
    const response =
      credentials?.type === 'basic' && connection !== undefined
        ? await connection.plainTransport().send({
            method: 'GET',
            url: url.href,
            headers: { authorization: basicHeader(credentials.username, credentials.password) },
            signal: options.signal,
          })
        : await request(
            url,
            {},
            connection === undefined ? options : { ...options, connect: () => connection },
          );
    try {
      const digest = await receive(response, shown, file, options);
      if (source.checksum === undefined || source.checksum === digest) return digest;
      throw new OpmateError('DIGEST', `${shown}: expected ${source.checksum}, got ${digest}`, {
        hint: 'what is there has changed, or the checksum is of something else',
      });
    } finally {
      response.body.destroy();
    }
  } finally {
    connection?.close();
  }
}

function basicHeader(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function checkedUrl({ url: text, credentials }: HttpSource, { network }: ContentOptions): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new OpmateError('INVALID', 'source: not a URL of http or https');
  }
  const shown = shownUrl(url);
  if (url.username !== '' || url.password !== '') {
    throw new OpmateError('INVALID', `${shown}: credentials do not belong into a URL`, {
      hint: 'put them into the auth file, or into a Secret in a file: --secrets DIRECTORY --secret NAME',
    });
  }
  requireHttps(url, network, 'use https, or allow it with --use-http');
  if (credentials !== undefined && credentials.type !== 'basic') {
    throw new OpmateError(
      'INVALID',
      `${shown}: credentials of the type ${credentials.type} do not fit this URL`,
      {
        hint: 'a Secret of the type kubernetes.io/basic-auth is needed',
      },
    );
  }
  return url;
}

/** Throws OpmateError UNSAFE for plain HTTP that is not allowed: content and credentials would be open to anybody. */
function requireHttps(url: URL, network: { allowHttp?: boolean } | undefined, hint: string): void {
  if (url.protocol !== 'http:' || isLoopback(url.hostname) || network?.allowHttp === true) return;
  throw new OpmateError('UNSAFE', `${shownUrl(url)}: plain HTTP can be changed by anybody on the way`, {
    hint,
  });
}

/** Sends a request with the credentials that the auth file has for the host. */
async function request(
  url: URL,
  headers: Record<string, string>,
  options: Pick<SourceOptions, 'connect' | 'signal'>,
): Promise<TransportResponse> {
  const connection = await options.connect();
  const endpoints = await connection.endpoints(url.host, 'archive', {
    withoutMirrors: true,
    signal: options.signal,
  });
  const endpoint = endpoints.at(-1);
  if (endpoint === undefined) throw new OpmateError('INTERNAL', `${shownUrl(url)}: there is no way to it`);
  return endpoint.transport.send({ method: 'GET', url: url.href, headers, signal: options.signal });
}

/** A validator is an entity tag, which is quoted, or a date. */
function conditionsOf(known: OriginState | undefined): Record<string, string> {
  const { validator } = known ?? {};
  if (validator === undefined) return {};
  return validator.endsWith('"') ? { 'if-none-match': validator } : { 'if-modified-since': validator };
}

function answerError(shown: string, status: number): OpmateError {
  if (status === 401 || status === 403) {
    return new OpmateError('AUTH', `${shown}: the server answered ${status}`, {
      hint: 'credentials for the host are taken from the auth file',
    });
  }
  return new OpmateError(status === 404 ? 'NOT_FOUND' : 'NETWORK', `${shown}: the server answered ${status}`);
}

function gone(shown: string): OpmateError {
  return new OpmateError('INTERNAL', `${shown}: has not been downloaded`);
}

/** Writes an answer to a file that is not there yet; returns its digest. */
async function receive(
  response: TransportResponse,
  shown: string,
  file: string,
  options: SourceOptions,
): Promise<string> {
  if (response.status !== 200) throw answerError(shown, response.status);
  const { limits = defaultArchiveLimits, signal } = options;
  const hash = createHash('sha256');
  let received = 0;
  const counted = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      received += chunk.length;
      hash.update(chunk);
      if (received <= limits.maxUnpackedSize) return done(null, chunk);
      const most = showSize(limits.maxUnpackedSize);
      return done(
        new LimitError(`${shown}: more than ${most}`, { hint: 'raise it with --max-unpacked-size' }),
      );
    },
  });
  await pipeline(response.body, counted, createWriteStream(file, { flags: 'wx', mode: 0o600 }), { signal });
  return `sha256:${hash.digest('hex')}`;
}

function validatorOf({ headers }: TransportResponse): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(tag)) return tag;
  const modified = headers.get('last-modified');
  return modified !== null && /^[A-Za-z0-9 ,:-]{1,60}$/.test(modified) ? modified : undefined;
}
