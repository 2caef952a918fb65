import type { BigIntStats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import path from 'node:path';
import {
  type BundleFiles,
  readBundleFiles,
  isBundleDirectory,
  readBundleDirectory,
} from '../../bundle/read.js';
import { type Catalog, DirectoryCatalog } from '../../catalog/catalog.js';
import { computeDigest } from '../../core/digest.js';
import { mapConcurrent } from '../../core/concurrency.js';
import { ErrorList, addContext } from '../../core/diagnostics-error.js';
import { OpmateError, throwFileError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { makeDirectory } from '../../files/make-directory.js';
import { openInTemporaryDirectory } from '../../files/temporary-directory.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { changedFileError, getFileState, statIfPresent } from '../../files/file-status.js';
import { isDatabaseFile } from '../../sqlite/schema/database.js';
import type { ArchivePlace, DatabasePlace, DirectoryPlace } from '../place.js';
import { throwAbout } from '../reference-error.js';
import type { AllowedSources, CatalogSource, Source } from '../source-types.js';
import type { SourceSession } from '../session.js';
import {
  type PlaceState,
  type ResolvedPlace,
  type Unpack,
  type UnpackedPlace,
  nothingToClose,
} from './driver.js';
import { confirmTree, readTree, toFileTree } from './file-tree.js';

/** The directories of a registry+v1 bundle. */
export const bundleRoots: readonly string[] = ['manifests', 'metadata'];

/**
 * Opens a bundle directory, a catalog directory, a published catalog or a sqlite index file. Throws OpmateError.
 * (Source: `opm render`, reference resolution.)
 */
export async function openPath(
  place: DirectoryPlace | DatabasePlace,
  session: SourceSession,
  allowed: AllowedSources,
): Promise<Source> {
  const { path: file } = place;
  const stats = await statPath(file);
  if (stats.isDirectory()) return openDirectory(place, session, allowed);
  if (stats.isFile() && (await isDatabaseFile(file))) {
    if (!allowed.catalogs) throw new OpmateError('UNSUPPORTED', 'cannot render sqlite file: not allowed');
    return toSource(await openDatabaseCatalog(file, file, session));
  }
  throw new OpmateError('UNSUPPORTED', `ref ${quoteGo(file)} is not a directory: not allowed`, {
    hint: 'specify a directory, sqlite index, tar archive or file of ConfigMaps, or oci-archive:FILE for an image in a file',
  });
}

async function statPath(file: string): Promise<BigIntStats> {
  return stat(file, { bigint: true }).catch(throwFileError(file));
}

async function openDirectory(
  place: DirectoryPlace | DatabasePlace,
  session: SourceSession,
  allowed: AllowedSources,
): Promise<Source> {
  const { path: directory } = place;
  if (await isBundleDirectory(directory)) {
    requireBundles(allowed, directory);
    const { signal, followLinks } = session;
    const files = await readBundleDirectory(directory, { signal, followLinks });
    return { kind: 'bundle', image: '', files, close: nothingToClose };
  }
  requireCatalogs(allowed);
  const { openPublished } = await import('./published-catalog.js');
  const published = await openPublished(
    directory,
    place.kind === 'directory' ? place.package : undefined,
    session,
  );
  return published ?? toSource(new DirectoryCatalog(directory, directory, session));
}

function requireBundles({ bundles }: AllowedSources, name: string): void {
  if (bundles) return;
  throw new OpmateError('UNSUPPORTED', `cannot render bundle directory ${quoteGo(name)}: not allowed`);
}

function requireCatalogs({ catalogs }: AllowedSources): void {
  if (catalogs) return;
  throw new OpmateError('UNSUPPORTED', 'cannot render declarative config directory: not allowed');
}

/** Opens the database of a sqlite index; `label` is its name in messages. */
export async function openDatabaseCatalog(
  file: string,
  label: string,
  session: SourceSession,
): Promise<Catalog> {
  const { openSqliteCatalog } = await import('../../sqlite/read/catalog.js');
  return openSqliteCatalog(file, session, { name: label });
}

/** Returns a catalog as a source; closing the source closes the catalog. */
export function toSource(catalog: Catalog): CatalogSource {
  return { kind: 'catalog', catalog, close: () => catalog.close() };
}

/**
 * Returns a place of the immutable files that `write` writes, or of those in a `directory` of them; `label` is the name
 * of their root in messages. Links out of opened files, which are removed on close, are never followed.
 */
export function toUnpackedPlace(
  { id, ref, validator }: PlaceState,
  session: SourceSession,
  { directory = '', label = ref }: { directory?: string | undefined; label?: string },
  write: (destination: string, roots: readonly string[]) => Promise<UnpackedPlace['problems'] | undefined>,
): ResolvedPlace {
  const name = directory === '' ? label : `${label}/${directory}`;
  const unpack: Unpack = async (destination, roots) => {
    const problems = (await write(destination, roots)) ?? new Map<string, OpmateError>();
    const target = path.join(destination, directory);
    if (directory === '' || (await statIfPresent(target))?.isDirectory() === true)
      return { directory: target, problems };
    throw new OpmateError('NOT_FOUND', `directory ${directory} not found`, {
      subject: ref,
      hint: 'set directory to the directory of the files',
    });
  };
  const open = (allowed: AllowedSources): Promise<Source> =>
    openInTemporaryDirectory(session, async (temporary): Promise<Source> => {
      const unpacked = await unpack(path.join(temporary, 'tree'), ['']);
      throwProblems(unpacked.problems, directory, name);
      if (!(await isBundleDirectory(unpacked.directory))) {
        requireCatalogs(allowed);
        return toSource(new DirectoryCatalog(unpacked.directory, name));
      }
      requireBundles(allowed, name);
      const files = await readUnpackedBundle(unpacked.directory, name, session);
      return { kind: 'bundle', image: '', files, close: nothingToClose };
    });
  const state = { id: directory === '' ? id : `${id} ${directory}`, ref, validator };
  return { state, isImmutable: true, unpack, open, close: nothingToClose };
}

/** Throws the problems of a directory, whose files would be missing: dangling links, devices. */
function throwProblems(problems: UnpackedPlace['problems'], directory: string, name: string): void {
  const errors = new ErrorList();
  for (const [file, error] of problems)
    if (directory === '' || file.startsWith(`${directory}/`))
      errors.add(addContext(error, { subject: name }));
  errors.throwIfAny();
}

/** Reads the bundle files of an unpacked directory, without following links out of it. Throws OpmateError. */
export async function readUnpackedBundle(
  directory: string,
  subject: string,
  { limits, signal }: SourceSession,
): Promise<BundleFiles> {
  const tree = await toFileTree(directory, { roots: bundleRoots, limits, signal });
  return readBundleFiles(tree, { subject, signal });
}

/** Resolves the state of a directory or file: names, sizes and dates of its catalog files. Throws OpmateError. */
export async function resolvePath(
  place: DirectoryPlace | DatabasePlace,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const id = await pathVersion(place.path, session);
  return {
    state: { id, ref: place.path },
    isImmutable: false,
    open: (allowed) => openPath(place, session, allowed).catch(throwAbout(place.path)),
    confirm: async () => (await pathVersion(place.path, session)) === id,
    close: nothingToClose,
  };
}

/** Returns a text that changes with the files of a catalog. Throws OpmateError. */
export async function pathVersion(file: string, options: LinkOptions): Promise<string> {
  if (!(await statPath(file)).isDirectory()) return computeDigest(await fileVersion(file));
  const files = await new DirectoryCatalog(file, file, options).listFiles();
  const lines = await mapConcurrent(
    files,
    32,
    async (file) => `${file.name} ${await fileVersion(file.path)}`,
  );
  return computeDigest(lines.join('\n'));
}

/** Returns a text that changes with a file. Throws OpmateError. */
export async function fileVersion(file: string): Promise<string> {
  return getFileState(await statPath(file));
}

/** Copies the files of a directory to a new one. Throws OpmateError. */
export async function copyDirectory(source: string, target: string, session: SourceSession): Promise<void> {
  const { limits, signal, followLinks } = session;
  await makeDirectory(target, 0o700);
  const copyTo = async (file: string) => {
    const copy = path.join(target, file);
    await makeDirectory(path.dirname(copy), 0o700);
    return open(copy, 'wx', 0o600);
  };
  const { directories } = await readTree(source, { limits, signal, followLinks, copyTo });
  for (const name of directories) await makeDirectory(path.join(target, name), 0o700);
}

/** Resolves the digest of a tar archive on disk; `label` is its name in messages. Throws OpmateError. */
export async function resolveArchive(
  { path: file }: ArchivePlace,
  label: string,
  session: SourceSession,
): Promise<ResolvedPlace> {
  const { limits, signal } = session;
  // The user specified this file, so its link may have any target.
  const readOptions = { roots: [path.basename(file)], limits, signal, followLinks: true };
  const before = await readTree(path.dirname(file), readOptions);
  const ref = `archive@sha256:${before.files[0]?.sha256 ?? ''}`;
  return toUnpackedPlace({ id: ref, ref }, session, { label }, async (destination, roots) => {
    const { unpackArchive } = await import('./unpack-archive.js');
    const { problems } = await unpackArchive(file, destination, label, roots, session);
    await confirmTree(path.dirname(file), before, readOptions).catch((error: unknown) => {
      throw error instanceof OpmateError && error.code === 'IO'
        ? changedFileError(label, 'directory')
        : error;
    });
    await refuseImage(destination, label);
    return problems;
  });
}

/** Throws OpmateError UNSUPPORTED for the unpacked files of an image archive. */
async function refuseImage(directory: string, label: string): Promise<void> {
  const holds = async (name: string): Promise<boolean> =>
    (await statIfPresent(path.join(directory, name))) !== undefined;
  const isLayout = await holds('oci-layout');
  if (!isLayout && !((await holds('manifest.json')) && (await holds('repositories')))) return;
  throw new OpmateError('UNSUPPORTED', 'contains an image, not its files', {
    subject: label,
    hint: `use ${isLayout ? 'oci-archive' : 'docker-archive'}:${label}`,
  });
}
