import { addContext } from '../../core/diagnostics-error.js';
import { chmod, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { ArchiveLimits } from '../../archive/limits.js';
import { type CancelOptions, mapConcurrent } from '../../core/concurrency.js';
import { OpmateError, getMessage, throwIfCancelled } from '../../core/errors.js';
import { decodeUtf8, parseGoJson, quoteGo } from '../../document/go-json.js';
import { groupBy } from '../../core/groups.js';
import type { Logger } from '../../core/log.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { encodeYaml } from '../../document/yaml.js';
import { getValue } from '../../document/json-fields.js';
import { notFound } from '../../core/suggest.js';
import { changeDirectory } from '../../files/change-directory.js';
import { lstatIfPresent, statIfPresent } from '../../files/file-status.js';
import { makeDirectory } from '../../files/make-directory.js';
import { moveWhole } from '../../files/move-whole.js';
import { writeNewFile } from '../../files/write-new-file.js';
import { type Image, extractImage } from '../../oci/image/image.js';
import { splitObjects } from './convert-package.js';
import type { Database } from '../schema/database.js';
import { type StoredPackage, IndexQueries } from './queries.js';

interface ExportOptions extends CancelOptions {
  /** Opens the image of a bundle; `close` is called after its layers were read. */
  openImage(reference: string): Promise<{ image: Image; close(): Promise<void> }>;
  limits?: ArchiveLimits | undefined;
  logger?: Logger | undefined;
}

/** Exported content. */
export interface ExportReport {
  packages: string[];
  bundles: number;
}

/**
 * Writes packages of an index, by default all, as directories of package manifests: `PACKAGE/package.yaml`, and the
 * manifests of each bundle in `PACKAGE/VERSION`, or in a directory named after the bundle if its version is not a valid file
 * name or not unique. Manifests come from its image, or from the index without one. All packages appear below
 * `directory` when complete, or none. Throws OpmateError: NOT_FOUND for an unknown package; IO for an existing
 * directory; UNSAFE for invalid file names; INVALID for a bundle without manifests; and as pulling.
 */
export async function exportPackages(
  database: Database,
  names: readonly string[],
  directory: string,
  options: ExportOptions,
): Promise<ExportReport> {
  const queries = new IndexQueries(database);
  const packages = choosePackages(queries, names);
  for (const { name } of packages) checkFileName(queries.name, 'package', name);
  const bundles = packages.flatMap(({ name }) => planBundles(queries, name));
  if ((await statIfPresent(directory))?.isDirectory() === false) {
    throw new OpmateError('IO', 'is a file, not a directory', {
      subject: directory,
      hint: 'specify another directory with options.directory',
    });
  }
  await changeDirectory(directory, {}, async ({ staging, add }) => {
    for (const { name } of packages) await requireAbsent(path.join(directory, name));
    for (const stored of packages) {
      await makeDirectory(path.join(staging, 'packages', stored.name));
      await writeNewFile(path.join(staging, 'packages', stored.name, packageFile), packageManifest(stored));
    }
    const write = (bundle: ExportedBundle, i: number): Promise<void> =>
      writeBundle(queries, bundle, staging, i, options);
    await mapConcurrent(bundles, maxPulls, write, options);
    throwIfCancelled(options.signal);
    for (const { name } of packages) add(path.join(staging, 'packages', name), name);
  });
  return { packages: packages.map(({ name }) => name), bundles: bundles.length };
}

/** Maximum number of concurrent pulls. */
const maxPulls = 8;
const packageFile = 'package.yaml';

function choosePackages(queries: IndexQueries, names: readonly string[]): StoredPackage[] {
  const all = queries.packages();
  if (names.length === 0) return all;
  const known = new Map(all.map((stored) => [stored.name, stored]));
  const unknown = [...new Set(names)].filter((name) => !known.has(name));
  if (unknown.length === 0) return [...new Set(names)].map((name) => known.get(name) as StoredPackage);
  throw notFound('package', unknown, known.keys(), { prefix: `${queries.name}: ` });
}

interface ExportedBundle {
  id: number;
  name: string;
  /** May be empty, like the image. */
  version: string;
  image: string;
  /** Path relative to the directory of all packages. */
  directory: string;
}

function planBundles(queries: IndexQueries, packageName: string): ExportedBundle[] {
  const ids = queries.members(packageName).map(({ id }) => id);
  const bundles = [...queries.bundlesAt([...new Set(ids)]).values()]
    .map(({ id, name, version, image }) => ({ id, name, version: version ?? '', image }))
    .sort((a, b) => compareBytes(a.name, b.name));
  // Some file systems are case-insensitive.
  const byVersion = groupBy(bundles, ({ version }) => version.toLowerCase());
  const taken = new Set<string>();
  return bundles.map((bundle) => {
    const { version } = bundle;
    const isGood = isFileName(version) && byVersion.get(version.toLowerCase())?.length === 1;
    const name = isGood ? version : bundle.name;
    if (!isGood) checkFileName(queries.name, 'bundle', name);
    if (taken.has(name)) {
      const problem = `two bundles of ${packageName} would be in ${name}`;
      throw new OpmateError('INVALID', problem, { subject: queries.name });
    }
    taken.add(name);
    return { ...bundle, directory: path.join(packageName, name) };
  });
}

function isFileName(name: string): boolean {
  if (name === '' || name.startsWith('.') || name === packageFile) return false;
  return !/[/\\\0-\x1f\x7f]/.test(name) && Buffer.byteLength(name) <= 255;
}

function checkFileName(index: string, what: string, name: string): void {
  if (isFileName(name)) return;
  throw new OpmateError('UNSAFE', `${what} ${quoteGo(name)}: its name cannot be that of a directory`, {
    subject: index,
  });
}

async function requireAbsent(target: string): Promise<void> {
  if ((await lstatIfPresent(target)) === undefined) return;
  throw new OpmateError('IO', 'already exists', {
    subject: target,
    hint: 'remove it, or specify another directory with options.directory',
  });
}

/** Encodes a package manifest with the key order and indentation of `opm`. */
function packageManifest({ name, defaultChannel, channels }: StoredPackage): string {
  const sorted = [...channels].sort((a, b) => compareBytes(a.name, b.name));
  const lines = sorted.map(
    (channel) => `    - name: ${scalar(channel.name)}\n      currentCSV: ${scalar(channel.head)}\n`,
  );
  const list = lines.length === 0 ? ' []\n' : `\n${lines.join('')}`;
  return `packageName: ${scalar(name)}\nchannels:${list}defaultChannel: ${scalar(defaultChannel)}\n`;
}

function scalar(text: string): string {
  const encoded = encodeYaml(text).trimEnd();
  return encoded.includes('\n') ? JSON.stringify(text) : encoded;
}

async function writeBundle(
  queries: IndexQueries,
  bundle: ExportedBundle,
  staging: string,
  number: number,
  options: ExportOptions,
): Promise<void> {
  const target = path.join(staging, 'packages', bundle.directory);
  if (bundle.image === '') return writeStoredManifests(queries, bundle, target);
  const { limits, signal, logger } = options;
  const unpacked = path.join(staging, `image-${number}`);
  const { image, close } = await options.openImage(bundle.image).catch((error: unknown) => {
    if (!(error instanceof OpmateError) || error.code === 'CANCELLED') throw error;
    // Errors of an unreachable host name the host only.
    const shown = error.subject === bundle.image ? '' : ` (${bundle.image})`;
    throw addContext(error, { subject: `bundle ${quoteGo(bundle.name)}${shown}` });
  });
  try {
    const { files, directories, problems } = await extractImage(image, unpacked, {
      roots: [manifestsDirectory],
      limits,
      signal,
      logger,
    });
    for (const problem of problems.values()) throw problem;
    if (!directories.includes(manifestsDirectory)) {
      throw new OpmateError('INVALID', `has no directory /${manifestsDirectory}`, {
        subject: bundle.image,
        hint: 'use a bundle image',
      });
    }
    for (const name of files) await chmod(path.join(unpacked, name), 0o644);
    for (const name of directories) await chmod(path.join(unpacked, name), 0o755);
    await moveWhole(path.join(unpacked, manifestsDirectory), target);
    await rm(unpacked, { recursive: true, force: true });
  } finally {
    await close();
  }
}

const manifestsDirectory = 'manifests';

/** Writes the manifests in the index, one object per file. */
async function writeStoredManifests(
  queries: IndexQueries,
  bundle: ExportedBundle,
  target: string,
): Promise<void> {
  const { csv, objects } = queries.manifestsAt(bundle.id);
  const bytes = objects.length > 0 ? objects : csv;
  if (bytes.length === 0) {
    throw new OpmateError('INVALID', `bundle ${bundle.name}: neither image nor manifests`, {
      subject: queries.name,
      hint: 'add the bundle again from its source',
    });
  }
  const files = new Map<string, string>();
  try {
    for (const object of splitObjects(bytes)) {
      const value = parseGoJson(decodeUtf8(object));
      const stem = [getValue(value, 'metadata', 'name'), getValue(value, 'kind')]
        .map((part) => cleanName(String(part ?? 'unnamed')))
        .join('.');
      let file = `${stem}.yaml`;
      for (let i = 2; files.has(file); i++) file = `${stem}-${i}.yaml`;
      files.set(file, encodeYaml(value));
    }
  } catch (error) {
    const what = `${queries.name}: bundle ${bundle.name}: its manifests are not JSON: ${getMessage(error)}`;
    throw new OpmateError('INVALID', what, { cause: error });
  }
  await mkdir(target);
  for (const file of sortedByBytes(files.keys())) {
    await writeNewFile(path.join(target, file), files.get(file) as string);
  }
}

function cleanName(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9._-]/g, '_')
    .slice(0, 100);
}
