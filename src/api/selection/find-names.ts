import { stat } from 'node:fs/promises';
import path from 'node:path';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import { listCatalogFiles } from '../../catalog/walk.js';
import { type CancelOptions, withOpen } from '../../core/concurrency.js';
import { sortedByBytes } from '../../core/order.js';
import { schemas } from '../../model/declarative-config.js';

/** Names to find in a catalog. */
export interface NameSearch extends CancelOptions {
  /** Packages, or channels of packages. */
  kind: 'package' | 'channel';
  /** Packages of the channels; all if empty. */
  packages: readonly string[];
  /** Called with each name, in no order, some more than once. */
  onName(this: void, name: string): void;
}

/**
 * Finds the names of a catalog as fast as its form allows: of a directory, a database, or the URL of a served catalog.
 * Returns false for anything else, such as images. Throws for a catalog that cannot be read.
 */
export async function findNames(
  reference: string,
  search: NameSearch,
  { workingDirectory }: { workingDirectory: string },
): Promise<boolean> {
  if (/^https?:\/\//.test(reference)) {
    await addServed(reference, search);
    return true;
  }
  const place = path.resolve(workingDirectory, reference);
  const status = await stat(place).catch(() => undefined);
  if (status?.isDirectory() === true) await addFromDirectory(place, search);
  else if (status?.isFile() === true) await addFromDatabase(place, search);
  else return false;
  return true;
}

function isWanted({ packages }: NameSearch, packageName: string): boolean {
  return packages.length === 0 || packages.includes(packageName);
}

async function addServed(url: string, search: NameSearch): Promise<void> {
  const { kind, onName, signal } = search;
  const { HttpCatalogClient } = await import('../../client/http-catalog-client.js');
  await withOpen(new HttpCatalogClient(url.replace(/\/+$/, ''), { maxAttempts: 1 }), async (client) => {
    if (kind === 'package') (await client.listPackages({ signal })).forEach(onName);
    else {
      for await (const blob of client.metas({ schema: schemas.channel }, { signal })) {
        if (blob.kind === 'channel' && isWanted(search, blob.blob.package)) onName(blob.blob.name);
      }
    }
  });
}

async function addFromDatabase(file: string, search: NameSearch): Promise<void> {
  const { kind, onName } = search;
  const { openDatabase } = await import('../../sqlite/schema/database.js');
  const { IndexQueries } = await import('../../sqlite/read/queries.js');
  await withOpen(openDatabase(file, { access: 'read' }), (database) => {
    for (const { name, channels } of new IndexQueries(database).packages()) {
      if (kind === 'package') onName(name);
      else if (isWanted(search, name)) channels.forEach((channel) => onName(channel.name));
    }
  });
}

/**
 * Adds names from a catalog directory. With a directory per package, it reads only the start of each package, or one
 * package.
 */
async function addFromDirectory(root: string, search: NameSearch): Promise<void> {
  const { kind, packages, onName, signal } = search;
  const files = await listCatalogFiles(root, '');
  const tops = new Set(files.map(({ label }) => label.split('/')));
  const folders = sortedByBytes(new Set([...tops].map(([first]) => first as string)));
  const isFlat = [...tops].some((parts) => parts.length === 1);
  const ofPackages = packages.filter((name) => folders.includes(name));
  let from = folders;
  if (isFlat) from = ['.'];
  else if (kind === 'channel' && ofPackages.length > 0) from = ofPackages;
  for (const folder of from) {
    const catalog = new DirectoryCatalog(path.join(root, folder));
    const options = { signal, withoutManifests: true, onFault: () => undefined };
    for await (const meta of catalog.metas(options)) {
      if (kind === 'package' && meta.schema === schemas.package) {
        onName(meta.name);
        if (meta.name === folder) break;
      }
      if (kind === 'channel' && meta.schema === schemas.channel && isWanted(search, meta.package)) {
        onName(meta.name);
      }
    }
  }
}
