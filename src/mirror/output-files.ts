import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { fileError, systemCode } from '../core/errors.js';
import { makeDirectory } from '../oci/make-directory.js';

/**
 * Writes files into a directory, which is made where there is none, so that all of them are there or none: they
 * are written beside their places and moved when the last one is complete. `undefined` removes what an earlier
 * run has left under a name. Throws OpmateError.
 */
export async function writeOutputFiles(
  directory: string,
  files: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  const target = path.resolve(directory);
  const staging = path.join(target, `.opmate-${randomBytes(6).toString('hex')}`);
  try {
    await makeDirectory(staging);
    for (const [name, text] of files) {
      if (text === undefined) continue;
      const handle = await open(path.join(staging, name), 'wx', 0o666);
      try {
        await handle.writeFile(text);
        await handle.sync();
      } finally {
        await handle.close();
      }
    }
    for (const [name, text] of files) {
      if (text === undefined) await removeFile(path.join(target, name));
      else await rename(path.join(staging, name), path.join(target, name));
    }
  } catch (error) {
    throw fileError(`output dir ${directory}`, error);
  } finally {
    await rm(staging, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function removeFile(file: string): Promise<void> {
  try {
    await rm(file);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}
