import { join } from 'node:path';
import type { FileTree } from '../archive/file-tree.js';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { LimitError, OpmateError, systemCode, throwIfCancelled } from '../core/errors.js';
import { compareBytes } from '../core/order.js';
import { combineErrors } from '../core/diagnostics-error.js';
import { type SizeCheck, readFileWithin } from '../files/read-file.js';
import { outsideManifestFault } from './manifest.js';
import { listDirectory } from '../files/file-status.js';
import { type LinkOptions, outsideError, requireWithin } from '../files/directory-root.js';
import * as bundleLimits from './limits.js';

/** A file of a bundle; `name` is relative to `manifests/` or `metadata/`. */
export interface BundleFile {
  name: string;
  content: Buffer;
}

/** Files of a bundle, in byte order of names. */
export interface BundleFiles {
  manifests: BundleFile[];
  metadata: BundleFile[];
  /** Names of directories in `manifests/`, which are not read. */
  folders?: string[];
}

/** Limits for one bundle. */
export interface BundleLimits {
  /** Bytes per file; 64 MiB by default. */
  maxFileSize?: number | undefined;
  /** Bytes in total; 256 MiB by default. */
  maxSize?: number | undefined;
  /** Files per directory; 10,000 by default. */
  maxFiles?: number | undefined;
}

const parts = ['manifests', 'metadata'] as const;

/**
 * Reports whether a directory is a bundle: it has the directories `manifests` and `metadata`, not links to
 * directories. Throws OpmateError if it cannot be listed.
 */
export async function isBundleDirectory(directory: string): Promise<boolean> {
  const entries = await listDirectory(directory);
  return parts.every((part) => entries.some((entry) => entry.name === part && entry.isDirectory()));
}

/**
 * Reads the files of a bundle directory. Skips subdirectories, names in `manifests/` that start with a dot, and links
 * to anything but files. Throws OpmateError NOT_FOUND or IO for what cannot be read, UNSAFE for links out of the
 * directory unless `followLinks`, SYNTAX if such a link leads to anything but a manifest, LIMIT beyond the limits.
 */
export async function readBundleDirectory(
  directory: string,
  options: ReadDirectoryOptions = {},
): Promise<BundleFiles> {
  const checkSize = sizeCheck(options.limits);
  const read = await Promise.allSettled(parts.map((part) => readPart(directory, part, checkSize, options)));
  // If both fail, the error is always that of `manifests`.
  const [manifests, metadata] = read.map((part) => {
    if (part.status === 'rejected') throw part.reason;
    return part.value;
  });
  const { files = [], folders = [] } = manifests ?? {};
  return { manifests: files, metadata: metadata?.files ?? [], ...(folders.length > 0 && { folders }) };
}

interface ReadDirectoryOptions extends CancelOptions, LinkOptions {
  limits?: BundleLimits | undefined;
}

async function readPart(
  directory: string,
  part: (typeof parts)[number],
  checkSize: SizeCheck,
  options: ReadDirectoryOptions,
): Promise<{ files: BundleFile[]; folders: string[] }> {
  await requireWithin(directory, join(directory, part), options);
  const entries = await listDirectory(join(directory, part)).catch((error: unknown) => {
    const { cause } = error as OpmateError;
    throw systemCode(cause) === 'ENOENT' ? missingPart(directory, part, cause) : error;
  });
  const names = entries.filter((entry) => !entry.isDirectory()).map((entry) => entry.name);
  const wanted = selectNames(names, part, directory, options.limits);
  const links = new Set(entries.filter((entry) => entry.isSymbolicLink()).map(({ name }) => name));
  const outside = new Map<string, OpmateError>();
  await mapConcurrent(
    wanted.filter((name) => links.has(name)),
    bundleLimits.filesAtOnce,
    async (name) => {
      const error = await outsideError(directory, join(directory, part, name));
      if (error !== undefined) outside.set(name, error);
    },
  );
  const inOrder = (faults: ReadonlyMap<string, OpmateError>): OpmateError[] =>
    wanted.flatMap((name) => faults.get(name) ?? []);
  if (options.followLinks !== true && outside.size > 0) throw combineErrors(inOrder(outside));
  const faults = new Map<string, OpmateError>();
  const files: BundleFile[] = [];
  for (const name of wanted) {
    throwIfCancelled(options.signal);
    const file = join(directory, part, name);
    const content = readFileWithin(file, checkSize);
    if (content === undefined) continue;
    const fault = outside.has(name) ? outsideManifestFault(content, file) : undefined;
    if (fault !== undefined) faults.set(name, fault);
    files.push({ name, content });
  }
  if (faults.size > 0) throw combineErrors(inOrder(faults));
  const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  return { files, folders };
}

/**
 * Reads the files in `/manifests` and `/metadata` of a bundle image. Like opm, ignores the directories that labels of
 * the image name. Throws OpmateError NOT_FOUND if a directory is missing, LIMIT beyond the limits.
 */
export async function readBundleFiles(
  tree: FileTree,
  options: { subject: string; limits?: BundleLimits | undefined } & CancelOptions,
): Promise<BundleFiles> {
  const checkSize = sizeCheck(options.limits);
  const files: BundleFiles = { manifests: [], metadata: [] };
  for (const part of parts) {
    const prefix = `${part}/`;
    const paths = [...tree.files.keys()].filter(
      (path) => path.startsWith(prefix) && !path.includes('/', prefix.length),
    );
    if (paths.length === 0 && !tree.directories.has(part)) throw missingPart(options.subject, part);
    const names = paths.map((path) => path.slice(prefix.length));
    for (const name of selectNames(names, part, options.subject, options.limits)) {
      throwIfCancelled(options.signal);
      const file = tree.files.get(prefix + name);
      if (file === undefined) continue;
      checkSize(file.size, `${options.subject}: ${prefix}${name}`);
      files[part].push({ name, content: Buffer.from(await file.read()) });
    }
  }
  const folders = [...tree.directories]
    .map((path) => /^manifests\/([^/]+)$/.exec(path)?.[1])
    .filter((name) => name !== undefined);
  if (folders.length > 0) files.folders = folders;
  return files;
}

function selectNames(
  names: string[],
  part: (typeof parts)[number],
  subject: string,
  limits: BundleLimits | undefined,
): string[] {
  const max = limits?.maxFiles ?? bundleLimits.maxFiles;
  if (names.length > max) {
    throw new LimitError(`${names.length} files in ${part}/, more than ${max}`, {
      subject,
      hint: 'check that these are the manifests of one operator',
    });
  }
  const wanted = part === 'manifests' ? names.filter((name) => !name.startsWith('.')) : names;
  return wanted.sort(compareBytes);
}

function missingPart(subject: string, part: string, cause?: unknown): OpmateError {
  return new OpmateError('NOT_FOUND', `directory ${part} not found`, {
    subject,
    hint: 'add the manifests to manifests/ and the annotations to metadata/',
    cause,
  });
}

function sizeCheck(limits: BundleLimits | undefined): SizeCheck {
  const { maxFileSize = bundleLimits.maxFileSize, maxSize = bundleLimits.maxBundleSize } = limits ?? {};
  let total = 0;
  return (size, subject) => {
    total += size;
    if (size <= maxFileSize && total <= maxSize) return;
    const problem =
      size > maxFileSize
        ? `${size} bytes, more than the ${maxFileSize} that a file of a bundle may have`
        : `more than the ${maxSize} bytes that a bundle may have are reached with this file`;
    throw new LimitError(problem, { subject, hint: 'check that this is a manifest of a bundle' });
  };
}
