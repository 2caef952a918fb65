import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import { compareBytes } from '../../core/order.js';
import { type LinkOptions, requireWithin } from '../../files/directory-root.js';
import { findPlaces } from '../../document/places.js';
import { isCsv } from '../../model/csv.js';
import { readFirstDocument } from '../manifest.js';
import { scalarText } from '../metadata.js';
import { isKubernetesObject } from '../parse.js';
import { readFileWithin } from '../read.js';
import type { MediaType } from '../../model/bundle-keys.js';

/** Maximum bytes of a manifest. */
export const maxManifestSize = 64 * 1024 * 1024;

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
    const content = await readFileWithin(file, (size) => {
      if (size > maxManifestSize) throw new LimitError(file);
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

const isText = (value: JsonValue): boolean => scalarText(value) !== undefined;
const isListWith =
  (check: (value: JsonValue) => boolean) =>
  (value: JsonValue): boolean =>
    value === null || (Array.isArray(value) && value.every(check));
const isObjectWith =
  (fields: Record<string, (value: JsonValue) => boolean>) =>
  (value: JsonValue): boolean =>
    value === null ||
    (isJsonObject(value) &&
      Object.entries(fields).every(
        ([key, check]) => !Object.hasOwn(value, key) || check(value[key] as JsonValue),
      ));
/** Accepts quoted booleans of YAML 1.1 too. */
const isBool = (value: JsonValue): boolean =>
  value === null ||
  typeof value === 'boolean' ||
  (typeof value === 'string' && /^(?:[yYnN]|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF)$/.test(value));
const texts = (...names: string[]): Record<string, typeof isText> =>
  Object.fromEntries(names.map((name) => [name, isText]));

/** Fields of a chart in lower case, as upstream's YAML reader names them. */
const chartFields = isObjectWith({
  ...texts('name', 'home', 'version', 'description', 'icon', 'apiversion', 'condition', 'tags', 'appversion'),
  ...texts('kubeversion', 'type'),
  sources: isListWith(isText),
  keywords: isListWith(isText),
  deprecated: isBool,
  maintainers: isListWith(isObjectWith(texts('name', 'email', 'url'))),
  annotations: (value) => value === null || (isJsonObject(value) && Object.values(value).every(isText)),
  dependencies: isListWith(
    isObjectWith({
      ...texts('name', 'version', 'repository', 'condition', 'alias'),
      tags: isListWith(isText),
      enabled: isBool,
      importvalues: (value) => value === null || Array.isArray(value),
    }),
  ),
});

function isChart(content: Buffer): boolean {
  const { value = null, duplicates = [] } = findPlaces(content.toString('utf8')) ?? {};
  if (duplicates.length > 0 || !isJsonObject(value) || !chartFields(value)) return false;
  return (scalarText((value as JsonObject)['name'] ?? null) ?? '') !== '';
}
