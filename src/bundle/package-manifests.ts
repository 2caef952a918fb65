import { addContext } from '../core/diagnostics-error.js';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { type CancelOptions, mapConcurrent } from '../core/concurrency.js';
import { CancelledError, LimitError, OpmateError, systemReason } from '../core/errors.js';
import { parseGoJson } from '../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../document/json.js';
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
import { listDirectory } from '../files/file-status.js';
import { filesAtOnce, maxBundleSize, maxFileSize, maxFiles } from './limits.js';
import { readFileWithin } from '../files/read-file.js';

/**
 * Package manifests, the format of operators before bundle images: a directory tree with one file per package, which
 * names the channel heads, and directories with ClusterServiceVersions and their manifests.
 */

/** A package and its channel heads. */
export interface PackageManifest {
  packageName: string;
  channels: { name: string; head: string }[];
  /** May be empty for a package with a single channel. */
  defaultChannel: string;
  file: string;
}

/** An item of a tree, in reading order. */
export type TreeItem =
  | { kind: 'bundle'; bundle: Bundle; file: string }
  | { kind: 'package'; manifest: PackageManifest }
  /** A fault; readable items follow anyway. */
  | { kind: 'problem'; error: OpmateError }
  /** A file other than a manifest. */
  | { kind: 'skipped'; file: string; reason: string };

interface ReadTreeOptions extends CancelOptions, LinkOptions {
  /** Name of the directory in messages. */
  label?: string | undefined;
}

const maxTreeEntries = 1_000_000;

/**
 * Reads a tree of package manifests, with one directory in memory at a time: the files of a directory in byte order of
 * names, then its subdirectories. Reads the first document of each file. Skips names that start with a dot, and files
 * that do not parse or contain no object unless named `.yaml`, `.yml` or `.json`. Links to directories, and unless
 * `followLinks` links out of the tree, are problems. (Source: directory loader of opm.)
 *
 * Throws OpmateError NOT_FOUND or IO if the directory itself cannot be listed, LIMIT beyond 1,000,000 entries, 10,000
 * files per directory, 64 MiB per file or 256 MiB of manifests per directory.
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
      entries = await listDirectory(place.path, { subject: place.label, file: place.label });
    } catch (error) {
      if (place.path === directory || !(error instanceof OpmateError)) throw error;
      yield { kind: 'problem', error };
      continue;
    }
    entryCount += entries.length;
    if (entryCount > maxTreeEntries)
      throw new LimitError(`more than ${maxTreeEntries} files`, { subject: label });
    const files: Place[] = [];
    const directories: Place[] = [];
    for (const entry of entries) {
      if (entry.name.startsWith('.')) continue;
      const file = {
        path: path.join(place.path, entry.name),
        label: path.posix.join(place.label, entry.name),
      };
      if (entry.isDirectory()) {
        directories.unshift(file);
        continue;
      }
      const outside = entry.isSymbolicLink()
        ? await outsideError(directory, file.path, file.label)
        : undefined;
      if (outside === undefined || followLinks === true) {
        files.push({ ...file, isOutside: outside !== undefined });
      } else yield { kind: 'problem', error: outside };
    }
    pending.push(...directories);
    if (files.length > maxFiles) {
      throw new LimitError(`${files.length} files in one directory, more than ${maxFiles}`, {
        subject: place.label,
        hint: 'move each version of an operator to a separate directory',
      });
    }
    yield* readDirectory(files, signal);
  }
}

interface Place {
  /** A link leads out of the tree. */
  isOutside?: boolean;
  path: string;
  /** Name in messages. */
  label: string;
}

/** A Kubernetes object. Only its text is kept, as a directory may contain many large ones. */
export interface EncodedManifest {
  /** Name of the file in messages. */
  file: string;
  /** Compact JSON with sorted keys. */
  text: string;
  /** Name of a ClusterServiceVersion, possibly empty; undefined for other kinds. */
  csvName: string | undefined;
  /** APIs of a custom resource definition. */
  provides: ApiKey[];
}

async function* readDirectory(files: readonly Place[], signal?: AbortSignal): AsyncGenerator<TreeItem> {
  return yield* new ManifestDirectory(files, signal).read();
}

