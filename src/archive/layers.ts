import { copyFile, link, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { LimitError, OpmateError, getMessage, systemCode, throwIfCancelled } from '../core/errors.js';
import { type Logger, silentLogger } from '../core/log.js';
import { type FilePart, JoinedFileWriter } from '../files/file-parts.js';
import { makeDirectory } from '../files/make-directory.js';
import { moveWhole } from '../files/move-whole.js';
import { stagingBeside, sweepLeftovers } from '../files/staging.js';
import { normalizeEntryPath, showName } from './entry-path.js';
import type { FileEntry, FileTree } from './file-tree.js';
import { type FileBody, type FinalFile, ImageTree, type LayerEntry } from './image-tree.js';
import { type ArchiveLimits, ArchiveMeter, defaultArchiveLimits, showSize } from './limits.js';
import { type TarEntry, readTar } from './tar-reader.js';

/** A layer of an image: a tar archive, possibly compressed. */
export interface LayerInput {
  /** Name in messages: its digest. */
  label: string;
  /** Opens the layer at its first byte; called again if links lead out of the selected roots. */
  open(): Promise<Readable>;
}

export interface ReadLayersOptions extends CancelOptions {
  /** Paths in the image, with or without a leading slash; `''` selects everything. */
  roots: readonly string[];
  limits?: ArchiveLimits | undefined;
  /** Maximum number of layers read concurrently; default: 4. */
  concurrency?: number | undefined;
  logger?: Logger | undefined;
}

/** Maximum total of files kept in memory, as a multiple of the largest readable file. */
const memoryFactor = 4;

/**
 * Applies layers, lowest first, and reads the files under `roots` into memory as the image has them: whiteouts
 * applied, links followed inside the image. Each layer is streamed once, and again if a link leads out of `roots`.
 *
 * Throws OpmateError UNSAFE, SYNTAX, INVALID, UNSUPPORTED, LIMIT (also for a total of more than four times
 * `maxMetadataFileSize`: use `extractLayers`) or CANCELLED.
 */
export async function readLayers(
  layers: readonly LayerInput[],
  options: ReadLayersOptions,
): Promise<FileTree> {
  const limits = options.limits ?? defaultArchiveLimits;
  const contents = new Map<string, Buffer>();
  let total = 0;
  const tree = await loadTree(layers, options, async (key, entry, label) => {
    if (entry.size > limits.maxMetadataFileSize) return;
    total += entry.size;
    if (total > limits.maxMetadataFileSize * memoryFactor) {
      const maximum = showSize(limits.maxMetadataFileSize * memoryFactor);
      throw new LimitError(`more than ${maximum} of files to read into memory`, { subject: label });
    }
    const chunks: Buffer[] = [];
    for await (const chunk of entry.body) chunks.push(chunk);
    // A chunk is a slice of a buffer of up to 256 KiB, which it would keep in memory.
    contents.set(key, chunks.length === 1 ? Buffer.from(chunks[0] as Buffer) : Buffer.concat(chunks));
  });
  const files = new Map<string, FileEntry>();
  for (const [path, file] of tree.files) {
    const broken = file.broken ?? unreadable(path, file.body, limits.maxMetadataFileSize);
    const content =
      file.body === undefined ? undefined : contents.get(toKey(file.body.layer, file.body.entry));
    files.set(path, {
      size: file.body?.size ?? 0,
      read: async () => {
        if (broken !== undefined) throw broken;
        return content as Buffer;
      },
    });
  }
  // The functions above keep this scope in memory, including content that upper layers replaced.
  contents.clear();
  return { files, directories: tree.directories };
}

export interface ExtractLayersOptions extends ReadLayersOptions {
  /**
   * Paths, beside `roots`, whose files are written into one new file instead: thousands of small files cost more than
   * their content.
   */
  packed?: { roots: readonly string[]; file: string } | undefined;
}

/** Result of `extractLayers`. */
export interface ExtractedLayers {
  /** Slash-separated paths relative to the destination, in byte order. */
  files: string[];
  directories: string[];
  /** Files that are not on disk, with the reason, as in `FileEntry.read`. */
  problems: Map<string, OpmateError>;
  /** Files of `packed` by path. */
  packed: Map<string, FilePart>;
  /** Index of the lowest layer that holds a file; undefined without files. */
  lowestLayer: number | undefined;
  /** Symbolic links that are roots or lead to them. */
  links: string[];
}

/**
 * Applies layers like `readLayers`, but writes the files below `destination`: modes 0600 and 0700, owned by the
 * current user; repeated files become hard links. `destination` must be missing or empty. Its content appears in one
 * rename from a sibling directory, which is removed afterwards.
 *
 * Throws as `readLayers`, and OpmateError IO.
 */
export async function extractLayers(
  layers: readonly LayerInput[],
  destination: string,
  options: ExtractLayersOptions,
): Promise<ExtractedLayers> {
  const limits = options.limits ?? defaultArchiveLimits;
  let pack: LayerPack | undefined;
  let staging: string | undefined;
  try {
    pack = options.packed && (await LayerPack.create(options.packed));
    await makeDirectory(dirname(destination));
    await sweepLeftovers(dirname(destination));
    staging = stagingBeside(destination);
    await mkdir(staging, { mode: 0o700 });
    const blobs = join(staging, 'blobs');
    const target = join(staging, 'tree');
    await mkdir(blobs, { mode: 0o700 });
    await mkdir(target, { mode: 0o700 });
    const roots = [...options.roots, ...(options.packed?.roots ?? [])];
    // Files are packed one after the other.
    const concurrency = pack === undefined ? options.concurrency : 1;
    const tree = await loadTree(layers, { ...options, roots, concurrency }, async (key, entry, label) => {
      if (entry.size > limits.maxFileSize) {
        const size = `${showSize(entry.size)}, over the limit of ${showSize(limits.maxFileSize)} for a file`;
        throw new LimitError(`${label}: entry ${showName(entry.path)}: ${size}`);
      }
      if (pack?.includes(entry.path)) await pack.add(key, entry.body);
      else await writeFile(join(blobs, key), entry.body, { flag: 'wx', mode: 0o600 });
    });
    const packed = (await pack?.take(tree.files)) ?? new Map<string, FilePart>();
    const problems = await placeFiles(tree, packed, { blobs, target }, { ...options, limits });
    await moveWhole(target, destination);
    return {
      files: [...tree.files.keys()],
      directories: [...tree.directories],
      problems,
      packed,
      lowestLayer: findLowestLayer(tree.files.values()),
      links: tree.links,
    };
  } catch (error) {
    if (error instanceof OpmateError || systemCode(error) === undefined) throw error;
    throw new OpmateError('IO', `cannot unpack layers: ${getMessage(error)}`, {
      subject: destination,
      cause: error,
    });
  } finally {
    await pack?.close();
    if (staging !== undefined) await rm(staging, { recursive: true, force: true });
  }
}

/** File into which the files below some paths are packed. */
class LayerPack {
  readonly #roots: readonly string[];
  readonly #file: string;
  readonly #writer: JoinedFileWriter;
  readonly #parts = new Map<string, FilePart>();

  private constructor(roots: readonly string[], file: string, writer: JoinedFileWriter) {
    this.#roots = roots;
    this.#file = file;
    this.#writer = writer;
  }

  /** Creates the file, in place of one of a failed attempt. */
  static async create({ roots, file }: { roots: readonly string[]; file: string }): Promise<LayerPack> {
    await rm(file, { force: true });
    const normalized = roots.map((root) => normalizeEntryPath(root, 'image'));
    return new LayerPack(normalized, file, await JoinedFileWriter.create(file));
  }

  includes(path: string): boolean {
    return isBelow(this.#roots, path);
  }

  async add(key: string, body: AsyncIterable<Buffer>): Promise<void> {
    const offset = this.#writer.size;
    for await (const chunk of body) await this.#writer.write(chunk);
    this.#parts.set(key, { file: this.#file, offset, size: this.#writer.size - offset });
  }

  /** Returns the packed files of a tree by path. Throws OpmateError UNSUPPORTED for a link to one from elsewhere. */
  async take(files: ReadonlyMap<string, FinalFile>): Promise<Map<string, FilePart>> {
    await this.#writer.flush();
    const taken = new Map<string, FilePart>();
    for (const [path, { body }] of files) {
      if (body === undefined) continue;
      const part = this.#parts.get(toKey(body.layer, body.entry));
      if (part === undefined) continue;
      if (!this.includes(path)) {
        throw new OpmateError('UNSUPPORTED', 'link to a file of the cache', { subject: path });
      }
      taken.set(path, part);
    }
    return taken;
  }

  close(): Promise<void> {
    return this.#writer.close();
  }
}

function findLowestLayer(files: Iterable<FinalFile>): number | undefined {
  let lowest: number | undefined;
  for (const { body } of files) {
    if (body !== undefined && (lowest === undefined || body.layer < lowest)) lowest = body.layer;
  }
  return lowest;
}

interface LoadedTree {
  roots: string[];
  links: string[];
  files: Map<string, FinalFile>;
  directories: Set<string>;
}

/** Moves the files of a tree, except packed ones, to their places below `target`. Returns the problems of unreadable ones. */
async function placeFiles(
  tree: LoadedTree,
  packed: ReadonlyMap<string, FilePart>,
  { blobs, target }: { blobs: string; target: string },
  { limits, signal }: { limits: ArchiveLimits } & CancelOptions,
): Promise<Map<string, OpmateError>> {
  for (const path of tree.directories) {
    await makeDirectory(join(target, path), 0o700);
  }
  // A root that is a file may have parent directories outside the result.
  for (const root of tree.roots) {
    if (tree.files.has(root)) await makeDirectory(join(target, dirname(root)), 0o700);
  }
  const first = new Map<FileBody, string>();
  const repeated: { path: string; body: FileBody }[] = [];
  const problems = new Map<string, OpmateError>();
  for (const [path, file] of tree.files) {
    if (packed.has(path)) continue;
    const broken = file.broken ?? unreadable(path, file.body, Infinity);
    if (file.body === undefined || broken !== undefined) problems.set(path, broken as OpmateError);
    else if (first.has(file.body)) repeated.push({ path, body: file.body });
    else first.set(file.body, path);
  }
  await mapConcurrent(
    [...first],
    16,
    ([{ layer, entry }, path]) => moveWhole(join(blobs, toKey(layer, entry)), join(target, path)),
    { signal },
  );
  let copied = 0;
  for (const { path, body } of repeated) {
    throwIfCancelled(signal);
    const from = join(target, first.get(body) as string);
    await link(from, join(target, path)).catch(async () => {
      // The file system may lack hard links, or limit their number.
      copied += body.size;
      if (copied > limits.maxUnpackedSize) {
        throw new LimitError(`image: unpacks to more than ${showSize(limits.maxUnpackedSize)}`, {
          hint: 'raise the limit with limits.maxUnpackedSize if you trust the source',
        });
      }
      await copyFile(from, join(target, path));
    });
  }
  return problems;
}

/**
 * Reads all layers, builds the tree, and calls `keep` for every readable file in it, and for some that upper layers
 * replaced.
 */
async function loadTree(
  layers: readonly LayerInput[],
  options: ReadLayersOptions,
  keep: (key: string, entry: TarEntry, label: string) => Promise<void>,
): Promise<LoadedTree> {
  return new LayerFiles(layers, options, keep).load();
}

/** Reads layers, and knows the files that were kept. */
class LayerFiles {
  readonly #layers: readonly LayerInput[];
  readonly #options: ReadLayersOptions;
  readonly #keep: (key: string, entry: TarEntry, label: string) => Promise<void>;
  readonly #maxFiles: number;
  /** The first failure stops reading the other layers. */
  readonly #failed = new AbortController();
  readonly #signal: AbortSignal;
  readonly #roots: string[];
  readonly #kept = new Set<string>();

  constructor(
    layers: readonly LayerInput[],
    options: ReadLayersOptions,
    keep: (key: string, entry: TarEntry, label: string) => Promise<void>,
  ) {
    const { signal, limits } = options;
    const own = this.#failed.signal;
    this.#layers = layers;
    this.#options = options;
    this.#keep = keep;
    this.#maxFiles = limits?.maxFiles ?? Infinity;
    this.#signal = signal === undefined ? own : AbortSignal.any([signal, own]);
    this.#roots = options.roots.map((root) => normalizeEntryPath(root, 'image'));
  }

  async load(): Promise<LoadedTree> {
    const { limits } = this.#options;
    const meter = new ArchiveMeter(limits);
    const deltas = await this.#readLayers([...this.#layers.keys()], meter, (path) =>
      isBelow(this.#roots, path),
    );
    const tree = new ImageTree(meter);
    deltas.forEach((entries, index) => tree.apply(index, `layer ${this.#layers[index]?.label}`, entries));
    const result = tree.collect(this.#roots);
    await this.#readBehindLinks(result.files.values());
    const links = this.#roots.flatMap((root) => tree.findLink(root) ?? []);
    return { roots: this.#roots, links, ...result };
  }

  /** Reads files that links select from outside a root of their layer. */
  async #readBehindLinks(files: Iterable<FinalFile>): Promise<void> {
    const { limits, logger = silentLogger } = this.#options;
    const missing = new Set<string>();
    const behind = new Set<number>();
    for (const { body } of files) {
      if (body === undefined || body.type !== 'file') continue;
      const key = toKey(body.layer, body.entry);
      if (this.#kept.has(key)) continue;
      missing.add(key);
      behind.add(body.layer);
    }
    if (missing.size === 0) return;
    const counts = { files: missing.size, layers: behind.size };
    logger.log('debug', 'reading layers again for files behind links', counts);
    await this.#readLayers([...behind], new ArchiveMeter(limits), (_, key) => missing.delete(key));
    if (missing.size > 0)
      throw new OpmateError('INTERNAL', 'a layer changed by another process while reading');
  }

  #readLayers(
    indexes: readonly number[],
    meter: ArchiveMeter,
    isWanted: (path: string, key: string) => boolean,
  ): Promise<LayerEntry[][]> {
    const { concurrency = 4 } = this.#options;
    const read = (index: number): Promise<LayerEntry[]> => this.#readLayer(index, meter, isWanted);
    return mapConcurrent(indexes, concurrency, read, { signal: this.#signal });
  }

  async #readLayer(
    index: number,
    meter: ArchiveMeter,
    wanted: (path: string, key: string) => boolean,
  ): Promise<LayerEntry[]> {
    const layer = this.#layers[index] as LayerInput;
    const label = `layer ${layer.label}`;
    throwIfCancelled(this.#signal);
    const entries: LayerEntry[] = [];
    let number = 0;
    try {
      for await (const entry of readTar(await layer.open(), { label, meter, signal: this.#signal })) {
        const { path, type, size, linkName } = entry;
        const key = toKey(index, number);
        entries.push({ path, type, size, linkName, entry: number++ });
        if (type !== 'file' || !wanted(path, key)) continue;
        if (this.#kept.size >= this.#maxFiles)
          throw new LimitError(`more than ${this.#maxFiles} files`, { subject: label });
        this.#kept.add(key);
        await this.#keep(key, entry, label);
      }
    } catch (error) {
      this.#failed.abort();
      throw error;
    }
    return entries;
  }
}

function isBelow(roots: readonly string[], path: string): boolean {
  return roots.some(
    (root) => root === '' || path === root || (path.startsWith(root) && path[root.length] === '/'),
  );
}

function toKey(layer: number, entry: number): string {
  return `${layer}-${entry}`;
}

function unreadable(path: string, body: FileBody, maximum: number): OpmateError | undefined {
  if (body.type === 'unsupported')
    return new OpmateError('UNSUPPORTED', 'sparse file or unknown type of entry', { subject: path });
  if (body.size <= maximum) return undefined;
  return new LimitError(
    `${showSize(body.size)}, over the limit of ${showSize(maximum)} for a file read into memory`,
    { subject: path },
  );
}
