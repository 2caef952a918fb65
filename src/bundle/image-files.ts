import type { Stats } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { type ArchiveLimits, ArchiveMeter } from '../archive/limits.js';
import { whiteoutPrefix } from '../archive/whiteout.js';
import type { CancelOptions } from '../core/concurrency.js';
import { LimitError, throwFileError, systemReason, throwIfCancelled } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { compareBytes } from '../core/order.js';
import { isWithin } from '../core/text/paths.js';
import type { LinkOptions } from '../files/directory-root.js';
import type { FilePart } from '../files/file-parts.js';
import { listDirectory } from '../files/file-status.js';
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
 * special files, and names that not every program can unpack are findings. Files are in byte order of paths. Skips directories without files, which
 * version control does not keep either. Throws OpmateError NOT_FOUND or IO if a directory cannot be listed, LIMIT
 * beyond the limits and 100 levels.
 */
export async function listFiles(
  directory: string,
  { label, signal, except, limits, followLinks = false }: ListOptions,
): Promise<{ files: ListedFile[]; findings: Diagnostic[] }> {
  const meter = limits && new ArchiveMeter(limits);
  const files: ListedFile[] = [];
  const findings: Diagnostic[] = [];
  const root = await realpath(directory).catch(throwFileError(label, { file: label }));
  const pending: { parent: string; depth: number }[] = [{ parent: '', depth: 0 }];
  let count = 0;
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    throwIfCancelled(signal);
    const { parent, depth } = folder;
    const subject = path.join(label, parent);
    const entries = await listDirectory(path.join(root, parent), { subject, file: subject });
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
      const refuse = (code: string, problem: string, hint: string): void =>
        void findings.push({ file: path.join(label, name), ...createFault(code, problem, { hint }) });
      if (/[\u0000-\u001f\u007f\ufffd\\]/.test(entry.name) || entry.name.startsWith(whiteoutPrefix)) {
        const problem = `invalid file name ${quoteGo(entry.name)} for an image`;
        refuse('invalid-name', problem, 'rename or remove it');
      } else if (entry.isDirectory()) {
        if (depth >= maxDepth)
          throw new LimitError(`more than ${maxDepth} levels of directories`, { subject: name });
        pending.push({ parent: name, depth: depth + 1 });
      } else {
        const isLink = entry.isSymbolicLink();
        const target = await findFile(path.join(root, name));
        if (typeof target === 'string') {
          refuse('unreadable-file', `${isLink ? 'a link: ' : ''}${target}`, 'remove or fix it');
        } else if (isLink && !followLinks && !isWithin(root, target.file)) {
          const hint = 'replace the link with the file, or allow such links with session.followLinks';
          refuse('link', `a link to ${quoteGo(target.file)}, outside of the directory`, hint);
        } else if (target.stats.isDirectory()) {
          refuse('link', 'a link to a directory', 'replace it with the directory itself');
        } else if (!target.stats.isFile()) refuse('file-type', 'is not a regular file', 'remove it');
        else files.push({ path: name, file: target.file, size: target.stats.size, mode: target.stats.mode });
      }
    }
  }
  for (const { size } of files) meter?.countUnpacked(label, size);
  files.sort((a, b) => compareBytes(a.path, b.path));
  findings.sort((a, b) => compareBytes(a.file ?? '', b.file ?? ''));
  return { files, findings };
}

/** Returns the target of a path, or the reason why it is unreadable. */
async function findFile(place: string): Promise<{ file: string; stats: Stats } | string> {
  try {
    const file = await realpath(place);
    return { file, stats: await stat(file) };
  } catch (error) {
    return systemReason(error);
  }
}
