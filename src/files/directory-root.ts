import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';

/** Treatment of links in a directory. */
export interface LinkOptions {
  /** Follow links that lead out of the directory; default: refuse them. */
  followLinks?: boolean | undefined;
}

/** Reports whether a path is a directory or lies below it. Both are absolute. */
export function isWithin(directory: string, file: string): boolean {
  const relative = path.relative(directory, file);
  return relative !== '..' && !relative.startsWith(`..${path.sep}`) && !path.isAbsolute(relative);
}

/**
 * Returns the error for a path that links lead out of its directory; undefined if it stays inside or does not exist.
 * `label` is its name. Check every path of a directory that others may have written: a pull request must not select
 * files of this machine.
 */
export async function outsideError(
  root: string,
  file: string,
  label: string = file,
): Promise<OpmateError | undefined> {
  const [directory, target] = await Promise.all(
    [root, file].map((place) => realpath(place).catch(() => undefined)),
  );
  if (directory === undefined || target === undefined || isWithin(directory, target)) return undefined;
  return new OpmateError('UNSAFE', `links to ${quoteGo(target)}, outside of the directory`, {
    about: label,
    hint: 'replace the link with the file, or allow such links with --follow-links',
  });
}

/** Throws OpmateError UNSAFE for a path that leads out of its directory, unless links are followed. */
export async function requireWithin(
  root: string,
  file: string,
  { label, followLinks }: LinkOptions & { label?: string | undefined } = {},
): Promise<void> {
  const error = followLinks === true ? undefined : await outsideError(root, file, label);
  if (error !== undefined) throw error;
}
