import { keepOpen } from '../../core/concurrency.js';
import { realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { OpmateError, fileError, throwIfCancelled, throwFileError } from '../../core/errors.js';
import { schemas } from '../../model/declarative-config.js';
import { detach } from '../../model/describe.js';
import { getFileIdentity } from '../../files/file-status.js';
import { recoverDirectory } from '../../files/journal.js';
import { type BlobOrigin, type CatalogFacts, emptyFacts, joinFacts } from '../../model/facts.js';
import type { LinkOptions } from '../../files/directory-root.js';
import { DirectoryCatalog, type MetasOptions } from '../catalog.js';
import { addFacts } from '../facts.js';
import { locate } from '../locate.js';

/** A blob of an editable catalog: its names and place. */
export interface BlobPlace {
  schema: string;
  /** For a package blob, its name. */
  package: string;
  name: string;
  origin: BlobOrigin;
  file: EditableFile;
}

/** A file of an editable catalog, as read. */
export interface EditableFile {
  path: string;
  /** Slash-separated path relative to the catalog directory. */
  name: string;
  /** Changes when the file changes. */
  version: string;
  /** Blobs in order of the file. */
  blobs: BlobPlace[];
  facts: CatalogFacts;
}

/** A file-based catalog in a directory, opened for editing: names, edges and places; manifests stay on disk. */
export interface EditableCatalog {
  /** Name in messages. */
  name: string;
  /** Real path of its directory. */
  root: string;
  /** Files in walk order. */
  files: EditableFile[];
  facts: CatalogFacts;
  /** Reads blobs again; close it after use. */
  catalog: DirectoryCatalog;
}

/**
 * Reads a catalog directory, respecting `.indexignore`, after rolling back a killed edit. Throws OpmateError:
 * NOT_FOUND if missing, UNSUPPORTED for anything but a directory, and with file and line for an invalid blob. `name` is that of the catalog in
 * messages.
 */
export async function readEditableCatalog(
  directory: string,
  options: MetasOptions & LinkOptions = {},
  name = directory,
): Promise<EditableCatalog> {
  const root = await readRoot(directory);
  await recoverDirectory(root);
  return keepOpen(new DirectoryCatalog(root, name, options), async (catalog) => {
    const files = await readFiles(catalog, name, options);
    return { name, root, files, facts: joinFacts(files.map((file) => file.facts)), catalog };
  });
}

async function readFiles(
  catalog: DirectoryCatalog,
  directory: string,
  options: MetasOptions,
): Promise<EditableFile[]> {
  const files = await listFileVersions(catalog);
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

/** Returns the current files of a catalog directory without their content. Throws OpmateError. */
export async function listFileVersions(catalog: DirectoryCatalog): Promise<EditableFile[]> {
  const files = await catalog.listFiles();
  const versions = await Promise.all(files.map((file) => readFileState(file.path, file.name)));
  return files.map((file, index) => ({
    ...file,
    version: versions[index] as string,
    blobs: [],
    facts: emptyFacts(),
  }));
}

/** Returns the error for a catalog that another process writes to. */
export function changedMeanwhile(file: string): OpmateError {
  return new OpmateError('IO', 'changed by another process during the edit; nothing was written', {
    about: file,
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
    about: directory,
    hint: 'create a file-based catalog in a directory with api.render or api.migrateCatalog, then edit it',
  });
}

async function readFileState(file: string, label: string): Promise<string> {
  const reading = stat(file, { bigint: true });
  return getFileIdentity(await reading.catch(throwFileError(label, { file: label })));
}
