import { type FlagValues, text } from '../command/flags.js';
import path from 'node:path';
import {
  catalogListName,
  maxPublishedIndexBytes,
  parseCatalogList,
  publishedKind,
} from '../../catalog/published/published-index.js';
import { readdirIfPresent, statIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { addContext } from '../../core/diagnostics-error.js';
import { OpmateError, UsageError, fileError } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getText, getValue } from '../../document/json-fields.js';
import { CatalogRecords, readServerUrl } from '../../serve/catalogs/catalog-records.js';
import { catalogStatus } from '../../serve/catalogs/catalog-status.js';
import { checkUrl, requestPlace } from '../../source/drivers/http-request.js';
import { formatUrl } from '../../source/place.js';
import { readLimited } from '../../oci/image/read-limited.js';
import { readBody } from '../../oci/transport/response-body.js';
import type { Session } from '../../source/session.js';
import type { CommandContext } from '../context.js';
import { getStorage, getStorages } from '../serve/catalogs.js';

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
    const directory = getStorage(context, { storage, catalogs: catalogs ?? '' });
    if ((await statIfPresent(directory)) === undefined) throw serverNotFound(directory);
    return directory;
  }
  const root = getStorages(context);
  const names = await readdirIfPresent(root);
  const [only, ...more] = names.filter((name) => /^[0-9a-f]{16}$/.test(name));
  if (only !== undefined && more.length === 0) return path.join(root, only);
  if (only === undefined) throw serverNotFound(root);
  throw new UsageError(`${root}: storage of several catalog servers`, {
    hint: 'select one with --catalogs, --storage or --url',
  });
}

function serverNotFound(directory: string): OpmateError {
  return new OpmateError('NOT_FOUND', `${directory}: no catalog server found`, {
    hint: 'start opmate serve --catalogs DIR, or set --storage or --url',
  });
}

export async function readStatuses(
  context: CommandContext,
  options: ServerChoice & { externalUrl?: string | undefined },
  session: Session,
): Promise<JsonObject[]> {
  const { published } = options;
  checkChoice(options);
  if (options.url !== undefined) return statusesOfServer(options.url, session);
  if (published !== undefined) {
    const root = options.externalUrl ?? published;
    return (await listingOfDirectory(published)).map((value) =>
      statusOfListed(value, root.replace(/\/+$/, '')),
    );
  }
  const storage = await findStorage(context, options);
  const url = options.externalUrl ?? (await readServerUrl(storage));
  if (url === undefined) throw serverNotFound(storage);
  const records = await new CatalogRecords(storage).list();
  return records.map((record) => catalogStatus(record, url.replace(/\/+$/, '')) as JsonObject);
}

/** Throws UsageError where several servers are named. */
export function checkChoice({ url, storage, published }: ServerChoice): void {
  const named = Object.entries({ '--url': url, '--storage': storage, '--published': published });
  const [first, second] = named.filter(([, value]) => value !== undefined).map(([name]) => name);
  if (first !== undefined && second !== undefined) {
    throw new UsageError(`${first} and ${second} cannot be used together`, { hint: 'keep one of them' });
  }
}

/** What a server tells of its catalogs: of those that it serves at least. */
async function statusesOfServer(url: string, session: Session): Promise<JsonObject[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const statuses = await findStatuses(root, session);
  if (statuses !== undefined) return statuses;
  return (await listing(root, session)).map((value) => statusOfListed(value, root));
}

function statusOfListed(value: JsonObject, root: string): JsonObject {
  const changedAt = getText(value, 'changedAt');
  const lastUnpacked = changedAt === '' ? undefined : `${changedAt.slice(0, 19)}Z`;
  const { base, all } = getUrls(value, root);
  const condition = {
    type: 'Serving',
    status: 'True',
    reason: 'Available',
    message: 'the catalog is served',
  };
  return {
    apiVersion: 'olm.operatorframework.io/v1',
    kind: 'ClusterCatalog',
    metadata: { name: getText(value, 'name'), labels: labelsAt(value) },
    spec: { availabilityMode: 'Available', priority: value['priority'] ?? 0 },
    status: {
      conditions: [{ ...condition, ...(lastUnpacked !== undefined && { lastTransitionTime: lastUnpacked }) }],
      urls: { base },
      contentURL: all,
      contentHash: getText(value, 'hash'),
      ...(lastUnpacked !== undefined && { lastUnpacked }),
    },
  };
}

