import { LimitError, OpmateError } from '../core/errors.js';

/** Maximum length of an entry name or link target in UTF-16 units; PATH_MAX of Linux. */
export const maxPathLength = 4096;

/** Returns a name for a message: quoted, escaped, shortened. */
export function showName(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 117)}...` : name);
}

/**
 * Normalizes the name of an archive entry to `a/b/c`: relative to the root, without `.`, `..` or empty parts; `''` is
 * the root. A leading `/` is the root.
 *
 * Throws OpmateError UNSAFE for a name that leaves the root with either kind of slash, starts with a drive letter or
 * contains NUL, and LIMIT for more than 4096 characters. A backslash within a name is an ordinary character, as in
 * systemd units.
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

// A leading, trailing or double slash, a part that starts with a dot, or a backslash.
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
