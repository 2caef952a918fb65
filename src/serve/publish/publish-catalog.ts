import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { lstat, readdir, rm, utimes } from 'node:fs/promises';
import path from 'node:path';
import { decompress } from '../../archive/decompress.js';
import {
  type ListedPublication,
  type PublishedCatalog,
  type PublishedFile,
  type PublishedIcon,
  type PublishedPackage,
  blobsDirectory,
  catalogIndexName,
  catalogListName,
  catalogPath,
  catalogsDirectory,
  encodeCatalogList,
  encodePublishedCatalog,
  iconPath,
  linesPath,
  maxPublishedIndexBytes,
  parseCatalogList,
  parsePublishedCatalog,
} from '../../catalog/published/published-index.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { addContext } from '../../core/diagnostics-error.js';
import { digestPieces } from '../../core/digest.js';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { type Logger, silentLogger } from '../../core/log.js';
import { compareBytes } from '../../core/order.js';
import { encodeGoJson, parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { lstatIfPresent, readdirIfPresent } from '../../files/file-status.js';
import { fillDirectory, requireEmptyDirectory } from '../../files/fill-directory.js';
import { waitForChange } from '../../files/journal.js';
import { withLock } from '../../files/lock.js';
import { makeDirectory, missingDirectories, removeEmptyDirectories } from '../../files/make-directory.js';
import { moveWhole, removeWhole } from '../../files/move-whole.js';
import { readRegularFile } from '../../files/read-file.js';
import { type OutputFile, replaceFiles } from '../../files/replace-file.js';
import { stagingName, sweepLeftovers } from '../../files/staging.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { schemas } from '../../model/declarative-config.js';
import type { ContentReader, StoredContent } from '../catalogs/stored-content.js';
import { catalogNameFault } from '../http/catalog-names.js';
import { type Coding, availableCodings, createCompressor } from '../http/encoding.js';

const fileMode = 0o644;
/** Files that are compressed at the same time. */
const maxAtOnce = 4;
const pieceBytes = 256 * 1024;
/** How long another publisher of the same directory is waited for. */
const maxLockWaitMs = 60_000;
const everything = { schema: '', package: '', name: '' };
const codingExtensions: Readonly<Record<Coding, string>> = { gzip: '.gz', zstd: '.zst' };

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

/** Returns the catalogs of a published directory. Throws OpmateError INVALID for a directory that is none. */
async function readCatalogList(directory: string): Promise<ListedPublication[]> {
  const file = path.join(directory, catalogListName);
  if ((await lstatIfPresent(file)) === undefined) {
    throw new OpmateError('INVALID', 'neither empty nor a published directory', {
      subject: directory,
      hint: `specify an empty directory, or one with ${catalogListName}`,
    });
  }
  return parseCatalogList(await readRegularFile(file, maxPublishedIndexBytes), file);
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
    const catalogs = [...(await otherCatalogs(root, name)).map(toListed), listed];
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

/** Puts files below the directory of files by digest, each whole under its name. */
class FileStore {
  readonly #root: string;
  readonly #staging: string;
  readonly #options: CancelOptions;
  readonly #added = new Set<string>();
  readonly #made: string[] = [];
  #files = 0;

  private constructor(root: string, staging: string, options: CancelOptions) {
    this.#root = root;
    this.#staging = staging;
    this.#options = options;
  }

  static async open(root: string, options: CancelOptions): Promise<FileStore> {
    const staging = path.join(root, stagingName());
    await makeDirectory(staging, 0o700).catch((error: unknown) => {
      throw fileError(root, error);
    });
    return new FileStore(root, staging, options);
  }

  /** How many files were not there before. */
  get added(): number {
    return this.#added.size;
  }

  /** Adds JSON lines, and their compressed forms. Throws OpmateError IO. */
  addLines(lines: AsyncIterable<Buffer>): Promise<PublishedFile> {
    return this.#add(lines, linesPath, availableCodings);
  }

  /** Adds an icon. Throws OpmateError IO. */
  async addIcon(bytes: Buffer, mediaType: string): Promise<PublishedIcon> {
    const file = await this.#add([bytes], (publishedFile) => iconPath({ ...publishedFile, mediaType }), []);
    return { ...file, mediaType };
  }

  async #add(
    pieces: AsyncIterable<Buffer> | Iterable<Buffer>,
    pathOf: (file: PublishedFile) => string,
    codings: readonly Coding[],
  ): Promise<PublishedFile> {
    const staged = path.join(this.#staging, String(this.#files++));
    const { signal } = this.#options;
    try {
      const hash = createHash('sha256');
      let size = 0;
      const hashed = async function* (): AsyncGenerator<Buffer> {
        for await (const piece of pieces) {
          throwIfCancelled(signal);
          hash.update(piece);
          size += piece.length;
          yield piece;
        }
      };
      await writeNewFile(staged, hashed(), { mode: fileMode });
      const file = { hash: `sha256:${hash.digest('hex')}`, size };
      const target = path.join(this.#root, pathOf(file));
      for (const coding of codings) {
        const form = `${target}${codingExtensions[coding]}`;
        if (await this.#isSound(form, file)) continue;
        const compressed = `${staged}${codingExtensions[coding]}`;
        await writeNewFile(compressed, compress(staged, coding), { mode: fileMode });
        await this.#move(compressed, form);
      }
      // The last one: who finds it finds the others.
      if (!(await this.#isSound(target, file))) await this.#move(staged, target);
      else await rm(staged);
      return file;
    } catch (error) {
      throw fileError(this.#root, error);
    }
  }

  async #isSound(target: string, { hash, size }: PublishedFile): Promise<boolean> {
    if ((await lstatIfPresent(target))?.isFile() !== true) return false;
    const isPlain = !/\.(?:gz|zst)$/.test(target);
    if (isPlain && (await lstat(target)).size !== size) return false;
    const source = createReadStream(target);
    try {
      const bytes = isPlain ? source : decompress(source, { label: target, signal: this.#options.signal });
      return (await digestPieces(bytes)) === hash;
    } catch (error) {
      throwIfCancelled(this.#options.signal);
      if (error instanceof OpmateError) return false;
      throw error;
    } finally {
      source.destroy();
    }
  }

  async #move(staged: string, target: string): Promise<void> {
    const isNew = (await lstatIfPresent(target)) === undefined;
    this.#made.push(...(await missingDirectories(path.dirname(target))));
    await moveWhole(staged, target);
    if (isNew) this.#added.add(target);
  }

  /** Removes what was added. Never throws. */
  async takeBack(): Promise<void> {
    for (const file of this.#added) await rm(file, { force: true }).catch(() => undefined);
    await removeEmptyDirectories([...new Set(this.#made)].sort());
  }

  async close(): Promise<void> {
    await rm(this.#staging, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function* compress(file: string, coding: Coding): AsyncGenerator<Buffer> {
  const compressor = createCompressor(coding, 'best');
  const source = createReadStream(file, { highWaterMark: pieceBytes });
  source.once('error', (error) => compressor.destroy(error));
  try {
    yield* source.pipe(compressor) as AsyncIterable<Buffer>;
  } finally {
    source.destroy();
    compressor.destroy();
  }
}

/** Returns all catalogs of a directory but one. Throws OpmateError for one whose index cannot be read. */
async function otherCatalogs(root: string, name: string): Promise<PublishedCatalog[]> {
  const others: PublishedCatalog[] = [];
  for (const other of await readdirIfPresent(path.join(root, catalogsDirectory))) {
    if (other === name || catalogNameFault(other) !== undefined) continue;
    const catalog = await readCatalogIndex(root, other);
    if (catalog !== undefined) others.push(catalog);
  }
  return others;
}

async function readCatalogIndex(root: string, name: string): Promise<PublishedCatalog | undefined> {
  const file = path.join(root, catalogPath(name, catalogIndexName));
  if ((await lstatIfPresent(file)) === undefined) return undefined;
  try {
    const catalog = parsePublishedCatalog(await readRegularFile(file, maxPublishedIndexBytes), file);
    if (catalog.name === name) return catalog;
    throw new OpmateError('INVALID', `is the index of ${catalog.name}`, { subject: file });
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    throw addContext(error, { newHint: `publish ${name} again, or remove ${path.dirname(file)}` });
  }
}

function toListed({ name, hash, size, count, packages }: PublishedCatalog): ListedPublication {
  return { name, hash, size, count, packages: packages.length };
}

/** Dates files that are about to be referred to no longer: pruning spares them for a while, readers may need them. */
async function keepReplaced(root: string, catalog: PublishedCatalog, now: Date): Promise<void> {
  const before = await readCatalogIndex(root, catalog.name).catch(() => undefined);
  if (before === undefined) return;
  const kept = getFiles(catalog);
  for (const file of getFiles(before)) {
    if (kept.has(file)) continue;
    for (const extension of ['', ...Object.values(codingExtensions)]) {
      await utimes(path.join(root, `${file}${extension}`), now, now).catch(() => undefined);
    }
  }
}

/** Returns the paths of all files by digest that a catalog refers to, without compressed forms. */
function getFiles(catalog: PublishedCatalog): Set<string> {
  const files = new Set([linesPath(catalog)]);
  for (const publishedPackage of catalog.packages) {
    files.add(linesPath(publishedPackage));
    if (publishedPackage.icon !== undefined) files.add(iconPath(publishedPackage.icon));
  }
  return files;
}

/** Removes files by digest that no catalog refers to and nobody has for `ageMs`; returns how many. */
async function pruneFiles(root: string, ageMs: number, now: Date): Promise<number> {
  const used = new Set<string>();
  for (const catalog of await otherCatalogs(root, '')) for (const file of getFiles(catalog)) used.add(file);
  let removed = 0;
  for (const prefix of await readdirIfPresent(path.join(root, blobsDirectory))) {
    if (!/^[0-9a-f]{2}$/.test(prefix)) continue;
    const directory = path.join(root, blobsDirectory, prefix);
    for (const name of await readdir(directory)) {
      const [hex = ''] = name.split('.', 1);
      const file = `${blobsDirectory}/${prefix}/${name.replace(/\.(?:gz|zst)$/, '')}`;
      if (hex.length !== 64 || used.has(file)) continue;
      const target = path.join(directory, name);
      const stats = await lstatIfPresent(target);
      if (stats === undefined || now.getTime() - stats.mtimeMs < ageMs) continue;
      if (await removeWhole(target, root)) removed++;
    }
    await removeEmptyDirectories([directory]);
  }
  return removed;
}
