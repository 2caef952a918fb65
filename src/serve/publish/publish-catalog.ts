import { randomInt } from 'node:crypto';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
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
import { type CancelOptions, mapConcurrent, sleep } from '../../core/concurrency.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { readdirIfPresent } from '../../files/file-status.js';
import { fillDirectory, requireEmptyDirectory } from '../../files/fill-directory.js';
import { waitForChange } from '../../files/journal.js';
import { withLock } from '../../files/lock.js';
import { type OutputFile, replaceFiles } from '../../files/replace-file.js';
import { isChangeName } from '../../files/staging.js';
import { schemas } from '../../model/declarative-config.js';
import { type ContentReader, type StoredContent, readSection } from '../catalogs/stored-content.js';
import { availableCodings } from '../http/encoding.js';
import { type FileStore, codingExtensions, fileMode, openFileStore } from './file-store.js';
import {
  touchReplaced,
  pruneFiles,
  requirePublished,
  readOtherCatalogs,
  toListed,
} from './published-directory.js';

/** Maximum packages being compressed. */
const maxConcurrent = 4;
/** Maximum wait for another publisher of the same directory. */
const maxLockWaitMs = 60_000;

interface PublishContentOptions extends CancelOptions {
  /** Name of the catalog in URLs. */
  name: string;
  /** Add to a published directory; otherwise the directory must be missing or empty. */
  update?: boolean | undefined;
  /** Remove files by digest that have been unreferenced for this long; default none. */
  pruneMs?: number | undefined;
  now: () => Date;
  logger?: Logger | undefined;
}

/** Result of publishing a catalog. */
export interface Publication {
  name: string;
  /** `sha256:…` of all blobs, as in the HTTP catalog API. */
  hash: string;
  /** Number of packages. */
  packages: number;
  /** Number of new files by digest, compressed forms included. */
  added: number;
  /** Number of removed files by digest. */
  removed: number;
}

/**
 * Publishes a catalog as static files. A missing or empty directory is filled atomically; in a published one, files by
 * digest are added before the indexes are replaced, and removed again on failure. Throws OpmateError, INVALID for a
 * directory in other use.
 */
export async function publishContent(
  content: StoredContent,
  directory: string,
  options: PublishContentOptions,
): Promise<Publication> {
  const { signal } = options;
  const first = await publishFirst(content, directory, options);
  if (first !== undefined) return first;
  const lock = { task: 'publish', waitMilliseconds: maxLockWaitMs, signal };
  return withLock(directory, lock, async () => {
    const publication = await publishInto(content, directory, options);
    const { pruneMs } = options;
    const removed = pruneMs === undefined ? 0 : await pruneFiles(directory, pruneMs, options.now());
    return { ...publication, removed };
  });
}

/**
 * Publishes the first catalog of a directory; undefined for a published one. An update waits for others that fill the
 * directory, and fills it if they fail.
 */
async function publishFirst(
  content: StoredContent,
  directory: string,
  options: PublishContentOptions,
): Promise<Publication | undefined> {
  const { update = false, signal } = options;
  const deadline = performance.now() + maxLockWaitMs;
  for (let failures = 0; ; failures++) {
    if (update) await waitForChange(directory, { waitMilliseconds: maxLockWaitMs, signal });
    let publication: Publication | undefined;
    let fault: unknown;
    try {
      if (await isUnused(directory)) {
        await fillDirectory(directory, async (staging) => {
          publication = await publishInto(content, staging, options).catch((error: unknown) => {
            fault = error;
            throw error;
          });
        });
        return publication;
      }
      if (!update) {
        const hint =
          'add options.update to a published directory, or specify a directory that does not exist yet';
        throw new OpmateError('INVALID', 'not empty', { subject: directory, hint });
      }
      await requirePublished(directory);
      return undefined;
    } catch (error) {
      // Two that start at once may each find the files of the other, and both fail.
      const isContended = failures < 3 || (await isBeingFilled(directory));
      if (!update || fault !== undefined || !isContended || performance.now() >= deadline) throw error;
    }
    await sleep(randomInt(100), signal);
  }
}

async function isBeingFilled(directory: string): Promise<boolean> {
  const names = await readdirIfPresent(directory).catch(() => []);
  return names.length > 0 && names.every(isChangeName);
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

/** Paths of all blobs of a catalog: in the HTTP catalog API, and in its first version. */
const allPaths = ['api/v1/all', 'all.json'];

async function publishInto(
  content: StoredContent,
  root: string,
  options: PublishContentOptions,
): Promise<Publication> {
  const { name, signal, logger = silentLogger } = options;
  const store = await openFileStore(root, options);
  const reader = content.openReader();
  try {
    const all = await store.addLines(content.readPieces());
    const [task, total] = [`publish ${name}`, content.packages.length];
    let done = 0;
    const packages = await mapConcurrent(
      content.packages,
      maxConcurrent,
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
    const catalogs = [...(await readOtherCatalogs(root, name)), catalog].map(toListed);
    catalogs.sort((a, b) => compareBytes(a.name, b.name));
    await touchReplaced(root, catalog, options.now());
    throwIfCancelled(signal);
    const linesFile = path.join(root, linesPath(all));
    const extensions = ['', ...codings.map((coding) => codingExtensions[coding])];
    const copies = allPaths.flatMap((route) =>
      extensions.map((extension): OutputFile => ({
        target: path.join(root, catalogPath(name, `${route}${extension}`)),
        copyOf: `${linesFile}${extension}`,
        mode: fileMode,
      })),
    );
    const index = path.join(root, catalogPath(name, catalogIndexName));
    await replaceFiles([
      ...copies,
      { target: index, text: encodePublishedCatalog(catalog) },
      { target: path.join(root, catalogListName), text: encodeCatalogList(catalogs) },
    ]);
    return { name, hash, packages: packages.length, added: store.added.size, removed: 0 };
  } catch (error) {
    await store.revert();
    throw error;
  } finally {
    reader.close();
    await store.close();
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
    for (const { section } of content.blobs({ schema: schemas.package, name })) {
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
    for (const { schema, name: blobName, section } of content.blobs({ package: name })) {
      if (schema === schemas.package && blobName === name) continue;
      count++;
      yield await readSection(reader, section);
    }
  }
  const file = await store.addLines(lines());
  return { name, ...file, count, ...(icon !== undefined && { icon }) };
}

/** Removes the icon from a package blob and returns it; keeps an invalid one. */
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
