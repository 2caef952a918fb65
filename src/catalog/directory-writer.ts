import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../core/concurrency.js';
import { OpmateError } from '../core/errors.js';
import { groupBy } from '../core/groups.js';
import type { Logger } from '../core/log.js';
import { quoteShort } from '../document/field.js';
import { quoteGo } from '../document/go-json.js';
import { fillDirectory } from '../files/fill-directory.js';
import { makeDirectory } from '../files/make-directory.js';
import type { Assembly } from './assemble.js';
import type { CatalogFormat } from '../model/encode.js';

/**
 * Writes a catalog into a missing or empty directory: `<package>/catalog.<format>` per package, blobs without a
 * package in `catalog.<format>`. All files appear when the last is complete; a failure leaves nothing. Warns of packages
 * whose directories are one where case is ignored. Throws OpmateError.
 */
export async function writeCatalogDirectory(
  assembly: Assembly,
  directory: string,
  format: CatalogFormat,
  options: CancelOptions & { logger?: Logger | undefined } = {},
): Promise<void> {
  await fillDirectory(directory, async (staging) => {
    for (const name of assembly.packages()) checkPackagePath(name);
    for (const problem of findCollisions(assembly.packages())) options.logger?.log('warn', problem);
    await writePackages(assembly, staging, format, options);
  });
}

/** Maximum bytes of a file name on common file systems. */
const maxNameBytes = 255;

/**
 * Requires that a package name is a single path component that file systems accept, as it becomes a directory. Throws
 * OpmateError UNSAFE or INVALID.
 */
export function checkPackagePath(name: string): void {
  const bytes = Buffer.byteLength(name);
  if (bytes > maxNameBytes) {
    throw new OpmateError('INVALID', `name of ${bytes} bytes, maximum ${maxNameBytes} for a directory`, {
      subject: `package ${quoteShort(name)}`,
      hint: 'rename the package; its name is used as a directory name',
    });
  }
  if (name === '' || (!/[/\\\0]/.test(name) && name !== '.' && name !== '..')) return;
  throw new OpmateError(
    'UNSAFE',
    `invalid package name ${quoteGo(name)}: must be a single local path element`,
    {
      hint: 'rename the package; its name is used as a directory name',
    },
  );
}

/** Returns a sentence for each package whose directory is that of another where case is ignored, as on macOS and Windows. */
function findCollisions(names: readonly string[]): string[] {
  const groups = groupBy(names, (name) => name.normalize('NFC').toLowerCase());
  return [...groups.values()]
    .filter((group) => group.length > 1)
    .map(
      (group) =>
        `packages ${group.map((name) => quoteGo(name)).join(', ')}: one directory on disks that ignore case`,
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
        await makeDirectory(folder);
        current = {
          package: piece.package,
          handle: await open(path.join(folder, `catalog.${format}`), 'wx', 0o666),
        };
      }
      // `write` may write less without an error when a disk is full.
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
