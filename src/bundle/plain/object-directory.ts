import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { OpmateError, fileError, systemCode, throwIfCancelled } from '../../core/errors.js';
import { encodeYaml } from '../../core/yaml.js';
import { makeDirectory } from '../../oci/make-directory.js';
import { writeNewFile } from '../../oci/write-new-file.js';
import type { PlainObject } from './object.js';

/** Characters of an object's name that its file keeps. */
const maxNameLength = 150;

/**
 * Writes one file an object into a directory that is absent or empty: `NN_kind_name.yaml`, numbered in order.
 * All of them are there or none. Throws OpmateError.
 */
export async function writeObjectDirectory(
  objects: readonly PlainObject[],
  directory: string,
  options: CancelOptions = {},
): Promise<void> {
  const exists = await requireEmpty(directory);
  const target = path.resolve(directory);
  const token = `opmate-${randomBytes(6).toString('hex')}`;
  // What exists may be a mount point or somebody's working directory: it is filled, not replaced.
  const staging = exists ? path.join(target, `.${token}`) : `${target}.${token}`;
  try {
    await makeDirectory(staging);
    for (const [index, object] of objects.entries()) {
      throwIfCancelled(options.signal);
      await writeNewFile(
        path.join(staging, fileNameOf(object, index, objects.length)),
        encodeYaml(object.load()),
      );
    }
    if (exists) await moveEntries(staging, target);
    else await rename(staging, target);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    throw fileError(`output dir ${directory}`, error);
  }
}

/** Whether the directory is there. Throws OpmateError unless it is absent or empty. */
async function requireEmpty(directory: string): Promise<boolean> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT' && directory !== '') return false;
    throw fileError(`output dir ${directory}`, error);
  }
  if (names.length === 0) return true;
  throw new OpmateError('INVALID', `output dir ${directory}: must be empty`, {
    hint: 'give a directory that does not exist yet',
  });
}

function fileNameOf({ kind, name }: PlainObject, index: number, total: number): string {
  const number = String(index).padStart(Math.max(2, String(total - 1).length), '0');
  const safe = `${kind.toLowerCase()}_${name}`.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, maxNameLength);
  return `${number}_${safe}.yaml`;
}

async function moveEntries(staging: string, target: string): Promise<void> {
  const moved: string[] = [];
  try {
    for (const name of await readdir(staging)) {
      await rename(path.join(staging, name), path.join(target, name));
      moved.push(path.join(target, name));
    }
    await rm(staging, { recursive: true, force: true });
  } catch (error) {
    for (const file of moved) await rm(file, { force: true });
    throw error;
  }
}
