import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import type { Diagnostic } from '../../core/diagnostic.js';
import { DiagnosticsError } from '../../core/diagnostics-error.js';
import { computeDigest, isDigest } from '../../core/digest.js';
import { OpmateError, fileError } from '../../core/errors.js';
import { getFileState } from '../../files/file-status.js';
import { type LinkOptions, outsideError } from '../../files/directory-root.js';
import { readRegularFile } from '../../files/read-file.js';
import { DiagnosticList, type WrittenDocument, readObjects } from '../../document/document.js';
import { type Field, findNearest, quoteShort } from '../../document/field.js';
import { encodeGoJson, quoteGo, sortKeysDeep } from '../../document/go-json.js';
import { type JsonObject, type JsonValue, asJson, isJsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { compareBytes, sortedByBytes } from '../../core/order.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import { isGitRefName, parseGitRepository } from '../../source/git-names.js';
import { parseArchiveUrl, parseServed } from '../../source/parse-place.js';
import type { CatalogPlace } from '../../source/place.js';
import type { SecretName } from '../../source/secrets.js';
import { catalogNameFault } from '../http/catalog-names.js';

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
  origin: CatalogPlace;
  /** The Secret with the credentials of the origin. */
  secret?: SecretName | undefined;
  /** The same for as long as the catalog comes from the same place. */
  originKey: string;
  /** The same for as long as nothing that counts has changed. */
  key: string;
}

/** The label that a cluster gives each catalog, so that selectors can choose by name. (Source: catalogd.) */
const nameLabel = 'olm.operatorframework.io/metadata.name';

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

const maxFiles = 5_000;
const maxCatalogs = 2_000;
const maxFileBytes = 16 * 1024 * 1024;

