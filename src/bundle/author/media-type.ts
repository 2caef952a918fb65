import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { type LinkOptions, requireWithin } from '../../files/directory-root.js';
import { findPlaces } from '../../document/places.js';
import { type Fields, type TextType, conform, struct, structList } from '../../kube/struct.js';
import { isCsv } from '../../model/csv.js';
import { readFirstDocument } from '../manifest.js';
import { scalarText } from '../metadata.js';
import { isKubernetesObject } from '../parse.js';
import type { MediaType } from '../../model/bundle-keys.js';
import { maxFileSize } from '../limits.js';
import { readFileWithin } from '../../files/read-file.js';

/**
 * Detects the media type from the files of a directory: a chart by `Chart.yaml`, `registry+v1` by a
 * ClusterServiceVersion, otherwise `plain`. Throws OpmateError INVALID without files, IO for an unreadable file.
 * (Source: `opm alpha bundle generate`.)
 */
export async function detectMediaType(
  directory: string,
  options: CancelOptions & LinkOptions = {},
): Promise<MediaType> {
  // A directory that cannot be listed has no files, as in opm.
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  if (names.length === 0) {
    throw new OpmateError('INVALID', `The directory ${directory} contains no yaml files`, {
      hint: 'specify the directory of the manifests',
    });
  }
  let mediaType: MediaType = 'plain';
  for (const name of names.sort(compareBytes)) {
    throwIfCancelled(options.signal);
    const file = path.join(directory, name);
    await requireWithin(directory, file, { followLinks: options.followLinks });
    const content = await readManifestFile(file);
    if (content === undefined) continue;
    if (name === 'Chart.yaml' && isChart(content)) mediaType = 'helm';
    if (mediaType === 'plain' && hasCsv(content)) mediaType = 'registry+v1';
  }
  return mediaType;
}

/** Returns undefined for a file that is too large for a manifest. */
async function readManifestFile(file: string): Promise<Buffer | undefined> {
  const unreadable = (cause: unknown): OpmateError =>
    new OpmateError('IO', `Unable to read file ${file} in bundle`, { file, cause });
  try {
    const content = readFileWithin(file, (size) => {
      if (size > maxFileSize) throw new LimitError(file);
    });
    if (content === undefined) throw unreadable(undefined);
    return content;
  } catch (error) {
    if (error instanceof LimitError) return undefined;
    throw unreadable(error);
  }
}

/** Larger files are parsed only if they contain the kind. */
const largeSize = 1024 * 1024;

function hasCsv(content: Buffer): boolean {
  if (content.length > largeSize && !content.includes('ClusterServiceVersion')) return false;
  const { value = null } = readFirstDocument(content);
  return isKubernetesObject(value) && isCsv(value);
}

const text: TextType<string, string> = { read: scalarText, zero: '', expected: 'a scalar' };
/** Accepts quoted booleans of YAML 1.1 too. */
const bool: TextType<boolean, boolean> = {
  read: (value) =>
    typeof value === 'boolean' ||
    (typeof value === 'string' && /^(?:[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/.test(value)) ||
    undefined,
  zero: false,
  expected: 'a boolean',
};
const texts = (...names: string[]): Fields => Object.fromEntries(names.map((name) => [name, text]));

/** Fields of a chart in lower case, as upstream's YAML reader names them. */
const chartType = struct({
  ...texts('name', 'home', 'version', 'description', 'icon', 'apiversion', 'condition', 'tags', 'appversion'),
  ...texts('kubeversion', 'type'),
  sources: { list: text },
  keywords: { list: text },
  deprecated: bool,
  maintainers: structList(texts('name', 'email', 'url')),
  annotations: { map: text },
  dependencies: structList({
    ...texts('name', 'version', 'repository', 'condition', 'alias'),
    tags: { list: text },
    enabled: bool,
    importvalues: { list: 'any' },
  }),
});

function isChart(content: Buffer): boolean {
  const { value = null, duplicates = [] } = findPlaces(content.toString('utf8')) ?? {};
  if (duplicates.length > 0 || !isJsonObject(value)) return false;
  return conform(value, chartType).faults.length === 0 && (scalarText(value['name'] ?? null) ?? '') !== '';
}
