import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { digestOf, isDigest } from '../../core/digest.js';
import { OpmateError, fileError } from '../../core/errors.js';
import { readRegularFile } from '../../files/read-file.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, isJsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import { NameIndex } from '../../core/suggest.js';
import type { CatalogOrigin } from '../../source/origin.js';
import { catalogNameFault } from '../http/catalog-names.js';
import {
  FieldReader,
  type ManifestFault,
  type ManifestObject,
  fieldOf,
  manifestError,
  readManifestObjects,
} from './manifest-reader.js';

/** A catalog that is to be served, as a manifest says. */
export interface CatalogManifest {
  name: string;
  kind: string;
  /** As the user named it. */
  file: string;
  line: number;
  labels: Readonly<Record<string, string>>;
  priority: number;
  isAvailable: boolean;
  /** How often to look for another state; never where it is left out. */
  pollMs: number | undefined;
  origin: CatalogOrigin;
  /** The same for as long as the catalog comes from the same place. */
  originKey: string;
  /** The same for as long as nothing that counts has changed. */
  key: string;
}

/** The label that a cluster gives each catalog, so that selectors can choose by name. (Source: catalogd.) */
export const nameLabel = 'olm.operatorframework.io/metadata.name';

/** A manifest, or what is in the place of one, that cannot be used. */
export interface RefusedManifest {
  /** Of the catalog, where that much can be read. */
  name: string | undefined;
  /** As the user named it. */
  file: string;
  /** Of its first fault; 0 where the file cannot be read. */
  line: number;
  error: OpmateError;
}

export interface CatalogManifests {
  /** By name. */
  manifests: CatalogManifest[];
  refused: RefusedManifest[];
}

const maxFiles = 1_000;
const maxCatalogs = 500;
const maxFileBytes = 16 * 1024 * 1024;

/** What the directory holds at this moment, to be compared; reading its manifests again may tell the same. */
export async function manifestsVersion(directory: string): Promise<string> {
  const lines: string[] = [];
  for (const name of await manifestNames(directory)) {
    const found = await stat(path.join(directory, name)).catch(() => undefined);
    lines.push(`${name} ${found?.size} ${found?.mtimeMs} ${found?.ctimeMs} ${found?.ino}`);
  }
  return digestOf(lines.join('\n'));
}

async function manifestNames(directory: string): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    throw fileError(directory, error);
  }
  const manifests = names.filter((name) => /\.(?:ya?ml|json)$/i.test(name) && !name.startsWith('.'));
  if (manifests.length <= maxFiles) return sortedByBytes(manifests);
  throw new OpmateError('LIMIT', `${directory}: more than ${maxFiles} manifests`);
}

/**
 * Reads the manifests in a directory, not those further down: ClusterCatalog and CatalogSource, also what they were
 * called before, and the ConfigMaps that they name. Other kinds are passed over, and told. Relative paths count from
 * the directory. One that is wrong does not keep the others from being used: it is refused, with every fault of it, each
 * with file and line. Throws OpmateError where the directory itself cannot be used.
 */
