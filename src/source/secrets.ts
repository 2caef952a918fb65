import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { type Manifest, readManifests } from '../kube/manifests.js';
import { readFileWithin } from '../bundle/read.js';
import { findBase64Error } from '../core/base64.js';
import { LimitError, OpmateError, fileError } from '../core/errors.js';
import { quoteGo } from '../document/go-json.js';
import { type JsonObject, isJsonObject } from '../document/json.js';
import { compareBytes } from '../core/order.js';
import { type LinkOptions, requireWithin } from '../files/directory-root.js';
import type { SourceCredentials } from './place.js';

const maxFileSize = 4 * 1024 * 1024;
const maxFiles = 1000;

/** The name of a Secret; the namespace is `''` where its manifest has none. */
export interface SecretName {
  namespace: string;
  name: string;
}

/** Secrets out of files. Their values show up nowhere but in `getCredentials`. */
export type Secrets = ReadonlyMap<string, Secret>;

interface Secret extends SecretName {
  type: string;
  /** `FILE:LINE`. */
  place: string;
  file: string;
  manifest: Manifest;
}

/** What credentials are for: an image, a repository of git, a URL. */
export type CredentialsKind = 'image' | 'git' | 'http';

const dockerType = 'kubernetes.io/dockerconfigjson';
const basicType = 'kubernetes.io/basic-auth';
const sshType = 'kubernetes.io/ssh-auth';
const typesFor: Readonly<Record<CredentialsKind, readonly string[]>> = {
  image: [dockerType],
  git: [basicType, sshType],
  http: [basicType],
};

/**
 * Reads the manifests of Secrets in the `.yaml`, `.yml` and `.json` files of a directory; other objects are passed
 * over. Throws OpmateError with file and line, never with values.
 */
export async function readSecrets(directory: string, options: LinkOptions = {}): Promise<Secrets> {
  const manifests: Manifest[] = [];
  for (const name of await manifestFiles(directory)) {
    const file = path.join(directory, name);
    await requireWithin(directory, file, { followLinks: options.followLinks });
    const content = await readFileWithin(file, (size) => {
      if (size > maxFileSize) throw new LimitError(`more than ${maxFileSize} bytes`, { subject: file, file });
    });
    if (content === undefined) continue;
    const read = readManifests([{ name: file, content }], { prefix: '' });
    const [fault] = read.findings;
    // What a parser says may quote what it has read.
    if (fault !== undefined) {
      throw new OpmateError('SYNTAX', 'not a manifest that can be read', {
        subject: placeAt(file, fault.line),
        file,
      });
    }
    manifests.push(...read.manifests);
  }
  return secretsIn(manifests);
}

/** The Secrets among manifests. Throws OpmateError where two have one name, or one has none. */
export function secretsIn(manifests: Iterable<Manifest>): Secrets {
  const secrets = new Map<string, Secret>();
  for (const manifest of manifests) {
    const { file } = manifest;
    if (manifest.kind !== 'Secret' || manifest.apiVersion !== 'v1') continue;
    const secret = toSecret(manifest, file);
    const key = toKey(secret);
    const other = secrets.get(key);
    if (other !== undefined) {
      throw new OpmateError('INVALID', `Secret ${key}: is in ${other.place} too`, {
        subject: secret.place,
        file,
      });
    }
    secrets.set(key, secret);
  }
  return secrets;
}

async function manifestFiles(directory: string): Promise<string[]> {
  let names: string[];
  try {
    names = await readdir(directory);
  } catch (error) {
    throw fileError(directory, error);
  }
  const files = names.filter((name) => /\.(?:ya?ml|json)$/i.test(name) && !name.startsWith('.'));
  if (files.length > maxFiles) throw new LimitError(`more than ${maxFiles} files`, { subject: directory });
  return files.sort(compareBytes);
}

function toSecret(manifest: Manifest, file: string): Secret {
  const { name, namespace } = manifest;
  const { type } = manifest.load();
  const place = placeAt(file, manifest.lineOf());
  if (name === '') {
    throw new OpmateError('INVALID', 'Secret: missing metadata.name', {
      subject: place,
      file,
      line: manifest.lineOf(),
      hint: 'set the name that sources reference, e.g. metadata: {name: registry}',
    });
  }
  return { name, namespace, type: typeof type === 'string' ? type : 'Opaque', place, file, manifest };
}

function placeAt(file: string, line: number | undefined): string {
  return line === undefined ? file : `${file}:${line}`;
}

function toKey({ namespace, name }: SecretName): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}

/**
 * The credentials in a Secret. One whose manifest has no namespace is in every one. Throws OpmateError where there is
 * none of that name, or of another type than the kind needs, or where keys are missing; never with values.
 */
export function getCredentials(
  secrets: Secrets,
  wanted: SecretName,
  kind: CredentialsKind,
): SourceCredentials {
  const secret = secrets.get(toKey(wanted)) ?? secrets.get(wanted.name);
  if (secret === undefined) {
    const elsewhere = [...secrets.values()].filter(({ name }) => name === wanted.name).map(toKey);
    throw new OpmateError('NOT_FOUND', `Secret "${toKey(wanted)}": not found`, {
      hint:
        elsewhere.length > 0
          ? `use ${elsewhere.join(' or ')}`
          : 'add its manifest to the directory of --secrets',
    });
  }
  const subject = `${secret.place}: Secret ${toKey(secret)}`;
  const { file } = secret;
  if (!typesFor[kind].includes(secret.type)) {
    throw new OpmateError('INVALID', `unsupported type ${quoteGo(secret.type)}`, {
      subject,
      file,
      hint: `use type ${typesFor[kind].join(' or ')} for ${kind}`,
    });
  }
  const object = secret.manifest.load();
  const optional = (key: string): string | undefined => findValue(object, key, subject, secret);
  const required = (key: string): string => {
    const value = optional(key);
    if (value !== undefined && value !== '') return value;
    throw new OpmateError('INVALID', `missing ${key}`, {
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
        // What the parser says quotes the text.
      }
      if (isConfig) return { type: 'docker', config };
      throw new OpmateError('INVALID', '.dockerconfigjson: not an object of JSON with auths', {
        subject,
        file,
      });
    }
  }
}

/** A value of a Secret: `stringData` wins over `data`, as for the API server. */
function findValue(
  object: JsonObject,
  key: string,
  subject: string,
  { manifest, file }: Secret,
): string | undefined {
  for (const field of ['stringData', 'data'] as const) {
    const values = object[field];
    if (!isJsonObject(values) || !Object.hasOwn(values, key)) continue;
    const value = values[key];
    const fail = (problem: string): OpmateError =>
      // Not `password: …`, which would be taken for one and hidden.
      new OpmateError('INVALID', `${field}: ${quoteGo(key)} is ${problem}`, {
        subject,
        file,
        line: manifest.lineOf([field, key]),
      });
    if (typeof value !== 'string') throw fail('not a string');
    if (field === 'stringData') return value;
    if (findBase64Error(value) !== undefined) throw fail('invalid base64');
    return Buffer.from(value, 'base64').toString('utf8');
  }
  return undefined;
}
