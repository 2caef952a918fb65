import { addContext } from '../../core/diagnostics-error.js';
import type { Catalog, MetasOptions, CatalogImage } from '../../catalog/catalog.js';
import { isFault } from '../../catalog/catalog.js';
import type { Meta } from '../../catalog/meta.js';
import { CancelledError, type ErrorCode, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { encodeGoJson, quoteGo } from '../../document/go-json.js';
import type { EncodableJson, JsonObject } from '../../document/json.js';
import { sortedByBytes } from '../../core/order.js';
import { type ChannelBlob, schemas } from '../../model/declarative-config.js';
import { toRecord, jsonIndent } from '../../model/encode.js';
import { type ErrorTree, renderErrorTree } from '../../model/error-tree.js';
import type { BlobOrigin } from '../../model/facts.js';
import {
  type ConvertedBundle,
  checkPackage,
  convertBundle,
  convertChannels,
  convertPackage,
} from './convert-package.js';
import type { Database } from '../schema/database.js';
import { type ReadOptions, type ReadSession, openForReading } from '../schema/edit.js';
import {
  type StoredBundle,
  type StoredMember,
  type StoredPackage,
  IndexQueries,
  readState,
} from './queries.js';

/** Identifies a blob of an index. Its file position is meaningless: rows have no lines. */
interface IndexOrigin extends BlobOrigin {
  schema: string;
  package: string;
  name: string;
}

/** A package whose blobs are being created. */
interface OpenPackage {
  stored: StoredPackage;
  channels: Map<string, ChannelBlob>;
  /** Positions in `ids` by the names of its bundles, which are sorted. */
  places: Map<string, number>;
  /** Rows of the bundles in the order of their names. */
  ids: number[];
}

interface BundleOptions {
  withoutManifests?: boolean | undefined;
  /** Its manifests were read before and are known to be JSON. */
  isChecked?: boolean | undefined;
}

/** Number of bundles read together, without manifests. */
const batchSize = 256;

/** Opens a database file as a catalog. Throws OpmateError, see `openForReading`. */
export async function openSqliteCatalog(
  file: string,
  session: ReadSession,
  options?: ReadOptions,
): Promise<SqliteCatalog> {
  const { database, close } = await openForReading(file, session, options);
  return new SqliteCatalog(database, file, close);
}

/**
 * An index as a file-based catalog: packages, channels and bundles become blobs on demand, with the manifests of one
 * bundle at a time. Omits deprecated bundles, as `opm` does. Throws OpmateError that starts with the name of the
 * database and, after the last blob, one with all problems of its packages in the words of `opm`, except with
 * `onFault`, whose callers validate the graph themselves.
 */
export class SqliteCatalog implements Catalog {
  readonly name: string;
  /** Database file. */
  readonly file: string;
  readonly close: () => Promise<void>;
  readonly #database: Database;
  readonly #queries: IndexQueries;
  readonly #state: number;
  #stored: Map<string, StoredPackage> | undefined;
  #last: OpenPackage | undefined;
  #batch = new Map<number, StoredBundle>();

  constructor(database: Database, file: string, close: () => Promise<void>) {
    this.name = database.name;
    this.file = file;
    this.close = close;
    this.#database = database;
    this.#queries = new IndexQueries(database);
    this.#state = readState(database);
  }

  async *metas(
    options: MetasOptions & {
      /** Only these packages. */
      packages?: ReadonlySet<string> | undefined;
    } = {},
  ): AsyncGenerator<Meta, void, undefined> {
    const { logger, signal, onFault, packages: wanted } = options;
    const task = `read ${this.name}`;
    const lost = this.#queries.findLostBundle();
    if (lost !== undefined) {
      const names = `unknown package ${quoteGo(lost.package)} for bundle ${quoteGo(lost.bundle)}`;
      this.#report(this.#fault('INVALID', names), onFault);
    }
    const tree: ErrorTree = { message: 'invalid index', children: [] };
    const packages = [...this.#packages().values()].filter(({ name }) => wanted?.has(name) !== false);
    for (const [current, stored] of packages.entries()) {
      logger?.progress({ task, state: 'update', current, total: packages.length, unit: 'items' });
      try {
        const child = yield* this.#iterateMetas(stored, options);
        if (child.children.length > 0) tree.children.push(child);
      } catch (error) {
        this.#report(error, onFault);
      }
      throwIfCancelled(signal);
      this.#checkState();
    }
    logger?.progress({ task, state: 'done' });
    if (tree.children.length > 0 && onFault === undefined)
      throw this.#fault('INVALID', renderErrorTree(tree), 'run api.validate to see each problem');
  }

  /** Passes a fault of the content to `onFault`; throws other errors, and all without it. */
  #report(error: unknown, onFault: MetasOptions['onFault']): void {
    if (onFault === undefined || !isFault(error)) throw error;
    onFault(error);
  }

  #fault(code: ErrorCode, problem: string, hint?: string): OpmateError {
    return new OpmateError(code, problem, { about: this.name, hint });
  }

  async *#iterateMetas(
    stored: StoredPackage,
    options: MetasOptions,
  ): AsyncGenerator<Meta, ErrorTree, undefined> {
    const open = this.#open(stored);
    yield this.#meta(schemas.package, stored.name, '', this.#packageRecord(open, options.withoutManifests));
    for (const blob of open.channels.values()) {
      yield this.#meta(schemas.channel, stored.name, blob.name, toRecord({ kind: 'channel', blob }));
    }
    const checked = new Map<string, Pick<ConvertedBundle, 'version' | 'faults'>>();
    for (const name of open.places.keys()) {
      throwIfCancelled(options.signal);
      try {
        const converted = this.#bundle(open, name, options);
        if (converted === undefined) throw this.#changed();
        const { blob, version, faults, unreadable } = converted;
        checked.set(name, { version, faults });
        if (unreadable && options.onFault !== undefined) {
          const subject = `package ${quoteGo(blob.package)}, bundle ${quoteGo(blob.name)}`;
          throw this.#fault('INVALID', `${subject}: ${faults.join('; ')}`);
        }
        if (unreadable) continue;
        yield this.#meta(schemas.bundle, stored.name, name, toRecord({ kind: 'bundle', blob }));
      } catch (error) {
        this.#report(error, options.onFault);
      }
    }
    return checkPackage(stored, [...open.channels.values()], checked);
  }

  #meta(schema: string, packageName: string, name: string, value: EncodableJson): Meta {
    const place = { schema, package: packageName, name };
    const origin: IndexOrigin = { ...place, file: this.name, offset: 0, length: 0, syntax: 'json' };
    // Values kept as text are valid JSON, which readers of blobs pass on.
    return { ...place, value: value as JsonObject, origin };
  }

  #packages(): Map<string, StoredPackage> {
    return (this.#stored ??= new Map(this.#queries.packages().map((stored) => [stored.name, stored])));
  }

  /** Opens a package, whose common content is kept until another one is opened. */
  #open(stored: StoredPackage): OpenPackage {
    if (this.#last?.stored === stored) return this.#last;
    const all = this.#queries.members(stored.name);
    const skipRanges = this.#queries.liveSkipRanges([...new Set(all.map(({ id }) => id))]);
    const members = all.filter(({ id }) => skipRanges.has(id));
    const ids = new Map(members.map(({ name, id }) => [name, id]));
    const names = sortedByBytes(ids.keys());
    const getSkipRange = ({ id }: StoredMember): string => skipRanges.get(id) ?? '';
    const blobs = this.#named(`package ${quoteGo(stored.name)}`, () =>
      convertChannels(stored, members, getSkipRange),
    );
    this.#last = {
      stored,
      channels: new Map(blobs.map((blob) => [blob.name, blob])),
      places: new Map(names.map((name, index) => [name, index])),
      ids: names.map((name) => ids.get(name) as number),
    };
    this.#batch = new Map();
    return this.#last;
  }

  #packageRecord({ stored }: OpenPackage, withoutIcon = false): EncodableJson {
    const channel = stored.channels.find(({ name }) => name === stored.defaultChannel);
    const head = channel === undefined || withoutIcon ? undefined : this.#queries.findBundle(channel.head);
    const csv = head === undefined ? Buffer.alloc(0) : this.#queries.manifestsAt(head).csv;
    const subject = `package ${quoteGo(stored.name)}, bundle ${quoteGo(channel?.head ?? '')}`;
    const blob = this.#named(subject, () => convertPackage(stored, csv));
    return toRecord({ kind: 'package', blob });
  }

  #bundle(open: OpenPackage, name: string, options: BundleOptions): ConvertedBundle | undefined {
    const stored = this.#storedBundle(open, name);
    if (stored === undefined) return undefined;
    const isNeeded = !options.withoutManifests || stored.image === '' || stored.version === null;
    const manifests = isNeeded ? this.#queries.manifestsAt(stored.id) : undefined;
    return this.#named(`package ${quoteGo(open.stored.name)}, bundle ${quoteGo(name)}`, () =>
      convertBundle(stored, open.stored.name, manifests?.objects, options),
    );
  }

  /** Reads a bundle and the following ones, as bundles are read in order. */
  #storedBundle({ places, ids }: OpenPackage, name: string): StoredBundle | undefined {
    const index = places.get(name);
    if (index === undefined) return undefined;
    const id = ids[index] as number;
    if (!this.#batch.has(id)) this.#batch = this.#queries.bundlesAt(ids.slice(index, index + batchSize));
    return this.#batch.get(id);
  }

  #named<T>(subject: string, work: () => T): T {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof OpmateError) || error instanceof CancelledError) throw error;
      if (error.file === this.name) throw error;
      throw addContext(addContext(error, { subject }), { subject: this.name, file: this.name });
    }
  }

  async read(origin: BlobOrigin): Promise<JsonObject> {
    this.#checkState();
    const { schema, package: packageName, name } = origin as IndexOrigin;
    const stored = this.#packages().get(packageName);
    const open = stored && this.#open(stored);
    let record: EncodableJson | undefined;
    if (open !== undefined && schema === schemas.package) {
      record = this.#packageRecord(open);
    } else if (schema === schemas.channel) {
      const blob = open?.channels.get(name);
      record = blob && toRecord({ kind: 'channel', blob });
    } else {
      const converted = open && this.#bundle(open, name, { isChecked: true });
      record = converted && toRecord({ kind: 'bundle', blob: converted.blob });
    }
    if (record === undefined) throw this.#changed();
    return record as JsonObject;
  }

  async readText(origin: BlobOrigin): Promise<Buffer> {
    return Buffer.from(encodeGoJson(await this.read(origin), { indent: jsonIndent }));
  }

  storedImages(): Iterable<CatalogImage> {
    this.#checkState();
    return this.#queries.bundleImages();
  }

  storedMembers(): Iterable<{ package: string; channel: string; bundle: string }> {
    this.#checkState();
    return this.#queries.channelMembers();
  }

  /** Rows have no lines. */
  lineOf(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  #checkState(): void {
    if (readState(this.#database) !== this.#state) throw this.#changed();
  }

  #changed(): OpmateError {
    return this.#fault('IO', 'changed by another process while reading', 'run the command again');
  }
}
