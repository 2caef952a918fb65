import { createHash } from 'node:crypto';
import { type FileHandle, readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import type { FileTree } from '../../archive/file-tree.js';
import { type ArchiveLimits, defaultArchiveLimits, showSize } from '../../archive/limits.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { LimitError, OpmateError, fileError, systemCode, throwIfCancelled } from '../../core/errors.js';
import { compareBytes } from '../../core/order.js';
import { combineErrors } from '../../core/diagnostics-error.js';
import { changedFileError, getFileState } from '../../files/file-status.js';
import { openIfRegularFile, readFileWithin } from '../../files/read-file.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';

/** A file of the content. */
interface ContentFile {
  /** Path within the content, separated by slashes. */
  path: string;
  size: number;
  /** SHA-256 of its bytes, hexadecimal. */
  sha256: string;
  /** Text that changes with the file. */
  version: string;
}

/** The files below a directory. */
export interface ContentTree {
  /** Files in byte order of their paths. */
  files: ContentFile[];
  /** Directory paths in byte order. */
  directories: string[];
}

interface ReadTreeOptions extends CancelOptions, LinkOptions {
  /** Paths to read; default `['']`, which is all. Missing ones are ignored. */
  roots?: readonly string[] | undefined;
  limits?: ArchiveLimits | undefined;
  /** Opens the copy of a file, which is written while the file is read. */
  copyTo?: ((path: string) => Promise<FileHandle>) | undefined;
}

/** Maximum depth of directories, which bounds link cycles. */
const maxDepth = 100;
const concurrency = 8;
const chunkSize = 256 * 1024;

/**
 * Reads and hashes all files below a directory, following links within it; special files and broken links are ignored.
 * Throws OpmateError IO for a file that changes while it is read, UNSAFE for links out of the directory unless
 * `followLinks` is set, and LimitError beyond `limits`.
 */
export async function readTree(directory: string, options: ReadTreeOptions = {}): Promise<ContentTree> {
  const { limits = defaultArchiveLimits, signal, copyTo } = options;
  const names = await listTree(directory, options);
  let total = 0;
  const files = await mapConcurrent(
    names.files,
    concurrency,
    async (name): Promise<ContentFile | undefined> => {
      const count = (bytes: number): void => {
        total += bytes;
        if (total <= limits.maxUnpackedSize) return;
        throw new LimitError(`more than ${showSize(limits.maxUnpackedSize)} of files`, {
          subject: directory,
          hint: 'raise the limit with limits.maxUnpackedSize if you trust the source',
        });
      };
      const read = await readAndHash(
        path.join(directory, name),
        count,
        copyTo && (() => copyTo(name)),
        signal,
      );
      return read && { path: name, ...read };
    },
    { signal },
  );
  return { files: files.filter((file) => file !== undefined), directories: names.directories };
}

async function readAndHash(
  file: string,
  count: (bytes: number) => void,
  copyTo: (() => Promise<FileHandle>) | undefined,
  signal: AbortSignal | undefined,
): Promise<Omit<ContentFile, 'path'> | undefined> {
  let handle: FileHandle | undefined;
  let copy: FileHandle | undefined;
  try {
    handle = await openIfRegularFile(file);
    if (handle === undefined) return undefined;
    const before = await handle.stat({ bigint: true });
    copy = await copyTo?.();
    const hash = createHash('sha256');
    const buffer = Buffer.allocUnsafe(Math.min(chunkSize, Number(before.size) + 1));
    let size = 0;
    for (;;) {
      throwIfCancelled(signal);
      const { bytesRead } = await handle.read(buffer, 0, buffer.length);
      if (bytesRead === 0) break;
      size += bytesRead;
      count(bytesRead);
      const chunk = buffer.subarray(0, bytesRead);
      hash.update(chunk);
      if (copy !== undefined) await copy.appendFile(chunk);
    }
    const version = getFileState(before);
    if (getFileState(await handle.stat({ bigint: true })) !== version || BigInt(size) !== before.size)
      throw changedFileError(file, 'directory');
    return { size, sha256: hash.digest('hex'), version };
  } catch (error) {
    throw fileError(file, error, { file });
  } finally {
    await copy?.close();
    await handle?.close();
  }
}

async function listTree(
  directory: string,
  { roots = [''], limits = defaultArchiveLimits, signal, followLinks }: ReadTreeOptions,
): Promise<{ files: string[]; directories: string[] }> {
  const files: string[] = [];
  const directories: string[] = [];
  const errors: OpmateError[] = [];
  const isOutside = async (name: string): Promise<boolean> => {
    const error =
      followLinks === true ? undefined : await outsideError(directory, path.join(directory, name));
    if (error !== undefined) errors.push(error);
    return error !== undefined;
  };
  const walk = async (name: string, parents: readonly string[]): Promise<void> => {
    throwIfCancelled(signal);
    const place = path.join(directory, name);
    const real = await realpath(place);
    // A link to one of its own parent directories.
    if (parents.includes(real)) return;
    if (parents.length > maxDepth) {
      throw new LimitError(`more than ${maxDepth} nested directories`, { subject: place });
    }
    if (name !== '') directories.push(name);
    for (const entry of await readdir(place, { withFileTypes: true })) {
      const child = name === '' ? entry.name : `${name}/${entry.name}`;
      if (entry.isSymbolicLink() && (await isOutside(child))) continue;
      const isDirectory = entry.isSymbolicLink()
        ? (await stat(path.join(directory, child)).catch(() => undefined))?.isDirectory() === true
        : entry.isDirectory();
      if (isDirectory) await walk(child, [...parents, real]);
      else files.push(child);
      if (files.length + directories.length > limits.maxEntries) {
        throw new LimitError(`more than ${limits.maxEntries} files and directories`, {
          subject: directory,
          hint: 'raise the limit with limits.maxEntries if you trust the source',
        });
      }
    }
  };
  try {
    for (const root of roots) {
      if (root !== '' && (await isOutside(root))) continue;
      const stats = await stat(path.join(directory, root)).catch((error: unknown) => {
        if (root !== '' && ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '')) return undefined;
        throw error;
      });
      if (stats?.isDirectory() === true) await walk(root, []);
      else if (stats?.isFile() === true) files.push(root);
    }
  } catch (error) {
    throw fileError(directory, error);
  }
  if (errors.length > 0) throw combineErrors(errors);
  return { files: files.sort(compareBytes), directories: directories.sort(compareBytes) };
}

