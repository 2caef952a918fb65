/**
 * Image references: names of images in registries and files. Registry references have the grammar of the
 * `docker/reference` package, which opm, skopeo and podman share.
 */
import { isIPv6 } from 'node:net';
import { findDigestError, parseDigest } from './digest.js';
import { OpmateError, UsageError } from './errors.js';
import { quoteGo } from './go-json-quote.js';

/** An image in a registry. */
export interface RegistryReference {
  transport: 'docker';
  /** Reference as the user wrote it. */
  text: string;
  /** `host[:port]`, IPv6 hosts in brackets; default: `docker.io`. */
  registry: string;
  /** Repository without registry; `library/` is added to short names of docker.io. */
  repository: string;
  tag?: string;
  /** Takes precedence over `tag`. */
  digest?: string;
}

/** An image in a directory or file. */
interface LayoutReference {
  transport: 'oci' | 'oci-archive' | 'docker-archive';
  /** Reference as the user wrote it. */
  text: string;
  path: string;
  /** Name of the image in the layout or archive; for `docker-archive` as written: `ns/name:v1`. */
  tag?: string;
  /** Takes precedence over `tag`. */
  digest?: string;
}

/** An image in a registry, directory or file. */
export type Reference = RegistryReference | LayoutReference;

/**
 * Parses a reference in any of these forms; `oci:` and the like are always transports, so a registry of such a name
 * cannot be written without `docker://`.
 *
 * - `[docker://][REGISTRY/]REPOSITORY[:TAG][@DIGEST]`; without registry it is docker.io
 * - `oci:DIR[:TAG][@DIGEST]`, `oci-archive:FILE[:TAG][@DIGEST]`: the tag follows the last colon, unless a slash
 *   comes after that, so a path may hold colons in all but its last part
 * - `docker-archive:FILE[:REFERENCE][@DIGEST]`: FILE ends at the first colon
 *
 * A missing tag or digest stays undefined. Throws OpmateError INVALID.
 */
export function parseReference(text: string): Reference {
  const [, transport, rest] = /^(oci|oci-archive|docker-archive):(.*)$/s.exec(text) ?? [];
  if (transport === 'docker-archive') return parseDockerArchive(text, rest as string);
  if (transport !== undefined) return parseLayout(text, transport as 'oci' | 'oci-archive', rest as string);
  const name = text.startsWith('docker://') ? text.slice('docker://'.length) : text;
  const parts = splitNormalized(name);
  const fault = typeof parts === 'string' ? parts : registryFault(parts.registry);
  if (typeof parts === 'string' || fault !== undefined)
    throw invalidReference(text, fault as string, hintFor(name));
  return { transport: 'docker', text, ...parts };
}

