import { readdir, utimes } from 'node:fs/promises';
import path from 'node:path';
import {
  type ListedPublication,
  type PublishedCatalog,
  blobsDirectory,
  catalogIndexName,
  catalogListName,
  catalogPath,
  catalogsDirectory,
  iconPath,
  linesPath,
  maxPublishedIndexBytes,
  parseCatalogList,
  parsePublishedCatalog,
} from '../../catalog/published/published-index.js';
import { inContext } from '../../core/diagnostics-error.js';
import { OpmateError } from '../../core/errors.js';
import { lstatIfPresent, readdirIfPresent } from '../../files/file-status.js';
import { removeEmptyDirectories } from '../../files/make-directory.js';
import { removeWhole } from '../../files/move-whole.js';
import { readRegularFile } from '../../files/read-file.js';
import { findCatalogNameFault } from '../http/catalog-names.js';
import { codingExtensions } from './file-store.js';

/** Throws OpmateError INVALID for a directory without a list of published catalogs. */
export async function requirePublished(directory: string): Promise<void> {
  const file = path.join(directory, catalogListName);
  if ((await lstatIfPresent(file)) === undefined) {
    throw new OpmateError('INVALID', 'neither empty nor a published directory', {
      subject: directory,
      hint: `specify an empty directory, or one with ${catalogListName}`,
    });
  }
  parseCatalogList(await readRegularFile(file, maxPublishedIndexBytes), file);
}

/** Reads the indexes of all catalogs but one. Throws OpmateError for an unreadable index. */
export async function readOtherCatalogs(root: string, name: string): Promise<PublishedCatalog[]> {
  const others: PublishedCatalog[] = [];
  for (const other of await readdirIfPresent(path.join(root, catalogsDirectory))) {
    if (other === name || findCatalogNameFault(other) !== undefined) continue;
    const catalog = await readCatalogIndex(root, other);
    if (catalog !== undefined) others.push(catalog);
  }
  return others;
}

async function readCatalogIndex(root: string, name: string): Promise<PublishedCatalog | undefined> {
  const file = path.join(root, catalogPath(name, catalogIndexName));
  if ((await lstatIfPresent(file)) === undefined) return undefined;
  return inContext({ newHint: `publish ${name} again, or remove ${path.dirname(file)}` }, async () => {
    const catalog = parsePublishedCatalog(await readRegularFile(file, maxPublishedIndexBytes), file);
    if (catalog.name === name) return catalog;
    throw new OpmateError('INVALID', `expected the index of ${name}, got ${catalog.name}`, { subject: file });
  });
}

/** Converts a catalog to its entry in the list. */
export function toListed({ name, hash, size, count, packages }: PublishedCatalog): ListedPublication {
  return { name, hash, size, count, packages: packages.length };
}

/** Dates files that become unreferenced: readers may need them until pruning. */
export async function touchReplaced(root: string, catalog: PublishedCatalog, now: Date): Promise<void> {
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

/** Returns the files by digest that a catalog refers to, without compressed forms. */
function getFiles(catalog: PublishedCatalog): Set<string> {
  const files = new Set([linesPath(catalog)]);
  for (const publishedPackage of catalog.packages) {
    files.add(linesPath(publishedPackage));
    if (publishedPackage.icon !== undefined) files.add(iconPath(publishedPackage.icon));
  }
  return files;
}

/** Removes files by digest that have been unreferenced for `ageMs`. Returns their number. */
export async function pruneFiles(root: string, ageMs: number, now: Date): Promise<number> {
  const used = new Set<string>();
  for (const catalog of await readOtherCatalogs(root, ''))
    for (const file of getFiles(catalog)) used.add(file);
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
