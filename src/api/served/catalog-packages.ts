import path from 'node:path';
import {
  catalogIndexName,
  catalogPath,
  maxPublishedIndexBytes,
  parsePublishedCatalog,
} from '../../catalog/published/published-index.js';
import { OpmateError, throwFileError, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { parseGoJson } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { getText } from '../../document/json-fields.js';
import { parseLabelSelector } from '../../graph/resolve-selector.js';
import { readRegularFile } from '../../files/read-file.js';
import { CatalogRecords, getContentsDirectory } from '../../serve/catalogs/catalog-records.js';
import type { Session } from '../../source/session.js';
import {
  type ServedCatalogs,
  labelsAt,
  listing,
  listingOfDirectory,
  priorityAt,
  readCatalogUrl,
} from './catalog-statuses.js';

/** A package of a served catalog. */
export interface ServedPackage {
  catalog: string;
  name: string;
  /** Labels of the catalog. */
  labels: Readonly<Record<string, string>>;
  /** Priority of the catalog. */
  priority: number;
}

/** Options of `listServedPackages`. */
export interface ServedPackagesOptions {
  /** `PACKAGE` or `CATALOG/PACKAGE`: returns this package of the catalog with the highest priority. Default all packages. */
  package?: string | undefined;
  /** Name of the catalog; default all. */
  catalog?: string | undefined;
  /** Selects catalogs by labels, as `kubectl --selector` does; default all. */
  selector?: string | undefined;
}

/**
 * Lists packages of served catalogs, by catalog and name. Throws OpmateError: NOT_FOUND for a package that no catalog
 * has, INVALID for one that several catalogs of the same priority have, USAGE for an invalid selector.
 */
export async function listServedPackages(
  served: ServedCatalogs,
  session: Session,
  { package: packageName, catalog, selector = '' }: ServedPackagesOptions = {},
): Promise<ServedPackage[]> {
  const isSelected = parseLabelSelector(selector);
  const isQualified = packageName?.includes('/') === true;
  const [plain, qualifier] = isQualified ? packageName.split('/', 2).reverse() : [packageName];
  const selected = (await readPackages(served, session)).filter(
    (item) =>
      (catalog ?? item.catalog) === item.catalog &&
      (qualifier ?? item.catalog) === item.catalog &&
      (plain ?? item.name) === item.name &&
      isSelected(item.labels),
  );
  if (plain === undefined) return selected;
  if (selected.length === 0)
    throw new OpmateError('NOT_FOUND', `${packageName}: no catalog has such a package`);
  const highest = Math.max(...selected.map(({ priority }) => priority));
  const best = selected.filter(({ priority }) => priority === highest);
  if (best.length === 1) return best;
  const places = best.map((item) => `${item.catalog}/${item.name}`).join(', ');
  const problem = `${plain}: several catalogs of the same priority have it: ${places}`;
  throw new OpmateError('INVALID', problem, {
    hint: 'use CATALOG/PACKAGE, or select the catalog with options.catalog or options.selector',
  });
}

function readPackages(served: ServedCatalogs, session: Session): Promise<ServedPackage[]> {
  if ('url' in served) return packagesServed(served.url, session);
  return 'published' in served
    ? packagesOfDirectory(served.published)
    : packagesStored(served.storage, session);
}

async function packagesStored(storage: string, { signal }: Session): Promise<ServedPackage[]> {
  const { openContent } = await import('../../serve/catalogs/content-store.js');
  const listed: ServedPackage[] = [];
  for (const { name, labels, priority, contentHash } of await new CatalogRecords(storage).list()) {
    throwIfCancelled(signal);
    if (contentHash === undefined) continue;
    const content = await openContent(contentHash, { directory: getContentsDirectory(storage) });
    if (content === undefined) continue;
    for (const item of content.packages) listed.push({ catalog: name, name: item, labels, priority });
    await content.close();
  }
  return listed;
}

async function packagesServed(server: string, session: Session): Promise<ServedPackage[]> {
  const root = server.replace(/\/+$/, '').replace(/\/catalogs$/, '');
  const listed: ServedPackage[] = [];
  for (const value of await listing(root, session)) {
    const name = getText(value, 'name');
    const isServed = isJsonObject(value['urls'] ?? null);
    const url = isServed
      ? `${root}/catalogs/${name}/api/v1/metas?schema=olm.package`
      : `${root}/${catalogPath(name, catalogIndexName)}`;
    const text = await readCatalogUrl(url, session);
    listed.push(...toPackages(value, isServed ? namesServed(text) : namesPublished(Buffer.from(text), url)));
  }
  return sorted(listed);
}

function namesServed(text: string): string[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.flatMap((line) => {
    const value = parseGoJson(line);
    return isJsonObject(value) ? [getText(value, 'name')] : [];
  });
}

function namesPublished(bytes: Buffer, place: string): string[] {
  return parsePublishedCatalog(bytes, place).packages.map(({ name }) => name);
}

async function packagesOfDirectory(directory: string): Promise<ServedPackage[]> {
  const listed: ServedPackage[] = [];
  for (const value of await listingOfDirectory(directory)) {
    const file = path.join(directory, catalogPath(getText(value, 'name'), catalogIndexName));
    const bytes = await readRegularFile(file, maxPublishedIndexBytes).catch(throwFileError(file, { file }));
    listed.push(...toPackages(value, namesPublished(bytes, file)));
  }
  return sorted(listed);
}

function toPackages(listed: JsonObject, names: readonly string[]): ServedPackage[] {
  const owner = { catalog: getText(listed, 'name'), labels: labelsAt(listed), priority: priorityAt(listed) };
  return names.map((name) => ({ ...owner, name }));
}

function sorted(listed: readonly ServedPackage[]): ServedPackage[] {
  return [...listed].sort((a, b) => compareBytes(a.catalog, b.catalog) || compareBytes(a.name, b.name));
}
