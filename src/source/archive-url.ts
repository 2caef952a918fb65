import { createReadStream, createWriteStream } from 'node:fs';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extractLayers } from '../archive/layers.js';
import { defaultArchiveLimits, showSize } from '../archive/limits.js';
import { makeTemporaryDirectory, openInTemporaryDirectory } from '../archive/temporary-directory.js';
import { LimitError, OpmateError } from '../core/errors.js';
import type { TransportResponse } from '../oci/transport.js';
import {
  type CatalogOrigin,
  type FoundOrigin,
  type OriginOptions,
  type OriginState,
  directoryWithin,
} from './origin.js';
import type { CatalogSource } from './source.js';

type ArchiveOrigin = Extract<CatalogOrigin, { type: 'HTTP' }>;

/**
 * Asks for an archive unless it is still the one that is known (ETag, else Last-Modified), and downloads it. The
 * archive is known by the digest of its bytes. Throws OpmateError.
 */
export async function lookAtArchive(
  origin: ArchiveOrigin,
  known: OriginState | undefined,
  options: OriginOptions,
): Promise<FoundOrigin> {
  const { directory } = origin;
  const url = new URL(origin.url);
  const shown = `${url.origin}${url.pathname}`;
  const response = await request(url, shown, known, options);
  try {
    if (response.status === 304 && known !== undefined) {
      return { state: known, isImmutable: true, open: () => Promise.reject(gone(shown)) };
    }
    if (response.status !== 200) throw answerError(shown, response.status);
    return await download(response, shown, directory, options);
  } finally {
    response.body.destroy();
  }
}

async function request(
  url: URL,
  shown: string,
  known: OriginState | undefined,
  options: OriginOptions,
): Promise<TransportResponse> {
  const connection = await options.connect();
  const endpoints = await connection.endpoints(url.host, 'archive', {
    withoutMirrors: true,
    signal: options.signal,
  });
  const endpoint = endpoints.at(-1);
  if (endpoint === undefined) throw new OpmateError('INTERNAL', `${shown}: there is no way to it`);
  return endpoint.transport.send({
    method: 'GET',
    url: url.href,
    headers: conditionsOf(known),
    signal: options.signal,
  });
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

async function download(
  response: TransportResponse,
  shown: string,
  directory: string | undefined,
  options: OriginOptions,
): Promise<FoundOrigin> {
  const { limits = defaultArchiveLimits, signal } = options;
  const temporary = await makeTemporaryDirectory(options.temporaryDirectory, options.now());
  try {
    const file = path.join(temporary.path, 'archive');
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
    await pipeline(response.body, counted, createWriteStream(file, { mode: 0o600 }), { signal });
    const digest = `sha256:${hash.digest('hex')}`;
    const id = `archive ${digest}${directory === undefined ? '' : ` ${directory}`}`;
    const ref = `${shown}@${digest}`;
    return {
      state: { id, ref, validator: validatorOf(response) },
      isImmutable: true,
      open: () => openArchive(file, ref, directory, options),
      close: () => temporary.remove(),
    };
  } catch (error) {
    await temporary.remove();
    throw error;
  }
}

function validatorOf({ headers }: TransportResponse): string | undefined {
  const tag = headers.get('etag');
  if (tag !== null && /^(?:W\/)?"[\x21\x23-\x7e]{0,500}"$/.test(tag)) return tag;
  const modified = headers.get('last-modified');
  return modified !== null && /^[A-Za-z0-9 ,:-]{1,60}$/.test(modified) ? modified : undefined;
}

function openArchive(
  file: string,
  ref: string,
  directory: string | undefined,
  options: OriginOptions,
): Promise<CatalogSource> {
  const { limits, signal, logger } = options;
  return openInTemporaryDirectory(options, async (temporary) => {
    const root = path.join(temporary, 'tree');
    const layer = { label: ref, open: () => Promise.resolve(createReadStream(file)) };
    await extractLayers([layer], root, { roots: [directory ?? ''], limits, signal, logger });
    const catalog = await directoryWithin(root, directory, ref);
    return { kind: 'catalog', catalog, close: () => catalog.close() };
  });
}
