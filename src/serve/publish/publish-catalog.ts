import path from 'node:path';
import {
  type PublishedCatalog,
  type PublishedIcon,
  type PublishedPackage,
  catalogIndexName,
  catalogListName,
  catalogPath,
  encodeCatalogList,
  encodePublishedCatalog,
  linesPath,
} from '../../catalog/published/published-index.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { fillDirectory, requireEmptyDirectory } from '../../files/fill-directory.js';
import { waitForChange } from '../../files/journal.js';
import { withLock } from '../../files/lock.js';
import { type OutputFile, replaceFiles } from '../../files/replace-file.js';
import { sweepLeftovers } from '../../files/staging.js';
import { schemas } from '../../model/declarative-config.js';
import type { ContentReader, StoredContent } from '../catalogs/stored-content.js';
import { availableCodings } from '../http/encoding.js';
import { FileStore, codingExtensions, fileMode, pieceBytes } from './file-store.js';
import {
  keepReplaced,
  pruneFiles,
  readCatalogList,
  readOtherCatalogs,
  toListed,
} from './published-directory.js';

/** Files that are compressed at the same time. */
const maxAtOnce = 4;
/** How long another publisher of the same directory is waited for. */
const maxLockWaitMs = 60_000;
const everything = { schema: '', package: '', name: '' };

interface PublishContentOptions extends CancelOptions {
  /** Name of the catalog in URLs. */
  name: string;
  /** Adds to a directory that has published catalogs; without it the directory must be absent or empty. */
  update?: boolean | undefined;
  /** Removes files by digest that no catalog has referred to for this long; none where left out. */
  pruneMs?: number | undefined;
  now: () => Date;
  logger?: Logger | undefined;
}

/** What publishing a catalog has changed. */
export interface Publication {
  name: string;
  /** `sha256:…` of all blobs, as the HTTP catalog API has it. */
  hash: string;
  /** Number of packages. */
  packages: number;
  /** Files by digest that were not there before, compressed forms included. */
  added: number;
  /** Files by digest that were removed. */
  removed: number;
}

/**
 * Publishes a catalog as static files in a directory. A new or empty directory appears whole; in one that has catalogs,
 * files by digest are added first, then the indexes are replaced, and a failure takes back what it has added. Throws
 * OpmateError, INVALID for a directory that is in other use.
 */
export async function publishContent(
  content: StoredContent,
  directory: string,
  options: PublishContentOptions,
): Promise<Publication> {
  const { update = false, signal } = options;
  // Another publisher may be filling the same directory.
  if (update) await waitForChange(directory, { waitMilliseconds: maxLockWaitMs, signal });
  if (await isUnused(directory)) {
    const publication = await publishNew(content, directory, options);
    if (publication !== undefined) return publication;
  } else if (!update) {
    const hint = 'add --update to a published directory, or specify a directory that does not exist yet';
    throw new OpmateError('INVALID', 'not empty', { subject: directory, hint });
  }
  await readCatalogList(directory);
  const lock = { task: 'opmate catalog publish', waitMilliseconds: maxLockWaitMs, signal };
  return withLock(directory, lock, async () => {
    await sweepLeftovers(directory, options.now());
    const publication = await publishInto(content, directory, options);
    const { pruneMs } = options;
    const removed = pruneMs === undefined ? 0 : await pruneFiles(directory, pruneMs, options.now());
    return { ...publication, removed };
  });
}

/** Publishes the first catalog of a directory; undefined where an update meets another publisher's, which was faster. */
async function publishNew(
  content: StoredContent,
  directory: string,
  options: PublishContentOptions,
): Promise<Publication | undefined> {
  let publication: Publication | undefined;
  try {
    await fillDirectory(directory, async (staging) => {
      publication = await publishInto(content, staging, options);
    });
  } catch (error) {
    if (options.update !== true) throw error;
    await waitForChange(directory, { waitMilliseconds: maxLockWaitMs, signal: options.signal });
    if (await isUnused(directory)) throw error;
    return undefined;
  }
  return publication;
}

async function isUnused(directory: string): Promise<boolean> {
  try {
    await requireEmptyDirectory(directory);
    return true;
  } catch (error) {
    if (error instanceof OpmateError && error.code === 'INVALID') return false;
    throw error;
  }
}

