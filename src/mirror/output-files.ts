import { randomBytes } from 'node:crypto';
import { access, constants, lstat, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, systemCode } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { makeDirectory } from '../files/make-directory.js';
import { writeNewFile } from '../files/write-new-file.js';

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
      await writeNewFile(path.join(staging, name), text);
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

/** Throws OpmateError where a directory is not there and cannot be made, or nothing can be written into it. */
export async function requireWritableDirectory(directory: string): Promise<void> {
  try {
    let place = path.resolve(directory);
    while (!(await isThere(place))) place = path.dirname(place);
    await access(`${place}/.`, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fileError(`output dir ${quoteGo(directory)}`, error, {
      hint: 'name another with --workspace file://DIRECTORY, or with --lock FILE',
    });
  }
}

/**
 * Throws OpmateError UNSAFE for one of these places that is a link: whoever made the directory above it, such as the
 * writer of an archive, would choose what is written to.
 */
export async function requireNoLinks(places: readonly string[]): Promise<void> {
  for (const place of places) {
    const found = await lstat(place).catch(() => undefined);
    if (found?.isSymbolicLink() !== true) continue;
    throw new OpmateError('UNSAFE', `output dir ${quoteGo(place)}: is a link`, {
      hint: 'remove the link, or name another directory with --workspace file://DIRECTORY',
    });
  }
}

async function isThere(place: string): Promise<boolean> {
  try {
    await stat(place);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function removeFile(file: string): Promise<void> {
  try {
    await rm(file);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  }
}

/**
 * Replaces directories below `root` by ones that hold just these files; `root` is made where there is none. All of
 * them are complete beside their places before the first is moved, and what was there is put back when moving one
 * fails. Throws OpmateError.
 */
export async function replaceDirectories(
  root: string,
  directories: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<void> {
  const staging = path.join(root, `.opmate-${randomBytes(6).toString('hex')}`);
  const moved: { name: string; had: boolean }[] = [];
  try {
    for (const [name, files] of directories) {
      await makeDirectory(path.join(staging, 'new', name));
      await makeDirectory(path.join(staging, 'old'));
      for (const [file, text] of files) await writeNewFile(path.join(staging, 'new', name, file), text);
    }
    for (const name of directories.keys()) {
      const place = path.join(root, name);
      const had = await moveIfThere(place, path.join(staging, 'old', name));
      moved.push({ name, had });
      await rename(path.join(staging, 'new', name), place);
    }
  } catch (error) {
    for (const { name, had } of moved.reverse()) {
      const place = path.join(root, name);
      await rm(place, { recursive: true, force: true }).catch(() => undefined);
      if (had) await rename(path.join(staging, 'old', name), place).catch(() => undefined);
    }
    throw fileError(`output dir ${quoteGo(root)}`, error);
  } finally {
    await rm(staging, { recursive: true, force: true }).catch(() => undefined);
  }
}

async function moveIfThere(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}
