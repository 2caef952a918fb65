import { type Dirent, type Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, ArchiveMeter } from '../archive/limits.js';
import type { CancelOptions } from '../core/concurrency.js';
import { LimitError, fileError, systemReason, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { compareBytes } from '../core/order.js';
import { type LinkOptions, isWithin } from '../files/directory-root.js';
import type { FilePart } from '../files/file-parts.js';
import { type Diagnostic, createFault } from '../core/diagnostic.js';

/** A file that goes into an image. */
export interface ImageFile extends FilePart {
  /** Within its directory, with slashes; `file` is where links lead to. */
  path: string;
}

/** One of a directory. */
export interface ListedFile extends ImageFile {
  mode: number;
}

export interface ListedFiles {
  /** In byte order of their paths. */
  files: ListedFile[];
  /** Files that cannot go into an image, or must not. */
  findings: Diagnostic[];
}

interface ListOptions extends CancelOptions, LinkOptions {
  /** How messages name the directory. */
  label: string;
  /** A directory below that is passed over. */
  except?: string | undefined;
  /** Entries and bytes beyond these would make an image that is not read without further ado; 10,000 entries unless told. */
  limits?: ArchiveLimits | undefined;
}

const maxFiles = 10_000;
const maxDepth = 100;

/**
 * Lists the files of a directory and of those below it. Links to files within it are followed; a link that leads out
 * of it would put something into an image that nobody sees there: that, a link to a directory, what is no file, and a
 * name that not every program can unpack are findings. Directories without files are passed over, for version control
 * does not keep them. Throws OpmateError NOT_FOUND or IO where a directory cannot be listed, LIMIT beyond the limits
 * and 100 levels.
 */
export async function listFiles(directory: string, options: ListOptions): Promise<ListedFiles> {
  const { label, signal, except, limits, followLinks } = options;
  const meter = limits && new ArchiveMeter(limits);
  const listed: ListedFiles = { files: [], findings: [] };
  const root = await realpath(directory).catch((error: unknown) => {
    throw fileError(label, error, { file: label });
  });
  const pending: { name: string; depth: number }[] = [{ name: '', depth: 0 }];
  let count = 0;
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    throwIfCancelled(signal);
    const { name: below, depth } = place;
    const entries = await readdir(path.join(root, below), { withFileTypes: true }).catch((error: unknown) => {
      throw fileError(path.join(label, below), error, { file: path.join(label, below) });
    });
    count += entries.length;
    if (meter === undefined && count > maxFiles) {
      throw new LimitError(`more than ${maxFiles} files`, {
        subject: label,
        hint: 'specify a directory that contains only the manifests',
      });
    }
    for (const entry of entries) {
      meter?.countEntry(label);
      const name = path.posix.join(below, entry.name);
      if (path.join(directory, name) === except) continue;
      const finding =
        nameFault(entry.name) ?? (await addEntry(listed, pending, entry, { name, root, depth, followLinks }));
      if (finding !== undefined) listed.findings.push({ file: path.join(label, name), ...finding });
    }
  }
  for (const { size } of listed.files) meter?.countUnpacked(label, size);
  listed.files.sort((a, b) => compareBytes(a.path, b.path));
  listed.findings.sort((a, b) => compareBytes(a.file ?? '', b.file ?? ''));
  return listed;
}

function nameFault(name: string): Diagnostic | undefined {
  const isFit = !/[\u0000-\u001f\u007f\ufffd\\]/.test(name) && !name.startsWith('.wh.');
  if (isFit) return undefined;
  return createFault('invalid-name', `the name ${quoteGo(name)} cannot stand in an image`, {
    hint: 'rename or remove it',
  });
}

async function addEntry(
  { files }: ListedFiles,
  pending: { name: string; depth: number }[],
  entry: Dirent,
  { name, root, depth, followLinks }: { name: string; root: string; depth: number } & LinkOptions,
): Promise<Diagnostic | undefined> {
  if (entry.isDirectory()) {
    if (depth >= maxDepth)
      throw new LimitError(`more than ${maxDepth} levels of directories`, { subject: name });
    pending.push({ name, depth: depth + 1 });
    return undefined;
  }
  let stats: Stats;
  let file: string;
  try {
    file = await realpath(path.join(root, name));
    stats = await stat(file);
  } catch (error) {
    const what = entry.isSymbolicLink() ? 'a link: ' : '';
    return createFault('unreadable-file', `${what}${systemReason(error)}`, { hint: 'remove or fix it' });
  }
  if (entry.isSymbolicLink() && followLinks !== true && !isWithin(root, file)) {
    return createFault('link', `a link to ${quoteGo(file)}, outside of the directory`, {
      hint: 'replace the link with the file, or allow such links with --follow-links',
    });
  }
  if (stats.isDirectory())
    return createFault('link', 'a link to a directory', { hint: 'replace it with the directory itself' });
  if (!stats.isFile()) return createFault('file-type', 'is not a regular file', { hint: 'remove it' });
  files.push({ path: name, file, size: stats.size, mode: stats.mode });
  return undefined;
}
