import path from 'node:path';
import { OpmateError } from '../../core/errors.js';
import { type Version, compareVersions, parseVersion, tryParse } from '../../core/semver.js';
import { compareBytes } from '../../core/order.js';
import type { Diagnostic, DocumentPath, TextPosition } from '../../core/diagnostic.js';
import { decodeFile, parseYamlFile } from '../../document/document.js';
import type { JsonValue } from '../../document/json.js';
import { getObject, getText, getValue } from '../../document/json-fields.js';
import { nearestPlace } from '../../document/places.js';
import { parseYamlWithPlaces } from '../../document/yaml.js';
import { listDirectory, statIfPresent } from '../../files/file-status.js';
import { bundleKeys } from '../../model/bundle-keys.js';
import { type OperatorRepository, isFile, pathIn, readInRepository } from '../repository.js';
import { type RepositoryDocument, readRepositoryFile } from '../repository-file.js';

/** Content of a YAML file that checks look at. */
export interface CheckedFile {
  /** As the user named the repository. */
  file: string;
  /** Null for a file that is missing. */
  value: JsonValue;
  /** Returns the place of a path, or of its nearest parent. */
  findPlace(path: DocumentPath): Partial<TextPosition>;
  /** Faults of a configuration file beyond its values, such as duplicate keys. */
  faults?: readonly Diagnostic[];
}

/** A bundle of a repository as its checks see it. */
export interface CheckedBundle {
  operator: string;
  /** Name of the directory. */
  version: string;
  directory: string;
  annotations: CheckedFile;
  releaseConfig: CheckedFile | undefined;
  /** Files of the directory `manifests`. */
  manifests: string[];
  /** ClusterServiceVersion. Throws OpmateError if it is missing or unreadable. */
  getCsv(): CheckedFile;
  /** Name before the first dot, and version after it. Throws OpmateError. */
  getCsvName(): { name: string; version: string };
}

/** Maximum size of a manifest. */
export const maxManifestSize = 16 * 1024 * 1024;

/** Reads a YAML file; a missing one has the value null. Throws OpmateError. */
export async function readCheckedFile(repository: OperatorRepository, file: string): Promise<CheckedFile> {
  if ((await statIfPresent(file)) === undefined) return { file, value: null, findPlace: () => ({}) };
  const text = decodeFile(await readInRepository(repository, file, maxManifestSize), file);
  const value = parseYamlFile(text, file);
  let placed: ReturnType<typeof parseYamlWithPlaces> | undefined;
  return {
    file,
    value,
    findPlace: (at) => nearestPlace((placed ??= parseYamlWithPlaces(text)), at) ?? {},
  };
}

/** Returns a configuration file as checks see it; a missing one has the value null. */
export function toCheckedFile(document: RepositoryDocument | undefined, file: string): CheckedFile {
  if (document === undefined) return { file, value: null, findPlace: () => ({}) };
  const { root, diagnostics, findPlace } = document;
  return { file, value: root.value ?? null, findPlace, faults: diagnostics.errors };
}

/** Reads a bundle of a repository. Its ClusterServiceVersion may be unreadable; throws OpmateError for other files. */
export async function readCheckedBundle(
  repository: OperatorRepository,
  operator: string,
  version: string,
): Promise<CheckedBundle> {
  const directory = pathIn(repository, 'operators', operator, version);
  const manifests = (await listDirectory(path.join(directory, 'manifests')))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
  const csv = await readCsv(repository, directory, manifests);
  const releaseFile = path.join(directory, 'release-config.yaml');
  const releaseParts = ['operators', operator, version, 'release-config.yaml'];
  const getCsv = (): CheckedFile => {
    if (csv instanceof OpmateError) throw csv;
    return csv;
  };
  return {
    operator,
    version,
    directory,
    annotations: await readAnnotations(repository, directory),
    releaseConfig: (await isFile(releaseFile))
      ? toCheckedFile(await readRepositoryFile(repository, releaseParts, 'configuration'), releaseFile)
      : undefined,
    manifests,
    getCsv,
    getCsvName: () => splitCsvName(getCsv()),
  };
}

async function readCsv(
  repository: OperatorRepository,
  directory: string,
  manifests: readonly string[],
): Promise<CheckedFile | OpmateError> {
  const name =
    manifests.find((file) => file.endsWith('.clusterserviceversion.yaml')) ??
    manifests.find((file) => file.endsWith('.clusterserviceversion.yml'));
  const parent = path.join(directory, 'manifests');
  if (name === undefined) {
    return new OpmateError('NOT_FOUND', 'no file *.clusterserviceversion.yaml', { about: parent });
  }
  try {
    return await readCheckedFile(repository, path.join(parent, name));
  } catch (error) {
    if (error instanceof OpmateError && error.code !== 'CANCELLED') return error;
    throw error;
  }
}

async function readAnnotations(repository: OperatorRepository, directory: string): Promise<CheckedFile> {
  const file = path.join(directory, 'metadata', 'annotations.yaml');
  const other = path.join(directory, 'metadata', 'annotations.yml');
  return readCheckedFile(repository, !(await isFile(file)) && (await isFile(other)) ? other : file);
}

function splitCsvName(csv: CheckedFile): { name: string; version: string } {
  const text = getText(csv.value, 'metadata', 'name');
  const dot = text.indexOf('.');
  if (dot <= 0 || dot === text.length - 1) {
    throw new OpmateError('INVALID', 'metadata.name has no version: expected NAME.vVERSION', {
      about: csv.file,
    });
  }
  return { name: text.slice(0, dot), version: text.slice(dot + 1).replace(/^v+/, '') };
}

/** Returns an annotation of `annotations.yaml`; empty if missing. */
export function getBundleAnnotation({ annotations }: CheckedBundle, key: string): string {
  const value = getValue(annotations.value, 'annotations', key);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : getText(value);
}

/** Returns the package of a bundle; empty if missing. */
export function getPackageName(bundle: CheckedBundle): string {
  return getBundleAnnotation(bundle, bundleKeys.package);
}

/** Returns the channels of a bundle. */
export function getChannels(bundle: CheckedBundle): string[] {
  const text = getBundleAnnotation(bundle, bundleKeys.channels);
  return text === '' ? [] : [...new Set(text.split(',').map((name) => name.trim()))];
}

/** Returns the annotations of the ClusterServiceVersion. Throws OpmateError if it is unreadable. */
export function getCsvAnnotations(bundle: CheckedBundle): Record<string, JsonValue> {
  return getObject(bundle.getCsv().value, 'metadata', 'annotations');
}

/**
 * Sorts bundles by the name and version of their ClusterServiceVersions: by semantic version, or by text if one is none.
 * Throws OpmateError for a name without a version.
 */
export function sortBundles(bundles: readonly CheckedBundle[]): CheckedBundle[] {
  const named = bundles.map((bundle) => {
    const { name, version } = bundle.getCsvName();
    return { bundle, name, version, parsed: tryParse(parseVersion, version) };
  });
  return named
    .sort((a, b) => {
      const byName = compareBytes(a.name, b.name);
      if (byName !== 0) return byName;
      if (a.parsed === undefined || b.parsed === undefined) return compareBytes(a.version, b.version);
      return compareVersions(a.parsed, b.parsed as Version);
    })
    .map(({ bundle }) => bundle);
}
