import { computeDigest } from '../../core/digest.js';
import { compareBytes } from '../../core/order.js';
import type { ContentBlob, MetasQuery } from '../catalogs/content-index.js';
import type { CatalogSet, ServedCatalog } from '../catalogs/catalog-set.js';
import { type ContentReader, readSection } from '../catalogs/stored-content.js';
import { Refusal } from '../server/refusal.js';
import type { BodySender } from './body-sender.js';
import { linesType } from './catalog-content.js';
import { getTotal } from './content-stream.js';
import { getTags, respondToConditions } from './conditions.js';
import { type Exchange, readMetasQuery, retryLater } from './exchange.js';

/** Approximate size of a piece of a response. */
const pieceBytes = 64 * 1024;

/** Sends the matching blobs of all catalogs as `wrapBlobs` formats them, by priority and name of the catalog. */
export async function sendFromAll(
  exchange: Exchange,
  catalogs: CatalogSet,
  bodies: BodySender,
): Promise<void> {
  const { response, method } = exchange;
  const query = readMetasQuery(exchange.query, ['catalog', 'selector']);
  if (!catalogs.isReady()) {
    throw new Refusal(503, '503 Service Unavailable: catalogs are not loaded yet', retryLater);
  }
  const selected = selectCatalogs(catalogs, exchange.query, query);
  const key = selected.map(({ name, content, priority }) => [name, content.hash, priority]);
  const digest = computeDigest(JSON.stringify(key));
  const criteria = [
    query.schema,
    query.package,
    query.name,
    exchange.query.get('catalog') ?? '',
    exchange.query.get('selector') ?? '',
  ];
  const tags = getTags(digest, criteria);
  const packageQuery = { ...query, package: withoutCatalog(query.package) };
  let size = 0;
  for (const { content } of selected) size += getTotal(content.find(packageQuery));
  response.setHeader('Vary', 'Accept-Encoding');
  const coding = bodies.selectCoding(exchange, size);
  if (respondToConditions(exchange, tags, coding)) return;
  response.setHeader('Content-Type', linesType);
  response.setHeader('ETag', tags(coding));
  if (coding !== undefined) response.setHeader('Content-Encoding', coding);
  if (method === 'HEAD') return void response.end();
  const open = selected.map((served) => ({ served, reader: served.content.openReader() }));
  try {
    const readPieces = () => wrapBlobs(open, packageQuery);
    await bodies.sendPieces(exchange, { key: ['of all', digest, ...criteria], size, coding, readPieces });
  } finally {
    for (const { reader } of open) reader.close();
  }
}

/**
 * Yields lines with the matching blobs of several catalogs: each is an object with the unchanged blob in `blob`, its
 * catalog in `catalog`, and `CATALOG/PACKAGE` in `package` if it belongs to one.
 */
async function* wrapBlobs(
  open: readonly { served: ServedCatalog; reader: ContentReader }[],
  query: MetasQuery,
): AsyncGenerator<Buffer, void, undefined> {
  // Keys are sorted, as in all lines.
  const before = Buffer.from('{"blob":');
  let parts: Buffer[] = [];
  let bytes = 0;
  for (const { served, reader } of open) {
    for (const blob of served.content.blobs(query)) {
      // Without the line break of the blob.
      const text = (await readSection(reader, blob.section)).subarray(0, -1);
      const after = Buffer.from(formatOrigin(served.name, blob));
      parts.push(before, text, after);
      bytes += before.length + text.length + after.length;
      if (bytes < pieceBytes) continue;
      yield Buffer.concat(parts);
      parts = [];
      bytes = 0;
    }
  }
  if (bytes > 0) yield Buffer.concat(parts);
}

/** Formats the end of a line, with the catalog and package of a blob. */
function formatOrigin(catalog: string, blob: ContentBlob): string {
  const name = blob.package === '' && blob.schema === 'olm.package' ? blob.name : blob.package;
  const last = name === '' ? '' : `,"package":${JSON.stringify(`${catalog}/${name}`)}`;
  return `,"catalog":${JSON.stringify(catalog)}${last}}\n`;
}

function selectCatalogs(
  catalogs: CatalogSet,
  parameters: URLSearchParams,
  query: MetasQuery,
): ServedCatalog[] {
  const catalog = parameters.get('catalog') ?? '';
  const slash = query.package.indexOf('/');
  const qualifier = slash < 0 ? '' : query.package.slice(0, slash);
  const labels = parseLabels(parameters.get('selector') ?? '');
  return catalogs
    .list()
    .filter(({ name }) => (catalog === '' || name === catalog) && (qualifier === '' || name === qualifier))
    .filter((served) =>
      labels.every(([key, value]) => Object.hasOwn(served.labels, key) && served.labels[key] === value),
    )
    .sort((a, b) => b.priority - a.priority || compareBytes(a.name, b.name));
}

function withoutCatalog(text: string): string {
  return text.slice(text.indexOf('/') + 1);
}

/** Parses `KEY=VALUE,KEY=VALUE`. */
function parseLabels(text: string): [string, string][] {
  if (text === '') return [];
  return text.split(',').map((part) => {
    const equals = part.indexOf('=');
    if (equals <= 0) throw new Refusal(400, '400 Bad Request: selector: expected KEY=VALUE,KEY=VALUE');
    return [part.slice(0, equals).trim(), part.slice(equals + 1).trim()];
  });
}
