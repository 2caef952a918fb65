import { addContext } from '../core/diagnostics-error.js';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { CancelledError, LimitError, OpmateError, fileError, systemReason } from '../core/errors.js';
import { parseGoJson } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { type LinkOptions, outsideError } from '../files/directory-root.js';
import { type ApiKey, csvCustomResources, isCsv } from '../model/csv.js';
import { TypeMismatchError, findMismatch, structList, readTyped, struct } from '../kube/struct.js';
import { describeKind } from '../document/field.js';
import { getText } from '../document/json-fields.js';
import { locateFault, manifestText, outsideManifestFault, readFirstDocument } from './manifest.js';
import { scalarText } from './metadata.js';
import {
  type Bundle,
  annotatedProperties,
  checkOwnedApis,
  customResourceApis,
  isKubernetesObject,
  readCsvParts,
  sortApis,
} from './parse.js';
import { readFileWithin } from './read.js';

/**
 * Package manifests: how operators were laid out before bundles were images. A tree of directories holds a
 * file for each package, which names the ClusterServiceVersion at the head of each of its channels, and
 * directories in each of which one or more ClusterServiceVersions stand with the manifests that they need.
 */

/** A package and the ClusterServiceVersions that head its channels. */
export interface PackageManifest {
  packageName: string;
  channels: { name: string; head: string }[];
  /** May be empty. */
  defaultChannel: string;
  /** The file that says so. */
  file: string;
}

/** What is found in a tree, in the order in which it is found. */
export type TreeItem =
  | { kind: 'bundle'; bundle: Bundle; file: string }
  | { kind: 'package'; manifest: PackageManifest }
  /** Something that is wrong; what can be read in spite of it follows. */
  | { kind: 'problem'; error: OpmateError }
  /** A file that is no manifest. */
  | { kind: 'skipped'; file: string; reason: string };

interface ReadTreeOptions extends CancelOptions, LinkOptions {
  /** How messages name the directory. */
  label?: string | undefined;
}

const maxFileSize = 64 * 1024 * 1024;
/** Bytes of the manifests in one directory: all of them can be part of one bundle. */
const maxDirectorySize = 256 * 1024 * 1024;
const maxDirectoryFiles = 10_000;
const maxTreeEntries = 1_000_000;
const filesAtOnce = 8;

/**
 * Reads a tree of package manifests, one directory in memory at a time: the files of a directory in byte
 * order of their names, then its directories. Of each file the first document counts. Files and directories
 * whose names begin with a dot are passed over, and so is what is plainly no manifest: text in no format, or
 * with no object in it, in a file that is not called `.yaml`, `.yml` or `.json`. Links to files are followed;
 * those to directories, and unless `followLinks` those that lead out of the tree, are problems. (Source: `opm`'s
 * loader of directories.)
 *
 * Throws OpmateError NOT_FOUND or IO when the directory itself cannot be listed, LIMIT beyond 1,000,000
 * entries, 10,000 files in a directory, 64 MiB in a file or 256 MiB in the manifests of a directory.
 */