/** Reads the manifests of one directory, and then its bundles. */
class ManifestDirectory {
  readonly #files: readonly Place[];
  readonly #signal: AbortSignal | undefined;
  readonly #manifests: EncodedManifest[] = [];
  readonly #faults: OpmateError[] = [];
  readonly #csvs: { manifest: EncodedManifest; place: Place }[] = [];
  #size = 0;

  constructor(files: readonly Place[], signal: AbortSignal | undefined) {
    this.#files = files;
    this.#signal = signal;
  }

  async *read(): AsyncGenerator<TreeItem> {
    for (let position = 0; position < this.#files.length; position += filesAtOnce) {
      const batch = this.#files.slice(position, position + filesAtOnce);
      const contents = await mapConcurrent(batch, filesAtOnce, readPlace, { signal: this.#signal });
      for (const [index, content] of contents.entries()) {
        if (Buffer.isBuffer(content)) yield* this.#readManifest(content, batch[index] as Place);
        else yield content;
      }
    }
    // Unreadable definitions matter to the bundles of their directory only.
    if (this.#csvs.length === 0) return;
    for (const error of this.#faults) yield { kind: 'problem', error };
    if (this.#faults.length > 0) return;
    for (const { manifest: csv, place } of this.#csvs) {
      const sameName = this.#csvs
        .map(({ manifest }) => manifest)
        .filter(({ csvName }) => csvName === csv.csvName);
      if (sameName.length > 1) {
        if (sameName[0] === csv) yield { kind: 'problem', error: createDuplicateError(sameName) };
        continue;
      }
      const own = this.#manifests.filter(({ csvName }) => csvName === undefined || csvName === csv.csvName);
      try {
        const { bundle, missing } = toBundle(csv, own);
        if (missing !== undefined) yield { kind: 'problem', error: missing };
        yield { kind: 'bundle', bundle, file: csv.file };
      } catch (error) {
        yield { kind: 'problem', error: addLine(error, place) };
      }
    }
  }

  /** Reads the first document; a package manifest may be a Kubernetes object too. */
  *#readManifest(content: Buffer, place: Place): Generator<TreeItem> {
    const { label: file } = place;
    const { value, error: syntaxError } = readFirstDocument(content);
    if (syntaxError !== undefined) {
      yield isManifestName(file)
        ? { kind: 'problem', error: locateFault(syntaxError, file) }
        : { kind: 'skipped', file, reason: syntaxError.message };
      return;
    }
    if (!isJsonObject(value)) {
      const isNothing = value === null;
      const mismatch = `first document: expected an object, got ${describeKind(value)}`;
      yield { kind: 'skipped', file, reason: isNothing ? 'its first document is empty' : mismatch };
      return;
    }
    try {
      const manifest = readPackageManifest(value, file);
      if (manifest !== undefined) yield { kind: 'package', manifest };
    } catch (error) {
      yield { kind: 'problem', error: toFault(error, file, content) };
    }
    if (!isKubernetesObject(value)) return;
    let manifest: EncodedManifest;
    try {
      manifest = toManifest(value, file);
    } catch (error) {
      this.#faults.push(toFault(error, file, content));
      return;
    }
    this.#manifests.push(manifest);
    if (manifest.csvName !== undefined) this.#csvs.push({ manifest, place });
    this.#size += manifest.text.length;
    if (this.#size > maxBundleSize) {
      throw new LimitError(
        `${file}: more than the ${maxBundleSize} bytes that the manifests of a directory may have are reached ` +
          'with this file',
      );
    }
  }
}

function createDuplicateError(manifests: readonly EncodedManifest[]): OpmateError {
  const [first, ...others] = manifests as [EncodedManifest, ...EncodedManifest[]];
  const names = others.map(({ file }) => path.posix.basename(file)).join(', ');
  return new OpmateError(
    'INVALID',
    `two csvs found in one bundle: ${JSON.stringify(first.csvName)} is also in ${names}`,
    { about: first.file, hint: 'keep one of these files' },
  );
}

/** Returns the content of a file, or the reason why it is not read. */
async function readPlace({
  path: file,
  label,
  isOutside = false,
}: Place): Promise<Buffer | Extract<TreeItem, { kind: 'problem' | 'skipped' }>> {
  const toProblem = (problem: string, hint?: string) => {
    const error = new OpmateError('IO', problem, { about: label, hint });
    return { kind: 'problem', error } as const;
  };
  try {
    const content = readFileWithin(file, (size) => {
      if (size > maxFileSize)
        throw new LimitError(`${size} bytes, more than ${maxFileSize}`, { about: label });
    });
    const fault = content && isOutside ? outsideManifestFault(content, label) : undefined;
    if (fault !== undefined) return { kind: 'problem', error: fault };
    if (content !== undefined) return content;
    const stats = await stat(file).catch(systemReason);
    if (typeof stats === 'string') return toProblem(`symbolic link: ${stats}`, 'remove or fix the link');
    if (!stats.isDirectory()) return { kind: 'skipped', file: label, reason: 'not a regular file' };
    const hint = 'replace it with the directory itself';
    return toProblem('symbolic link to a directory, which is not followed', hint);
  } catch (error) {
    if (!(error instanceof OpmateError) || error instanceof CancelledError) throw error;
    if (error.code !== 'LIMIT') return toProblem(error.problem);
    if (isManifestName(label)) throw error;
    return { kind: 'skipped', file: label, reason: 'too large for a manifest' };
  }
}

function isManifestName(name: string): boolean {
  return /\.(?:ya?ml|json)$/i.test(name);
}

/**
 * Encodes a Kubernetes object. Throws OpmateError INVALID for an unreadable custom resource definition, LIMIT for an
 * object that is nested too deeply.
 */
export function toManifest(value: JsonObject, file: string): EncodedManifest {
  const provides = value['kind'] === 'CustomResourceDefinition' ? customResourceApis(value) : [];
  const csvName = isCsv(value) ? getText(value, 'metadata', 'name') : undefined;
  return { file, text: manifestText(value), csvName, provides };
}

/**
 * Returns the bundle of a ClusterServiceVersion and its manifests, which include it; `missing` is the error for an
 * owned API without definition. Without metadata, the bundle has no package and channels, and only the properties of
 * its annotation. Throws OpmateError INVALID.
 */
export function toBundle(
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
    return { bundle, missing: findMissingApi(bundle, spec, file) };
  } catch (error) {
    throw toFault(error, file);
  }
}

function findMissingApi(bundle: Bundle, spec: JsonObject, file: string): OpmateError | undefined {
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
 * Reads a package manifest; undefined for an object without package name. Reads names that are numbers as strings.
 * Throws OpmateError INVALID with the path of a value of the wrong type.
 */
export function readPackageManifest(value: JsonObject, file: string): PackageManifest | undefined {
  const manifest = readTyped(value, packageType, { foldNames: true });
  const packageName = toName(manifest.packageName, ['packageName']);
  if (packageName === '') return undefined;
  const channels = readTyped(manifest.channels, channelList, { path: ['channels'], foldNames: true }) ?? [];
  return {
    packageName,
    channels: channels.map((channel, index) => ({
      name: toName(channel.name, ['channels', index, 'name']),
      head: toName(channel.currentCSV, ['channels', index, 'currentCSV']),
    })),
    defaultChannel: toName(manifest.defaultChannel, ['defaultChannel']),
    file,
  };
}

function toName(value: JsonValue, location: (string | number)[]): string {
  const text = scalarText(value);
  if (text !== undefined) return text;
  throw new TypeMismatchError(location, `expected a string, got ${describeKind(value)}`);
}

/** Adds the file and, if known, the line to an error. */
function toFault(error: unknown, file: string, content?: Buffer): OpmateError {
  if (!(error instanceof OpmateError)) throw error;
  return locateFault(error, file, content);
}

/** Adds the line to an error, which requires reading its file again. */
function addLine(error: unknown, { path: file }: Place): OpmateError {
  if (!(error instanceof OpmateError)) throw error;
  if (findMismatch(error) === undefined || error.file === undefined || error.line !== undefined) return error;
  return locateFault(error, error.file, readIfPossible(file));
}

function readIfPossible(file: string): Buffer | undefined {
  try {
    return readFileWithin(file, () => undefined);
  } catch {
    return undefined;
  }
}
