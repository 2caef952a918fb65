import { addContext } from '../../core/diagnostics-error.js';
import { open } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { makeTemporaryDirectory } from '../../files/temporary-directory.js';
import type { TransportResponse } from '../../oci/transport/transport.js';
import { type ServedPlace, formatUrl } from '../place.js';
import type { SourceSession } from '../session.js';
import type { PlaceState, ResolvedPlace } from './driver.js';
import { unchanged } from './http-archive.js';
import { checkUrl, receiveFile, requestPlace, validatorOf } from './http-request.js';
import { toSource } from './local.js';

/** Path below the base of a catalog, with all blobs as `all` and those of a query as `metas`. (Source: catalogd.) */
const api = 'api/v1';

/** How far the first character of a response is looked for. */
const lookAhead = 4096;

const catalogHint = 'give the base of a served catalog, e.g. https://HOST/catalogs/NAME';

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
  const { name, response, close } = await request(place, shownBase, known, session);
  const shown = `${shownBase}/${api}/${name}`;
  try {
    if (response.status === 304 && known !== undefined) return unchanged(known, shown);
    checkHeaders(response, shown);
    const temporary = await makeTemporaryDirectory(session.temporaryDirectory, session.now());
    try {
      const digest = await receiveFile(response, shown, path.join(temporary.path, name), session);
      await checkBegin(path.join(temporary.path, name), shown);
      const ref = `${shownBase}@${digest}`;
      return {
        state: { id: `served ${digest}`, ref, validator: validatorOf(response) },
        isImmutable: true,
        open: ({ catalogs }) => {
          if (!catalogs)
            throw new OpmateError('UNSUPPORTED', 'is a catalog, not a bundle', { subject: shownBase });
          return Promise.resolve(toSource(new DirectoryCatalog(temporary.path, `${shownBase}/${api}`)));
        },
        close: () => temporary.remove(),
      };
    } catch (error) {
      await temporary.remove();
      throw error;
    }
  } finally {
    response.body.destroy();
    close();
  }
}

/** Asks for the blobs of the package of a place; for all blobs where none is named, or the server has no queries. */
async function request(
  { url, package: packageName }: ServedPlace,
  shownBase: string,
  known: PlaceState | undefined,
  session: SourceSession,
): Promise<{ name: string; response: TransportResponse; close: () => void }> {
  const { search } = new URL(url);
  try {
    if (packageName !== undefined) {
      const query = new URL(`${shownBase}/${api}/metas${search}`);
      query.searchParams.set('package', packageName);
      try {
        return { name: 'metas', ...(await requestPlace({ url: query, known }, {}, session)) };
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    const all = new URL(`${shownBase}/${api}/all${search}`);
    return { name: 'all', ...(await requestPlace({ url: all, known }, {}, session)) };
  } catch (error) {
    if (!isNotFound(error)) throw error;
    throw addContext(error, { newHint: catalogHint });
  }
}

function isNotFound(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code === 'NOT_FOUND';
}

function checkHeaders({ headers }: TransportResponse, shown: string): void {
  const encoding = headers.get('content-encoding') ?? 'identity';
  if (encoding.toLowerCase() !== 'identity') {
    throw new OpmateError('INVALID', `unsupported content encoding ${quoteGo(encoding.slice(0, 100))}`, {
      subject: shown,
      hint: 'opmate asks for none; turn off compression in the proxy before the server',
    });
  }
  const type = (headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (!/^text\/html$|xhtml|^image\/|^multipart\//.test(type)) return;
  throw new OpmateError('INVALID', `expected JSON Lines, got ${quoteGo(type.slice(0, 100))}`, {
    subject: shown,
    hint: catalogHint,
  });
}

/** Throws OpmateError for what is no JSON: a file-based catalog may be YAML as well, a served one may not. */
async function checkBegin(file: string, shown: string): Promise<void> {
  const handle = await open(file);
  try {
    const head = Buffer.alloc(lookAhead);
    const { bytesRead } = await handle.read(head, 0, head.length, 0);
    const text = head.toString('latin1', 0, bytesRead).trimStart();
    if (text === '' || text.startsWith('{')) return;
  } finally {
    await handle.close();
  }
  throw new OpmateError('INVALID', 'expected JSON Lines', { subject: shown, hint: catalogHint });
}