async function publishInto(
  content: StoredContent,
  root: string,
  options: PublishContentOptions,
): Promise<Publication> {
  const { name, signal, logger = silentLogger } = options;
  const store = await FileStore.open(root, options);
  const reader = content.openReader();
  try {
    const all = await store.addLines(formatLines(content, reader));
    const [task, total] = [`publish ${name}`, content.packages.length];
    let done = 0;
    const packages = await mapConcurrent(
      content.packages,
      maxAtOnce,
      async (packageName) => {
        const published = await addPackage(packageName, content, reader, store);
        logger.progress({ task, state: 'update', current: ++done, total, unit: 'items' });
        return published;
      },
      { signal },
    );
    logger.progress({ task, state: 'done' });
    const { hash, size } = all;
    const codings = [...availableCodings];
    const catalog: PublishedCatalog = { name, hash, size, count: content.count, codings, packages };
    const listed = { name, hash, size, count: content.count, packages: packages.length };
    const catalogs = [...(await readOtherCatalogs(root, name)).map(toListed), listed];
    catalogs.sort((a, b) => compareBytes(a.name, b.name));
    await keepReplaced(root, catalog, options.now());
    throwIfCancelled(signal);
    const linesFile = path.join(root, linesPath(all));
    const copies: OutputFile[] = ['', ...codings.map((coding) => codingExtensions[coding])].map(
      (extension) => ({
        target: path.join(root, catalogPath(name, `api/v1/all${extension}`)),
        copyOf: `${linesFile}${extension}`,
        mode: fileMode,
      }),
    );
    const index = path.join(root, catalogPath(name, catalogIndexName));
    await replaceFiles([
      ...copies,
      { target: index, text: encodePublishedCatalog(catalog) },
      { target: path.join(root, catalogListName), text: encodeCatalogList(catalogs) },
    ]);
    return { name, hash, packages: packages.length, added: store.added, removed: 0 };
  } catch (error) {
    await store.takeBack();
    throw error;
  } finally {
    reader.close();
    await store.close();
  }
}

async function* formatLines(content: StoredContent, reader: ContentReader): AsyncGenerator<Buffer> {
  for (let index = 0; index < content.size; index += pieceBytes) {
    const piece = Buffer.allocUnsafe(Math.min(pieceBytes, content.size - index));
    await reader.read(piece, index);
    yield piece;
  }
}

/** Adds the blobs of a package, and its icon. */
async function addPackage(
  name: string,
  content: StoredContent,
  reader: ContentReader,
  store: FileStore,
): Promise<PublishedPackage> {
  let icon: PublishedIcon | undefined;
  let count = 0;
  async function* lines(): AsyncGenerator<Buffer> {
    for (const { section } of content.blobs({ ...everything, schema: schemas.package, name })) {
      const line = await readSection(reader, section);
      const blob = parseGoJson(String(line));
      const match = isJsonObject(blob) ? takeIcon(blob) : undefined;
      count++;
      if (match === undefined) yield line;
      else {
        const { mediaType, bytes } = match;
        icon ??= await store.addIcon(bytes, mediaType);
        yield Buffer.from(`${encodeGoJson(blob)}\n`);
      }
    }
    for (const { schema, name: blobName, section } of content.blobs({ ...everything, package: name })) {
      if (schema === schemas.package && blobName === name) continue;
      count++;
      yield await readSection(reader, section);
    }
  }
  const file = await store.addLines(lines());
  return { name, ...file, count, ...(icon !== undefined && { icon }) };
}

async function readSection(
  reader: ContentReader,
  { offset, length }: { offset: number; length: number },
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  await reader.read(bytes, offset);
  return bytes;
}

/** Takes the icon out of the blob of a package; leaves one that is not as the format has it. */
function takeIcon(blob: JsonObject): { mediaType: string; bytes: Buffer } | undefined {
  const { icon } = blob;
  if (!isJsonObject(icon ?? null)) return undefined;
  const { base64data, mediatype } = icon as JsonObject;
  if (typeof base64data !== 'string' || typeof mediatype !== 'string') return undefined;
  const bytes = Buffer.from(base64data, 'base64');
  if (bytes.length === 0 || bytes.toString('base64') !== base64data) return undefined;
  delete blob['icon'];
  return { mediaType: mediatype, bytes };
}
