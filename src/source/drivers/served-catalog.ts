import { addContext } from '../../core/diagnostics-error.js';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { withOpen } from '../../core/concurrency.js';
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
import type { TransportResponse } from '../../oci/transport/transport.js';
import { type ServedPlace, formatUrl } from '../place.js';
import type { SourceSession } from '../session.js';
import { type PlaceState, type ResolvedPlace, nothingToClose } from './driver.js';
import {
  checkUrl,
  getValidator,
  readResponse,
  receiveFile,
  requestPlace,
  withDownload,
} from './http-request.js';
import { toSource } from './local.js';

/** Paths below the base URL of a catalog: all blobs, and queried blobs. (Source: catalogd.) */
const all = 'api/v1/all';
const metas = 'api/v1/metas';

/** Number of bytes searched for the first character of a response. */
const maxLeadingBytes = 4096;

const catalogHint = 'use the base URL of a served catalog, e.g. https://HOST/catalogs/NAME';

/**
 * Downloads a catalog from the HTTP API of catalogd or opmate to a temporary file, unless it is unchanged. The limit for
 * unpacked files is its maximum size. Throws OpmateError.
 */
export async function resolveServed(
  place: ServedPlace,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const base = checkUrl(place, session.network);
  const shownBase = formatUrl(base).replace(/\/+$/, '');
  const send = () => request(place, shownBase, known, session);
  return withDownload(send, known, session, async ({ response, shown, digest: expected }, temporary) => {
    const isCompressed = checkHeaders(response, shown);
    const name = path.posix.basename(shown);
    const target = path.join(temporary, name);
    const digest = await receiveFile(response, shown, target, session, { isCompressed });
    if (expected !== undefined && digest !== expected) {
      throw new DigestMismatchError(`expected ${expected}, got ${digest}`, { subject: shown });
    }
    await requireJson(target, shown);
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
  /** Expected digest of the body, if known. */
  digest?: string;
  close: () => void;
}

/**
 * Requests the blobs of a package, with a query or else through the index of a published catalog. Requests all blobs if
 * no package is specified, or the server supports neither.
 */
async function request(
  { url, package: packageName }: ServedPlace,
  shownBase: string,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<BlobsResponse> {
  const { search } = new URL(url);
  const send = async (path: string, digest?: string): Promise<BlobsResponse> => {
    const target = new URL(`${shownBase}/${path}${search}`);
    if (path === metas && packageName !== undefined) target.searchParams.set('package', packageName);
    // The index is small and read into memory, so it is not compressed.
    const headers: Record<string, string> = path === catalogIndexName ? {} : { 'accept-encoding': 'gzip' };
    const response = await requestPlace({ url: target, known, headers }, {}, session);
    return { ...response, shown: formatUrl(target), ...(digest !== undefined && { digest }) };
  };
  try {
    if (packageName !== undefined) {
      const response = await send(metas).catch(ignoreMissing);
      if (response !== undefined) return response;
      const file = await findPublished(send, packageName, session).catch(ignoreMissing);
      if (file !== undefined) return await send(`../../${linesPath(file)}`, file.hash);
    }
    return await send(all);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw addContext(error, { newHint: catalogHint });
  }
}

/** Returns the file of a package in a published catalog; undefined if the server has no such catalog or package. */
async function findPublished(
  send: (path: string) => Promise<BlobsResponse>,
  packageName: string,
  session: SourceSession,
): Promise<PublishedFile | undefined> {
  const use = async ({ response, shown }: BlobsResponse): Promise<PublishedFile | undefined> => {
    const bytes = await readLimited(response.body, maxPublishedIndexBytes, shown);
    if (publishedKind(bytes) !== 'catalog') return undefined;
    return parsePublishedCatalog(bytes, shown).packages.find(({ name }) => name === packageName);
  };
  return readResponse(() => send(catalogIndexName), use, session);
}

/** Returns undefined for missing files, for which buckets without list permission return 403; else throws the error. */
function ignoreMissing(error: unknown): undefined {
  if (error instanceof OpmateError && ['NOT_FOUND', 'AUTH'].includes(error.code)) return undefined;
  throw error;
}

function isNotFound(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code === 'NOT_FOUND';
}

/** Reports whether a body is compressed. Throws OpmateError if the headers declare another type than JSON. */
function checkHeaders({ headers }: TransportResponse, shown: string): boolean {
  const coding = (headers.get('content-encoding') ?? 'identity').toLowerCase();
  if (!['identity', 'gzip', 'x-gzip'].includes(coding)) {
    throw new OpmateError('INVALID', `unsupported content encoding ${quoteGo(coding.slice(0, 100))}`, {
      subject: shown,
      hint: 'disable this compression in the proxy in front of the server',
    });
  }
  const type = (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^text\/html$|xhtml|^image\/|^multipart\//.test(type)) return coding !== 'identity';
  throw new OpmateError('INVALID', `expected JSON Lines, got ${quoteGo(type.slice(0, 100))}`, {
    subject: shown,
    hint: catalogHint,
  });
}

/** Throws OpmateError for a file that is not JSON: unlike other catalogs, a served one must not be YAML. */
async function requireJson(file: string, shown: string): Promise<void> {
  const bytes = await withOpen(open(file), (handle) => readBytes(handle, 0, maxLeadingBytes));
  const text = bytes.toString('latin1').trimStart();
  if (text === '' || text.startsWith('{')) return;
  throw new OpmateError('INVALID', 'expected JSON Lines', { subject: shown, hint: catalogHint });
}
