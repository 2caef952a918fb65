import { type Manifest, readManifests } from '../kube/manifests.js';
import { findBase64Error } from '../core/text/base64.js';
import { type Diagnostic, formatPath } from '../core/diagnostic.js';
import { DiagnosticsError, ErrorList } from '../core/diagnostics-error.js';
import { LimitError, OpmateError, UsageError } from '../core/errors.js';
import { groupBy } from '../core/groups.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { getObject } from '../document/json-fields.js';
import { listManifestFiles } from '../files/file-status.js';
import { type LinkOptions, requireWithin } from '../files/directory-root.js';
import type { SourceCredentials } from './place.js';
import { readFileWithin } from '../files/read-file.js';

const maxFileSize = 4 * 1024 * 1024;
const maxFiles = 1000;

/** The name of a Secret; `namespace` is `''` if its manifest has none. */
export interface SecretName {
  namespace: string;
  name: string;
}

/** Secrets read from files, by name. Only `getCredentials` returns their values. */
export type Secrets = ReadonlyMap<string, Secret>;

interface Secret extends SecretName {
  type: string;
  /** Secrets of the user, which documents of others must not send anywhere: they are bound to hosts. */
  isBound: boolean;
  /** Position in messages: `FILE:LINE`. */
  place: string;
  file: string;
  manifest: Manifest;
}

/** The kinds of sources that use credentials. */
type CredentialsKind = 'image' | 'git' | 'http';

/** Hosts by `[NAMESPACE/]NAME` of the Secrets that are bound to them, besides their annotations. */
export type SecretHosts = ReadonlyMap<string, readonly string[]>;

/** Parses `[NAMESPACE/]NAME=HOST` items. Throws UsageError. */
export function parseSecretHosts(items: readonly string[]): SecretHosts {
  const pairs = items.map((item) => {
    const [, name = '', host = ''] = /^([^=]+)=([^=/\s][^=\s]*)$/.exec(item) ?? [];
    if (host !== '') return { name, host };
    const hint = 'use the form NAME=HOST, e.g. team/git=git.example.com';
    throw new UsageError('expected NAME=HOST', { subject: quoteGo(item), hint });
  });
  const byName = groupBy(pairs, ({ name }) => name);
  return new Map([...byName].map(([name, same]) => [name, same.map(({ host }) => host)]));
}

const dockerType = 'kubernetes.io/dockerconfigjson';
const basicType = 'kubernetes.io/basic-auth';
const sshType = 'kubernetes.io/ssh-auth';
const supportedTypes: Readonly<Record<CredentialsKind, readonly string[]>> = {
  image: [dockerType],
  git: [basicType, sshType],
  http: [basicType],
};

/**
 * Reads the Secret manifests in the `.yaml`, `.yml` and `.json` files of a directory, ignoring other objects.
 * Throws OpmateError with file and line, never with values.
 */
export async function readSecrets(directory: string, options: LinkOptions = {}): Promise<Secrets> {
  const manifests: Manifest[] = [];
  const errors = new ErrorList();
  for (const file of await listManifestFiles(directory, maxFiles)) {
    await requireWithin(directory, file, { followLinks: options.followLinks });
    const content = readFileWithin(file, (size) => {
      if (size > maxFileSize) throw new LimitError(`more than ${maxFileSize} bytes`, { about: file });
    });
    if (content === undefined) continue;
    const read = readManifests([{ name: file, content }], { prefix: '', isWritten: true });
    for (const finding of read.findings) errors.add(new DiagnosticsError([withoutText(finding)]));
    manifests.push(...read.manifests);
  }
  errors.throwIfAny();
  return secretsIn(manifests, { areBound: true });
}

/** Removes the problem of a document, unless it is one that cannot quote secret values. */
function withoutText(finding: Diagnostic): Diagnostic {
  const isPlain = finding.code !== 'syntax' || plainProblem.test(finding.problem);
  return isPlain ? finding : { ...finding, problem: 'invalid manifest' };
}

