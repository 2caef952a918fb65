import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError, fileError, systemCode } from '../core/errors.js';
import { quoteGo } from '../core/go-json.js';
import { makeDirectory } from '../oci/make-directory.js';
import type { Assembly } from './assemble.js';
import type { CatalogFormat } from '../model/encode.js';

/** Throws OpmateError unless a directory is absent or empty. */
export async function requireEmptyDirectory(directory: string): Promise<void> {
  // To the file system an empty name is a file that does not exist, to path.resolve the working directory.
  if (directory === '') throw new OpmateError('NOT_FOUND', 'output dir "": no such file or directory');
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw fileError(`output dir ${quoteGo(directory)}`, error);
  }
  if (names.length > 0) throw notEmpty(directory);
}

function notEmpty(directory: string): OpmateError {
  return new OpmateError('INVALID', `output dir ${quoteGo(directory)} must be empty`, {
    hint: 'give a directory that does not exist yet',
  });
}

/**
 * Writes a catalog into a directory that is absent or empty: `<package>/catalog.<format>` a package, blobs
 * without a package in `catalog.<format>`. The files appear all together when the last one is complete; a
 * failure leaves nothing. Throws OpmateError.
 */
export async function writeCatalogDirectory(
  assembly: Assembly,
  directory: string,
  format: CatalogFormat,
  options: CancelOptions = {},
): Promise<void> {
  await requireEmptyDirectory(directory);
  for (const name of assembly.packages()) checkPackagePath(name);
  const target = path.resolve(directory);
  const token = `opmate-${randomBytes(6).toString('hex')}`;
  // What exists may be a mount point or somebody's working directory: it is filled, not replaced.
  const exists = await pathExists(target);
  const staging = exists ? path.join(target, `.${token}`) : `${target}.${token}`;
  try {
    await makeDirectory(staging);
    await writePackages(assembly, staging, format, options);
    if (exists) await moveEntries(staging, target);
    else await rename(staging, target);
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    if (error instanceof OpmateError) throw error;
    // Somebody else was faster.
    if (systemCode(error) === 'ENOTEMPTY' || systemCode(error) === 'EEXIST') throw notEmpty(directory);
    throw fileError(`output dir ${quoteGo(directory)}`, error);
  }
}

/** A package's name becomes a directory of its own, so it must be one path component. Throws OpmateError UNSAFE. */
export function checkPackagePath(name: string): void {
  if (name === '' || (!/[/\\\0]/.test(name) && name !== '.' && name !== '..')) return;
  throw new OpmateError(
    'UNSAFE',
    `invalid package name ${quoteGo(name)}: must be a single local path element`,
    {
      hint: 'rename the package; its name is used as a directory name',
    },
  );
}

async function writePackages(
  assembly: Assembly,
  root: string,
  format: CatalogFormat,
  options: CancelOptions,
): Promise<void> {
  let current: { package: string; handle: FileHandle } | undefined;
  try {
    for await (const piece of assembly.writeByPackage(options)) {
      if (current?.package !== piece.package) {
        await finish(current?.handle);
        const folder = path.join(root, piece.package);
        await mkdir(folder, { recursive: true });
        current = {
          package: piece.package,
          handle: await open(path.join(folder, `catalog.${format}`), 'wx', 0o666),
        };
      }
      // `write` may write a part only, without an error, when a disk runs full.
      await current.handle.writeFile(piece.text);
    }
    await current?.handle.sync();
  } finally {
    await current?.handle.close();
  }
}

async function finish(handle: FileHandle | undefined): Promise<void> {
  await handle?.sync();
  await handle?.close();
}

/** Moves what was written up into its place; takes back what it has moved when that fails. */
async function moveEntries(staging: string, target: string): Promise<void> {
  if ((await readdir(target)).length > 1) throw notEmpty(target);
  const moved: string[] = [];
  try {
    for (const name of await readdir(staging)) {
      await rename(path.join(staging, name), path.join(target, name));
      moved.push(path.join(target, name));
    }
    await rm(staging, { recursive: true, force: true });
  } catch (error) {
    for (const entry of moved) await rm(entry, { recursive: true, force: true });
    throw error;
  }
}

async function pathExists(file: string): Promise<boolean> {
  return (await stat(file).catch(() => undefined)) !== undefined;
}