export async function* readPackageManifests(
  directory: string,
  options: ReadTreeOptions = {},
): AsyncGenerator<TreeItem> {
  const { label = directory, signal, followLinks } = options;
  const pending: Place[] = [{ path: directory, label }];
  let entryCount = 0;
  for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
    let entries;
    try {
      entries = await readdir(place.path, { withFileTypes: true });
    } catch (error) {
      const failure = fileError(place.label, error, { file: place.label });
      if (place.path === directory) throw failure;
      yield { kind: 'problem', error: failure };
      continue;
    }
    entryCount += entries.length;
    if (entryCount > maxTreeEntries)
      throw new LimitError(`more than ${maxTreeEntries} files`, { subject: label });
    const visible = entries
      .filter(({ name }) => !name.startsWith('.'))
      .sort((a, b) => compareBytes(a.name, b.name));
    const { path: parent, label: parentLabel } = place;
    const findPlace = ({ name }: { name: string }): Place => ({
      path: path.join(parent, name),
      label: path.posix.join(parentLabel, name),
    });
    pending.push(
      ...visible
        .filter((entry) => entry.isDirectory())
        .map(findPlace)
        .reverse(),
    );
    const files: Place[] = [];
    for (const entry of visible) {
      if (entry.isDirectory()) continue;
      const file = findPlace(entry);
      const outside = entry.isSymbolicLink()
        ? await outsideError(directory, file.path, file.label)
        : undefined;
      if (outside === undefined || followLinks === true) {
        files.push({ ...file, isOutside: outside !== undefined });
      } else yield { kind: 'problem', error: outside };
    }
    if (files.length > maxDirectoryFiles) {
      throw new LimitError(`${files.length} files in one directory, more than ${maxDirectoryFiles}`, {
        subject: place.label,
        hint: 'move each version of an operator to a separate directory',
      });
    }
    yield* readDirectory(files, signal);
  }
}

/** Where a file or directory is, and how messages name it. */
interface Place {
  /** A link leads out of the tree. */
  isOutside?: boolean;
  path: string;
  label: string;
}

/** What a file holds. */
type FileContent =
  | { kind: 'manifest'; manifest: EncodedManifest }
  | { kind: 'other'; value: JsonObject }
  | Extract<TreeItem, { kind: 'problem' | 'skipped' }>;

/** A Kubernetes object. Only its text is kept: a directory may hold many large ones. */
export interface EncodedManifest {
  /** How messages name the file that it is in. */
  file: string;
  /** As compact JSON with sorted keys. */
  text: string;
  /** For a ClusterServiceVersion its name, which may be empty; undefined for all else. */
  csvName: string | undefined;
  /** What a custom resource definition provides. */
  provides: ApiKey[];
}

async function* readDirectory(files: readonly Place[], signal?: AbortSignal): AsyncGenerator<TreeItem> {
  const manifests: EncodedManifest[] = [];
  const faults: OpmateError[] = [];
  const csvs: { manifest: EncodedManifest; place: Place }[] = [];
  let size = 0;
  for (let position = 0; position < files.length; position += filesAtOnce) {
    const some = files.slice(position, position + filesAtOnce);
    const contents = await mapConcurrent(some, filesAtOnce, readPlace, { signal });
    for (const [index, content] of contents.entries()) {
      const place = some[index] as Place;
      if (!Buffer.isBuffer(content)) {
        yield content;
        continue;
      }
      for (const item of parseManifestFile(content, place.label)) {
        if (item.kind === 'manifest') {
          const { manifest } = item;
          manifests.push(manifest);
          if (manifest.csvName !== undefined) csvs.push({ manifest, place });
          size += manifest.text.length;
          if (size > maxDirectorySize) {
            throw new LimitError(
              `${place.label}: more than the ${maxDirectorySize} bytes that the manifests of a directory may have ` +
                'are reached with this file',
            );
          }
        } else if (item.kind === 'fault') faults.push(item.error);
        else yield item;
      }
    }
  }
  // Definitions that cannot be read matter only to bundles that would have them.
  if (csvs.length === 0) return;
  for (const error of faults) yield { kind: 'problem', error };
  if (faults.length > 0) return;
  for (const { manifest: csv, place } of csvs) {
    const rivals = csvs.filter(({ manifest }) => manifest.csvName === csv.csvName);
    if (rivals.length > 1) {
      if (rivals[0]?.manifest === csv)
        yield { kind: 'problem', error: twoCsvs(rivals.map((item) => item.manifest)) };
      continue;
    }
    const own = manifests.filter(({ csvName }) => csvName === undefined || csvName === csv.csvName);
    try {
      yield* bundleItems(csv, own);
    } catch (error) {
      yield { kind: 'problem', error: await withLine(error, place) };
    }
  }
}

