import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { ifFound, throwFileError } from '../../core/errors.js';
import { statIfPresent } from '../../files/file-status.js';
import { readRegularFile } from '../../files/read-file.js';
import { lockLimits } from '../lock/lock.js';
import { requireNoLinks, writeOutputFiles } from '../output-files.js';

/** Directory below `working-dir` with the locks that it had. */
const generationsName = 'generations';

/** A lock of a workspace, in effect from its time until that of the next one. */
export interface Generation {
  number: number;
  from: Date;
  file: string;
}

const namePattern = /^(\d{6})-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\.lock\.json$/;

/** Lists the generations below a `working-dir`, oldest first. Throws OpmateError. */
export async function listGenerations(root: string): Promise<Generation[]> {
  const directory = path.join(root, generationsName);
  if ((await statIfPresent(directory)) === undefined) return [];
  const names = await readdir(directory).catch(throwFileError(directory));
  return names.sort().flatMap((name) => {
    const [, number, ...parts] = namePattern.exec(name) ?? [];
    const [year, month, day, hour, minute, second] = parts;
    const from = new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    if (number === undefined || Number.isNaN(from.getTime())) return [];
    return [{ number: Number(number), from, file: path.join(directory, name) }];
  });
}

/** Adds a lock as generation, unless the newest one is equal. Throws OpmateError. */
export async function addGeneration(root: string, text: string, from: Date): Promise<void> {
  const newest = (await listGenerations(root)).at(-1);
  if (newest !== undefined) {
    const known = await ifFound(readRegularFile(newest.file, lockLimits.bytes));
    if (known?.equals(Buffer.from(text)) === true) return;
  }
  const number = String((newest?.number ?? 0) + 1).padStart(6, '0');
  const time = from.toISOString().replace(/[-:]|\.\d+/g, '');
  const directory = path.join(root, generationsName);
  await requireNoLinks([root, directory]);
  await writeOutputFiles(directory, new Map([[`${number}-${time}.lock.json`, text]]));
}

/** Splits generations into those that were in effect at `since` or later, and those that ended before. */
export function splitGenerations(
  generations: readonly Generation[],
  since: Date,
): { kept: Generation[]; expired: Generation[] } {
  const isExpired = (_: Generation, i: number): boolean => {
    const end = generations[i + 1]?.from;
    return end !== undefined && end <= since;
  };
  return {
    kept: generations.filter((generation, i) => !isExpired(generation, i)),
    expired: generations.filter(isExpired),
  };
}

/** Removes generations whose images are gone. Throws OpmateError. */
export async function removeGenerations(generations: readonly Generation[]): Promise<void> {
  for (const { file } of generations) await rm(file, { force: true }).catch(throwFileError(file));
}
