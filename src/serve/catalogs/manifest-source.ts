import path from 'node:path';
import { isDigest } from '../../core/digest.js';
import { parseGoDuration } from '../../core/text/go-duration.js';
import { OpmateError, redactUrls } from '../../core/errors.js';
import { type Field, quoteShort } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import { isGitRefName, parseGitRepository } from '../../source/git-names.js';
import { parseArchiveUrl, parseServed } from '../../source/parse-place.js';
import { type CatalogPlace, isCommit } from '../../source/place.js';
import { setFields } from '../../kube/object.js';
import type { SecretName } from '../../source/secrets.js';

/** Context of a directory of manifests. */
export interface ReadContext {
  directory: string;
  configMaps: ReadonlyMap<string, JsonObject>;
  logger: Logger;
}

/** Context of one manifest. */
export interface ManifestContext extends ReadContext {
  namespace: string | undefined;
  /** Accept the fields of the first versions of the API. */
  isFirst: boolean;
  /** Logs the current form of a former field, with its place. */
  notice(field: Field, message: string): void;
}

/** Source of a catalog, as far as it is valid. */
export interface ReadSource {
  origin: CatalogPlace | undefined;
  secret?: SecretName | undefined;
  pullSecrets?: SecretName[];
  pollMs: number | undefined;
}

/** Maximum interval of polls: 30 days. */
const maxPollMinutes = 30 * 24 * 60;

/** Source types with their fields, which are the kinds of places. */
export const unionTypes = {
  Image: 'image',
  Artifact: 'artifact',
  Directory: 'directory',
  Git: 'git',
  HTTP: 'http',
  Served: 'served',
  ConfigMap: 'configMap',
} as const;

type SourceType = keyof typeof unionTypes;

const poll = 'pollIntervalMinutes';

/** Keys of the field of each source type. */
const memberKeys: Readonly<Record<SourceType, readonly string[]>> = {
  Image: ['ref', poll],
  Artifact: ['ref', 'directory', poll],
  Directory: ['path', poll],
  Git: ['repository', 'ref', 'directory', 'secretRef', poll],
  HTTP: ['url', 'directory', 'insecure', 'secretRef', poll],
  Served: ['url', 'insecure', poll],
  ConfigMap: ['name', 'namespace'],
};

/** Reads the source of a ClusterCatalog: the union member that `type` names, which must be the only one. */
export function readUnionSource(source: Field, context: ManifestContext): ReadSource | undefined {
  const type = readType(source, context.isFirst);
  if (type === undefined) return undefined;
  const member = source.field(unionTypes[type]);
  const isFirstImage = type === 'Image' && context.isFirst;
  const former = isFirstImage ? ['pollInterval', 'pullSecret', 'insecureSkipTLSVerify'] : [];
  member.object([...memberKeys[type], ...former]);
  const minutes = member.field(poll).optionalInteger(1, maxPollMinutes);
  let pollMs = minutes === undefined ? undefined : minutes * 60_000;
  if (isFirstImage) pollMs ??= readDuration(member.field('pollInterval'));
  const pullSecrets = isFirstImage ? readPullSecrets([member.field('pullSecret')], context) : [];
  const origin = readOrigin(type, member, context);
  if (origin?.kind === 'image' && pollMs !== undefined && isPinnedRef(origin.ref)) {
    const interval = member.field(minutes === undefined ? 'pollInterval' : poll);
    interval.fail('an image named by digest never changes', { hint: 'remove it, or use a tag' });
  }
  if (origin?.kind === 'http' && pollMs !== undefined && origin.checksum !== undefined) {
    member.field(poll).fail('an archive with a checksum never changes', { hint: 'remove it' });
  }
  const hasSecret = type === 'Git' || type === 'HTTP';
  const secret = hasSecret ? readSecretRef(member.field('secretRef')) : undefined;
  return { origin, secret, pullSecrets, pollMs };
}

