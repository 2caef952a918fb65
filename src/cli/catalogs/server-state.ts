import { type FlagValues, text } from '../command/flags.js';
import path from 'node:path';
import {
  catalogListName,
  maxPublishedIndexBytes,
  parseCatalogList,
  publishedKind,
} from '../../catalog/published/published-index.js';
import { readdirIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { OpmateError, UsageError, fileError, messageOf, throwIfCancelled } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { CatalogRecords, readServerUrl } from '../../serve/catalogs/catalog-records.js';
import { catalogStatus } from '../../serve/catalogs/catalog-status.js';
import type { CommandContext } from '../context.js';
import { storageOf, storagesOf } from '../serve/catalogs.js';

/** Flags of the commands that ask a server of catalogs. */
export const serverFlags = {
  catalogs: text('directory', 'manifest directory of the server', { group: 'Server' }),
  storage: text('directory', 'storage directory of the server', { group: 'Server' }),
  published: text('directory', 'directory of catalog publish', { group: 'Server' }),
  url: text('url', 'URL of a server, e.g. http://127.0.0.1:8080, or of a published directory', {
    group: 'Server',
  }),
};

/** The server that is meant. */
export type ServerChoice = FlagValues<typeof serverFlags>;

/** Returns the storage directory of the server that is meant; of the only one where none is named. */
export async function findStorage(context: CommandContext, options: ServerChoice): Promise<string> {
  const { storage, catalogs } = options;
  if (storage !== undefined || catalogs !== undefined) {
    return storageOf(context, { storage, catalogs: catalogs ?? '' });
  }
  const root = storagesOf(context);
  const names = await readdirIfPresent(root);
  const [only, ...more] = names.filter((name) => /^[0-9a-f]{16}$/.test(name));
  if (only !== undefined && more.length === 0) return path.join(root, only);
  if (only === undefined) {
    throw new OpmateError('NOT_FOUND', `${root}: no server keeps catalogs here`, {
      hint: 'start opmate serve --catalogs DIR, or name its --storage or --url',
    });
  }
  throw new UsageError('there have been several servers of catalogs here', {
    hint: 'say which one with --catalogs, --storage or --url',
  });
}

export async function readStatuses(
  context: CommandContext,
  options: ServerChoice & { externalUrl?: string | undefined },
): Promise<JsonObject[]> {
  const { published } = options;
  checkChoice(options);
  if (options.url !== undefined) return statusesOfServer(context, options.url);
  if (published !== undefined) {
    const root = options.externalUrl ?? published;
    return (await listingOfDirectory(published)).map((one) => statusOfListed(one, root.replace(/\/+$/, '')));
  }
  const storage = await findStorage(context, options);
  const url = options.externalUrl ?? (await readServerUrl(storage));
  if (url === undefined) {
    throw new OpmateError('NOT_FOUND', `${storage}: no server keeps catalogs here`, {
      hint: 'start opmate serve --catalogs DIR, or name its --storage or --url',
    });
  }
  const records = await new CatalogRecords(storage).list();
  return records.map((record) => catalogStatus(record, url.replace(/\/+$/, '')) as JsonObject);
}

/** Throws UsageError where several servers are named. */
export function checkChoice({ url, storage, published }: ServerChoice): void {
  const named = Object.entries({ '--url': url, '--storage': storage, '--published': published });
  const [first, second] = named.filter(([, value]) => value !== undefined).map(([name]) => name);
  if (first !== undefined && second !== undefined) {
    throw new UsageError(`${first} and ${second} exclude each other`);
  }
}

/** What a server tells of its catalogs: of those that it serves at least. */
async function statusesOfServer(context: CommandContext, url: string): Promise<JsonObject[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const statuses = await statusesOf(context, root);
  if (statuses !== undefined) return statuses;
  return (await listing(context, root)).map((one) => statusOfListed(one, root));
}

function statusOfListed(one: JsonObject, root: string): JsonObject {
  const changedAt = textAt(one, 'changedAt');
  const lastUnpacked = changedAt === '' ? undefined : `${changedAt.slice(0, 19)}Z`;
  const { base, all } = urlsOf(one, root);
  const condition = {
    type: 'Serving',
    status: 'True',
    reason: 'Available',
    message: 'the catalog is served',
  };
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name: textAt(one, 'name'), labels: labelsAt(one) },
    spec: { availabilityMode: 'Available', priority: one['priority'] ?? 0 },
    status: {
      conditions: [{ ...condition, ...(lastUnpacked !== undefined && { lastTransitionTime: lastUnpacked }) }],
      urls: { base },
      contentURL: all,
      contentHash: textAt(one, 'hash'),
      ...(lastUnpacked !== undefined && { lastUnpacked }),
    },
  };
}

