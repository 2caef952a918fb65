import { addContext } from '../../core/diagnostics-error.js';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { DigestMismatchError, OpmateError } from '../../core/errors.js';
import {
  type PublishedFile,
  catalogIndexName,
  linesPath,
  maxPublishedIndexBytes,
  parsePublishedCatalog,
  publishedKind,
} from '../../catalog/published/published-index.js';
import { quoteGo } from '../../document/go-json.js';
import { readBytes } from '../../files/file-region.js';
import { readLimited } from '../../oci/image/read-limited.js';
import { readBody } from '../../oci/transport/response-body.js';
import type { TransportResponse } from '../../oci/transport/transport.js';
import { type ServedPlace, formatUrl } from '../place.js';
import type { SourceSession } from '../session.js';
import { type PlaceState, type ResolvedPlace, nothingToClose } from './driver.js';
import { checkUrl, getValidator, receiveFile, requestPlace, withDownload } from './http-request.js';
import { toSource } from './local.js';

/** Paths below the base of a catalog: all blobs, and those of a query. (Source: catalogd.) */
const all = 'api/v1/all';
const metas = 'api/v1/metas';

/** How far the first character of a response is looked for. */
const lookAhead = 4096;

const catalogHint = 'use the base URL of a served catalog, e.g. https://HOST/catalogs/NAME';

/**
 * Fetches a catalog from the HTTP API that catalogd and opmate serve, unless it is still the one that is known. It is
 * kept in a file while it is open, at most as large as the limit for unpacked files. Throws OpmateError.
 */
export async function resolveServed(
  place: ServedPlace,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const base = checkUrl(place, session.network);
  const shownBase = formatUrl(base).replace(/\/+$/, '');
  const download = await request(place, shownBase, known, session);
  const { shown, digest: expected } = download;
  return withDownload(download, known, session, async (response, temporary) => {
    const isCompressed = checkHeaders(response, shown);
    const name = path.posix.basename(shown);
    const target = path.join(temporary, name);
    const digest = await receiveFile(response, shown, target, session, { isCompressed });
    if (expected !== undefined && digest !== expected) {
      throw new DigestMismatchError(`expected ${expected}, got ${digest}`, { subject: shown });
    }
    await checkBegin(target, shown);
    const ref = `${shownBase}@${digest}`;
    return {
      state: { id: `served ${digest}`, ref, validator: getValidator(response) },
      isImmutable: true,
      open: ({ catalogs }) => {
        if (!catalogs)
          throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle', { subject: shownBase });
        const label = path.posix.dirname(shown);
        return Promise.resolve(toSource(new DirectoryCatalog(temporary, label)));
      },
      close: nothingToClose,
    };
  });
}

interface BlobsResponse {
  response: TransportResponse;
  /** URL for messages. */
  shown: string;
  /** The digest that the body must have, where one is known. */
  digest?: string;
  close: () => void;
}

/**
 * Asks for the blobs of the package of a place: of a server with queries by one, of a published catalog by its index.
 * Asks for all blobs where none is named, or the server has neither.
 */
async function request(
  { url, package: packageName }: ServedPlace,
  shownBase: string,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<BlobsResponse> {
  const { search } = new URL(url);
  const ask = async (path: string, digest?: string): Promise<BlobsResponse> => {
    const target = new URL(`${shownBase}/${path}${search}`);
    if (path === metas && packageName !== undefined) target.searchParams.set('package', packageName);
    // The index is small, and read into memory.
    const headers: Record<string, string> = path === catalogIndexName ? {} : { 'accept-encoding': 'gzip' };
    const response = await requestPlace({ url: target, known, headers }, {}, session);
    return { ...response, shown: formatUrl(target), ...(digest !== undefined && { digest }) };
  };
  try {
    if (packageName !== undefined) {
      const response = await ask(metas).catch(throwUnlessAbsent);
      if (response !== undefined) return response;
      const file = await findPublished(ask, packageName);
      if (file !== undefined) return await ask(`../../${linesPath(file)}`, file.hash);
    }
    return await ask(all);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw addContext(error, { newHint: catalogHint });
  }
}

/** Returns the file of a package of a published catalog; undefined where the server has no such catalog or package. */
async function findPublished(
  ask: (path: string) => Promise<BlobsResponse>,
  packageName: string,
): Promise<PublishedFile | undefined> {
  const reply = await ask(catalogIndexName).catch(throwUnlessAbsent);
  if (reply === undefined) return undefined;
  const { response, shown, close } = reply;
  try {
    const bytes = await readLimited(readBody(response), maxPublishedIndexBytes, shown);
    if (publishedKind(bytes) !== 'catalog') return undefined;
    return parsePublishedCatalog(bytes, shown).packages.find(({ name }) => name === packageName);
  } finally {
    response.body.destroy();
    close();
  }
}

/** Buckets that may not be listed answer 403 for what they do not have. */
function throwUnlessAbsent(error: unknown): undefined {
  if (error instanceof OpmateError && ['NOT_FOUND', 'AUTH'].includes(error.code)) return undefined;
  throw error;
}

function isNotFound(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code === 'NOT_FOUND';
}

/** Returns whether a body is compressed. Throws OpmateError for one that is no JSON, by its headers. */
function checkHeaders({ headers }: TransportResponse, shown: string): boolean {
  const coding = (headers.get('content-encoding') ?? 'identity').toLowerCase();
  if (!['identity', 'gzip', 'x-gzip'].includes(coding)) {
    throw new OpmateError('INVALID', `unsupported content encoding ${quoteGo(coding.slice(0, 100))}`, {
      subject: shown,
      hint: 'disable this compression in the proxy before the server',
    });
  }
  const type = (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^text\/html$|xhtml|^image\/|^multipart\//.test(type)) return coding !== 'identity';
  throw new OpmateError('INVALID', `expected JSON Lines, got ${quoteGo(type.slice(0, 100))}`, {
    subject: shown,
    hint: catalogHint,
  });
}

/** Throws OpmateError for what is no JSON: a file-based catalog may be YAML as well, a served one may not. */
async function checkBegin(file: string, shown: string): Promise<void> {
  const handle = await open(file);
  try {
    const text = (await readBytes(handle, 0, lookAhead)).toString('latin1').trimStart();
    if (text === '' || text.startsWith('{')) return;
  } finally {
    await handle.close();
  }
  throw new OpmateError('INVALID', 'expected JSON Lines', { subject: shown, hint: catalogHint });
}
