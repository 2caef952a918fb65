import { lstatSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError } from '../core/errors.js';
import { isWithin } from '../core/text/paths.js';
import { quoteGo } from '../document/go-json.js';

/** Treatment of links in a directory. */
export interface LinkOptions {
  /** Follow links that lead out of the directory; default: refuse them. */
  followLinks?: boolean | undefined;
}

/** Reports whether the way from a directory to a path may lead through links. Their targets take much longer to find. */
function hasLinkBelow(root: string, file: string): boolean {
  const [directory, target] = [path.resolve(root), path.resolve(file)];
  if (!isWithin(directory, target)) return true;
  try {
    for (let place = target; place !== directory; place = path.dirname(place)) {
      if (lstatSync(place, { throwIfNoEntry: false })?.isSymbolicLink() === true) return true;
    }
    return false;
  } catch {
    return true;
  }
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
  if (!hasLinkBelow(root, file)) return undefined;
  const [directory, target] = await Promise.all(
    [root, file].map((place) => realpath(place).catch(() => undefined)),
  );
  if (directory === undefined || target === undefined || isWithin(directory, target)) return undefined;
  return new OpmateError('UNSAFE', `links to ${quoteGo(target)}, outside of the directory`, {
    about: label,
    hint: 'replace the link with the file, or allow such links with session.followLinks',
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
