import path from 'node:path';
import {
  catalogListName,
  maxPublishedIndexBytes,
  parseCatalogList,
  publishedKind,
} from '../../catalog/published/published-index.js';
import { inContext } from '../../core/diagnostics-error.js';
import { invalidValue, OpmateError, throwFileError } from '../../core/errors.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getObject, getObjects, getText, getValue } from '../../document/json-fields.js';
import { readRegularFile } from '../../files/read-file.js';
import { readLimited } from '../../oci/image/read-limited.js';
import { CatalogRecords, readServerUrl } from '../../serve/catalogs/catalog-records.js';
import { createCatalogStatus, served as servedCondition } from '../../serve/catalogs/catalog-status.js';
import { checkUrl, readHttpPlace } from '../../source/drivers/http-request.js';
import { formatUrl } from '../../source/place.js';
import type { Session } from '../../source/session.js';

/** Catalogs that are served, by the URL of the server, the storage of one on this machine, or a published directory. */
export type ServedCatalogs =
  | { url: string }
  /** `externalUrl` is the base URL of the catalogs; default as the server was started, of a directory its path. */
  | { storage: string; externalUrl?: string | undefined }
  | { published: string; externalUrl?: string | undefined };

/**
 * Reads the status of served catalogs, each as a ClusterCatalog object. Throws OpmateError NOT_FOUND where the storage
 * belongs to no server, and for a server that is unavailable.
 */
export async function readCatalogStatuses(served: ServedCatalogs, session: Session): Promise<JsonObject[]> {
  if ('url' in served) return statusesOfServer(served.url, session);
  const { externalUrl } = served;
  if ('published' in served) {
    const root = externalUrl ?? served.published;
    return (await listingOfDirectory(served.published)).map((value) =>
      statusOfListed(value, root.replace(/\/+$/, '')),
    );
  }
  const url = externalUrl ?? (await readServerUrl(served.storage));
  if (url === undefined) throw serverNotFound(served.storage);
  const records = await new CatalogRecords(served.storage).list();
  const root = url.replace(/\/+$/, '');
  return records.map((record) => createCatalogStatus(record, `${root}/catalogs/${record.name}`));
}

/** Returns the error for a directory that is no storage of a server. */
export function serverNotFound(directory: string): OpmateError {
  return new OpmateError('NOT_FOUND', `${directory}: no catalog server found`, {
    hint: 'start api.serveCatalogs DIR, or set options.storage or options.url',
  });
}

/** Reads the statuses of a server's catalogs, or of those that it lists. */
async function statusesOfServer(url: string, session: Session): Promise<JsonObject[]> {
  const root = url.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const statuses = await findStatuses(root, session);
  if (statuses !== undefined) return statuses;
  return (await listing(root, session)).map((value) => statusOfListed(value, root));
}

function statusOfListed(value: JsonObject, root: string): JsonObject {
  const name = getText(value, 'name');
  const changedAt = getText(value, 'changedAt');
  const lastUnpacked = changedAt === '' ? undefined : `${changedAt.slice(0, 19)}Z`;
  const record = {
    name,
    labels: labelsAt(value),
    priority: priorityAt(value),
    isAvailable: true,
    sourceType: '',
    contentHash: getText(value, 'hash'),
    lastUnpacked,
    conditions: [
      { ...servedCondition, ...(lastUnpacked !== undefined && { lastTransitionTime: lastUnpacked }) },
    ],
  };
  // A published directory lists no URLs.
  return createCatalogStatus(record, getText(value, 'urls', 'base') || `${root}/catalogs/${name}`);
}

/** Returns the statuses of `serve --catalogs`; undefined for another server. */
async function findStatuses(root: string, session: Session): Promise<JsonObject[] | undefined> {
  const url = `${root}/api/v1/catalogs`;
  const text = await readCatalogUrl(url, session, true);
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
  const text = await readCatalogUrl(published, session, true);
  if (text !== undefined && publishedKind(Buffer.from(text)) === 'list') {
    return parseCatalogList(Buffer.from(text), published).map((publication) => ({ ...publication }));
  }
  const url = `${root}/catalogs`;
  const value = parseJson(await readCatalogUrl(url, session), url);
  const catalogs = getValue(value, 'catalogs');
  if (!Array.isArray(catalogs)) {
    throw new OpmateError('INVALID', `${url}: not a list of catalogs`, {
      hint: 'specify the URL of a catalog server',
    });
  }
  return catalogs.filter((item): item is JsonObject => isJsonObject(item));
}

/** Returns the catalogs of a published directory. Throws OpmateError. */
export async function listingOfDirectory(directory: string): Promise<JsonObject[]> {
  const file = path.join(directory, catalogListName);
  const bytes = await readRegularFile(file, maxPublishedIndexBytes).catch(throwFileError(file, { file }));
  return parseCatalogList(bytes, file).map((publication) => ({ ...publication }));
}

function parseJson(text: string, subject: string): JsonValue {
  return inContext({ subject }, () => parseGoJson(text));
}

const maxResponseBytes = 64 * 1024 * 1024;

/**
 * Returns what a server has at a URL; undefined for a 404 where `mayBeAbsent`. Credentials of the auth file are sent
 * over HTTPS only, unless plain HTTP is allowed. Throws OpmateError.
 */
export async function readCatalogUrl(url: string, session: Session): Promise<string>;
export async function readCatalogUrl(
  url: string,
  session: Session,
  mayBeAbsent: true,
): Promise<string | undefined>;
export async function readCatalogUrl(
  url: string,
  session: Session,
  mayBeAbsent = false,
): Promise<string | undefined> {
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw invalidValue('options.url', url, 'not an http or https URL');
  const network = { ...session.network, allowHttp: true };
  const target = checkUrl({ kind: 'http', url }, network);
  const isAnonymous = target.protocol === 'http:' && !session.network.allowHttp;
  try {
    const bytes = await readHttpPlace({ url: target, isAnonymous }, session, ({ body }) =>
      readLimited(body, maxResponseBytes, formatUrl(target)),
    );
    return bytes.toString();
  } catch (error) {
    if (mayBeAbsent && error instanceof OpmateError && error.code === 'NOT_FOUND') return undefined;
    throw error;
  }
}

export function findCondition(status: JsonObject, type: string): JsonObject | undefined {
  return getObjects(status, 'status', 'conditions').find((condition) => condition['type'] === type);
}

export function priorityAt({ priority }: JsonObject): number {
  return typeof priority === 'number' ? priority : 0;
}

export function labelsAt(object: JsonObject): Record<string, string> {
  const labels = Object.entries(getObject(object, 'labels'));
  return Object.fromEntries(
    labels.filter((label): label is [string, string] => typeof label[1] === 'string'),
  );
}