/** Problems of libyaml that consist of its own words. */
const plainProblem =
  /^(?:invalid UTF-8|yaml: (?:(?:did not find|could not find|block sequence|mapping values|control characters)[a-z \-',:[\]{}<>]+|found (?:character that cannot|unexpected|a tab)[a-z -]+))$/;

/**
 * Selects the Secrets from manifests; `areBound` for those of the user, default: those of the author of a document.
 * Throws OpmateError for all duplicate and missing names.
 */
export function secretsIn(manifests: Iterable<Manifest>, { areBound = false } = {}): Secrets {
  const secrets = new Map<string, Secret>();
  const errors = new ErrorList();
  for (const manifest of manifests) {
    if (manifest.kind !== 'Secret' || manifest.apiVersion !== 'v1') continue;
    const secret = toSecret(manifest, areBound);
    const key = toKey(secret);
    const { place, file } = secret;
    const other = secrets.get(key);
    if (secret.name === '') {
      const hint = 'set the name that sources reference, e.g. metadata: {name: registry}';
      const { line } = manifest.placeOf();
      errors.add(
        new OpmateError('INVALID', 'Secret: metadata.name: missing', { subject: place, file, line, hint }),
      );
    } else if (other !== undefined) {
      const problem = `Secret ${quoteGo(key)}: duplicate, first defined in ${other.place}`;
      errors.add(new OpmateError('INVALID', problem, { subject: place, file, hint: 'keep one of them' }));
    } else secrets.set(key, secret);
  }
  errors.throwIfAny();
  return secrets;
}

function toSecret(manifest: Manifest, isBound: boolean): Secret {
  const { name, namespace, file } = manifest;
  const { type } = manifest.load();
  const place = formatPosition(file, manifest.placeOf().line);
  return {
    name,
    namespace,
    type: typeof type === 'string' ? type : 'Opaque',
    isBound,
    place,
    file,
    manifest,
  };
}

function formatPosition(file: string, line: number | undefined): string {
  return line === undefined ? file : `${file}:${line}`;
}

function toKey({ namespace, name }: SecretName): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/** Source that requests credentials. */
export interface CredentialsRequest extends SecretName {
  kind: CredentialsKind;
  /** Repository or URL of a document; undefined if the user named both the source and the Secret. */
  address?: string | undefined;
  hosts?: SecretHosts | undefined;
}

/**
 * Returns the credentials in a Secret; one without a namespace matches any namespace. A Secret of the user with a
 * password or key must be bound to the host of the address. Throws OpmateError for a missing or unbound Secret, an
 * unsupported type or missing keys, never with values.
 */
export function getCredentials(secrets: Secrets, requested: CredentialsRequest): SourceCredentials {
  const { kind } = requested;
  const secret = secrets.get(toKey(requested)) ?? secrets.get(requested.name);
  if (secret === undefined) {
    const elsewhere = [...secrets.values()].filter(({ name }) => name === requested.name).map(toKey);
    throw new OpmateError('NOT_FOUND', `Secret "${toKey(requested)}": not found`, {
      hint:
        elsewhere.length > 0
          ? `use ${elsewhere.join(' or ')}`
          : 'add its manifest to the directory of options.secrets',
    });
  }
  const subject = `${secret.place}: Secret ${toKey(secret)}`;
  const { file } = secret;
  if (!supportedTypes[kind].includes(secret.type)) {
    throw new OpmateError('INVALID', `unsupported type ${quoteGo(secret.type)}`, {
      subject,
      file,
      hint: `use type ${supportedTypes[kind].join(' or ')} for ${kind}`,
    });
  }
  requireBinding(secret, requested, subject);
  const object = secret.manifest.load();
  const optional = (key: string): string | undefined => findValue(object, key, secret);
  const required = (key: string): string => {
    const value = optional(key);
    if (value !== undefined && value !== '') return value;
    throw new OpmateError('INVALID', `${formatPath(['data', key])}: missing`, {
      subject,
      file,
      hint: `set ${key} in data or stringData`,
    });
  };
  switch (secret.type) {
    case basicType:
      return { type: 'basic', username: optional('username') ?? '', password: required('password') };
    case sshType: {
      const knownHosts = optional('ssh-knownhosts') ?? optional('known_hosts');
      const privateKey = required('ssh-privatekey');
      return { type: 'ssh', privateKey, ...(knownHosts !== undefined && { knownHosts }) };
    }
    default: {
      const config = required('.dockerconfigjson');
      let isConfig = false;
      try {
        isConfig = isJsonObject((JSON.parse(config) as JsonObject)['auths'] ?? null);
      } catch {
        // The parser's message quotes the text.
      }
      if (isConfig) return { type: 'docker', config };
      throw new OpmateError('INVALID', '.dockerconfigjson: expected a JSON object with auths', {
        subject,
        file,
      });
    }
  }
}

/** Annotations that bind a Secret to a host. (Source: Tekton.) */
const hostAnnotation = /^tekton\.dev\/git-/;

function requireBinding(secret: Secret, { address, hosts }: CredentialsRequest, subject: string): void {
  // A docker configuration names its registries.
  if (!secret.isBound || address === undefined || secret.type === dockerType) return;
  const target = readAddress(address);
  const annotations = getObject(secret.manifest.load(), 'metadata', 'annotations');
  const bound = [
    ...Object.entries(annotations).flatMap(([key, value]) =>
      hostAnnotation.test(key) && typeof value === 'string' ? [value] : [],
    ),
    ...(hosts?.get(toKey(secret)) ?? []),
    ...(hosts?.get(secret.name) ?? []),
  ];
  const isSame = (text: string): boolean => {
    const { protocol, host } = readAddress(text);
    return host === target.host && (!text.includes('://') || protocol === target.protocol);
  };
  if (bound.some(isSame)) return;
  throw new OpmateError('AUTH', `not bound to ${quoteGo(target.host)}`, {
    subject,
    file: secret.file,
    hint: `add the annotation tekton.dev/git-0: ${target.protocol}//${target.host} to the Secret, or name the host with options.secret ${secret.name}=${target.host}`,
  });
}

/** Returns protocol and host of a URL, of `[USER@]HOST:PATH` as ssh has it, or of a host alone. */
function readAddress(text: string): { protocol: string; host: string } {
  if (URL.canParse(text) && text.includes('://')) {
    const { protocol, host } = new URL(text);
    return { protocol, host };
  }
  const host = text.replace(/^[^@/]*@/, '').replace(/(?::(?!\d+$)|\/).*$/s, '');
  return { protocol: 'ssh:', host: host.toLowerCase() };
}

/** Returns a value of a Secret; `stringData` takes precedence over `data`, as in the API server. */
function findValue(object: JsonObject, key: string, secret: Secret): string | undefined {
  const { manifest, file } = secret;
  for (const field of ['stringData', 'data'] as const) {
    const values = object[field];
    if (!isJsonObject(values) || !Object.hasOwn(values, key)) continue;
    const value = values[key];
    const fail = (problem: string): OpmateError => {
      const { line } = manifest.placeOf([field, key]);
      return new OpmateError('INVALID', `${formatPath([field, key])}: ${problem}`, {
        subject: `${formatPosition(file, line)}: Secret ${toKey(secret)}`,
        file,
        line,
      });
    };
    // The type alone: a number may be the password.
    if (typeof value !== 'string') throw fail('expected a string');
    if (field === 'stringData') return value;
    if (findBase64Error(value) !== undefined) throw fail('invalid base64');
    return Buffer.from(value, 'base64').toString('utf8');
  }
  return undefined;
}
