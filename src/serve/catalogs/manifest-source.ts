import path from 'node:path';
import { isDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { type Field, quoteShort } from '../../document/field.js';
import { quoteGo } from '../../document/go-json.js';
import { type JsonObject, isJsonObject } from '../../document/json.js';
import type { Logger } from '../../core/log.js';
import { parseReference, withoutCredentials } from '../../core/reference.js';
import { isGitRefName, parseGitRepository } from '../../source/git-names.js';
import { parseArchiveUrl, parseServed } from '../../source/parse-place.js';
import type { CatalogPlace } from '../../source/place.js';
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
  /** Logs a warning with the place of a field. */
  warn(field: Field, message: string): void;
}

/** Source of a catalog, as far as it is valid. */
export interface ReadSource {
  origin: CatalogPlace | undefined;
  secret?: SecretName | undefined;
  pollMs: number | undefined;
}

/** Maximum interval of polls: 30 days. */
const maxPollMinutes = 30 * 24 * 60;

/** Source types with their fields. */
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

/** Reads the source of a ClusterCatalog: the union member that `type` names, which must be the only one. */
export function readUnionSource(field: Field, context: ManifestContext): ReadSource | undefined {
  const member = readMember(field, context.isFirst);
  return member && readUnion(member, context);
}

function readMember(field: Field, isFirst: boolean): UnionMember | undefined {
  const types = Object.keys(unionTypes) as (keyof typeof unionTypes)[];
  const source = field.object(['type', ...Object.values(unionTypes)]);
  if (source === undefined) return undefined;
  if (!source.type.isSet) return source.type.missing('set the type, e.g. type: Image');
  // Lower case in the first API.
  const type = isFirst && source.type.value === 'image' ? 'Image' : source.type.choice(types);
  if (type === undefined) return undefined;
  const key = unionTypes[type];
  for (const other of Object.values(unionTypes)) {
    if (other === key || !source[other].isPresent) continue;
    const hint = `remove it, or set type: ${getSourceType(other)}`;
    source[other].fail(`cannot be combined with type ${type}`, { code: 'exclusive-fields', hint });
  }
  if (!source[key].isPresent) return source[key].missing(`add it, or change type: ${type}`);
  return source[key].jsonObject() === undefined ? undefined : { type, field: source[key] };
}

/** Returns the source type of a kind of place. */
export function getSourceType(kind: string): string {
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
          context.warn(
            secret,
            'pullSecret is not read from the cluster; specify credentials with --authfile',
          );
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
      const ref = git && readGitRef(git.ref);
      const origin =
        repository === undefined ? undefined : { kind: unionTypes[type], repository, ...ref, ...within() };
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

/** Reads the name of a Secret; an empty namespace matches any. */
function readSecretRef(field: Field): SecretName | undefined {
  const reference = field.optionalObject(['name', 'namespace']);
  const name = reference?.name.text(253);
  if (reference === undefined || name === undefined) return undefined;
  return { name, namespace: reference.namespace.optionalText(253) ?? '' };
}

/** Reads a directory inside the source. */
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
  if (kind === 'commit' ? !/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text) : !isGitRefName(text)) {
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

function findSingle(configMaps: ReadonlyMap<string, JsonObject>, name: string): JsonObject | undefined {
  const matches = [...configMaps].filter(([key]) => key.slice(key.indexOf('/') + 1) === name);
  return matches.length === 1 ? matches[0]?.[1] : undefined;
}

/** Returns the key of a ConfigMap among those of a directory. */
export function configMapKey(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`;
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** Reads a duration of at least a second as Go writes it, such as `1h30m`. */
export function readDuration(field: Field): number | undefined {
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
