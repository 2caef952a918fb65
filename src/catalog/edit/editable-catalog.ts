import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, throwIfCancelled } from '../../core/errors.js';
import { schemas } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import { getFileIdentity } from '../../files/file-status.js';
import { recoverDirectory } from '../../files/journal.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts, joinFacts } from '../../model/facts.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { DirectoryCatalog, type MetasOptions } from '../catalog.js';
import { addFacts } from '../facts.js';
import { locate } from '../locate.js';

/** A blob of a catalog that is edited: its names, and where it stands. */
export interface BlobPlace {
  schema: string;
  /** Of a package blob, its name. */
  package: string;
  name: string;
  origin: BlobOrigin;
  file: EditableFile;
}

/** A file of a catalog that is edited, as it was when it was read. */
export interface EditableFile {
  path: string;
  /** Relative to the catalog's directory, with slashes. */
  name: string;
  /** Differs when the file has changed. */
  version: string;
  /** In the order in which they stand there. */
  blobs: BlobPlace[];
  facts: CatalogFacts;
}

/** A file-based catalog in a directory, read to be edited: names, edges and places; manifests stay on disk. */
export interface EditableCatalog {
  /** How messages name it. */
  name: string;
  /** Where its directory really is. */
  root: string;
  /** In walk order. */
  files: EditableFile[];
  facts: CatalogFacts;
  /** Reads blobs again; to be closed. */
  catalog: DirectoryCatalog;
}

/**
 * Reads a catalog directory, `.indexignore` respected. An edit that was killed is taken back first. Throws OpmateError: NOT_FOUND for what is not there, UNSUPPORTED
 * for what is no directory, and with file and line for a blob that cannot be loaded.
 */
export async function readEditableCatalog(
  directory: string,
  options: MetasOptions & LinkOptions = {},
): Promise<EditableCatalog> {
  const root = await readRoot(directory);
  await recoverDirectory(root);
  const catalog = new DirectoryCatalog(root, directory, options);
  try {
    const files = await readFiles(catalog, directory, options);
    return { name: directory, root, files, facts: joinFacts(files.map((file) => file.facts)), catalog };
  } catch (error) {
    await catalog.close();
    throw error;
  }
}

async function readFiles(
  catalog: DirectoryCatalog,
  directory: string,
  options: MetasOptions,
): Promise<EditableFile[]> {
  const files = await listVersions(catalog);
  const byLabel = new Map(files.map((file) => [path.posix.join(directory, file.name), file]));
  for await (const meta of catalog.metas(options)) {
    throwIfCancelled(options.signal);
    const { origin } = meta;
    const file = byLabel.get(origin.file);
    if (file === undefined) throw changedMeanwhile(origin.file);
    try {
      addFacts(file.facts, meta);
    } catch (error) {
      throw await locate(catalog, origin, error);
    }
    const schema = detach(meta.schema);
    const name = detach(meta.name);
    const owner = schema === schemas.package ? name : detach(meta.package);
    file.blobs.push({ schema, package: owner, name, origin, file });
  }
  return files;
}

/** The files of a catalog directory as they are now, without what is in them. Throws OpmateError. */
export async function listVersions(catalog: DirectoryCatalog): Promise<EditableFile[]> {
  const files = await catalog.listFiles();
  const versions = await Promise.all(files.map((file) => readFileState(file.path, file.name)));
  return files.map((file, index) => ({
    ...file,
    version: versions[index] as string,
    blobs: [],
    facts: emptyFacts(),
  }));
}

/** The error for a catalog that somebody else writes to. */
export function changedMeanwhile(file: string): OpmateError {
  return new OpmateError('IO', 'changed while the catalog was edited; nothing is written', {
    subject: file,
    file,
    hint: 'run the command again when no other process writes to the catalog',
  });
}

async function readRoot(directory: string): Promise<string> {
  try {
    const stats = await stat(directory);
    if (stats.isDirectory()) return await realpath(directory);
  } catch (error) {
    throw fileError(directory, error, {
      file: directory,
      hint: 'specify the directory of a file-based catalog, or an empty one for a new catalog',
    });
  }
  throw new OpmateError('UNSUPPORTED', 'not a directory', {
    subject: directory,
    file: directory,
    hint: 'create a file-based catalog in a directory with opmate render or opmate migrate, then edit it',
  });
}

async function readFileState(file: string, label: string): Promise<string> {
  try {
    return getFileIdentity(await stat(file, { bigint: true }));
  } catch (error) {
    throw fileError(`stat ${label}`, error, { file: label });
  }
}
