import { type BigIntStats, type Dirent, type Stats, readdirSync } from 'node:fs';
import { lstat, readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { LimitError, OpmateError, fileError, systemCode } from '../core/errors.js';
import { compareBytes } from '../core/order.js';

/**
 * Returns the status of a file, following links; undefined if missing. Throws OpmateError for other failures: an
 * unreadable directory does not prove that a path is free.
 */
export function statIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(stat(file), file);
}

/** Returns the status of a file or link; otherwise like `statIfPresent`. */
export function lstatIfPresent(file: string): Promise<Stats | undefined> {
  return ifPresent(lstat(file), file);
}

/** Fields that identify a file and its content. */
type IdentityStats = Pick<BigIntStats, 'dev' | 'ino' | 'size' | 'mtimeNs'>;

/** Returns a text that changes when a file is replaced or written. Moving, linking and `chmod` do not change it. */
export function getFileIdentity({ dev, ino, size, mtimeNs }: IdentityStats): string {
  return `${dev}:${ino}:${size}:${mtimeNs}`;
}

/**
 * Returns a text that changes more often than that of `getFileIdentity`: also when a date is set back after writing,
 * and so after moving, linking and `chmod`. For callers that prefer rereading a file to missing a change.
 */
export function getFileState(stats: IdentityStats & Pick<BigIntStats, 'ctimeNs'>): string {
  return `${getFileIdentity(stats)}:${stats.ctimeNs}`;
}

/** Returns the error for a file that has changed since it was read; `whole` is what other processes must not write to. */
export function changedFileError(file: string, whole: 'catalog' | 'directory', cause?: unknown): OpmateError {
  return new OpmateError('IO', 'changed by another process while reading', {
    about: file,
    cause,
    hint: `run the command again when no other process writes to the ${whole}`,
  });
}

/** Returns the names in a directory; none if missing. Throws OpmateError for other failures. */
export async function readdirIfPresent(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isAbsence(error)) return [];
    throw fileError(directory, error, { file: directory });
  }
}

/** Reports whether a system error says that a file does not exist. */
function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
}

async function ifPresent(status: Promise<Stats>, file: string): Promise<Stats | undefined> {
  try {
    return await status;
  } catch (error) {
    // A name that is too long cannot exist.
    if (isAbsence(error) || systemCode(error) === 'ENAMETOOLONG') return undefined;
    throw fileError(file, error, { file });
  }
}

/**
 * Lists a directory in byte order of names. Reads synchronously, as `readFileWithin` does. Throws OpmateError that starts
 * with `subject`, by default its path.
 */
export async function listDirectory(
  directory: string,
  details: Parameters<typeof fileError>[2] = {},
): Promise<Dirent[]> {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.sort((a, b) => compareBytes(a.name, b.name));
  } catch (error) {
    throw fileError(directory, error, details);
  }
}

/** Returns the YAML and JSON files of a directory, in order; hidden ones are omitted. Throws LimitError beyond `max`; `name` is the directory in messages. */
export async function listManifestFiles(directory: string, max: number, name = directory): Promise<string[]> {
  const entries = await listDirectory(directory, { subject: name });
  const names = entries.map(({ name }) => name).filter((name) => /^[^.].*\.(?:ya?ml|json)$/is.test(name));
  if (names.length > max) throw new LimitError(`more than ${max} manifests`, { subject: name });
  return names.map((name) => path.join(directory, name));
}
