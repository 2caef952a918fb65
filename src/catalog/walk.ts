import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { mapConcurrent } from '../core/concurrency.js';
import { LimitError, type OpmateError, fileError } from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { type LinkOptions, outsideError, requireWithin } from '../files/directory-root.js';
import { unfinishedError } from '../files/journal.js';
import { journalName } from '../files/staging.js';
import { IgnoreRules, ignoreFileName } from './ignore.js';

/** A catalog file: its path, and its name in messages. */
export interface CatalogFile {
  path: string;
  label: string;
  /** For a link that leads out of the catalog: the error of reading it, unless links are followed. */
  outside?: OpmateError | undefined;
}

/** Maximum files of a catalog directory. */
const maxCatalogFiles = 1_000_000;
/** Maximum directories read concurrently. */
const maxOpenDirectories = 32;

/**
 * Returns the files of a catalog directory in walk order: entries of a directory in byte order, directories visited
 * in place, whatever their extension, without `.indexignore` files and ignored files. A link to a file is a file, a
 * link to a directory an error when read. (Source: `opm`'s declcfg.WalkFS.) Links that lead out of the catalog are
 * marked, those to ignore rules rejected unless followed. `label` is the name of `root` in messages. Throws
 * OpmateError INVALID for a directory with an interrupted change, whose content may be inconsistent.
 */
export async function listCatalogFiles(
  root: string,
  label: string = root,
  { followLinks }: LinkOptions = {},
): Promise<CatalogFile[]> {
  const directories = await readDirectories(root, label);
  const result: FoundFile[] = [];
  const pending: (Omit<FoundFile, 'isRules'> & { isDirectory: boolean })[] = [
    { components: [], isDirectory: true, isLink: false },
  ];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { components, isLink } = next;
    if (!next.isDirectory) {
      result.push({ components, isLink, isRules: components.at(-1) === ignoreFileName });
      continue;
    }
    const entries = directories.get(components.join('/')) ?? [];
    if (entries instanceof Error) {
      const file = joinLabel(label, components);
      throw fileError(file, entries, { file });
    }
    if (entries.some(({ name }) => name === journalName)) {
      throw await unfinishedError(path.join(root, ...components), joinLabel(label, components));
    }
    for (const entry of entries.sort((a, b) => compareBytes(b.name, a.name))) {
      pending.push({
        components: [...components, entry.name],
        isDirectory: entry.isDirectory(),
        isLink: entry.isSymbolicLink(),
      });
    }
  }
  const rules = new IgnoreRules();
  const toCatalogFile = ({ components }: FoundFile): CatalogFile => ({
    path: path.join(root, ...components),
    label: joinLabel(label, components),
  });
  for (const file of result.filter(({ isRules }) => isRules)) {
    const place = toCatalogFile(file);
    if (file.isLink) await requireWithin(root, place.path, { label: place.label, followLinks });
    await rules.addFile(place.path, place.label, file.components.slice(0, -1));
  }
  const files: CatalogFile[] = [];
  for (const file of result) {
    if (file.isRules || rules.ignores(file.components)) continue;
    const place = toCatalogFile(file);
    if (file.isLink) place.outside = await outsideError(root, place.path, place.label);
    files.push(place);
  }
  return files;
}

interface FoundFile {
  components: string[];
  isRules: boolean;
  isLink: boolean;
}

/**
 * Reads a directory tree by relative path, level by level: next to long work each wait costs a turn of the event
 * loop, which sequential reads would add up to seconds.
 */
async function readDirectories(root: string, label: string): Promise<Map<string, Dirent[] | Error>> {
  const directories = new Map<string, Dirent[] | Error>();
  let files = 0;
  let level = [''];
  while (level.length > 0) {
    const next: string[] = [];
    const contents = await mapConcurrent(level, maxOpenDirectories, (directory) =>
      readdir(path.join(root, directory), { withFileTypes: true }).catch((error: unknown) => error as Error),
    );
    for (const [place, directory] of level.entries()) {
      const entries = contents[place] ?? [];
      directories.set(directory, entries);
      if (entries instanceof Error) continue;
      for (const entry of entries) {
        if (entry.isDirectory()) next.push(directory === '' ? entry.name : `${directory}/${entry.name}`);
        else files++;
      }
    }
    level = next;
    if (files > maxCatalogFiles)
      throw new LimitError(`more than ${maxCatalogFiles} files`, { subject: label });
  }
  return directories;
}

/** Joins names to the label of a directory; the scheme of a URL stays unchanged. */
function joinLabel(label: string, components: readonly string[]): string {
  const [scheme = ''] = /^[a-z]+:\/\//.exec(label) ?? [];
  return scheme + path.posix.join(label.slice(scheme.length), ...components);
}
