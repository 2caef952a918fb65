import { addContext } from '../../core/diagnostics-error.js';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { extractLayers } from '../../archive/layers.js';
import type { ArchiveLimits } from '../../archive/limits.js';
import { type TemporaryPlace, withTemporaryDirectory } from '../../files/temporary-directory.js';
import { readFirstDocument } from '../../bundle/manifest.js';
import { OpmateError, fileError, throwFileError, throwIfCancelled } from '../../core/errors.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { openIfRegularFile, readFileWithin } from '../../files/read-file.js';
import { requireWithin } from '../../files/directory-root.js';
import { holdsManifestData, loadManifestData } from './configmap.js';
import type { Database } from '../schema/database.js';
import {
  type LoadOptions,
  type LoadReport,
  type LoadSession,
  ManifestLoader,
  loadManifestTree,
} from './manifest-loader.js';

/** Additional session of loading archives: temporary directory and limits for unpacking. */
interface LoadArchivesSession extends LoadSession, TemporaryPlace {
  limits?: ArchiveLimits | undefined;
}

const archiveName = /\.(?:tar|tgz|tar\.gz|tar\.zst)$/i;
/** Maximum bytes of a file with a flattened package. */
const maxFlattenedSize = 64 * 1024 * 1024;

/**
 * Loads packages downloaded from an app registry namespace: a directory with one archive per package, or with each
 * archive unpacked into a directory. A package is either flattened, a single file with the keys of a ConfigMap of
 * manifests under `data`, or a tree of package manifests. Archives are unpacked within `limits`, and links in them
 * never lead out. Runs in the caller's transaction. (Source: `appregistry-server` of operator-registry.)
 *
 * Throws ManifestsError with all problems unless permissive, NOT_FOUND if the directory is missing or has no package,
 * LIMIT, and IO.
 */
export async function loadAppRegistry(
  database: Database,
  directory: string,
  session: LoadArchivesSession,
  options: LoadOptions = {},
): Promise<LoadReport> {
  const { signal, followLinks } = session;
  const { label = directory } = options;
  const loader = new ManifestLoader(database, label, session, options);
  const entries = await readdir(directory, { withFileTypes: true }).catch(
    throwFileError(label, { file: label }),
  );
  let archives = 0;
  for (const entry of entries.sort((a, b) => compareBytes(a.name, b.name))) {
    throwIfCancelled(signal);
    if (entry.name.startsWith('.')) continue;
    const place = { path: path.join(directory, entry.name), label: path.posix.join(label, entry.name) };
    if (entry.isSymbolicLink())
      await requireWithin(directory, place.path, { label: place.label, followLinks });
    if (entry.isDirectory()) await loadPackage(loader, place, session);
    else if (archiveName.test(entry.name)) await loadArchive(loader, place, session);
    else if (!(await loadFlattened(loader, place, session))) {
      loader.addSkipped(place.label, 'neither an archive nor a directory nor a flattened package');
      continue;
    }
    archives++;
  }
  if (archives === 0) {
    throw new OpmateError('NOT_FOUND', 'no packages', {
      about: label,
      hint: 'add the archives of the namespace, e.g. etcd.tar.gz, or their contents, each in a directory',
    });
  }
  return loader.finish();
}

interface Place {
  path: string;
  label: string;
}

async function loadArchive(
  loader: ManifestLoader,
  { path: file, label }: Place,
  session: LoadArchivesSession,
): Promise<void> {
  await withTemporaryDirectory(session, async (directory) => {
    const unpacked = path.join(directory, 'package');
    try {
      await extractLayers([{ label, open: () => openArchive(file, label) }], unpacked, {
        roots: [''],
        limits: session.limits,
        signal: session.signal,
      });
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      const problem = addContext(error, { subject: label, replaces: [`layer ${label}`], file: label });
      // An unreadable archive is one missing package; a hostile one ends the load.
      if (['UNSAFE', 'LIMIT', 'CANCELLED'].includes(error.code)) throw problem;
      loader.problems.push(problem);
      return;
    }
    await loadPackage(loader, { path: unpacked, label }, session);
  });
}

async function openArchive(file: string, label: string): Promise<Readable> {
  try {
    const handle = await openIfRegularFile(file);
    if (handle === undefined) throw new OpmateError('UNSUPPORTED', 'not a regular file', { subject: label });
    return handle.createReadStream();
  } catch (error) {
    throw fileError(label, error, { file: label });
  }
}

async function loadPackage(
  loader: ManifestLoader,
  place: Place,
  session: LoadArchivesSession,
): Promise<void> {
  const entries = await readdir(place.path).catch(throwFileError(place.label, { file: place.label }));
  const names = entries.filter((name) => !name.startsWith('.'));
  const [name] = names;
  if (names.length === 1 && name !== undefined) {
    const file = { path: path.join(place.path, name), label: path.posix.join(place.label, name) };
    const { followLinks } = session;
    await requireWithin(place.path, file.path, { label: file.label, followLinks });
    if (await loadFlattened(loader, file, session)) return;
  }
  await loadManifestTree(loader, place.path, place.label, session);
}

/** Loads a flattened package from a file; returns false for another file. */
async function loadFlattened(
  loader: ManifestLoader,
  place: Place,
  session: LoadArchivesSession,
): Promise<boolean> {
  if (!/\.(?:ya?ml|json)$/i.test(place.label)) return false;
  const content = readFileWithin(place.path, (size) => {
    if (size > maxFlattenedSize)
      throw new OpmateError('LIMIT', `${size} bytes, more than ${maxFlattenedSize}`, {
        subject: place.label,
      });
  });
  if (content === undefined) return false;
  // Syntax errors are reported with their line when it is read as part of a tree.
  const { value = null } = readFirstDocument(content);
  if (!isJsonObject(value) || !holdsManifestData(value['data'])) return false;
  await loadManifestData(loader, (value as JsonObject)['data'] ?? null, place.label, session);
  return true;
}
