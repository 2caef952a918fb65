import { type Dirent, type Stats } from 'node:fs';
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { ArchiveMeter, type ArchiveLimits } from '../../archive/limits.js';
import type { Finding } from '../../bundle/plain/finding.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, fileError, systemReason, throwIfCancelled } from '../../core/errors.js';
import { quoteGo } from '../../core/go-json.js';
import { compareBytes } from '../../core/order.js';

/** A file that goes into an image. */
export interface ImageFile {
  /** Within its directory, with slashes. */
  path: string;
  /** Where it is read from: where links lead to. */
  file: string;
  size: number;
}

export interface ListImageFilesOptions extends CancelOptions {
  /** Files and bytes beyond these would make an image that is not read without further ado. */
  limits: ArchiveLimits;
}

const maxDepth = 100;

/**
 * Lists all files of a directory and of those below it, in byte order of their paths: also what `.indexignore` names,
 * for a Dockerfile copies that too. Links to files within it are followed; a link that leads out of it would put
 * something into an image that nobody sees there: that, a link to a directory, what is no file, and a name that not
 * every program can unpack are findings. Directories without files are passed over, for version control does not keep
 * them. Messages name files below `directory` as given. Throws OpmateError NOT_FOUND or IO where a directory cannot be
 * listed, LIMIT beyond the limits and 100 levels.
 */
export async function listImageFiles(
  directory: string,
  { limits, signal }: ListImageFilesOptions,
): Promise<{ files: ImageFile[]; findings: Finding[] }> {
  const root = await realpath(directory).catch((error: unknown) => {
    throw fileError(directory, error, { file: directory });
  });
  const meter = new ArchiveMeter(limits);
  const files: ImageFile[] = [];
  const findings: Finding[] = [];
  const pending: { below: string; depth: number }[] = [{ below: '', depth: 0 }];
  for (let at = pending.pop(); at !== undefined; at = pending.pop()) {
    const { below, depth } = at;
    if (depth > maxDepth) throw new LimitError(`${below}: more than ${maxDepth} levels of directories`);
    const entries = await readdir(path.join(root, below), { withFileTypes: true }).catch((error: unknown) => {
      throw fileError(path.join(directory, below), error, { file: path.join(directory, below) });
    });
    for (const entry of entries) {
      throwIfCancelled(signal);
      meter.countEntry(directory);
      const name = path.posix.join(below, entry.name);
      const found = await fileOf(entry, root, name);
      if ('message' in found) findings.push({ file: path.join(directory, name), ...found });
      else if (found.isDirectory) pending.push({ below: name, depth: depth + 1 });
      else {
        meter.countUnpacked(directory, found.size);
        files.push({ path: name, file: found.file, size: found.size });
      }
    }
  }
  files.sort((a, b) => compareBytes(a.path, b.path));
  findings.sort((a, b) => compareBytes(a.file ?? '', b.file ?? ''));
  return { files, findings };
}

async function fileOf(
  entry: Dirent,
  root: string,
  name: string,
): Promise<Finding | { isDirectory: boolean; file: string; size: number }> {
  if (/[\u0000-\u001f\u007f\ufffd\\]/.test(entry.name) || entry.name.startsWith('.wh.'))
    return {
      message: `the name ${quoteGo(entry.name)} cannot stand in an image`,
      hint: 'rename or remove it',
    };
  if (entry.isDirectory()) return { isDirectory: true, file: '', size: 0 };
  let file: string;
  let found: Stats;
  try {
    file = await realpath(path.join(root, name));
    found = await stat(file);
  } catch (error) {
    const what = entry.isSymbolicLink() ? 'a link: ' : '';
    return { message: `${what}${systemReason(error)}`, hint: 'remove or correct it' };
  }
  if (entry.isSymbolicLink() && !isInside(root, file)) {
    return {
      message: `a link to ${quoteGo(file)}, outside of the directory`,
      hint: 'put a copy of the file there, if it is meant to be in the image',
    };
  }
  if (found.isDirectory())
    return { message: 'a link to a directory', hint: 'put the directory itself there' };
  if (!found.isFile()) return { message: 'is not a regular file', hint: 'remove it' };
  return { isDirectory: false, file, size: found.size };
}

/** Whether a path is a directory or lies below it. Both are absolute. */
export function isInside(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`);
}
