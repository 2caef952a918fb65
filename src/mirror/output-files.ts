import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { changeDirectory } from '../files/change-directory.js';
import { lstatIfPresent, statIfPresent } from '../files/file-status.js';
import { makeDirectory } from '../files/make-directory.js';
import { writeNewFile } from '../files/write-new-file.js';

/**
 * Writes files into a directory, which is created if missing, so that all of them are there or none. `undefined`
 * removes the file that an earlier run has left under a name. Throws OpmateError.
 */
export async function writeOutputFiles(
  directory: string,
  files: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  const subject = `output dir ${directory}`;
  await changeDirectory(path.resolve(directory), { subject }, async ({ staging, put, remove }) => {
    for (const [name, text] of files) {
      if (text === undefined) {
        const stats = await lstatIfPresent(path.resolve(directory, name));
        if (stats?.isDirectory() === true)
          throw new OpmateError('IO', `${name}: is a directory`, { subject });
        remove(name);
      } else {
        await writeNewFile(path.join(staging, name), text);
        put(path.join(staging, name), name);
      }
    }
  });
}

/** Throws OpmateError where a directory is not there and cannot be made, or nothing can be written into it. */
export async function requireWritableDirectory(directory: string): Promise<void> {
  try {
    let place = path.resolve(directory);
    while ((await statIfPresent(place)) === undefined) place = path.dirname(place);
    await access(`${place}/.`, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw fileError(`output dir ${quoteGo(directory)}`, error, {
      hint: 'specify another with --workspace file://DIRECTORY, or with --lock FILE',
    });
  }
}

/**
 * Throws OpmateError UNSAFE for one of these places that is a link: whoever made the directory above it, such as the
 * writer of an archive, would choose what is written to.
 */
export async function requireNoLinks(places: readonly string[]): Promise<void> {
  for (const place of places) {
    const stats = await lstatIfPresent(place);
    if (stats?.isSymbolicLink() !== true) continue;
    throw new OpmateError('UNSAFE', `output dir ${quoteGo(place)}: is a link`, {
      hint: 'remove the link, or specify another directory with --workspace file://DIRECTORY',
    });
  }
}

/**
 * Replaces directories below `root` by ones that hold just these files, all or none; `root` is made where there is
 * none. Throws OpmateError.
 */
export async function replaceDirectories(
  root: string,
  directories: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<void> {
  const subject = `output dir ${quoteGo(root)}`;
  await changeDirectory(root, { subject }, async ({ staging, put }) => {
    for (const [name, files] of directories) {
      await makeDirectory(path.join(staging, name));
      for (const [file, text] of files) await writeNewFile(path.join(staging, name, file), text);
      put(path.join(staging, name), name);
    }
  });
}