function* bundleItems(csv: EncodedManifest, manifests: readonly EncodedManifest[]): Generator<TreeItem> {
  const { bundle, missing } = bundleOfManifests(csv, manifests);
  if (missing !== undefined) yield { kind: 'problem', error: missing };
  yield { kind: 'bundle', bundle, file: csv.file };
}

function twoCsvs(manifests: readonly EncodedManifest[]): OpmateError {
  const [first, ...others] = manifests as [EncodedManifest, ...EncodedManifest[]];
  const names = others.map(({ file }) => path.posix.basename(file)).join(', ');
  return new OpmateError(
    'INVALID',
    `two csvs found in one bundle: ${JSON.stringify(first.csvName)} is also in ${names}`,
    { subject: first.file, file: first.file, hint: 'keep one of these files' },
  );
}

/** The content of a file, or what it is instead of a manifest. */
async function readPlace({
  path: file,
  label,
  isOutside = false,
}: Place): Promise<Buffer | (FileContent & { kind: 'problem' | 'skipped' })> {
  const problem = (what: string, hint?: string) =>
    ({ kind: 'problem', error: new OpmateError('IO', what, { subject: label, file: label, hint }) }) as const;
  try {
    const content = await readFileWithin(file, (size) => {
      if (size > maxFileSize)
        throw new LimitError(`${size} bytes, more than ${maxFileSize}`, { subject: label, file: label });
    });
    const fault = content && isOutside ? outsideManifestFault(content, label) : undefined;
    if (fault !== undefined) return { kind: 'problem', error: fault };
    if (content !== undefined) return content;
    const stats = await stat(file).catch((error: unknown) => error);
    if (stats instanceof Error)
      return problem(`symbolic link: ${systemReason(stats)}`, 'remove or fix the link');
    const { isDirectory } = stats as { isDirectory?: () => boolean };
    if (isDirectory?.call(stats) === true)
      return problem(
        'symbolic link to a directory, which is not followed',
        'replace it with the directory itself',
      );
    return { kind: 'skipped', file: label, reason: 'not a regular file' };
  } catch (error) {
    if (!(error instanceof OpmateError) || error instanceof CancelledError) throw error;
    if (error.code !== 'LIMIT') return problem(error.problem);
    if (isManifestName(label)) throw error;
    return { kind: 'skipped', file: label, reason: 'too large for a manifest' };
  }
}

function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name);
}

/** What the first document of a file is; a package manifest may be a Kubernetes object too. */
function* parseManifestFile(
  content: Buffer,
  file: string,
): Generator<
  TreeItem | { kind: 'manifest'; manifest: EncodedManifest } | { kind: 'fault'; error: OpmateError }
> {
  const { value, error: fault } = readFirstDocument(content);
  if (fault !== undefined) {
    if (isManifestName(file)) yield { kind: 'problem', error: locateFault(fault, file) };
    else yield { kind: 'skipped', file, reason: fault.message };
    return;
  }
  if (!isJsonObject(value)) {
    const reason =
      value === null
        ? 'its first document is empty'
        : `first document: expected an object, got ${describeKind(value)}`;
    yield { kind: 'skipped', file, reason };
    return;
  }
  try {
    const manifest = readPackageManifest(value, file);
    if (manifest !== undefined) yield { kind: 'package', manifest };
  } catch (error) {
    yield { kind: 'problem', error: toFault(error, file, content) };
  }
  if (!isKubernetesObject(value)) return;
  try {
    yield { kind: 'manifest', manifest: toManifest(value, file) };
  } catch (error) {
    yield { kind: 'fault', error: toFault(error, file, content) };
  }
}

/**
 * A Kubernetes object as part of a bundle. Throws OpmateError INVALID for a custom resource definition that
 * cannot be read, LIMIT for an object that is nested too deep.
 */
export function toManifest(value: JsonObject, file: string): EncodedManifest {
  const provides = value['kind'] === 'CustomResourceDefinition' ? customResourceApis(value) : [];
  return { file, text: manifestText(value), csvName: isCsv(value) ? getName(value) : undefined, provides };
}