/** The URLs that a server lists; a published directory lists none, as it does not know where it is served. */
function getUrls(value: JsonObject, root: string): { base: string; all: string } {
  const urls = isJsonObject(value['urls'] ?? null) ? (value['urls'] as JsonObject) : undefined;
  const base = `${root}/catalogs/${getText(value, 'name')}`;
  return urls === undefined
    ? { base, all: `${base}/api/v1/all` }
    : { base: getText(urls, 'base'), all: getText(urls, 'all') };
}

/** The statuses that `serve --catalogs` has; undefined where the server serves without them. */
async function findStatuses(root: string, session: Session): Promise<JsonObject[] | undefined> {
  const url = `${root}/api/v1/catalogs`;
  const text = await readUrl(url, session, true);
  if (text === undefined) return undefined;
  const value = parseJson(text, url);
  const items = getValue(value, 'items');
  const isStatus = (item: JsonValue): item is JsonObject =>
    isJsonObject(item) && isJsonObject(item['metadata'] ?? null) && isJsonObject(item['status'] ?? null);
  return Array.isArray(items) ? items.filter(isStatus) : undefined;
}

/** Returns the catalogs that a server lists, or those of a published directory. Throws OpmateError. */
export async function listing(root: string, session: Session): Promise<JsonObject[]> {
  // Web servers have a page of their own for a directory.
  const published = `${root}/${catalogListName}`;
  const text = await readUrl(published, session, true);
  if (text !== undefined && publishedKind(Buffer.from(text)) === 'list') {
    return parseCatalogList(Buffer.from(text), published).map((publication) => ({ ...publication }));
  }
  const url = `${root}/catalogs`;
  const value = parseJson(await readUrl(url, session), url);
  const catalogs = getValue(value, 'catalogs');
  if (!Array.isArray(catalogs)) {
    throw new OpmateError('INVALID', `${url}: no list of catalogs`, {
      hint: 'specify the server of opmate serve',
    });
  }
  return catalogs.filter((item): item is JsonObject => isJsonObject(item));
}

/** Returns the catalogs of a published directory. Throws OpmateError. */
export async function listingOfDirectory(directory: string): Promise<JsonObject[]> {
  const file = path.join(directory, catalogListName);
  const bytes = await readRegularFile(file, maxPublishedIndexBytes).catch((error: unknown) => {
    throw fileError(file, error, { file });
  });
  return parseCatalogList(bytes, file).map((publication) => ({ ...publication }));
}

function parseJson(text: string, subject: string): JsonValue {
  try {
    return parseGoJson(text);
  } catch (error) {
    throw error instanceof OpmateError ? addContext(error, { subject }) : error;
  }
}

const maxAnswerBytes = 64 * 1024 * 1024;

/**
 * Returns what a server has at a URL; undefined for a 404 where `mayBeAbsent`. Credentials of the auth file are sent
 * over HTTPS only, unless plain HTTP is allowed. Throws OpmateError.
 */
export async function readUrl(url: string, session: Session): Promise<string>;
export async function readUrl(url: string, session: Session, mayBeAbsent: true): Promise<string | undefined>;
export async function readUrl(
  url: string,
  session: Session,
  mayBeAbsent = false,
): Promise<string | undefined> {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw new UsageError(`--url ${url}: not an http or https URL`);
  const network = { ...session.network, allowHttp: true };
  const target = checkUrl({ kind: 'http', url }, network);
  const isAnonymous = target.protocol === 'http:' && !session.network.allowHttp;
  try {
    const { response, close } = await requestPlace({ url: target, isAnonymous }, {}, session);
    try {
      return (await readLimited(readBody(response), maxAnswerBytes, formatUrl(target))).toString();
    } finally {
      response.body.destroy();
      close();
    }
  } catch (error) {
    if (mayBeAbsent && error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

export function getName(status: JsonObject): string {
  return getText(status, 'metadata', 'name');
}

export function findCondition(status: JsonObject, type: string): JsonObject | undefined {
  const conditions = (status['status'] as JsonObject)['conditions'] as JsonObject[];
  return conditions.find((condition) => condition['type'] === type);
}

export function labelsAt(object: JsonObject): Record<string, string> {
  const labels = object['labels'];
  if (!isJsonObject(labels ?? null)) return {};
  return Object.fromEntries(
    Object.entries(labels as JsonObject).filter(([, value]) => typeof value === 'string'),
  ) as Record<string, string>;
}
