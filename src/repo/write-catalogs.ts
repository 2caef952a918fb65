import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { changeDirectory } from '../files/change-directory.js';
import { readdirIfPresent } from '../files/file-status.js';
import type { OperatorCatalog } from './render-catalogs.js';
import { type Repository, isFile, pathIn } from './repository.js';

/** State of a catalog of an operator compared with the repository. */
export interface CatalogState {
  operator: string;
  catalog: string;
  /** Directory relative to the repository. */
  directory: string;
  state: 'unchanged' | 'created' | 'changed' | 'removed';
}

/** Name of the catalog file that is written. */
const catalogFile = 'catalog.yaml';

/** Compares rendered catalogs with the repository; further files beside `catalog.yaml` are a change. */
export async function compareCatalogs(
  repository: Repository,
  catalogs: readonly OperatorCatalog[],
): Promise<CatalogState[]> {
  const states: CatalogState[] = [];
  for (const { operator, catalog, rendered } of catalogs) {
    const directory = path.join('catalogs', catalog, operator);
    const names = await readdirIfPresent(pathIn(repository, directory));
    const isSame =
      rendered !== undefined &&
      names.length === 1 &&
      names[0] === catalogFile &&
      (await hashIfFile(pathIn(repository, directory, catalogFile))) === rendered.sha256;
    const changed = names.length === 0 ? 'created' : 'changed';
    const state = rendered === undefined ? 'removed' : isSame ? 'unchanged' : changed;
    states.push({ operator, catalog, directory, state });
  }
  return states;
}

/** Writes rendered catalogs that differ, all or none; directories of other catalogs are left unchanged. */
export async function writeCatalogs(
  repository: Repository,
  catalogs: readonly OperatorCatalog[],
  states: readonly CatalogState[],
): Promise<void> {
  const root = pathIn(repository, 'catalogs');
  if (states.every(({ state }) => state === 'unchanged')) return;
  await changeDirectory(root, { beside: true, subject: root }, async (change) => {
    for (const [index, { catalog, operator, rendered }] of catalogs.entries()) {
      if (states[index]?.state === 'unchanged') continue;
      const place = path.join(catalog, operator);
      if (rendered === undefined) {
        change.remove(place);
        continue;
      }
      const staged = path.join(change.staging, String(index));
      await mkdir(staged);
      await copyFile(rendered.file, path.join(staged, catalogFile));
      change.put(staged, place);
    }
  });
}

async function hashIfFile(file: string): Promise<string | undefined> {
  if (!(await isFile(file))) return undefined;
  const hash = createHash('sha256');
  for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  return hash.digest('hex');
}