/** Returns a parsed reference; undefined for an invalid one. */
export function findReference(text: string): Reference | undefined {
  try {
    return parseReference(text);
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

/**
 * Parses a reference to write to. Its registry is required, so that a mistyped word never becomes a repository of
 * docker.io. Throws OpmateError INVALID, and USAGE for a missing registry.
 */
export function parseTargetReference(text: string): Reference {
  const reference = parseReference(text);
  if (reference.transport !== 'docker' || hasRegistry(text)) return reference;
  throw missingRegistry(text, formatReference(reference));
}

function hasRegistry(text: string): boolean {
  const [first = '', ...path] = text.replace(/^docker:\/\//, '').split('/');
  return path.length > 0 && (first === 'localhost' || /[.:]/.test(first));
}

/** Reports whether a text is written as a path, which no image reference is. */
export function looksLikePath(text: string): boolean {
  return /^(?:\.{0,2}\/|~|\.{1,2}$)/.test(text);
}

/**
 * Parses the name of an image in a registry, as documents of others have it. Decides by the text alone: nothing on this
 * machine and no other URL is read for it. Throws OpmateError.
 */
export function parseRegistryImage(text: string): RegistryReference {
  const hint = 'use an image that clusters can pull: REGISTRY/REPOSITORY:TAG or @sha256:…';
  if (
    /^(?:[a-z][a-z0-9+.-]*:\/\/|(?:oci|oci-archive|docker-archive|docker-daemon|configmap|git\+[a-z]+):)/i.test(
      text,
    )
  )
    throw new OpmateError('INVALID', 'invalid reference format', { subject: withoutCredentials(text), hint });
  if (looksLikePath(text))
    throw new OpmateError('UNSUPPORTED', 'not an image in a registry', { subject: text, hint });
  const parsed = parseReference(text);
  if (parsed.transport !== 'docker') throw invalidReference(text, 'invalid reference format', hint);
  if (parsed.tag === undefined && parsed.digest === undefined) throw missingTag(text);
  return parsed;
}

/** Returns the error for the name of an image to read that has neither tag nor digest, and may be a path. */
export function missingTag(text: string): OpmateError {
  return /[/:@]/.test(text)
    ? new OpmateError('INVALID', 'missing tag or digest', {
        subject: text,
        hint: `check the path, or use ${text}:TAG or ${text}@sha256:… for an image`,
      })
    : new OpmateError('NOT_FOUND', 'no such file or directory', {
        subject: text,
        hint: 'check the path, or add a tag or digest for an image',
      });
}

/** Returns the error for a source or target without a registry; `onHub` is its name on Docker Hub. */
export function missingRegistry(text: string, onHub: string): OpmateError {
  return new UsageError('missing registry', {
    subject: text,
    hint: `use REGISTRY/${text.replace(/^docker:\/\//, '')}, or ${onHub} for Docker Hub`,
  });
}

/** Returns the repository with another tag, or without a tag if none is passed. */
export function withReferenceTag<R extends Reference>(reference: R, tag?: string): R {
  return { ...reference, tag, digest: undefined };
}

/** Returns the normalized text of a reference, which parses to the same reference. */
export function formatReference(reference: Reference): string {
  const { transport, tag, digest } = reference;
  const name =
    transport === 'docker'
      ? `${reference.registry}/${reference.repository}`
      : `${transport}:${reference.path}`;
  return name + (tag === undefined ? '' : `:${tag}`) + (digest === undefined ? '' : `@${digest}`);
}

/**
 * Checks an image reference of a catalog as `opm validate` does: registry references only, short names included.
 * Returns the problem in the words of `opm`, or undefined.
 */
export function checkPullSpec(text: string): string | undefined {
  const parts = splitNormalized(text);
  if (typeof parts === 'string') return parts;
  // opm does not support IPv6 registries.
  return parts.registry.startsWith('[') ? invalidFormat : undefined;
}

type NameParts = Omit<RegistryReference, 'transport' | 'text'>;

const invalidFormat = 'invalid reference format';
const hostPattern = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$/;
const componentPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;

/** Maximum length of registry and repository together. (Source: distribution reference.) */
export const maxNameLength = 255;

/**
 * Splits a registry reference, with docker.io as the default registry; returns a string with the problem of an
 * invalid one.
 */
function splitNormalized(text: string): NameParts | string {
  if (/^[a-f0-9]{64}$/.test(text)) {
    return `invalid repository name (${text}), cannot specify 64-byte hexadecimal strings`;
  }
  const { registry, remainder } = splitRegistry(text);
  const [path = ''] = remainder.split(':', 1);
  if (path.toLowerCase() !== path) return `${invalidFormat}: repository name must be lowercase`;

  const position = remainder.indexOf('@');
  const digest = position < 0 ? undefined : remainder.slice(position + 1);
  const named = position < 0 ? remainder : remainder.slice(0, position);
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  const repository = colon < 0 ? named : named.slice(0, colon);

  const isWellFormed =
    isRegistry(registry) &&
    repository.split('/').every((component) => componentPattern.test(component)) &&
    (tag === undefined || tagPattern.test(tag)) &&
    (digest === undefined || digestPattern.test(digest));
  if (!isWellFormed) return invalidFormat;
  if (registry.length + 1 + repository.length > maxNameLength) {
    return `repository name must not be more than ${maxNameLength} characters`;
  }
  const fault = digest === undefined ? undefined : findDigestError(digest);
  if (fault !== undefined) return fault;
  return { registry, repository, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
}

/** Text before the first slash is a registry if it cannot be part of a repository. */
function splitRegistry(text: string): { registry: string; remainder: string } {
  const slash = text.indexOf('/');
  const first = slash < 0 ? '' : text.slice(0, slash);
  const isNamed = hasRegistry(text);
  const registry = !isNamed || first === 'index.docker.io' ? 'docker.io' : first;
  const remainder = isNamed ? text.slice(slash + 1) : text;
  const isOfficial = registry === 'docker.io' && !remainder.includes('/');
  return { registry, remainder: isOfficial ? `library/${remainder}` : remainder };
}

function isRegistry(text: string): boolean {
  const [, host = '', bracketed] = /^(\[([0-9a-fA-F:.]+)\]|[^:]+)(?::\d+)?$/.exec(text) ?? [];
  if (bracketed !== undefined) return isIPv6(bracketed);
  return host.split('.').every((label) => hostPattern.test(label));
}

/** Returns the problem of a registry that the grammar accepts but no URL can hold: a port or address out of range. */
function registryFault(registry: string): string | undefined {
  return URL.canParse(`http://${registry}/`)
    ? undefined
    : `registry ${quoteGo(registry)} has no valid host or port`;
}

function parseLayout(text: string, transport: 'oci' | 'oci-archive', rest: string): LayoutReference {
  const { named, digest } = splitDigest(rest);
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const path = hasTag ? named.slice(0, colon) : named;
  const tag = hasTag ? named.slice(colon + 1) : undefined;
  const kind = transport === 'oci' ? 'DIR' : 'FILE';
  if (path === '' || path.includes('\0'))
    throw invalidReference(text, 'has no path', `use ${transport}:${kind}[:TAG]`);
  if (tag === '')
    throw invalidReference(
      text,
      'has an empty tag',
      `remove the last colon, or use ${transport}:${kind}:TAG`,
    );
  return {
    transport,
    text,
    path,
    ...(tag !== undefined && { tag }),
    ...(digest !== undefined && { digest }),
  };
}

/** Splits a digest off; paths may contain an `@`. Throws OpmateError for an invalid digest. */
function splitDigest(rest: string): { named: string; digest: string | undefined } {
  const position = /@sha\d+:/.test(rest) ? rest.lastIndexOf('@') : -1;
  if (position < 0) return { named: rest, digest: undefined };
  const digest = rest.slice(position + 1);
  parseDigest(digest);
  return { named: rest.slice(0, position), digest };
}

function parseDockerArchive(text: string, rest: string): LayoutReference {
  const { named, digest } = splitDigest(rest);
  const reference = { transport: 'docker-archive', text, ...(digest !== undefined && { digest }) } as const;
  const colon = named.indexOf(':');
  const path = colon < 0 ? named : named.slice(0, colon);
  const hint = 'use docker-archive:FILE or docker-archive:FILE:NAME:TAG';
  if (path === '' || path.includes('\0')) throw invalidReference(text, 'has no path', hint);
  if (colon < 0) return { ...reference, path };
  const tag = named.slice(colon + 1);
  const parts = splitNormalized(tag);
  if (typeof parts === 'string') throw invalidReference(text, parts, hint);
  return { ...reference, path, tag };
}

function hintFor(name: string): string {
  if (hasCredentials(name)) return 'move credentials from the reference to an auth file';
  const scheme = /^(?:https?|file):\/\//i.exec(name)?.[0];
  if (scheme !== undefined) return `remove ${scheme}`;
  if (looksLikePath(name))
    return 'use oci:DIR[:TAG], oci-archive:FILE or docker-archive:FILE for an image on disk';
  if (/[A-Z]/.test(name)) return 'use lower case for the repository name';
  return 'use REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST';
}

/** Reports whether text like `user:password@` precedes a slash. */
function hasCredentials(text: string): boolean {
  const position = text.indexOf('@');
  return position >= 0 && text.lastIndexOf('/') > position;
}

/** Returns a reference for messages: text before an `@` that precedes a slash may be a password. */
export function withoutCredentials(text: string): string {
  return hasCredentials(text) ? `***${text.slice(text.lastIndexOf('@', text.lastIndexOf('/')))}` : text;
}

function invalidReference(text: string, fault: string, hint: string): OpmateError {
  return new OpmateError('INVALID', fault, { subject: referenceSubject(text), hint });
}

/** Returns the subject of errors of `parseReference`: the reference without credentials, and cut if it is long. */
export function referenceSubject(text: string): string {
  const safe = withoutCredentials(text);
  return `image reference ${quoteGo(safe.length > 200 ? `${safe.slice(0, 200)}…` : safe)}`;
}
