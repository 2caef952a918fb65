import { withOpen } from '../../core/concurrency.js';
import type { MetasQuery, Section } from '../catalogs/content-index.js';
import type { ContentReader } from '../catalogs/stored-content.js';
import type { ServedCatalog } from '../catalogs/catalog-set.js';
import type { BodySender } from './body-sender.js';
import { getTotal, readCompressed, readSections } from './content-stream.js';
import { getTags, respondToConditions, selectRange } from './conditions.js';
import { type Exchange, sendText } from './exchange.js';

/** Media type of JSON lines. */
export const linesType = 'application/jsonl';

/** Maximum size of bodies that are read and sent in one piece. */
const smallBytes = 64 * 1024;
/** Minimum size of catalogs whose compressed form is cached in a file instead of memory. */
const minFileBytes = 256 * 1024;

/** Sends a catalog, or the blobs of a query: whole, a range of the catalog, compressed, or not modified. */
export async function sendContent(
  exchange: Exchange,
  { content, changedAt }: ServedCatalog,
  query: MetasQuery | undefined,
  bodies: BodySender,
): Promise<void> {
  const { request, response, method } = exchange;
  const hasRanges = query === undefined;
  const criteria = query === undefined ? [] : [query.schema, query.package, query.name];
  const tags = getTags(content.hash, criteria);
  const sections = content.find(query);
  const lastModified = changedAt ?? content.storedAt;
  const size = getTotal(sections);
  response.setHeader('Vary', 'Accept-Encoding');
  response.setHeader('Last-Modified', lastModified.toUTCString());
  const range = hasRanges ? selectRange(request.headers, size, { etag: tags(), lastModified }) : undefined;
  const coding = range === undefined ? bodies.selectCoding(exchange, size) : undefined;
  if (respondToConditions(exchange, tags, coding, lastModified)) return;
  if (range === 'unsatisfiable') {
    response.removeHeader('Last-Modified');
    response.setHeader('Content-Range', `bytes */${size}`);
    return sendText(exchange, 416, '416 Requested Range Not Satisfiable');
  }
  response.setHeader('Content-Type', linesType);
  response.setHeader('ETag', tags(coding));
  if (hasRanges && coding === undefined) response.setHeader('Accept-Ranges', 'bytes');
  let sent: readonly Section[] = sections;
  let length = size;
  if (range !== undefined) {
    length = range.end - range.start + 1;
    sent = [{ offset: range.start, length }];
    response.statusCode = 206;
    response.setHeader('Content-Range', `bytes ${range.start}-${range.end}/${size}`);
  }
  if (coding === undefined) response.setHeader('Content-Length', length);
  else response.setHeader('Content-Encoding', coding);
  if (method === 'HEAD' || length === 0) return void response.end();
  return withOpen(content.openReader(), async (reader) => {
    if (coding === undefined && length <= smallBytes) {
      const body = await readWhole(reader, sent, length);
      exchange.bytes = length;
      return void response.end(body);
    }
    const isInFile = coding !== undefined && hasRanges && size >= minFileBytes;
    if (!isInFile) {
      return await bodies.sendPieces(exchange, {
        key: [content.hash, ...criteria],
        size: length,
        coding,
        readPieces: () => readSections(reader, sent, bodies.pool),
      });
    }
    const form = await content.compressed(coding);
    if (form === undefined) {
      return await bodies.stream(exchange, readSections(reader, sent, bodies.pool), coding);
    }
    if (form.size !== undefined) response.setHeader('Content-Length', form.size);
    await bodies.stream(exchange, readCompressed(form, bodies.pool), undefined);
  });
}

/** Reads sections of `length` bytes in all. */
async function readWhole(
  reader: ContentReader,
  sections: readonly Section[],
  length: number,
): Promise<Buffer> {
  const body = Buffer.allocUnsafe(length);
  let filled = 0;
  for (const section of sections) {
    await reader.read(body.subarray(filled, filled + section.length), section.offset);
    filled += section.length;
  }
  return body;
}
