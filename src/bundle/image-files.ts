import { type Dirent, type Stats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, ArchiveMeter } from '../archive/limits.js';
import type { CancelOptions } from '../core/concurrency.js';
import { LimitError, fileError, systemReason, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { compareBytes } from '../core/order.js';
import { type LinkOptions, isWithin } from '../files/directory-root.js';
import type { FilePart } from '../files/file-parts.js';
import { listDirectory } from './read.js';
import { type Diagnostic, createFault } from '../core/diagnostic.js';

/** A file for an image. */
export interface ImageFile extends FilePart {
  /** Relative to its directory, with slashes; `file` is the target if this is a link. */
  path: string;
}

/** A file of a listed directory. */
export interface ListedFile extends ImageFile {
  mode: number;
}

interface ListedFiles {
  /** In byte order of their paths. */
  files: ListedFile[];
  /** Files that an image cannot or must not contain. */
  findings: Diagnostic[];
}

interface ListOptions extends CancelOptions, LinkOptions {
  /** Name of the directory in messages. */
  label: string;
  /** Subdirectory to skip. */
  except?: string | undefined;
  /** Limits for readers of the image; 10,000 entries by default. */
  limits?: ArchiveLimits | undefined;
}

const maxFiles = 10_000;
const maxDepth = 100;

/**
 * Lists the files of a directory tree. Follows links to files within it; links that lead out of it or to a directory,
 * special files, and names that not every program can unpack are findings. Skips directories without files, which
 * version control does not keep either. Throws OpmateError NOT_FOUND or IO if a directory cannot be listed, LIMIT
 * beyond the limits and 100 levels.
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
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    throwIfCancelled(signal);
    const { name: parent, depth } = folder;
    const file = path.join(label, parent);
    const entries = await listDirectory(path.join(root, parent), { subject: file, file });
    count += entries.length;
    if (meter === undefined && count > maxFiles) {
      throw new LimitError(`more than ${maxFiles} files`, {
        subject: label,
        hint: 'specify a directory that contains only the manifests',
      });
    }
    for (const entry of entries) {
      meter?.countEntry(label);
      const name = path.posix.join(parent, entry.name);
      if (path.join(directory, name) === except) continue;
      const finding =
        checkName(entry.name) ?? (await addEntry(listed, pending, entry, { name, root, depth, followLinks }));
      if (finding !== undefined) listed.findings.push({ file: path.join(label, name), ...finding });
    }
  }
  for (const { size } of listed.files) meter?.countUnpacked(label, size);
  listed.files.sort((a, b) => compareBytes(a.path, b.path));
  listed.findings.sort((a, b) => compareBytes(a.file ?? '', b.file ?? ''));
  return listed;
}

function checkName(name: string): Diagnostic | undefined {
  if (!/[\u0000-\u001f\u007f\ufffd\\]/.test(name) && !name.startsWith('.wh.')) return undefined;
  return createFault('invalid-name', `invalid file name ${quoteGo(name)} for an image`, {
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
    const prefix = entry.isSymbolicLink() ? 'a link: ' : '';
    return createFault('unreadable-file', `${prefix}${systemReason(error)}`, { hint: 'remove or fix it' });
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
