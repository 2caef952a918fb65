import { access, constants } from 'node:fs/promises';
import path from 'node:path';
import { inContext } from '../core/diagnostics-error.js';
import { OpmateError, throwFileError, writeError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { changeDirectory } from '../files/change-directory.js';
import { lstatIfPresent, statIfPresent } from '../files/file-status.js';
import { makeDirectory } from '../files/make-directory.js';
import { writeNewFile } from '../files/write-new-file.js';

/**
 * Writes files into a directory, all or none; creates a missing directory. `undefined` removes a file of an earlier run.
 * Throws OpmateError.
 */
export async function writeOutputFiles(
  directory: string,
  files: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  const subject = nameDirectory(directory);
  await changeOutput(directory, async ({ staging, put, remove }) => {
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

function nameDirectory(directory: string): string {
  return `output dir ${quoteGo(directory)}`;
}

/** Changes an output directory as `changeDirectory` does; every error has a hint. */
async function changeOutput(directory: string, work: Parameters<typeof changeDirectory>[2]): Promise<void> {
  await inContext({ hint: 'specify another directory, or make this one writable' }, () =>
    changeDirectory(path.resolve(directory), { subject: nameDirectory(directory) }, work),
  );
}

/** Throws OpmateError for a destination of an archive that is no directory; it may be missing. */
export async function requireDirectoryOrNothing(directory: string, shown: string): Promise<void> {
  const stats = await statIfPresent(directory).catch(throwFileError(shown));
  if (stats === undefined || stats.isDirectory()) return;
  throw new OpmateError('IO', 'not a directory', {
    subject: shown,
    hint: 'specify another destination directory',
  });
}

/** Throws OpmateError for a directory that cannot be created or written to. */
export async function requireWritableDirectory(directory: string): Promise<void> {
  try {
    let existing = path.resolve(directory);
    while ((await statIfPresent(existing)) === undefined) existing = path.dirname(existing);
    await access(`${existing}/.`, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw writeError(nameDirectory(directory), error, {
      hint: 'specify another with mirror.workspace, or with mirror.lockFile',
    });
  }
}

/** Throws OpmateError UNSAFE for a path that is a link, by which the writer of an archive could redirect output. */
export async function requireNoLinks(paths: readonly string[]): Promise<void> {
  for (const file of paths) {
    const stats = await lstatIfPresent(file);
    if (stats?.isSymbolicLink() !== true) continue;
    throw new OpmateError('UNSAFE', 'is a link', {
      subject: nameDirectory(file),
      hint: 'remove the link, or specify another directory with mirror.workspace',
    });
  }
}

/** Replaces directories below `root`, all or none, by directories of these files; creates `root`. Throws OpmateError. */
export async function replaceDirectories(
  root: string,
  directories: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<void> {
  await changeOutput(root, async ({ staging, put }) => {
    for (const [name, files] of directories) {
      await makeDirectory(path.join(staging, name));
      for (const [file, text] of files) await writeNewFile(path.join(staging, name, file), text);
      put(path.join(staging, name), name);
    }
  });
}
