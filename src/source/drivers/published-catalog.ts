import { symlink } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DirectoryCatalog } from '../../catalog/catalog.js';
import {
  type PublishedFile,
  catalogIndexName,
  catalogListName,
  catalogPath,
  linesPath,
  maxPublishedIndexBytes,
  parseCatalogList,
  parsePublishedCatalog,
  publishedKind,
} from '../../catalog/published/published-index.js';
import { withOpen } from '../../core/concurrency.js';
import { verifyContent } from '../../core/digest.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { readBytes } from '../../files/file-region.js';
import { openIfRegularFile, readRegularFile } from '../../files/read-file.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import type { SourceSession } from '../session.js';
import type { CatalogSource } from '../source-types.js';

/**
 * Opens the published catalog in a directory, or the file of one package; undefined if the directory has none. Throws
 * OpmateError, INVALID for a directory with several catalogs and DIGEST for damaged files.
 */
export async function openPublished(
  directory: string,
  packageName: string | undefined,
  session: SourceSession,
): Promise<CatalogSource | undefined> {
  const place = await findPublished(directory);
  if (place === undefined) return undefined;
  const index = path.join(place, catalogIndexName);
  const catalog = parsePublishedCatalog(await readRegularFile(index, maxPublishedIndexBytes), index);
  const packageFile =
    packageName === undefined ? undefined : catalog.packages.find(({ name }) => name === packageName);
  const selected: PublishedFile = packageFile ?? catalog;
  const file = path.resolve(place, '../..', linesPath(selected));
  return openInTemporaryDirectory(session, async (temporary) => {
    await verifyFile(file, selected, session.signal);
    await symlink(file, path.join(temporary, path.basename(file)));
    // Files named by digest never change, so a link is as safe as a copy.
    const opened = new DirectoryCatalog(temporary, path.dirname(file), { followLinks: true });
    return { kind: 'catalog' as const, catalog: opened, close: () => opened.close() };
  });
}

/** Returns the directory of the catalog in a published directory. Throws OpmateError unless it has exactly one. */
async function findPublished(directory: string): Promise<string | undefined> {
  if ((await findKind(path.join(directory, catalogIndexName))) === 'catalog') return directory;
  const list = path.join(directory, catalogListName);
  if ((await findKind(list)) !== 'list') return undefined;
  const names = parseCatalogList(await readRegularFile(list, maxPublishedIndexBytes), list).map(
    ({ name }) => name,
  );
  const [only, ...others] = names;
  if (only !== undefined && others.length === 0) return path.join(directory, catalogPath(only, ''));
  throw new OpmateError('INVALID', `has ${names.length} published catalogs`, {
    subject: directory,
    hint: `specify one of ${names
      .slice(0, 10)
      .map((name) => path.join(directory, catalogPath(name, '')))
      .join(', ')}`,
  });
}

async function findKind(file: string): Promise<ReturnType<typeof publishedKind>> {
  const handle = await openIfRegularFile(file).catch(throwFileError(file));
  return handle && withOpen(handle, async (opened) => publishedKind(await readBytes(opened, 0, 100)));
}

/** Verifies the digest and size of a file. Throws OpmateError. */
async function verifyFile(
  file: string,
  { hash, size }: PublishedFile,
  signal: AbortSignal | undefined,
): Promise<void> {
  const handle = await openIfRegularFile(file);
  if (handle === undefined) {
    const hint = 'publish the catalog again with options.update';
    throw new OpmateError('NOT_FOUND', 'no such file', { about: file, hint });
  }
  await withOpen(handle, async () => {
    const check = verifyContent({ digest: hash, size, subject: file });
    check.resume();
    await pipeline(handle.createReadStream({ autoClose: false }), check, { signal });
  });
}
