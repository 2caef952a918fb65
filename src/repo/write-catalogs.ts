import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { createReadStream } from 'node:fs';
import { createHash } from 'node:crypto';
import { writeNewFile } from '../files/write-new-file.js';
import { changeDirectory } from '../files/change-directory.js';
import { readdirIfPresent } from '../files/file-status.js';
import type { OperatorCatalog } from './render-catalogs.js';
import type { ChangedFile } from './changed-file.js';
import { type OperatorRepository, isFile, pathIn, requirePlaceInRepository } from './repository.js';

/** State of a catalog of an operator compared with the repository. */
export interface CatalogState {
  operator: string;
  catalog: string;
  /** Directory relative to the repository. */
  directory: string;
  state: 'unchanged' | 'created' | 'changed' | 'removed';
}

/** Name of the catalog file that is written. */
export const catalogFile = 'catalog.yaml';

/** Compares rendered catalogs with the repository; further files beside `catalog.yaml` are a change. */
export async function compareCatalogs(
  repository: OperatorRepository,
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

/** Changes of a repository that take effect together. */
interface RepositoryWrite {
  catalogs: readonly OperatorCatalog[];
  /** Of `catalogs`, in their order. */
  states: readonly CatalogState[];
  files?: readonly ChangedFile[] | undefined;
}

/** Writes rendered catalogs and other files that differ, all or none; other catalogs are left unchanged. */
export async function writeRepository(
  repository: OperatorRepository,
  { catalogs, states, files = [] }: RepositoryWrite,
): Promise<void> {
  const changed = files.filter(({ before, after }) => before !== after);
  if (changed.length === 0 && states.every(({ state }) => state === 'unchanged')) return;
  const places = catalogs.map(({ catalog, operator }) => path.join('catalogs', catalog, operator));
  for (const place of [...places, ...changed.map((file) => file.path)]) {
    await requirePlaceInRepository(repository, place);
  }
  await changeDirectory(repository.root, { subject: repository.root }, async (change) => {
    for (const [index, { catalog, operator, rendered }] of catalogs.entries()) {
      if (states[index]?.state === 'unchanged') continue;
      const place = path.join('catalogs', catalog, operator);
      if (rendered === undefined) {
        change.remove(place);
        continue;
      }
      const staged = path.join(change.staging, String(index));
      await mkdir(staged);
      await copyFile(rendered.file, path.join(staged, catalogFile));
      change.put(staged, place);
    }
    for (const [index, { path: place, after }] of changed.entries()) {
      const staged = path.join(change.staging, `file-${index}`);
      await writeNewFile(staged, after);
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
