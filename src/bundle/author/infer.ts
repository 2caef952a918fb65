import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { inContext } from '../../core/diagnostics-error.js';
import { OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { getList, getText } from '../../document/json-fields.js';
import { sortedByBytes } from '../../core/order.js';
import { type LinkOptions, requireWithin } from '../../files/directory-root.js';
import { reachableFrom } from '../../graph/ways.js';
import { isCsv, readCsvMetadata } from '../../model/csv.js';
import { type PackageManifest, readPackageManifest } from '../package-manifests.js';
import { isKubernetesObject } from '../parse.js';
import { listDirectory } from '../../files/file-status.js';
import { readFirstDocument } from '../manifest.js';
import { maxFileSize } from '../limits.js';
import { readFileWithin } from '../../files/read-file.js';

/**
 * Infers package and channels of a bundle from the package manifest format: beside its directory are those of other
 * versions, and a file that names the channel heads. A channel contains the bundles that are reachable from its head
 * by replaces and skips. `channels` are in byte order. Throws OpmateError INVALID for a directory without exactly one
 * ClusterServiceVersion, and if no file names a package. (Source: `opm alpha bundle generate`.)
 */
export async function inferFacts(
  directory: string,
  options: CancelOptions & LinkOptions = {},
): Promise<{ packageName: string; channels: string[]; defaultChannel: string }> {
  const own = await readOnlyCsv(directory, options);
  const parent = path.dirname(directory);
  const entries = await listDirectory(parent, { subject: `error reading ${parent}` });
  const before = new Map<string, readonly string[]>();
  for (const entry of entries.filter((dirent) => dirent.isDirectory())) {
    const csv = await readOnlyCsv(path.join(parent, entry.name), options);
    before.set(csv.name, csv.before);
  }
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => path.join(parent, name));
  const manifest = await readFirstPackage(files, options);
  if (manifest === undefined) {
    throw new OpmateError('INVALID', `valid PackageManifest YAML file not found in ${parent}`);
  }
  const { packageName, channels } = manifest;
  const heads = new Map(channels.map(({ name, head }) => [name, head]));
  const containing = [...heads]
    .filter(([, head]) => reachableFrom(head, before).has(own.name))
    .map(([name]) => name);
  const sole = channels.length === 1 ? (channels[0]?.name ?? '') : '';
  return {
    packageName,
    channels: sortedByBytes(containing),
    defaultChannel: manifest.defaultChannel === '' ? sole : manifest.defaultChannel,
  };
}

/**
 * Reads the only ClusterServiceVersion of a directory; ignores files that do not parse. `before` are the names that it
 * skips or replaces.
 */
async function readOnlyCsv(
  directory: string,
  { signal, followLinks }: CancelOptions & LinkOptions,
): Promise<{ name: string; before: string[] }> {
  let csv: JsonObject | undefined;
  for (const entry of await listDirectory(directory, { subject: `error reading ${directory}` })) {
    throwIfCancelled(signal);
    if (entry.isDirectory()) continue;
    const file = path.join(directory, entry.name);
    await requireWithin(directory, file, { followLinks });
    const value = readDocument(file);
    if (value === undefined || !isKubernetesObject(value) || !isCsv(value)) continue;
    if (csv !== undefined) {
      throw new OpmateError('INVALID', 'more than one ClusterServiceVersion is found in bundle', {
        subject: directory,
      });
    }
    csv = value;
  }
  if (csv === undefined)
    throw new OpmateError('INVALID', `no ClusterServiceVersion object found in ${directory}`);
  return inContext({ subject: directory }, () =>
    inContext({ subject: 'ClusterServiceVersion' }, () => ({
      name: readCsvMetadata(csv).name,
      before: namesBefore(csv),
    })),
  );
}

/** Ignores lists with items of the wrong type. */
function namesBefore(csv: JsonObject): string[] {
  const skips = getList(csv, 'spec', 'skips');
  const isValid = skips.every((name) => name === null || typeof name === 'string');
  const names = isValid ? skips.map((name) => name ?? '') : [];
  const replaces = getText(csv, 'spec', 'replaces');
  return replaces === '' ? names : [...names, replaces];
}

async function readFirstPackage(
  files: readonly string[],
  { signal, followLinks }: CancelOptions & LinkOptions,
): Promise<PackageManifest | undefined> {
  for (const file of files) {
    throwIfCancelled(signal);
    await requireWithin(path.dirname(file), file, { followLinks });
    const value = readDocument(file);
    if (!isJsonObject(value)) continue;
    try {
      const manifest = readPackageManifest(value, file);
      if (manifest !== undefined) return manifest;
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
    }
  }
  return undefined;
}

function readDocument(file: string): JsonValue | undefined {
  try {
    const content = readFileWithin(file, (size) => {
      if (size > maxFileSize) throw new OpmateError('LIMIT', file);
    });
    return content && readFirstDocument(content).value;
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}
