import type { Stats } from 'node:fs';
import { lstat, stat } from 'node:fs/promises';
import { systemCode } from '../core/errors.js';

/** Returns the status of a file, links followed; undefined where there is none. Throws the error of the system. */
export function statIfPresent(file: string): Promise<Stats | undefined> {
  return stat(file).catch(undefinedIfAbsent);
}

/** Returns the status of a file or link; undefined where there is none. Throws the error of the system. */
export function lstatIfPresent(file: string): Promise<Stats | undefined> {
  return lstat(file).catch(undefinedIfAbsent);
}

/** Whether an error of the system says that there is no file of a name. */
export function isAbsence(error: unknown): boolean {
  return ['ENOENT', 'ENOTDIR'].includes(systemCode(error) ?? '');
}

function undefinedIfAbsent(error: unknown): undefined {
  if (isAbsence(error)) return undefined;
  throw error;
}
