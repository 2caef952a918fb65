import { isUtf8 } from 'node:buffer';
import { propertyFields } from '../../bundle/parse.js';
import { OpmateError, getMessage } from '../../core/errors.js';
import { decodeUtf8, parseGoJson, quoteGo } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { groupBy } from '../../core/groups.js';
import { compareBytes } from '../../core/order.js';
import { type ApiKey, isCsv } from '../../model/csv.js';
import { propertyTypes } from '../../model/declarative-config.js';
import { type TypedValue, withoutRepeats } from '../schema/bundle-record.js';
import { splitObjects } from './convert-package.js';
import { type ReadOptions, type ReadSession, openForReading } from '../schema/edit.js';
import type { Database } from '../schema/database.js';
import { LookupTables } from './lookup-tables.js';
import {
  type StoredBundle,
  type StoredMember,
  type StoredPackage,
  type StoredValue,
  IndexQueries,
  readState,
  toBytes,
} from './queries.js';
import { refuseBytesAsNames } from '../schema/schema.js';

/** Served content of a bundle in any channel. */
export interface ServedBundle extends Omit<StoredBundle, 'id' | 'images' | 'version'> {
  version: string;
  /** The plural is empty if unknown to the index. */
  providedApis: ApiKey[];
  requiredApis: ApiKey[];
  /** Manifests as stored, in JSON; none if the index has none. */
  objects: Buffer[];
  /** First ClusterServiceVersion among them; empty if missing. */
  csv: Buffer;
}

/** A bundle in a channel with a replaced one; `replaces` is empty if missing. */
export interface ServedEntry {
  package: string;
  channel: string;
  bundle: string;
  replaces: string;
}

/** An entry with its distance from the head of its channel; infinite if not stored. */
export interface ProvidingEntry extends ServedEntry {
  depth: number;
}

/** Number of bundles of a package read together. */
const batchSize = 64;
/** Maximum wait for a commit of another process, which blocks all responses. */
const lockTimeoutMs = 500;
/** Lookups that responses need. */
const servedLookups = [
  'entriesOfPackage',
  'entriesOfBundle',
  'entriesByReplaced',
  'properties',
  'dependencies',
] as const;
/** Maximum number of cached APIs. */
const maxKnownApis = 10_000;

/** Content read from one state of the file. */
interface Content {
  state: number;
  queries: IndexQueries;
  packages: ReadonlyMap<string, StoredPackage>;
  /** Position of the CSV among the objects of bundles whose manifests are known to be JSON, by row; -1 for none. */
  csvPlaces: Map<number, number>;
}

/**
 * Opens an index for the registry API, served bundle by bundle. The file is never changed here, but may be changed by
 * others, whose commits take effect immediately. Each response is consistent; bundles are found by name, like all rows
 * of an index. Throws OpmateError, see `openForReading`; INVALID for names that are not text. All functions throw
 * OpmateError that starts with the name of the database.
 */
export async function openServedIndex(
  file: string,
  session: ReadSession,
  { name: label, timeoutMs = lockTimeoutMs }: ReadOptions = {},
): Promise<ServedIndex> {
  const opened = await openForReading(file, session, { name: label, timeoutMs });
  const index = new ServedIndex(opened.database, () => opened.close());
  try {
    index.prepare();
  } catch (error) {
    await index.close();
    throw error;
  }
  return index;
}

/** An open index: its tables for lookups and what was read of its current state. */
export class ServedIndex {
  readonly #database: Database;
  readonly #lookups: LookupTables;
  readonly close: () => Promise<void>;
  readonly #apis = new Map<string, ApiKey | undefined>();
  #content: Content | undefined;

  constructor(database: Database, close: () => Promise<void>) {
    this.#database = database;
    this.#lookups = new LookupTables(database);
    this.close = close;
  }