function getName(value: JsonObject): string {
  return getText(value, 'metadata', 'name');
}

/**
 * Makes a bundle of a ClusterServiceVersion and the manifests around it, itself among them; `missing` is what
 * is wrong when it owns an API that none of them defines. There is no metadata: the bundle names no package
 * and no channels, and its properties are those of its annotation. Throws OpmateError INVALID.
 */
export function bundleOfManifests(
  csv: EncodedManifest,
  manifests: readonly EncodedManifest[],
): { bundle: Bundle; missing: OpmateError | undefined } {
  const { file } = csv;
  try {
    const value = parseGoJson(csv.text) as JsonObject;
    const { annotations, spec, ownedServices, ...fields } = readCsvParts(value);
    if (fields.name === '') {
      throw new OpmateError('INVALID', 'csv name not found', { hint: 'set metadata.name' });
    }
    const bundle: Bundle = {
      ...fields,
      packageName: '',
      channels: [],
      defaultChannel: '',
      release: '',
      csv: value,
      csvText: csv.text,
      objects: manifests.map(({ text }) => text),
      properties: annotatedProperties(annotations),
      dependencies: [],
      providedApis: sortApis([...manifests.flatMap(({ provides }) => provides), ...ownedServices]),
      skippedFiles: [],
    };
    return { bundle, missing: missingApi(bundle, spec, file) };
  } catch (error) {
    throw toFault(error, file);
  }
}

function missingApi(bundle: Bundle, spec: JsonObject, file: string): OpmateError | undefined {
  try {
    const owned = csvCustomResources(spec, 'owned');
    checkOwnedApis(file, bundle.name, owned, bundle.providedApis, file);
    return undefined;
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    return addContext(error, {
      subject: file,
      file,
      newHint:
        'add the definition next to the ClusterServiceVersion, or fix spec.customresourcedefinitions.owned',
    });
  }
}

const packageType = struct({ packageName: 'raw', channels: 'raw', defaultChannel: 'raw' });
const channelList = structList({ name: 'raw', currentCSV: 'raw' });

/**
 * Reads a package manifest; undefined where the object is none, as it names no package. Names that are
 * written as numbers are taken as text. Throws OpmateError INVALID with the path of what has a wrong kind.
 */
export function readPackageManifest(value: JsonObject, file: string): PackageManifest | undefined {
  const manifest = readTyped(value, packageType, { foldNames: true });
  const packageName = textAt(manifest.packageName, ['packageName']);
  if (packageName === '') return undefined;
  const channels = readTyped(manifest.channels, channelList, { path: ['channels'], foldNames: true }) ?? [];
  return {
    packageName,
    channels: channels.map((channel, index) => ({
      name: textAt(channel.name, ['channels', index, 'name']),
      head: textAt(channel.currentCSV, ['channels', index, 'currentCSV']),
    })),
    defaultChannel: textAt(manifest.defaultChannel, ['defaultChannel']),
    file,
  };
}

function textAt(value: JsonValue, where: (string | number)[]): string {
  const text = scalarText(value);
  if (text === undefined) throw new TypeMismatchError(where, `expected a string, got ${describeKind(value)}`);
  return text;
}

/** A fault with its file and, as far as it can be known, its line. */
function toFault(error: unknown, file: string, content?: Buffer): OpmateError {
  if (!(error instanceof OpmateError)) throw error;
  return locateFault(error, file, content);
}

/** Finds the line of a fault by reading its file once more. */
async function withLine(error: unknown, { path: file }: Place): Promise<OpmateError> {
  if (!(error instanceof OpmateError)) throw error;
  if (findMismatch(error) === undefined || error.file === undefined || error.line !== undefined) return error;
  const content = await readFileWithin(file, () => undefined).catch(() => undefined);
  return locateFault(error, error.file, content);
}