export async function readCatalogManifests(directory: string, logger: Logger): Promise<CatalogManifests> {
  const faults: ManifestFault[] = [];
  const refused: RefusedManifest[] = [];
  const objects: ManifestObject[] = [];
  for (const name of await manifestNames(directory)) {
    const file = path.join(directory, name);
    try {
      const text = await readManifest(file);
      // An editor that has just begun to write would otherwise take catalogs away.
      if (text.trim() === '') faults.push({ file, line: 1, message: 'is empty', hint: 'remove the file' });
      objects.push(...readManifestObjects(file, text, faults));
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      refused.push({ name: undefined, file, line: 0, error });
    }
  }
  const { configMaps, others } = sortOut(objects, faults);
  const byName = new Map<string, CatalogManifest>();
  for (const object of others) {
    const own: ManifestFault[] = [];
    const catalog = readCatalog(object, { directory, configMaps, faults: own, logger });
    const other = catalog && byName.get(catalog.name);
    if (other !== undefined) {
      const { name, file, line } = catalog as CatalogManifest;
      const message = `metadata.name: duplicate catalog ${quoteGo(name)}, first defined in ${other.file}:${other.line}`;
      // It has no name of its own: that is the other's.
      faults.push({
        file,
        line,
        message,
        hint: 'names tell catalogs apart, also those of several namespaces',
      });
    } else if (own.length > 0) {
      refused.push(refusedFor(nameIn(object.value), own));
    } else if (catalog !== undefined) byName.set(catalog.name, catalog);
  }
  if (byName.size > maxCatalogs) {
    throw new OpmateError('LIMIT', `${directory}: more than ${maxCatalogs} catalogs`);
  }
  const byFile = new Map<string, ManifestFault[]>();
  for (const fault of faults) byFile.set(fault.file, [...(byFile.get(fault.file) ?? []), fault]);
  for (const own of byFile.values()) refused.push(refusedFor(undefined, own));
  return {
    manifests: [...byName.values()].sort((a, b) => compareBytes(a.name, b.name)),
    refused: refused
      // A valid manifest of the same name is what counts for it.
      .map((one) => (one.name !== undefined && byName.has(one.name) ? { ...one, name: undefined } : one))
      .sort((a, b) => compareBytes(a.file, b.file) || a.line - b.line),
  };
}

/** All faults of one manifest, or of one file. */
function refusedFor(name: string | undefined, faults: readonly ManifestFault[]): RefusedManifest {
  const sorted = [...faults].sort((a, b) => a.line - b.line);
  const { file, line } = sorted[0] as ManifestFault;
  return { name, file, line, error: manifestError(sorted) };
}

/** The name of a manifest with faults, where that is none of them. */
function nameIn(value: JsonObject): string | undefined {
  const metadata = fieldOf(value, 'metadata');
  const name = isJsonObject(metadata ?? null) ? fieldOf(metadata as JsonObject, 'name') : undefined;
  return typeof name === 'string' && catalogNameFault(name) === undefined ? name : undefined;
}