  /** Runs `work` on a consistent state of the file. */
  #read<T>(work: (content: Content) => T): T {
    this.#database.execute('BEGIN');
    try {
      // Reading takes the lock; BEGIN alone does not.
      this.#database.get('SELECT 1 FROM sqlite_master');
      const result = work(this.#refresh());
      this.#database.execute('COMMIT');
      return result;
    } catch (error) {
      // Damage may have ended it; other failures recur with the next transaction.
      try {
        if (this.#database.inTransaction) this.#database.execute('ROLLBACK');
      } catch {
        throw error;
      }
      throw error;
    }
  }

  #refresh(): Content {
    const state = readState(this.#database);
    if (this.#content?.state === state) return this.#content;
    this.#content = undefined;
    this.#lookups.clear();
    refuseBytesAsNames(this.#database);
    this.#lookups.check('operatorbundle', 'api');
    for (const lookup of servedLookups) this.#lookups.table(lookup);
    this.#lookups.providedApis();
    const queries = new IndexQueries(this.#database, this.#lookups);
    // Packages are few.
    const stored = queries.packages().filter(({ name }) => name !== '');
    const packages = new Map(stored.map((item) => [item.name, item]));
    return (this.#content = { state, queries, packages, csvPlaces: new Map() });
  }

  /** Returns the bundle of a package whose row a query finds, with its manifests. */
  #findRow(packageName: string, getQuery: () => string, ...names: string[]): ServedBundle | undefined {
    return this.#read((current) => {
      const id = this.#database.get<{ id: number }>(getQuery(), ...names)?.id;
      const bundle = id === undefined ? undefined : this.#readBundles(current, [id], true).get(id);
      return id === undefined || bundle === undefined
        ? undefined
        : { ...bundle, ...this.#split(current, id, packageName, bundle.name, bundle.manifests) };
    });
  }

  /**
   * Returns bundles by row, in this order. A single bundle has its manifests, plurals, unique required APIs, and
   * properties and dependencies of its own version and image only; a list has not, as in opm.
   */
  #readBundles(
    { queries }: Content,
    ids: readonly number[],
    isWhole: boolean,
  ): Map<number, ServedBundle & { manifests: Buffer }> {
    const bundles = new Map<number, ServedBundle & { manifests: Buffer }>();
    for (const [id, { objects: manifests, ...stored }] of queries.bundleRows(ids, isWhole)) {
      const { name, version, skipRange, image } = stored;
      const own = (values: readonly StoredValue[]): TypedValue[] =>
        withoutRepeats(
          values.filter(({ isOwn }) => isOwn || !isWhole).map(({ type, value }) => ({ type, value })),
        );
      const dependencies = withoutRepeats(stored.dependencies);
      bundles.set(id, {
        name,
        skipRange,
        image,
        manifests,
        dependencies: own(stored.dependencies),
        version: version ?? '',
        providedApis: this.#getApis(stored.properties, isWhole),
        requiredApis: this.#getApis(isWhole ? dependencies : stored.dependencies, isWhole),
        properties: own(stored.properties),
        objects: [],
        csv: Buffer.alloc(0),
      });
    }
    return bundles;
  }

  #getApis(values: readonly TypedValue[], withPlurals: boolean): ApiKey[] {
    const apis: ApiKey[] = [];
    for (const { type, value } of values) {
      const api = type === propertyTypes.gvk ? this.#getApi(value) : undefined;
      if (api !== undefined) apis.push(withPlurals ? { ...api, plural: this.#getPlural(api) } : api);
    }
    return apis;
  }

  #getApi(value: string): ApiKey | undefined {
    if (this.#apis.has(value)) return this.#apis.get(value);
    const api = parseApi(value);
    if (this.#apis.size >= maxKnownApis) this.#apis.clear();
    this.#apis.set(value, api);
    return api;
  }

  #getPlural({ group, version, kind }: ApiKey): string {
    const sql = 'SELECT plural FROM api WHERE group_name = ? AND version = ? AND kind = ?';
    return this.#database.texts(sql, group, version, kind)[0] ?? '';
  }

  #split(
    { csvPlaces }: Content,
    id: number,
    packageName: string,
    name: string,
    manifests: Buffer,
  ): Pick<ServedBundle, 'objects' | 'csv'> {
    const objects = splitObjects(manifests);
    let place = csvPlaces.get(id);
    if (place === undefined) {
      try {
        place = objects.map(parseObject).findIndex(isCsv);
      } catch (error) {
        const subject = `package ${quoteGo(packageName)}, bundle ${quoteGo(name)}`;
        const message = `${this.#database.name}: ${subject}: its manifests are not JSON: ${getMessage(error)}`;
        throw new OpmateError('INVALID', message, {
          file: this.#database.name,
          hint: 'add the bundle again: it is stored incompletely',
          cause: error,
        });
      }
      csvPlaces.set(id, place);
    }
    const texts = objects.map(toUtf8);
    return { objects: texts, csv: texts[place] ?? Buffer.alloc(0) };
  }

  /** Reads the first state. */
  prepare(): void {
    try {
      this.#read(() => undefined);
    } catch (error) {
      if (!(error instanceof OpmateError) || error.code !== 'IO') throw error;
      // For systems without temporary files, such as a container with a read-only file system.
      this.#lookups.clear();
      this.#database.execute('PRAGMA temp_store = MEMORY');
      this.#read(() => undefined);
    }
  }

  /** Returns the names of the packages, sorted. */
  packageNames(): string[] {
    return this.#read(({ packages }) => [...packages.keys()]);
  }

  findPackage(name: string): StoredPackage | undefined {
    return this.#read(({ packages }) => packages.get(name));
  }

  /** Returns the head of a channel with its stored CSV; undefined if the bundle is missing. */
  findHead(packageName: string, channelName: string): { name: string; csv: Buffer } | undefined {
    return this.#read(({ packages, queries }) => {
      const channel = packages.get(packageName)?.channels.find(({ name }) => name === channelName);
      const id = channel && queries.findBundle(channel.head);
      if (channel === undefined || id === undefined) return undefined;
      const row = this.#database.get('SELECT csv FROM operatorbundle WHERE rowid = ?', id);
      return { name: channel.head, csv: toUtf8(toBytes(row?.['csv'] ?? null)) };
    });
  }

