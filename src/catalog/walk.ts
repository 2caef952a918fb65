import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { LimitError, fileError } from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { unfinishedError } from '../files/journal.js';
import { journalName } from '../files/staging.js';
import { IgnoreRules, ignoreFileName } from './ignore.js';

/** A file of a catalog: where it is, and how messages name it. */
export interface CatalogFile {
  path: string;
  label: string;
}

/** Most files that a catalog directory may have. */
const maxCatalogFiles = 1_000_000;

/**
 * The files of a catalog directory in walk order: entries of a directory in byte order, directories
 * visited in place, whatever the file's extension; `.indexignore` files and what they name are left out.
 * A link to a file counts as a file, a link to a directory is an error when it is read. (Source: `opm`'s
 * declcfg.WalkFS.) `label` is how messages name `root`. Throws OpmateError INVALID for a directory whose change was
 * interrupted: what is there may be a part, or a mixture.
 */
export async function listCatalogFiles(root: string, label: string = root): Promise<CatalogFile[]> {
  const found: { components: string[]; isRules: boolean }[] = [];
  const pending: { components: string[]; isDirectory: boolean }[] = [{ components: [], isDirectory: true }];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { components } = next;
    if (!next.isDirectory) {
      found.push({ components, isRules: components.at(-1) === ignoreFileName });
      if (found.length > maxCatalogFiles)
        throw new LimitError(`${label}: more than ${maxCatalogFiles} files`);
      continue;
    }
    const entries = await readDirectory(
      path.join(root, ...components),
      path.posix.join(label, ...components),
    );
    if (entries.some(({ name }) => name === journalName)) {
      throw await unfinishedError(path.join(root, ...components), path.posix.join(label, ...components));
    }
    for (const entry of entries.sort((a, b) => compareBytes(b.name, a.name))) {
      pending.push({ components: [...components, entry.name], isDirectory: entry.isDirectory() });
    }
  }
  const rules = new IgnoreRules();
  for (const { components } of found.filter((file) => file.isRules)) {
    await rules.addFile(
      path.join(root, ...components),
      path.posix.join(label, ...components),
      components.slice(0, -1),
    );
  }
  return found
    .filter((file) => !file.isRules && !rules.ignores(file.components))
    .map(({ components }) => ({
      path: path.join(root, ...components),
      label: path.posix.join(label, ...components),
    }));
}

async function readDirectory(directory: string, label: string) {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    throw fileError(`open ${label}`, error, { file: label });
  }
}