/** The URLs that a server lists; a published directory lists none, as it does not know where it is served. */
function urlsOf(one: JsonObject, root: string): { base: string; all: string } {
  const urls = isJsonObject(one['urls'] ?? null) ? (one['urls'] as JsonObject) : undefined;
  const base = `${root}/catalogs/${textAt(one, 'name')}`;
  return urls === undefined
    ? { base, all: `${base}/api/v1/all` }
    : { base: textAt(urls, 'base'), all: textAt(urls, 'all') };
}

/** The statuses that `serve --catalogs` has; undefined where the server serves without them. */
async function statusesOf(context: CommandContext, root: string): Promise<JsonObject[] | undefined> {
  const url = `${root}/api/v1/catalogs`;
  const text = await fetchText(context, url, true);
  if (text === undefined) return undefined;
  const value = parseJson(text, url);
  const items = isJsonObject(value) ? value['items'] : undefined;
  const isStatus = (one: JsonValue): one is JsonObject =>
    isJsonObject(one) && isJsonObject(one['metadata'] ?? null) && isJsonObject(one['status'] ?? null);
  return Array.isArray(items) ? items.filter(isStatus) : undefined;
}

/** Returns the catalogs that a server lists, or those of a published directory. Throws OpmateError. */
export async function listing(context: CommandContext, root: string): Promise<JsonObject[]> {
  // Web servers have a page of their own for a directory.
  const published = `${root}/${catalogListName}`;
  const text = await fetchText(context, published, true);
  if (text !== undefined && publishedKind(Buffer.from(text)) === 'list') {
    return parseCatalogList(Buffer.from(text), published).map((one) => ({ ...one }));
  }
  const url = `${root}/catalogs`;
  const value = parseJson(await fetchText(context, url), url);
  const catalogs = isJsonObject(value) ? value['catalogs'] : undefined;
  if (!Array.isArray(catalogs)) {
    throw new OpmateError('INVALID', `${url}: no list of catalogs`, {
      hint: 'name the server of opmate serve',
    });
  }
  return catalogs.filter((one): one is JsonObject => isJsonObject(one));
}

/** Returns the catalogs of a published directory. Throws OpmateError. */
export async function listingOfDirectory(directory: string): Promise<JsonObject[]> {
  const file = path.join(directory, catalogListName);
  const bytes = await readRegularFile(file, maxPublishedIndexBytes).catch((error: unknown) => {
    throw fileError(file, error, { file });
  });
  return parseCatalogList(bytes, file).map((one) => ({ ...one }));
}

function parseJson(text: string, subject: string): JsonValue {
  try {
    return parseGoJson(text);
  } catch (error) {
    throw new OpmateError('SYNTAX', `${subject}: ${messageOf(error)}`, { cause: error });
  }
}

const maxAnswerBytes = 64 * 1024 * 1024;

export async function fetchText(context: CommandContext, url: string): Promise<string>;
export async function fetchText(
  context: CommandContext,
  url: string,
  mayBeAbsent: true,
): Promise<string | undefined>;
export async function fetchText(
  context: CommandContext,
  url: string,
  mayBeAbsent = false,
): Promise<string | undefined> {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new UsageError(`--url ${url}: not an http or https URL`);
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(30_000)]);
  try {
    const answer = await fetch(url, { signal });
    if (answer.status === 404 && mayBeAbsent) return undefined;
    if (!answer.ok) throw new OpmateError('NETWORK', `${url}: the server answered ${answer.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += (chunk as Uint8Array).length;
      if (size > maxAnswerBytes)
        throw new OpmateError('LIMIT', `${url}: answers more than ${maxAnswerBytes} bytes`);
      chunks.push(chunk as Uint8Array);
    }
    return Buffer.concat(chunks).toString();
  } catch (error) {
    throwIfCancelled(context.signal);
    if (error instanceof OpmateError) throw error;
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
    throw new OpmateError('NETWORK', `${url}: ${messageOf(cause)}`, { cause: error });
  }
}

export function nameOf(status: JsonObject): string {
  return textAt(status['metadata'] as JsonObject, 'name');
}

export function conditionOf(status: JsonObject, type: string): JsonObject | undefined {
  const conditions = (status['status'] as JsonObject)['conditions'] as JsonObject[];
  return conditions.find((condition) => condition['type'] === type);
}

export function textAt(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

export function labelsAt(object: JsonObject): Record<string, string> {
  const labels = object['labels'];
  if (!isJsonObject(labels ?? null)) return {};
  return Object.fromEntries(
    Object.entries(labels as JsonObject).filter(([, value]) => typeof value === 'string'),
  ) as Record<string, string>;
}