/** What the directory holds at this moment, to be compared; reading its manifests again may tell the same. */
export async function manifestsVersion(directory: string): Promise<string> {
  const lines: string[] = [];
  for (const name of await manifestNames(directory)) {
    const stats = await stat(path.join(directory, name), { bigint: true }).catch(() => undefined);
    lines.push(`${name} ${stats && getFileState(stats)}`);
  }
  return computeDigest(lines.join('\n'));
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
 * the directory. One that is wrong does not keep the others from being used: it is refused, with everything that is
 * wrong with it, each with file and line. So is a link that leads out of the directory, unless `followLinks`; then what
 * is wrong behind it is told without its text. Throws OpmateError where the directory itself cannot be used.
 */
export async function readCatalogManifests(
  directory: string,
  logger: Logger,
  { followLinks }: LinkOptions = {},
): Promise<CatalogManifests> {
  const faults = new DiagnosticList();
  const refused: RefusedManifest[] = [];
  const objects: WrittenDocument[] = [];
  const outside = new Set<string>();
  for (const name of await manifestNames(directory)) {
    const file = path.join(directory, name);
    try {
      const error = await outsideError(directory, file);
      if (error !== undefined && followLinks !== true) throw error;
      if (error !== undefined) outside.add(file);
      const text = await readManifest(file);
      // An editor that has just begun to write would otherwise take catalogs away.
      if (text.trim() === '')
        faults.add({ ...fault, file, line: 1, problem: 'empty', hint: 'remove the file' });
      const read = readObjects(text, file);
      for (const diagnostic of read.diagnostics.all) faults.add(diagnostic);
      objects.push(...read.objects);
    } catch (error) {
      if (!(error instanceof OpmateError)) throw error;
      refused.push({ name: undefined, file, line: 0, error });
    }
  }
  const { configMaps, others } = sortOut(objects);
  const byName = new Map<string, CatalogManifest>();
  for (const object of objects) {
    const catalog = others.has(object) ? readCatalog(object, { directory, configMaps, logger }) : undefined;
    const { errors } = object.diagnostics;
    const other = catalog && byName.get(catalog.name);
    if (other !== undefined) {
      const { name, file, line } = catalog as CatalogManifest;
      const problem = `duplicate catalog ${quoteGo(name)}, first defined in ${other.file}:${other.line}`;
      // It has no name of its own: that is the other's.
      const hint = 'use a name that is unique across kinds and namespaces';
      faults.add({ ...fault, subject: 'metadata.name', problem, file, line, hint });
    } else if (errors.length > 0) {
      refused.push(refusedFor(others.has(object) ? nameIn(object.root) : undefined, errors));
    } else if (catalog !== undefined) byName.set(catalog.name, catalog);
  }
  if (byName.size > maxCatalogs) {
    throw new OpmateError('LIMIT', `${directory}: more than ${maxCatalogs} catalogs`);
  }
  const byFile = new Map<string, Diagnostic[]>();
  for (const diagnostic of faults.all) {
    const file = diagnostic.file as string;
    byFile.set(file, [...(byFile.get(file) ?? []), diagnostic]);
  }
  for (const own of byFile.values()) refused.push(refusedFor(undefined, own));
  return {
    manifests: [...byName.values()].sort((a, b) => compareBytes(a.name, b.name)),
    refused: refused
      .map((manifest) => (outside.has(manifest.file) ? withoutText(manifest) : manifest))
      // A valid manifest of the same name takes precedence.
      .map((manifest) =>
        manifest.name !== undefined && byName.has(manifest.name)
          ? { ...manifest, name: undefined }
          : manifest,
      )
      .sort((a, b) => compareBytes(a.file, b.file) || a.line - b.line),
  };
}

const fault = { severity: 'error', code: 'invalid-value' } as const;

/** Refuses one manifest, or one file, with everything that is wrong with it. */
function refusedFor(name: string | undefined, diagnostics: readonly Diagnostic[]): RefusedManifest {
  const { file = '', line = 0 } = diagnostics[0] as Diagnostic;
  return { name, file, line, error: new DiagnosticsError(diagnostics, { code: 'INVALID' }) };
}

/** The same without what faults quote of a file that others may not have meant to be a manifest. */
function withoutText({ file, line }: RefusedManifest): RefusedManifest {
  const error = new OpmateError('INVALID', `${file}: not a manifest of a catalog`, { file, line });
  return { name: undefined, file, line, error };
}

/** Returns the name of a manifest with errors, if the name is valid. */
function nameIn(root: Field): string | undefined {
  const { value } = root.field('metadata').field('name');
  return typeof value === 'string' && catalogNameFault(value) === undefined ? value : undefined;
}

async function readManifest(file: string): Promise<string> {
  try {
    return String(await readRegularFile(file, maxFileBytes));
  } catch (error) {
    throw fileError(file, error, { file });
  }
}

/** Finds the ConfigMaps; reports what is no object. */
function sortOut(objects: readonly WrittenDocument[]): {
  configMaps: Map<string, JsonObject>;
  others: Set<WrittenDocument>;
} {
  const configMaps = new Map<string, JsonObject>();
  const others = new Set<WrittenDocument>();
  for (const object of objects) {
    const { root } = object;
    const value = root.jsonObject();
    if (value === undefined) continue;
    if (root.field('kind').value !== 'ConfigMap') {
      others.add(object);
      continue;
    }
    const metadata = root.field('metadata').object(['name', 'namespace'], { unknown: 'ignore' });
    const name = metadata?.name.text();
    if (metadata === undefined || name === undefined) continue;
    const key = configMapKey(metadata.namespace.optionalText(), name);
    if (configMaps.has(key)) metadata.name.fail(`duplicate ConfigMap ${quoteGo(key)}`, { code: 'duplicate' });
    configMaps.set(key, value);
  }
  return { configMaps, others };
}

function configMapKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

interface ReadContext {
  directory: string;
  configMaps: ReadonlyMap<string, JsonObject>;
  logger: Logger;
}

/** What a reader needs to know of the manifest that a field is part of. */
interface ManifestContext extends ReadContext {
  namespace: string | undefined;
  /** Whether it may have the fields of the first versions of the API. */
  isFirst: boolean;
  /** Logs a warning with the place of a field. */
  warn(field: Field, message: string): void;
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

function readCatalog(object: WrittenDocument, context: ReadContext): CatalogManifest | undefined {
  const { root, name: file, findPlace: placeOf } = object;
  const warn = (field: Field, message: string): void =>
    context.logger.log('warn', `${file}:${placeOf(field.path).line}: ${message}`);
  const kind = root.field('kind').text();
  if (kind === undefined) return undefined;
  if (!kinds.includes(kind)) {
    if (findNearest(kind, kinds) !== undefined) root.field('kind').choice(kinds);
    else warn(root.field('kind'), `kind ${quoteGo(kind)} says nothing about catalogs, passed over`);
    return undefined;
  }
  const fields = root.object(['apiVersion', 'kind', 'metadata', 'spec', 'status']);
  const versions = clusterKinds[kind] ?? [sourceApi];
  const apiVersion = fields?.apiVersion.choice(versions);
  const metadata = fields?.metadata.object(['name', 'namespace', 'labels'], { unknown: 'ignore' });
  const name = metadata?.name.text();
  const nameFault = name === undefined ? undefined : catalogNameFault(name);
  if (nameFault !== undefined) metadata?.name.fail(`${quoteGo(name ?? '')} ${nameFault}`);
  const spec = fields?.spec;
  if (spec?.jsonObject() === undefined || metadata === undefined) return undefined;
  const labels = readLabels(metadata.labels, name ?? '');
  const isFirst = apiVersion !== versions[0] || kind === 'Catalog';
  const inner = { ...context, namespace: metadata.namespace.optionalText(), isFirst, warn };
  const read = kind === 'CatalogSource' ? readCatalogSource(spec, inner) : readClusterCatalog(spec, inner);
  if (name === undefined || read?.origin === undefined) return undefined;
  const { origin, secret, priority, isAvailable, pollMs } = read;
  const originKey = toKey(asJson(origin));
  const named = secret === undefined ? [] : [{ ...secret }];
  const key = toKey([originKey, labels, priority, isAvailable, pollMs ?? 0, ...named]);
  const { line } = placeOf(metadata.name.path);
  return { name, kind, file, line, labels, priority, isAvailable, pollMs, origin, secret, originKey, key };
}

function toKey(value: JsonValue): string {
  return computeDigest(encodeGoJson(sortKeysDeep(value)));
}

const maxLabels = 10_000;

function readLabels(field: Field, name: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [key, label] of field.isPresent ? (field.entries(maxLabels) ?? []) : []) {
    if (/^[A-Za-z0-9][-A-Za-z0-9._/]{0,316}$/.test(key)) labels[key] = label.optionalText(63) ?? '';
    else label.fail('invalid label name');
  }
  labels[nameLabel] = name;
  return labels;
}

interface ReadSource {
  origin: CatalogPlace | undefined;
  secret?: SecretName | undefined;
  pollMs: number | undefined;
}

interface ReadSpec extends ReadSource {
  priority: number;
  isAvailable: boolean;
}

const int32 = [-(2 ** 31), 2 ** 31 - 1] as const;
/** Longer than a timer can be set, and than anybody means. */
const maxPollMinutes = 30 * 24 * 60;

function readClusterCatalog(spec: Field, context: ManifestContext): ReadSpec | undefined {
  const { isFirst } = context;
  const former = isFirst ? (['availability'] as const) : [];
  const fields = spec.object(['source', 'priority', 'availabilityMode', ...former]);
  if (fields === undefined) return undefined;
  const priority = fields.priority.optionalInteger(...int32) ?? 0;
  const modes = ['Available', 'Unavailable', 'Enabled', 'Disabled'] as const;
  const mode =
    fields.availabilityMode.optionalChoice(['Available', 'Unavailable']) ??
    (isFirst ? spec.field('availability').optionalChoice(modes) : undefined);
  const isAvailable = mode !== 'Unavailable' && mode !== 'Disabled';
  const member = readMember(fields.source, isFirst);
  if (member === undefined) return undefined;
  return { ...readUnion(member, context), priority, isAvailable };
}

/** Kinds of sources, each with the field that describes it. */
export const unionTypes = {
  Image: 'image',
  Artifact: 'artifact',
  Directory: 'directory',
  Git: 'git',
  HTTP: 'http',
  Served: 'served',
  ConfigMap: 'configMap',
} as const;

interface UnionMember {
  type: keyof typeof unionTypes;
  field: Field;
}

/** Returns the member of the union that `type` names, which must be the only one. */
function readMember(field: Field, isFirst: boolean): UnionMember | undefined {
  const types = Object.keys(unionTypes) as (keyof typeof unionTypes)[];
  const source = field.object(['type', ...Object.values(unionTypes)]);
  if (source === undefined) return undefined;
  if (!source.type.isSet) return source.type.missing('set the type, e.g. type: Image');
  // The first API had it in lower case.
  const type = isFirst && source.type.value === 'image' ? 'Image' : source.type.choice(types);
  if (type === undefined) return undefined;
  const key = unionTypes[type];
  for (const other of Object.values(unionTypes)) {
    if (other === key || !source[other].isPresent) continue;
    const hint = `remove it, or set type: ${getType(other)}`;
    source[other].fail(`cannot be combined with type ${type}`, { code: 'exclusive-fields', hint });
  }
  if (!source[key].isPresent) return source[key].missing(`add it, or change type: ${type}`);
  return source[key].jsonObject() === undefined ? undefined : { type, field: source[key] };
}

/** Returns how the API calls a kind of place. */
export function getType(kind: string): string {
  return Object.entries(unionTypes).find(([, member]) => member === kind)?.[0] ?? '';
}

function readUnion({ type, field }: UnionMember, context: ManifestContext): ReadSource {
  const minutes = field.field('pollIntervalMinutes').optionalInteger(1, maxPollMinutes);
  let pollMs = minutes === undefined ? undefined : minutes * 60_000;
  const poll = 'pollIntervalMinutes';
  const within = (): { directory?: string } => readWithin(field.field('directory'));
  switch (type) {
    case 'Image': {
      const first = context.isFirst ? ['pollInterval', 'pullSecret', 'insecureSkipTLSVerify'] : [];
      field.object(['ref', poll, ...first]);
      if (context.isFirst) {
        pollMs ??= readDuration(field.field('pollInterval'));
        const secret = field.field('pullSecret');
        if (secret.optionalText() !== undefined) {
          context.warn(secret, 'pullSecret is in the cluster; give its content with --authfile');
        }
      }
      const ref = readImageRef(field.field('ref'), context.directory);
      if (pollMs !== undefined && ref !== undefined && isPinnedRef(ref)) {
        const hint = 'remove it, or use a tag';
        const interval = field.field(minutes === undefined ? 'pollInterval' : poll);
        interval.fail('an image named by digest never changes', { hint });
      }
      return { origin: ref === undefined ? undefined : { kind: unionTypes[type], ref }, pollMs };
    }
    case 'Artifact': {
      field.object(['ref', 'directory', poll]);
      const ref = readImageRef(field.field('ref'), context.directory);
      return { origin: ref === undefined ? undefined : { kind: unionTypes[type], ref, ...within() }, pollMs };
    }
    case 'Directory': {
      const directory = field.object(['path', poll])?.path;
      const written = directory?.text();
      if (written === undefined) return { origin: undefined, pollMs };
      if (written.includes('\0')) directory?.fail('invalid path');
      return { origin: { kind: unionTypes[type], path: path.resolve(context.directory, written) }, pollMs };
    }
    case 'Git': {
      const git = field.object(['repository', 'ref', 'directory', 'secretRef', poll]);
      const repository = git?.repository.parsed(parseGitRepository);
      const named = git && readGitRef(git.ref);
      const origin =
        repository === undefined ? undefined : { kind: unionTypes[type], repository, ...named, ...within() };
      return { origin, secret: git && readSecretRef(git.secretRef), pollMs };
    }
    case 'HTTP': {
      const http = field.object(['url', 'directory', 'insecure', 'secretRef', poll]);
      const place = http?.url.parsed(parseArchiveUrl);
      const insecure = http?.insecure.optionalBoolean() === true ? { insecure: true } : {};
      if (place?.checksum !== undefined && minutes !== undefined) {
        http?.[poll].fail('an archive with a checksum never changes', { hint: 'remove it' });
      }
      const origin = place && { ...place, ...insecure, ...within() };
      return { origin, secret: http && readSecretRef(http.secretRef), pollMs };
    }
    case 'Served': {
      const served = field.object(['url', 'insecure', poll]);
      const place = served?.url.parsed(parseServed);
      const insecure = served?.insecure.optionalBoolean() === true ? { insecure: true } : {};
      return { origin: place && { ...place, ...insecure }, pollMs };
    }
    case 'ConfigMap': {
      const reference = field.object(['name', 'namespace']);
      const namespace = reference?.namespace.optionalText();
      const origin = reference && findConfigMap(reference.name, namespace, context);
      return { origin, pollMs: undefined };
    }
  }
}

/** The name of a Secret; one without namespace is found in any. */
function readSecretRef(field: Field): SecretName | undefined {
  const reference = field.optionalObject(['name', 'namespace']);
  const name = reference?.name.text(253);
  if (reference === undefined || name === undefined) return undefined;
  return { name, namespace: reference.namespace.optionalText(253) ?? '' };
}

/** A directory inside of something, without leaving it. */
function readWithin(field: Field): { directory?: string } {
  const directory = field.optionalText();
  if (directory === undefined) return {};
  const normal = path.posix.normalize(directory).replace(/^\/+|\/+$/g, '');
  if (normal === '.' || normal === '') return {};
  const leaves = directory.split('/').includes('..') || /[\0\\]/.test(directory) || normal.startsWith('-');
  if (leaves) field.fail(`expected a path inside of the source, got ${quoteShort(directory)}`);
  return { directory: normal };
}

/**
 * An image: in a registry, with its registry written out and with tag or digest; or in a layout or archive, whose
 * relative path is made absolute. (Source: rules of ClusterCatalog.)
 */
function readImageRef(field: Field, directory: string): string | undefined {
  return field.parsed((ref) => {
    const local = /^(oci|oci-archive|docker-archive):(.+)$/s.exec(ref);
    const full = local === null ? ref : `${local[1]}:${path.resolve(directory, local[2] as string)}`;
    const reference = parseReference(full);
    if (reference.transport !== 'docker') return full;
    const refuse = (problem: string, hint?: string): never => {
      throw new OpmateError('INVALID', `${quoteShort(withoutCredentials(ref))} ${problem}`, { hint });
    };
    const host = ref.replace(/^docker:\/\//, '').split('/', 1)[0] as string;
    if (!ref.includes('/') || (host !== 'localhost' && !/[.:]/.test(host))) {
      return refuse('has no registry', `use docker.io/${ref} for Docker Hub`);
    }
    if (reference.tag === undefined && reference.digest === undefined) {
      return refuse('has neither tag nor digest', `add a tag, e.g. ${ref}:latest`);
    }
    if (reference.digest !== undefined && !isDigest(reference.digest)) return refuse('has no valid digest');
    return full;
  });
}

function isPinnedRef(ref: string): boolean {
  return parseReference(ref).digest !== undefined;
}

const gitRefKinds = ['branch', 'tag', 'commit'] as const;

function readGitRef(field: Field): { branch?: string; tag?: string; commit?: string } {
  const ref = field.optionalObject(gitRefKinds);
  if (ref === undefined) return {};
  field.exclusive(gitRefKinds);
  const kind = gitRefKinds.find((key) => ref[key].isSet);
  if (kind === undefined) return {};
  const text = ref[kind].text(250);
  if (text === undefined) return {};
  if (kind === 'commit' ? !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) : !isGitRefName(text)) {
    const hint = kind === 'commit' ? 'use all 40 hexadecimal digits, in lower case' : undefined;
    ref[kind].fail(`expected a git ${kind}, got ${quoteShort(text)}`, { hint });
  }
  return { [kind]: text };
}

function findConfigMap(
  field: Field,
  namespace: string | undefined,
  { configMaps, directory }: ReadContext,
): CatalogPlace | undefined {
  const name = field.text();
  if (name === undefined) return undefined;
  const value =
    configMaps.get(configMapKey(namespace, name)) ??
    (namespace === undefined ? onlyOne(configMaps, name) : configMaps.get(configMapKey(undefined, name)));
  if (value === undefined) {
    const hint = `add the manifest of the ConfigMap to ${directory}`;
    return field.fail(`ConfigMap ${quoteGo(name)} not found`, { code: 'not-found', hint });
  }
  const { data, binaryData } = value;
  if (!isJsonObject(data ?? {}) || !isJsonObject(binaryData ?? {})) {
    return field.fail(`ConfigMap ${quoteGo(name)}: data is not an object`);
  }
  const binary = (binaryData ?? {}) as JsonObject;
  return {
    kind: 'configMap',
    name,
    data: (data ?? {}) as JsonObject,
    ...(Object.keys(binary).length > 0 && { binaryData: binary }),
  };
}

function onlyOne(configMaps: ReadonlyMap<string, JsonObject>, name: string): JsonObject | undefined {
  const matches = [...configMaps].filter(([key]) => key.slice(key.indexOf('/') + 1) === name);
  return matches.length === 1 ? matches[0]?.[1] : undefined;
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
] as const;

function readCatalogSource(spec: Field, context: ManifestContext): ReadSpec | undefined {
  const fields = spec.object(sourceKeys);
  if (fields === undefined) return undefined;
  const priority = fields.priority.optionalInteger(...int32) ?? 0;
  const strategy = fields.updateStrategy.optionalObject(['registryPoll']);
  const registryPoll = strategy?.registryPoll.optionalObject(['interval']);
  let pollMs = registryPoll && readDuration(registryPoll.interval);
  const type = fields.sourceType.choice(['grpc', 'internal', 'configmap']);
  if (type === undefined) return undefined;
  if (fields.secrets.isPresent) {
    context.warn(fields.secrets, 'secrets are in the cluster; give their content with --authfile');
  }
  let origin: CatalogPlace | undefined;
  if (type === 'grpc') {
    if (!fields.image.isPresent && fields.address.isPresent) {
      const problem = 'a catalog that another server has cannot be served';
      return fields.address.fail(problem, { hint: 'set its image' });
    }
    const ref = readImageRef(fields.image, context.directory);
    origin = ref === undefined ? undefined : { kind: 'image', ref };
    // OLM polls these, too, and takes it for valid.
    if (ref !== undefined && isPinnedRef(ref)) pollMs = undefined;
  } else {
    origin = findConfigMap(fields.configMap, context.namespace, context);
    pollMs = undefined;
  }
  return { origin, priority, isAvailable: true, pollMs };
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** A duration as Go writes it, e.g. `1h30m`; at least a second. */
function readDuration(field: Field): number | undefined {
  const text = field.optionalText();
  if (text === undefined) return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)];
  const total = parts.reduce(
    (sum, [, number, unit]) => sum + Number(number) * (unitMs[unit as string] ?? 0),
    0,
  );
  const isWhole = parts.map(([part]) => part).join('') === text;
  if (isWhole && total >= 1_000 && total <= maxPollMinutes * 60_000) return total;
  const problem = `expected a duration from one second to 30 days, got ${quoteShort(text)}`;
  return field.fail(problem, { hint: 'use a duration such as 10m or 1h30m' });
}
