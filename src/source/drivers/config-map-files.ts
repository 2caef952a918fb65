import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { readBundleConfigMaps, type ConfigMapFile, type PlacedConfigMap } from '../../bundle/config-map.js';
import { type Manifest, readManifests } from '../../kube/manifests.js';
import type { Diagnostic } from '../../core/diagnostic.js';
import type { CancelOptions } from '../../core/concurrency.js';
import { LimitError, OpmateError, throwIfCancelled } from '../../core/errors.js';
import type { JsonObject } from '../../document/json.js';
import { statIfPresent } from '../../files/file-status.js';
import { makeDirectory } from '../../files/make-directory.js';
import { ContentFindingsError } from '../content/content-findings.js';
import type { ConfigMapsPlace } from '../place.js';
import { maxFileSize } from '../../bundle/limits.js';
import { readFileWithin } from '../../files/read-file.js';

/** Reports whether all objects in a file are ConfigMaps, up to 64 MiB. Throws OpmateError for an unreadable file. */
export async function holdsConfigMaps(file: string): Promise<boolean> {
  if (((await statIfPresent(file))?.size ?? 0) > maxFileSize) return false;
  const { manifests } = await readObjects(file);
  return (
    manifests.length > 0 &&
    manifests.every(({ apiVersion, kind }) => apiVersion === 'v1' && kind === 'ConfigMap')
  );
}

async function readObjects(file: string): Promise<ReturnType<typeof readManifests>> {
  const content = readFileWithin(file, (size) => {
    if (size > maxFileSize) throw new LimitError(`more than ${maxFileSize} bytes`, { subject: file });
  });
  if (content === undefined) throw new OpmateError('NOT_FOUND', 'no such file', { about: file });
  return readManifests([{ name: file, content }], { prefix: '', isWritten: true });
}

/**
 * Writes the files of a source's ConfigMaps below `root`, which is created: the selected ones key by key at their
 * paths, or one bundle from all of them. Returns warnings. Throws ContentFindingsError with all findings, and
 * LimitError.
 */
export async function fetchConfigMaps(
  source: ConfigMapsPlace,
  root: string,
  options: CancelOptions,
): Promise<Diagnostic[]> {
  const { manifests, findings } = await readObjects(source.file);
  const read = readBundleConfigMaps(manifests, { places: source.configMaps });
  const errors = [...findings, ...read.findings].map((finding) => ({ ...finding, file: source.file }));
  if (errors.length > 0) throw new ContentFindingsError(errors);
  await writeFiles(root, read.files, options);
  return read.warnings;
}

/** Writes the data of one ConfigMap, key by key, below `root`, which is created. Throws OpmateError. */
export async function writeConfigMap(
  root: string,
  name: string,
  data: { data: JsonObject; binaryData: JsonObject },
  options: CancelOptions,
): Promise<void> {
  const document: Manifest = {
    file: name,
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name,
    namespace: '',
    load: () => ({ ...data, immutable: true }),
    placeOf: () => ({}),
  };
  const places: PlacedConfigMap[] = [{ name }];
  const { files, findings } = readBundleConfigMaps([document], { places });
  if (findings.length > 0) throw new ContentFindingsError(findings);
  if (files.length === 0) throw new OpmateError('INVALID', 'contains no files', { subject: name });
  await writeFiles(root, files, options);
}

async function writeFiles(
  root: string,
  files: readonly ConfigMapFile[],
  { signal }: CancelOptions,
): Promise<void> {
  await makeDirectory(root, 0o700);
  for (const { path: name, content } of files) {
    throwIfCancelled(signal);
    const file = path.join(root, name);
    await makeDirectory(path.dirname(file), 0o700);
    await writeFile(file, content, { flag: 'wx', mode: 0o600 });
  }
}
