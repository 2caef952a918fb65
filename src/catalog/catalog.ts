import type { FileHandle } from 'node:fs/promises';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, throwFileError } from '../core/errors.js';
import type { Logger } from '../core/log.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { addContext, combineErrors } from '../core/diagnostics-error.js';
import { changedFileError, getFileIdentity } from '../files/file-status.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { BlobOrigin } from '../model/facts.js';
import { LineCounter, type OpenFile, readDocumentAt, readDocuments } from './documents.js';
import { openFile, readAgain } from './file-access.js';
import { type LinesDownTo, findBlobLines } from './blob-places.js';
import { type Meta, MissingSchemaError, toMeta } from './meta.js';
import { rejectRepository } from './repository-root.js';
import { type CatalogFile, listCatalogFiles } from './walk.js';

/**
 * A catalog that can be read blob by blob, repeatedly: commands first collect facts, then read the required blobs
 * again, so that no command holds a whole catalog.
 */
export interface Catalog {
  /** Name in messages. */
  readonly name: string;
  /** Yields all blobs in walk order. Throws OpmateError with file and line for the first invalid one. */
  metas(options?: MetasOptions): AsyncGenerator<Meta, void, undefined>;
  /** Reads one blob again. Throws OpmateError IO if its file has changed. */
  read(origin: BlobOrigin): Promise<JsonObject>;
  /** Reads the text of one blob again. */
  readText(origin: BlobOrigin): Promise<Buffer>;
  /** Returns the one-based line of a blob, or of the value at a path in it. */
  lineOf(origin: BlobOrigin, path?: readonly (string | number)[]): Promise<number | undefined>;
  /**
   * Images stored for its bundles separately from `metas`: each bundle's own and related images, without empty and
   * duplicate ones.
   */
  storedImages?(): Iterable<CatalogImage>;
  /** Channel members that `metas` does not cover. */
  storedMembers?(): Iterable<StoredMember>;
  /** Files of the catalog in walk order, if it consists of files, with names relative to its directory. */
  listFiles?(): Promise<{ path: string; name: string }[]>;
  close(): Promise<void>;
}

/** An image that a catalog names. */
export interface CatalogImage {
  /** Reference as written in the catalog; never empty. */
  image: string;
  /** `bundle` for the `image` of a blob, `related` for its `relatedImages`. */
  kind: 'bundle' | 'related';
  /** Empty for a blob without a package. */
  package: string;
  /** Name of the blob. */
  bundle: string;
  /** Path of the reference in the blob, such as `relatedImages[0].image`; undefined for a sqlite index. */
  field?: string | undefined;
}

/** A stored bundle of a channel. */
interface StoredMember {
  package: string;
  channel: string;
  bundle: string;
}

export interface MetasOptions extends CancelOptions {
  /** Receives the number of bytes read. */
  logger?: Logger | undefined;
  /** Receives errors in the content of a file or blob; reading continues after them. */
  onFault?: ((fault: OpmateError) => void) | undefined;
  /** Only names, edges and versions are needed: a catalog that generates blobs may omit manifests. */
  withoutManifests?: boolean | undefined;
}

/** Returns a catalog without blobs. */
export function createEmptyCatalog(name: string): Catalog {
  const refuse = ({ file }: BlobOrigin): Promise<never> => Promise.reject(changedFileError(file, 'catalog'));
  return {
    name,
    // eslint-disable-next-line require-yield -- there are no blobs
    async *metas() {
      return;
    },
    read: refuse,
    readText: refuse,
    lineOf: () => Promise.resolve(undefined),
    close: () => Promise.resolve(),
  };
}

/** A file-based catalog in a directory, or in a single file. */
export class DirectoryCatalog implements Catalog {
  readonly name: string;
  readonly #root: string;
  readonly #followLinks: boolean;
  readonly #isFile: boolean;
  readonly #files = new Map<string, { path: string; version: string }>();
  #open: { file: string; handle: FileHandle } | undefined;
  readonly #counters = new Map<string, LineCounter>();
  /** Places in the blob of the last line lookup. */
  #places: { file: string; offset: number; linesDownTo: LinesDownTo } | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /**
   * `label` is the name of the directory in messages; default: its path. Links that lead out of it are errors unless
   * `followLinks`, in which case errors behind them are reported without their text. With `isFile`, `root` is a file.
   */
  constructor(
    root: string,
    label: string = root,
    { followLinks, isFile = false }: LinkOptions & { isFile?: boolean | undefined } = {},
  ) {
    this.#root = root;
    this.name = label;
    this.#followLinks = followLinks === true;
    this.#isFile = isFile;
  }

  async *metas(options: MetasOptions = {}): AsyncGenerator<Meta, void, undefined> {
    const task = `read ${this.name}`;
    const files = await this.#list(this.name);
    for (const [current, file] of files.entries()) {
      options.logger?.progress({ task, state: 'update', current, total: files.length, unit: 'items' });
      try {
        yield* this.#iterateMetas(file, options);
      } catch (error) {
        const shown = file.outside === undefined || !this.#followLinks ? error : withoutText(error, file);
        if (options.onFault === undefined || !isFault(shown)) throw shown;
        options.onFault(shown);
      }
    }
    options.logger?.progress({ task, state: 'done' });
  }