  /** Returns a bundle with its manifests; undefined if it is not in the channel. */
  findBundle(packageName: string, channelName: string, name: string): ServedBundle | undefined {
    const getQuery = () =>
      `SELECT operatorbundle.rowid AS id FROM ${this.#lookups.table('entriesOfBundle')} AS own
         CROSS JOIN main.channel_entry ON channel_entry.rowid = own.id
         JOIN main.operatorbundle ON operatorbundle.name = own.owner
         WHERE own.owner = ? AND package_name = ? AND channel_name = ? LIMIT 1`;
    return this.#findRow(packageName, getQuery, name, packageName, channelName);
  }

  /** Returns the bundle that replaces or skips `name` in a channel, the first stored of several. */
  findReplacement(name: string, packageName: string, channelName: string): ServedBundle | undefined {
    const getQuery = () =>
      `SELECT operatorbundle.rowid AS id FROM ${this.#lookups.table('entriesOfBundle')} AS replaced
         CROSS JOIN main.channel_entry AS lower ON lower.rowid = replaced.id
         CROSS JOIN ${this.#lookups.table('entriesByReplaced')} AS own ON own.owner = lower.rowid
         CROSS JOIN main.channel_entry AS upper ON upper.rowid = own.id
         JOIN main.operatorbundle ON operatorbundle.name = upper.operatorbundle_name
         WHERE replaced.owner = ? AND lower.package_name = ? AND lower.channel_name = ?
         ORDER BY upper.entry_id LIMIT 1`;
    return this.#findRow(packageName, getQuery, name, packageName, channelName);
  }