/** Reads the names of Secrets with credentials of registries, in the namespace of the manifest. */
export function readPullSecrets(fields: readonly Field[], context: ManifestContext): SecretName[] {
  return fields.flatMap((field) => {
    const name = field.optionalText(253);
    return name === undefined ? [] : [{ name, namespace: context.namespace ?? '' }];
  });
}

function readType(source: Field, isFirst: boolean): SourceType | undefined {
  const members = source.object(['type', ...Object.values(unionTypes)]);
  if (members === undefined) return undefined;
  if (!members.type.isSet) return members.type.missing('set the type, e.g. type: Image');
  // Lower case in the first API.
  const isImage = isFirst && members.type.value === 'image';
  const type = isImage ? 'Image' : members.type.choice(Object.keys(unionTypes) as SourceType[]);
  if (type === undefined) return undefined;
  const key = unionTypes[type];
  for (const other of Object.values(unionTypes)) {
    if (other === key || !members[other].isPresent) continue;
    const hint = `remove it, or set type: ${getSourceType(other)}`;
    members[other].fail(`cannot be combined with type ${type}`, { code: 'exclusive-fields', hint });
  }
  if (!members[key].isPresent) return members[key].missing(`add it, or change type: ${type}`);
  return members[key].jsonObject() === undefined ? undefined : type;
}

/** Returns a source as `readUnionSource` reads it, without credentials and the data of ConfigMaps. */
export function encodeUnionSource(origin: CatalogPlace, pollMs: number | undefined): JsonObject {
  return {
    type: getSourceType(origin.kind),
    [origin.kind]: { ...encodeMember(origin), ...encodePoll(pollMs) },
  };
}

function encodePoll(pollMs: number | undefined): JsonObject {
  return pollMs === undefined ? {} : { pollIntervalMinutes: Math.max(1, Math.round(pollMs / 60_000)) };
}

function encodeMember(origin: CatalogPlace): JsonObject {
  switch (origin.kind) {
    case 'image':
      return { ref: withoutCredentials(origin.ref) };
    case 'artifact':
      return { ref: withoutCredentials(origin.ref), ...setFields(origin, ['directory']) };
    case 'directory':
      return { path: origin.path };
    case 'git': {
      const ref = setFields(origin, gitRefKinds);
      return {
        repository: redactUrls(origin.repository),
        ...(Object.keys(ref).length > 0 && { ref }),
        ...setFields(origin, ['directory']),
      };
    }
    case 'http': {
      const checksum = origin.checksum === undefined ? '' : `#${origin.checksum}`;
      return { url: redactUrls(origin.url) + checksum, ...setFields(origin, ['directory', 'insecure']) };
    }
    case 'served':
      return { url: redactUrls(origin.url), ...setFields(origin, ['insecure']) };
    case 'configMap':
      return { name: origin.name };
  }
}

/** Returns the source type of a kind of place. */
export function getSourceType(kind: string): string {
  return Object.entries(unionTypes).find(([, member]) => member === kind)?.[0] ?? '';
}

function readOrigin(type: SourceType, member: Field, context: ManifestContext): CatalogPlace | undefined {
  const kind = unionTypes[type];
  const readDirectory = (): { directory?: string } => readWithin(member.field('directory'));
  switch (kind) {
    case 'image':
    case 'artifact': {
      const ref = readImageRef(member.field('ref'), context.directory);
      if (ref === undefined) return undefined;
      return kind === 'image' ? { kind, ref } : { kind, ref, ...readDirectory() };
    }
    case 'directory': {
      const written = member.field('path').text();
      if (written?.includes('\0')) member.field('path').fail('invalid path');
      return written === undefined ? undefined : { kind, path: path.resolve(context.directory, written) };
    }
    case 'git': {
      const repository = member.field('repository').parsed(parseGitRepository);
      const ref = readGitRef(member.field('ref'));
      return repository === undefined ? undefined : { kind, repository, ...ref, ...readDirectory() };
    }
    case 'http':
    case 'served': {
      const place = member.field('url').parsed<CatalogPlace>(kind === 'http' ? parseArchiveUrl : parseServed);
      const insecure = member.field('insecure').optionalBoolean() && { insecure: true };
      return place && { ...place, ...insecure, ...(kind === 'http' && readDirectory()) };
    }
    case 'configMap':
      return findConfigMap(member.field('name'), member.field('namespace').optionalText(), context);
  }
}