/**
 * Checks that the files below a directory are unchanged since `tree` was read. Throws OpmateError for changed, added
 * or removed files.
 */
export async function confirmTree(
  directory: string,
  tree: ContentTree,
  options: ReadTreeOptions,
): Promise<void> {
  const { files, directories } = await listTree(directory, options);
  const known = new Map(tree.files.map((file) => [file.path, file.version]));
  if (directories.join('\0') !== tree.directories.join('\0')) throw changedFileError(directory, 'directory');
  for (const name of files) {
    const file = path.join(directory, name);
    const stats = await stat(file, { bigint: true }).catch(() => undefined);
    if ((stats?.isFile() === true ? getFileState(stats) : undefined) !== known.get(name))
      throw changedFileError(file, 'directory');
    known.delete(name);
  }
  const [removed] = known.keys();
  if (removed !== undefined) throw changedFileError(path.join(directory, removed), 'directory');
}

/**
 * Computes the hash of the names and bytes of files, and of the names of empty directories; modes and dates are
 * ignored.
 */
export function hashOfTree(tree: {
  files: readonly Pick<ContentFile, 'path' | 'sha256'>[];
  directories: readonly string[];
}): string {
  const nonEmpty = new Set<string>();
  const lines: { name: string; line: string }[] = [];
  for (const { path: name, sha256 } of tree.files) {
    addParents(nonEmpty, name);
    lines.push({ name, line: `${sha256} ${name}` });
  }
  for (const name of tree.directories) addParents(nonEmpty, name);
  for (const name of tree.directories) if (!nonEmpty.has(name)) lines.push({ name, line: `${name}/` });
  const hash = createHash('sha256');
  for (const { line } of lines.sort((a, b) => compareBytes(a.name, b.name))) hash.update(`${line}\0`);
  return `sha256:${hash.digest('hex')}`;
}

/** Adds all parent directories of a path to a set. */
function addParents(nonEmpty: Set<string>, name: string): void {
  for (let position = name.lastIndexOf('/'); position > 0; position = name.lastIndexOf('/', position - 1)) {
    const parent = name.slice(0, position);
    if (nonEmpty.has(parent)) return;
    nonEmpty.add(parent);
  }
}

/** Returns the files below a directory as a `FileTree`; `roots` as for `readTree`. */
export async function toFileTree(directory: string, options: ReadTreeOptions): Promise<FileTree> {
  const tree = await readTree(directory, options);
  const files: FileTree['files'] = new Map();
  for (const { path: name, size } of tree.files) {
    files.set(name, {
      size,
      read: async () => {
        const content = readFileWithin(path.join(directory, name), () => undefined);
        if (content !== undefined) return content;
        throw new OpmateError('IO', 'no longer exists', { subject: name });
      },
    });
  }
  return { files, directories: new Set(tree.directories) };
}
