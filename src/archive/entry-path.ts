import { LimitError, OpmateError } from '../core/errors.js';

/** Longest name or link target that an entry may have, in UTF-16 units; PATH_MAX of Linux. */
export const maxPathLength = 4096;

/** A name for a message: quoted, control characters escaped, cut when long. */
export function showName(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 117)}...` : name);
}

/**
 * Brings the name of an archive entry into the form `a/b/c`: relative to the root, without `.`, `..` or
 * empty parts; `''` is the root itself. A leading `/` counts as the root.
 *
 * Throws OpmateError UNSAFE for a name that leads out of the root, read with either kind of slash, that
 * starts with a drive letter or that contains NUL; and LIMIT for one of more than 4096 characters.
 * A backslash in the middle of a name is an ordinary character: systemd units have it.
 */
export function normalizeEntryPath(name: string, label: string): string {
  if (name.length > maxPathLength) {
    throw new LimitError(`entry ${showName(name)}: name longer than ${maxPathLength}`, { subject: label });
  }
  if (name.includes('\0')) throw unsafe(name, label, 'NUL in the name');
  if (/^[./\\]*[A-Za-z]:/.test(name)) throw unsafe(name, label, 'name with a drive letter');
  if (!needsWork.test(name)) return name;
  if (name.includes('\\')) {
    if (name.startsWith('\\')) throw unsafe(name, label, 'name leads out of the root');
    resolveDots(name.split(/[\\/]/), name, label);
  }
  return resolveDots(name.split('/'), name, label).join('/');
}

// A leading, trailing or doubled slash, a part that starts with a dot, or a backslash.
const needsWork = /^[./]|\/[./]|\/$|\\/;

function resolveDots(parts: string[], name: string, label: string): string[] {
  const kept: string[] = [];
  for (const part of parts) {
    if (part === '' || part === '.') continue;
    if (part !== '..') kept.push(part);
    else if (kept.pop() === undefined) throw unsafe(name, label, 'name leads out of the root');
  }
  return kept;
}

function unsafe(name: string, label: string, problem: string): OpmateError {
  return new OpmateError('UNSAFE', `entry ${showName(name)}: ${problem}`, { subject: label });
}