async function readManifest(file: string): Promise<string> {
  try {
    return String(await readRegularFile(file, maxFileBytes));
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

function sortOut(
  objects: readonly ManifestObject[],
  faults: ManifestFault[],
): { configMaps: Map<string, JsonObject>; others: (ManifestObject & { value: JsonObject })[] } {
  const configMaps = new Map<string, JsonObject>();
  const others: (ManifestObject & { value: JsonObject })[] = [];
  for (const object of objects) {
    const { value } = object;
    const reader = new FieldReader(object, faults);
    if (!isJsonObject(value)) reader.fail([], 'expected a manifest');
    else if (fieldOf(value, 'kind') === 'ConfigMap') {
      const metadata = reader.object(value, [], 'metadata') ?? {};
      const name = reader.requiredText(metadata, ['metadata'], 'name');
      if (name === undefined) continue;
      const key = configMapKey(reader.text(metadata, ['metadata'], 'namespace'), name);
      if (configMaps.has(key)) reader.fail(['metadata', 'name'], `there are two ConfigMaps ${quoteGo(key)}`);
      configMaps.set(key, value);
    } else others.push({ ...object, value });
  }
  return { configMaps, others };
}

function configMapKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

interface ReadContext {
  directory: string;
  configMaps: ReadonlyMap<string, JsonObject>;
  faults: ManifestFault[];
  logger: Logger;
}

/** Groups that have called their catalogs so. */
const clusterKinds: Readonly<Record<string, readonly string[]>> = {
  ClusterCatalog: [
    'olm.operatorframework.io/v1',
    'olm.operatorframework.io/v1alpha1',
    'catalogd.operatorframework.io/v1alpha1',
  ],
  Catalog: [
    'catalogd.operatorframework.io/v1alpha1',
    'catalogd.operatorframework.io/v1beta1',
    'core.rukpak.io/v1alpha1',
  ],
};
const sourceApi = 'operators.coreos.com/v1alpha1';
const kinds = [...Object.keys(clusterKinds), 'CatalogSource'];

function readCatalog(
  object: ManifestObject & { value: JsonObject },
  context: ReadContext,
): CatalogManifest | undefined {
  const { value, file } = object;
  const reader = new FieldReader(object, context.faults);
  const kind = reader.requiredText(value, [], 'kind');
  if (kind === undefined) return undefined;
  if (!kinds.includes(kind)) {
    const near = new NameIndex(kinds).nearest(kind);
    if (near !== undefined)
      return reader.fail(['kind'], `unknown kind ${quoteGo(kind)}`, `did you mean ${near}`);
    const where = `${file}:${reader.lineOf(['kind'])}`;
    context.logger.log('warn', `${where}: kind ${quoteGo(kind)} says nothing about catalogs, passed over`);
    return undefined;
  }
  const versions = clusterKinds[kind] ?? [sourceApi];
  const apiVersion = reader.choice(value, [], 'apiVersion', versions);
  if (fieldOf(value, 'apiVersion') === undefined) reader.fail(['apiVersion'], 'is missing');
  reader.checkKeys(value, [], ['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  const metadata = reader.object(value, [], 'metadata');
  const spec = reader.object(value, [], 'spec');
  if (metadata === undefined && fieldOf(value, 'metadata') === undefined)
    reader.fail(['metadata'], 'is missing');
  if (spec === undefined && fieldOf(value, 'spec') === undefined) reader.fail(['spec'], 'is missing');
  const name = metadata && reader.requiredText(metadata, ['metadata'], 'name');
  const fault = name === undefined ? undefined : catalogNameFault(name);
  if (fault !== undefined) reader.fail(['metadata', 'name'], `${quoteGo(name ?? '')} ${fault}`);
  if (metadata === undefined || spec === undefined) return undefined;
  const labels = readLabels(reader, metadata, name ?? '');
  const namespace = reader.text(metadata, ['metadata'], 'namespace');
  const read =
    kind === 'CatalogSource'
      ? readCatalogSource(reader, spec, { ...context, namespace, file })
      : readClusterCatalog(reader, spec, {
          ...context,
          file,
          isFirst: apiVersion !== versions[0] || kind === 'Catalog',
        });
  if (name === undefined || read?.origin === undefined) return undefined;
  const { origin, priority, isAvailable, pollMs } = read;
  const originKey = keyOf(origin as unknown as JsonValue);
  const key = keyOf([originKey, labels, priority, isAvailable, pollMs ?? 0]);
  const line = reader.lineOf(['metadata', 'name']);
  return { name, kind, file, line, labels, priority, isAvailable, pollMs, origin, originKey, key };
}

function keyOf(value: JsonValue): string {
  return digestOf(encodeGoJson(sortKeysDeep(value)));
}

function readLabels(reader: FieldReader, metadata: JsonObject, name: string): Record<string, string> {
  const labels: Record<string, string> = {};
  const given = reader.object(metadata, ['metadata'], 'labels') ?? {};
  for (const key of Object.keys(given)) {
    if (!/^[A-Za-z0-9][-A-Za-z0-9._/]{0,316}$/.test(key)) {
      reader.fail(['metadata', 'labels', key], 'is no name of a label');
      continue;
    }
    labels[key] = reader.text(given, ['metadata', 'labels'], key, 63) ?? '';
  }
  labels[nameLabel] = name;
  return labels;
}

interface ReadSpec {
  origin: CatalogOrigin | undefined;
  priority: number;
  isAvailable: boolean;
  pollMs: number | undefined;
}

const int32 = [-(2 ** 31), 2 ** 31 - 1] as const;
/** Longer than a timer can be set, and than anybody means. */
const maxPollMinutes = 30 * 24 * 60;

function readClusterCatalog(
  reader: FieldReader,
  spec: JsonObject,
  context: ReadContext & { file: string; isFirst: boolean },
): ReadSpec | undefined {
  const { isFirst } = context;
  const at = ['spec'];
  reader.checkKeys(spec, at, [
    'source',
    'priority',
    'availabilityMode',
    ...(isFirst ? ['availability'] : []),
  ]);
  const priority = reader.integer(spec, at, 'priority', int32) ?? 0;
  const mode =
    reader.choice(spec, at, 'availabilityMode', ['Available', 'Unavailable']) ??
    (isFirst
      ? reader.choice(spec, at, 'availability', ['Available', 'Unavailable', 'Enabled', 'Disabled'])
      : undefined);
  const isAvailable = mode !== 'Unavailable' && mode !== 'Disabled';
  const sourceAt = [...at, 'source'];
  const source = reader.object(spec, at, 'source');
  if (source === undefined) {
    if (fieldOf(spec, 'source') === undefined) reader.fail(sourceAt, 'is missing');
    return undefined;
  }
  const member = readMember(reader, source, sourceAt, isFirst);
  if (member === undefined) return undefined;
  const { origin, pollMs } = readUnion(reader, member, [...sourceAt, member.key], context);
  return { origin, priority, isAvailable, pollMs };
}

/** Kinds of sources, each with the field that describes it. */
export const unionTypes = {
  Image: 'image',
  Artifact: 'artifact',
  Directory: 'directory',
  Git: 'git',
  HTTP: 'http',
  ConfigMap: 'configMap',
} as const;

interface UnionMember {
  type: keyof typeof unionTypes;
  key: string;
  value: JsonObject;
  isFirst: boolean;
}

/** The member of the union that `type` names, and no other. */
function readMember(
  reader: FieldReader,
  source: JsonObject,
  at: string[],
  isFirst: boolean,
): UnionMember | undefined {
  const types = Object.keys(unionTypes) as (keyof typeof unionTypes)[];
  reader.checkKeys(source, at, ['type', ...Object.values(unionTypes)]);
  let type: keyof typeof unionTypes | undefined;
  const given = fieldOf(source, 'type');
  // The first API had it in lower case.
  if (isFirst && given === 'image') type = 'Image';
  else type = reader.choice(source, at, 'type', types);
  if (given === undefined || given === '')
    return reader.fail([...at, 'type'], 'is missing', 'e.g. type: Image');
  if (type === undefined) return undefined;
  const key = unionTypes[type];
  for (const other of Object.values(unionTypes)) {
    if (other !== key && fieldOf(source, other) !== undefined) {
      reader.fail(
        [...at, other],
        `does not go with type ${type}`,
        `leave out either, or write type: ${typeOf(other)}`,
      );
    }
  }
  const value = reader.object(source, at, key);
  if (value !== undefined) return { type, key, value, isFirst };
  if (fieldOf(source, key) === undefined) reader.fail([...at, key], `is missing, which type ${type} needs`);
  return undefined;
}

function typeOf(key: string): string {
  return Object.entries(unionTypes).find(([, member]) => member === key)?.[0] ?? '';
}

function readUnion(
  reader: FieldReader,
  { type, key, value, isFirst }: UnionMember,
  at: string[],
  context: ReadContext & { file: string },
): { origin: CatalogOrigin | undefined; pollMs: number | undefined } {
  const poll = ['pollIntervalMinutes'];
  const minutes = reader.integer(value, at, 'pollIntervalMinutes', [1, maxPollMinutes]);
  let pollMs = minutes === undefined ? undefined : minutes * 60_000;
  const within = (): { directory?: string } => readWithin(reader, value, at);
  switch (type) {
    case 'Image': {
      const first = isFirst ? ['pollInterval', 'pullSecret', 'insecureSkipTLSVerify'] : [];
      reader.checkKeys(value, at, ['ref', ...poll, ...first]);
      if (isFirst) {
        pollMs ??= readDuration(reader, value, at, 'pollInterval');
        warnOfSecret(reader, value, at, context);
      }
      const ref = readImageRef(reader, value, at, 'ref', context.directory);
      if (pollMs !== undefined && ref !== undefined && isPinnedRef(ref)) {
        const named = minutes === undefined ? 'pollInterval' : 'pollIntervalMinutes';
        reader.fail([...at, named], 'an image named by digest never changes', 'leave it out, or name a tag');
      }
      return { origin: ref === undefined ? undefined : { type, ref }, pollMs };
    }
    case 'Artifact': {
      reader.checkKeys(value, at, ['ref', 'directory', ...poll]);
      const ref = readImageRef(reader, value, at, 'ref', context.directory);
      return { origin: ref === undefined ? undefined : { type, ref, ...within() }, pollMs };
    }
    case 'Directory': {
      reader.checkKeys(value, at, ['path', ...poll]);
      const given = reader.requiredText(value, at, 'path');
      if (given?.includes('\0') === true) reader.fail([...at, 'path'], 'is no path');
      const origin = given === undefined ? undefined : { type, path: path.resolve(context.directory, given) };
      return { origin, pollMs };
    }
    case 'Git': {
      reader.checkKeys(value, at, ['repository', 'ref', 'directory', ...poll]);
      const repository = readRepository(reader, value, at);
      const ref = reader.object(value, at, 'ref', ['branch', 'tag', 'commit']) ?? {};
      const named = readGitRef(reader, ref, [...at, 'ref']);
      const origin = repository === undefined ? undefined : { type, repository, ...named, ...within() };
      return { origin, pollMs };
    }
    case 'HTTP': {
      reader.checkKeys(value, at, ['url', 'directory', 'insecure', ...poll]);
      const url = readUrl(reader, value, at);
      const insecure = reader.boolean(value, at, 'insecure') === true ? { insecure: true } : {};
      return { origin: url === undefined ? undefined : { type, url, ...insecure, ...within() }, pollMs };
    }
    case 'ConfigMap': {
      reader.checkKeys(value, at, ['name', 'namespace']);
      const name = reader.requiredText(value, at, 'name');
      const namespace = reader.text(value, at, 'namespace');
      const origin =
        name === undefined ? undefined : configMapOf(reader, name, namespace, [...at, 'name'], context);
      return { origin, pollMs: undefined };
    }
    default:
      return { origin: reader.fail([...at, key], 'unknown type'), pollMs };
  }
}

function warnOfSecret(
  reader: FieldReader,
  value: JsonObject,
  at: string[],
  context: ReadContext & { file: string },
): void {
  const secret = reader.text(value, at, 'pullSecret');
  if (secret === undefined) return;
  const place = `${context.file}:${reader.lineOf([...at, 'pullSecret'])}`;
  context.logger.log('warn', `${place}: pullSecret is in the cluster; give its content with --authfile`);
}

/** A directory inside of something, without leaving it. */
function readWithin(reader: FieldReader, value: JsonObject, at: string[]): { directory?: string } {
  const directory = reader.text(value, at, 'directory');
  if (directory === undefined) return {};
  const normal = path.posix.normalize(directory).replace(/^\/+|\/+$/g, '');
  if (normal === '.' || normal === '') return {};
  const leaves = directory.split('/').includes('..') || /[\0\\]/.test(directory) || normal.startsWith('-');
  if (leaves) reader.fail([...at, 'directory'], `${quoteGo(directory)} is no path inside of the source`);
  return { directory: normal };
}

/**
 * An image: in a registry, with its registry written out and with tag or digest; or in a layout or archive, whose
 * relative path is made absolute. (Source: rules of ClusterCatalog.)
 */
function readImageRef(
  reader: FieldReader,
  value: JsonObject,
  at: string[],
  key: string,
  directory: string,
): string | undefined {
  const ref = reader.requiredText(value, at, key);
  if (ref === undefined) return undefined;
  const path_ = [...at, key];
  const local = /^(oci|oci-archive|docker-archive):(.+)$/s.exec(ref);
  const full = local === null ? ref : `${local[1]}:${path.resolve(directory, local[2] as string)}`;
  const shown = quoteGo(withoutCredentials(ref));
  let reference;
  try {
    reference = parseReference(full);
  } catch (error) {
    if (!(error instanceof OpmateError)) throw error;
    const problem = error.message.replace(/^image reference .*?": /s, '');
    return reader.fail(path_, `${shown} is no image reference: ${problem}`, error.hint);
  }
  if (reference.transport !== 'docker') return full;
  const host = ref.replace(/^docker:\/\//, '').split('/', 1)[0] as string;
  if (!ref.includes('/') || (host !== 'localhost' && !/[.:]/.test(host))) {
    return reader.fail(path_, `${shown} names no registry`, `write docker.io/${ref} if that is meant`);
  }
  if (reference.tag === undefined && reference.digest === undefined) {
    return reader.fail(path_, `${shown} has neither tag nor digest`, `write e.g. ${ref}:latest`);
  }
  if (reference.digest !== undefined && !isDigest(reference.digest)) {
    return reader.fail(path_, `${shown} has no valid digest`);
  }
  return full;
}

function isPinnedRef(ref: string): boolean {
  return parseReference(ref).digest !== undefined;
}

function readUrl(reader: FieldReader, value: JsonObject, at: string[]): string | undefined {
  const text = reader.requiredText(value, at, 'url');
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    return reader.fail(
      [...at, 'url'],
      'is not an http or https URL',
      'write e.g. https://example.com/catalog.tar.gz',
    );
  }
  if (url.username !== '' || url.password !== '') {
    return reader.fail([...at, 'url'], 'credentials do not belong into a URL', 'put them into an auth file');
  }
  return url.href;
}

function readRepository(reader: FieldReader, value: JsonObject, at: string[]): string | undefined {
  const text = reader.requiredText(value, at, 'repository');
  if (text === undefined) return undefined;
  const path_ = [...at, 'repository'];
  const scp = /^([\w.-]+@)?[\w.-]+:(?!\/\/)[\w./~-]+$/.test(text) && !text.startsWith('-');
  if (scp) return text;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['https:', 'ssh:', 'file:'].includes(url.protocol)) {
    const hint = 'write https://HOST/PATH, ssh://git@HOST/PATH or file:///PATH';
    return reader.fail(path_, 'is not the URL of a git repository', hint);
  }
  if (url.password !== '' || (url.username !== '' && url.protocol !== 'ssh:')) {
    return reader.fail(path_, 'credentials do not belong into a URL', 'use ssh with a key');
  }
  if (/^[a-z]+:\/\/-/.test(text) || (url.protocol === 'file:' && url.host !== '')) {
    return reader.fail(path_, 'has no valid host');
  }
  return url.href;
}

function readGitRef(
  reader: FieldReader,
  ref: JsonObject,
  at: string[],
): { branch?: string; tag?: string; commit?: string } {
  const named = (['branch', 'tag', 'commit'] as const).flatMap((key) => {
    const text = reader.text(ref, at, key, 250);
    return text === undefined ? [] : [[key, text] as const];
  });
  const [first, ...more] = named;
  if (first === undefined) return {};
  for (const [key] of more) reader.fail([...at, key], `does not go with ${first[0]}`, 'give one of them');
  const [key, text] = first;
  const isName = /^(?![-/.])(?!.*(?:\.\.|\/\/|@\{|\.lock$|[/.]$))[^\0-\x20\x7f~^:?*[\\]+$/.test(text);
  if (key === 'commit' ? !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) : !isName) {
    const hint = key === 'commit' ? 'give all 40 hexadecimal digits, in lower case' : undefined;
    reader.fail([...at, key], `${quoteGo(text)} is no ${key} of git`, hint);
  }
  return { [key]: text };
}

function configMapOf(
  reader: FieldReader,
  name: string,
  namespace: string | undefined,
  at: string[],
  { configMaps, directory }: ReadContext,
): CatalogOrigin | undefined {
  const found =
    configMaps.get(configMapKey(namespace, name)) ??
    (namespace === undefined ? onlyOne(configMaps, name) : configMaps.get(configMapKey(undefined, name)));
  if (found === undefined) {
    const hint = `put the manifest of the ConfigMap into ${directory}`;
    return reader.fail(at, `there is no ConfigMap ${quoteGo(name)}`, hint);
  }
  const data = fieldOf(found, 'data') ?? {};
  const binaryData = fieldOf(found, 'binaryData') ?? {};
  if (!isJsonObject(data) || !isJsonObject(binaryData)) {
    return reader.fail(at, `data of ConfigMap ${quoteGo(name)} is not keys and values`);
  }
  return { type: 'ConfigMap', name, data, ...(Object.keys(binaryData).length > 0 && { binaryData }) };
}

function onlyOne(configMaps: ReadonlyMap<string, JsonObject>, name: string): JsonObject | undefined {
  const found = [...configMaps].filter(([key]) => key.slice(key.indexOf('/') + 1) === name);
  return found.length === 1 ? found[0]?.[1] : undefined;
}

const sourceKeys = [
  'sourceType',
  'priority',
  'configMap',
  'address',
  'image',
  'grpcPodConfig',
  'updateStrategy',
  'secrets',
  'displayName',
  'description',
  'publisher',
  'icon',
  'runAsRoot',
];

function readCatalogSource(
  reader: FieldReader,
  spec: JsonObject,
  context: ReadContext & { namespace: string | undefined; file: string },
): ReadSpec | undefined {
  const at = ['spec'];
  reader.checkKeys(spec, at, sourceKeys);
  const priority = reader.integer(spec, at, 'priority', int32) ?? 0;
  const strategyAt = [...at, 'updateStrategy'];
  const strategy = reader.object(spec, at, 'updateStrategy', ['registryPoll']) ?? {};
  const registryPoll = reader.object(strategy, strategyAt, 'registryPoll', ['interval']) ?? {};
  let pollMs = readDuration(reader, registryPoll, [...strategyAt, 'registryPoll'], 'interval');
  const types = ['grpc', 'internal', 'configmap'] as const;
  const type = reader.choice(spec, at, 'sourceType', types);
  if (fieldOf(spec, 'sourceType') === undefined) reader.fail([...at, 'sourceType'], 'is missing');
  if (type === undefined) return undefined;
  if (fieldOf(spec, 'secrets') !== undefined) {
    const place = `${context.file}:${reader.lineOf([...at, 'secrets'])}`;
    context.logger.log('warn', `${place}: secrets are in the cluster; give their content with --authfile`);
  }
  let origin: CatalogOrigin | undefined;
  if (type === 'grpc') {
    if (fieldOf(spec, 'image') === undefined && fieldOf(spec, 'address') !== undefined) {
      reader.fail([...at, 'address'], 'a catalog that another server has cannot be served', 'give its image');
      return undefined;
    }
    const ref = readImageRef(reader, spec, at, 'image', context.directory);
    origin = ref === undefined ? undefined : { type: 'Image', ref };
    // OLM polls these, too; it is no fault there.
    if (ref !== undefined && isPinnedRef(ref)) pollMs = undefined;
  } else {
    const name = reader.requiredText(spec, at, 'configMap');
    origin =
      name === undefined
        ? undefined
        : configMapOf(reader, name, context.namespace, [...at, 'configMap'], context);
    pollMs = undefined;
  }
  return { origin, priority, isAvailable: true, pollMs };
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** A duration as Go writes it, e.g. `1h30m`; at least a second. */
function readDuration(
  reader: FieldReader,
  parent: JsonObject,
  at: string[],
  key: string,
): number | undefined {
  const text = reader.text(parent, at, key);
  if (text === undefined) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  const total = parts.reduce(
    (sum, [, number, unit]) => sum + Number(number) * (unitMs[unit as string] ?? 0),
    0,
  );
  const isWhole = parts.map(([part]) => part).join('') === text;
  if (isWhole && total >= 1_000 && total <= maxPollMinutes * 60_000) return total;
  return reader.fail(
    [...at, key],
    `${quoteGo(text)} is no duration of a second to 30 days`,
    'write e.g. 10m or 1h30m',
  );
}