/** Reads the name of a Secret; an empty namespace matches any. */
function readSecretRef(field: Field): SecretName | undefined {
  const reference = field.optionalObject(['name', 'namespace']);
  const name = reference?.name.text(253);
  if (reference === undefined || name === undefined) return undefined;
  return { name, namespace: reference.namespace.optionalText(253) ?? '' };
}

function readWithin(field: Field): { directory?: string } {
  const directory = field.optionalText();
  if (directory === undefined) return {};
  const normal = path.posix.normalize(directory).replace(/^\/+|\/+$/g, '');
  if (normal === '.' || normal === '') return {};
  const leaves = directory.split('/').includes('..') || /[\0\\]/.test(directory) || normal.startsWith('-');
  if (leaves) field.fail(`expected a path inside the source, got ${quoteShort(directory)}`);
  return { directory: normal };
}

/**
 * Reads an image: in a registry, with registry host and tag or digest; or in a layout or archive, with its path made
 * absolute. (Source: rules of ClusterCatalog.)
 */
export function readImageRef(field: Field, directory: string): string | undefined {
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

export function isPinnedRef(ref: string): boolean {
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
  if (kind === 'commit' ? !isCommit(text) : !isGitRefName(text)) {
    const hint = kind === 'commit' ? 'use all 40 hexadecimal digits, in lower case' : undefined;
    ref[kind].fail(`expected a git ${kind}, got ${quoteShort(text)}`, { hint });
  }
  return { [kind]: text };
}

export function findConfigMap(
  field: Field,
  namespace: string | undefined,
  { configMaps, directory }: ReadContext,
): CatalogPlace | undefined {
  const name = field.text();
  if (name === undefined) return undefined;
  const value =
    configMaps.get(configMapKey(namespace, name)) ??
    (namespace === undefined ? findSingle(configMaps, name) : configMaps.get(configMapKey(undefined, name)));
  if (value === undefined) {
    const hint = `add the manifest of the ConfigMap to ${directory}`;
    return field.fail(`ConfigMap ${quoteGo(name)} not found`, { code: 'not-found', hint });
  }
  const data = value['data'] ?? {};
  const binaryData = value['binaryData'] ?? {};
  if (!isJsonObject(data) || !isJsonObject(binaryData)) {
    return field.fail(`ConfigMap ${quoteGo(name)}: data is not an object`);
  }
  return { kind: 'configMap', name, data, ...(Object.keys(binaryData).length > 0 && { binaryData }) };
}

function findSingle(configMaps: ReadonlyMap<string, JsonObject>, name: string): JsonObject | undefined {
  const matches = [...configMaps].filter(([key]) => key.slice(key.indexOf('/') + 1) === name);
  return matches.length === 1 ? matches[0]?.[1] : undefined;
}

/** Returns the key of a ConfigMap among those of a directory. */
export function configMapKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

/** Reads a duration of at least a second as Go writes it, such as `1h30m`. */
export function readDuration(field: Field): number | undefined {
  const text = field.optionalText();
  if (text === undefined) return undefined;
  const duration = parseGoDuration(text) ?? 0;
  if (duration >= 1_000 && duration <= maxPollMinutes * 60_000) return duration;
  const problem = `expected a duration from one second to 30 days, got ${quoteShort(text)}`;
  return field.fail(problem, { hint: 'use a duration such as 10m or 1h30m' });
}