  async #list(label: string): Promise<CatalogFile[]> {
    if (this.#isFile) return [{ path: this.#root, label: this.name }];
    const files = await listCatalogFiles(this.#root, label, { followLinks: this.#followLinks });
    await rejectRepository(files, this.#root, this.name);
    return files;
  }

  async *#iterateMetas(file: CatalogFile, options: MetasOptions): AsyncGenerator<Meta, void, undefined> {
    const { outside } = file;
    if (outside !== undefined && !this.#followLinks) throw outside;
    const handle = await openFile(file.path, file.label);
    try {
      const { version, size } = await readState(handle, file.label);
      this.#files.set(file.label, { path: file.path, version });
      const how = outside === undefined ? options : hidingText(options, file);
      yield* readMetas({ handle, label: file.label, size }, how);
    } finally {
      await handle.close();
    }
  }

  async listFiles(): Promise<{ path: string; name: string }[]> {
    const files = await this.#list('');
    if (!this.#followLinks && files.some(({ outside }) => outside !== undefined)) {
      const named = await this.#list(this.name);
      const refused = named.map(({ outside }) => outside).filter((error) => error !== undefined);
      if (refused.length > 0) throw combineErrors(refused);
    }
    return files.map(({ path, label }) => ({ path, name: label }));
  }

  read(origin: BlobOrigin): Promise<JsonObject> {
    return this.#inTurn(() => this.#read(origin));
  }

  readText(origin: BlobOrigin): Promise<Buffer> {
    return this.#inTurn(async () => readAgain(await this.#readHandle(origin.file), origin));
  }

  async #read(origin: BlobOrigin): Promise<JsonObject> {
    const handle = await this.#readHandle(origin.file);
    const value = await readDocumentAt(handle, origin);
    if (isJsonObject(value)) return value;
    throw changedFileError(origin.file, 'catalog');
  }

  lineOf(origin: BlobOrigin, path: readonly (string | number)[] = []): Promise<number | undefined> {
    return this.#inTurn(() => this.#lineOf(origin, path));
  }

  async #lineOf(origin: BlobOrigin, path: readonly (string | number)[]): Promise<number> {
    const { file, offset, syntax } = origin;
    const handle = await this.#readHandle(file);
    let counter = this.#counters.get(file);
    if (counter === undefined) this.#counters.set(file, (counter = new LineCounter(file)));
    const line = await counter.lineOf(handle, offset);
    if (path.length === 0) return line;
    if (this.#places?.file !== file || this.#places.offset !== offset) {
      const bytes = await readAgain(handle, origin);
      this.#places = { file, offset, linesDownTo: findBlobLines(bytes.toString('utf8'), syntax) };
    }
    return line + this.#places.linesDownTo(path);
  }

  async close(): Promise<void> {
    await this.#inTurn(() => this.#closeFile());
  }

  async #closeFile(): Promise<void> {
    const current = this.#open;
    this.#open = undefined;
    this.#places = undefined;
    await current?.handle.close();
  }

  /** Runs reads one at a time, since they share the open file. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Blobs are read again package by package, so one open file serves nearly all reads. */
  async #readHandle(file: string): Promise<FileHandle> {
    if (this.#open?.file === file) return this.#open.handle;
    await this.#closeFile();
    const known = this.#files.get(file);
    const handle = await openFile(known?.path ?? file, file);
    this.#open = { file, handle };
    if (known === undefined || (await readState(handle, file)).version === known.version) return handle;
    await this.#closeFile();
    throw changedFileError(file, 'catalog');
  }
}

/** Returns the error of a file outside of the catalog without the text that a parser quotes. */
function withoutText(error: unknown, { label }: CatalogFile): unknown {
  if (!isFault(error) || (error.code !== 'SYNTAX' && error.code !== 'INVALID')) return error;
  const { code, line } = error;
  return new OpmateError(code, 'not a file of a catalog', { about: label, line });
}

function hidingText(options: MetasOptions, file: CatalogFile): MetasOptions {
  const { onFault } = options;
  if (onFault === undefined) return options;
  return { ...options, onFault: (fault) => onFault(withoutText(fault, file) as OpmateError) };
}

/** Returns a state that identifies the content of a file, to write exactly what was checked. */
async function readState(handle: FileHandle, label: string): Promise<{ version: string; size: number }> {
  const stats = await handle.stat({ bigint: true }).catch(throwFileError(label, { file: label }));
  return { version: getFileIdentity(stats), size: Number(stats.size) };
}

/** Yields the blobs of one open file. Throws OpmateError with file and line for the first invalid one. */
export async function* readMetas(
  file: OpenFile,
  options: MetasOptions,
): AsyncGenerator<Meta, void, undefined> {
  const counter = new LineCounter(file.label);
  for await (const document of readDocuments(file, options)) {
    const { offset, length, syntax, text } = document;
    const origin = { file: file.label, offset, length, syntax };
    let meta: Meta;
    try {
      meta = toMeta(document.value, syntax, origin);
    } catch (error) {
      const { jsonError } = document;
      const isOther = jsonError !== undefined && !(error instanceof MissingSchemaError);
      const located = isOther ? jsonError : await withLine(error, () => counter.lineOf(file.handle, offset));
      if (options.onFault === undefined || !isFault(located)) throw located;
      options.onFault(located);
      continue;
    }
    yield { ...meta, text };
  }
}

/** Reports whether an error concerns the content of a catalog, so that reading may continue. */
export function isFault(error: unknown): error is OpmateError {
  return error instanceof OpmateError && error.code !== 'CANCELLED' && error.code !== 'INTERNAL';
}

/** Returns the error with the line of the blob. */
async function withLine(error: unknown, findLine: () => Promise<number>): Promise<unknown> {
  if (!(error instanceof OpmateError)) return error;
  const line = await findLine();
  return addContext(error, { file: error.file, line });
}