  /** Returns the entries that replace or skip `name`, unique and sorted. */
  listReplacements(name: string): ServedEntry[] {
    return this.#read(() => {
      const rows = this.#database.textRows<keyof ServedEntry>(
        `SELECT DISTINCT upper.package_name AS package, upper.channel_name AS channel,
             upper.operatorbundle_name AS bundle, replaced.owner AS replaces
           FROM ${this.#lookups.table('entriesOfBundle')} AS replaced
           CROSS JOIN ${this.#lookups.table('entriesByReplaced')} AS own ON own.owner = replaced.id
           CROSS JOIN main.channel_entry AS upper ON upper.rowid = own.id
           WHERE replaced.owner = ?`,
        name,
      );
      return rows.sort(compareEntries);
    });
  }

  /** Returns the entries of bundles that provide an API, in stored order. */
  listProviders(group: string, version: string, kind: string): ProvidingEntry[] {
    return this.#read(() => {
      const rows = this.#database.textRows<keyof ProvidingEntry>(
        `SELECT upper.package_name AS package, upper.channel_name AS channel, upper.operatorbundle_name AS bundle,
             lower.operatorbundle_name AS replaces, iif(typeof(upper.depth) IN ('integer', 'real'), upper.depth, 'Infinity')
               AS depth
           FROM ${this.#lookups.providedApis()} AS provided
           CROSS JOIN ${this.#lookups.table('entriesOfBundle')} AS own ON own.owner = provided.owner
           CROSS JOIN main.channel_entry AS upper ON upper.rowid = own.id
           LEFT JOIN main.channel_entry AS lower ON lower.rowid = upper.replaces
           WHERE provided.group_name = ? AND provided.version = ? AND provided.kind = ?
           ORDER BY upper.entry_id`,
        group,
        version,
        kind,
      );
      return rows.map((row) => ({ ...row, depth: Number(row.depth) }));
    });
  }

  /**
   * Yields all bundles in channels by package and name, with their entries; those in a registry without manifests.
   * Throws OpmateError IO if the file has changed meanwhile.
   */
  *listBundles(): Generator<{ bundle: ServedBundle; package: string; places: StoredMember[] }> {
    let first: Content | undefined;
    const names = this.#read((now) => {
      first = now;
      const owners = `SELECT DISTINCT owner FROM ${this.#lookups.table('entriesOfPackage')}`;
      return this.#database.texts(owners).sort(compareBytes);
    });
    const same = <T>(work: (content: Content) => T): T =>
      this.#read((now) => {
        if (now === first) return work(now);
        throw new OpmateError('IO', 'changed by another process while reading', {
          about: this.#database.name,
          hint: 'run the request again',
        });
      });
    for (const name of names) {
      const members = same(({ queries }) => queries.members(name));
      const bundles = groupBy(
        members.sort((a, b) => compareBytes(a.name, b.name)),
        ({ id }) => id,
      );
      const ids = [...bundles.keys()];
      for (let index = 0; index < ids.length; index += batchSize) {
        const read = same((now) => this.#readBundles(now, ids.slice(index, index + batchSize), false));
        for (const [id, bundle] of read) {
          // One at a time, since manifests may be large.
          const manifests = (now: Content): Pick<ServedBundle, 'objects' | 'csv'> =>
            this.#split(now, id, name, bundle.name, now.queries.manifestsAt(id).objects);
          const whole = bundle.image === '' ? { ...bundle, ...same(manifests) } : bundle;
          yield { bundle: whole, package: name, places: bundles.get(id) ?? [] };
        }
      }
    }
  }
}

function parseObject(bytes: Buffer): JsonObject {
  let value: JsonValue;
  try {
    value = JSON.parse(bytes.toString()) as JsonValue;
  } catch {
    // Reports the error without the content.
    value = parseGoJson(decodeUtf8(bytes));
  }
  if (isJsonObject(value)) return value;
  throw new OpmateError('INVALID', 'a value is not an object');
}

function parseApi(value: string): ApiKey | undefined {
  const property = { type: propertyTypes.gvk, text: value };
  try {
    const { group = '', version = '', kind = '' } = propertyFields(property, ['group', 'version', 'kind']);
    return { group, version, kind, plural: '' };
  } catch (error) {
    // An invalid API is an ordinary property.
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

/** Decodes text; protocol buffers require UTF-8. */
function toUtf8(bytes: Buffer): Buffer {
  return isUtf8(bytes) ? bytes : Buffer.from(decodeUtf8(bytes));
}

/** Compares by package, channel, bundle and replaced bundle. */
export function compareEntries(a: ServedEntry, b: ServedEntry): number {
  return (
    compareBytes(a.package, b.package) ||
    compareBytes(a.channel, b.channel) ||
    compareBytes(a.bundle, b.bundle) ||
    compareBytes(a.replaces, b.replaces)
  );
}
