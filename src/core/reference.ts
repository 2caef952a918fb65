/**
 * Image references: what users write to name an image, in a registry or in a file. The grammar of
 * registry references is that of the `docker/reference` package that opm, skopeo and podman share.
 */
import { isIPv6 } from 'node:net';
import { digestFault, parseDigest } from './digest.js';
import { OpmateError, UsageError } from './errors.js';
import { quoteGo } from './go-json-quote.js';

/** An image in a registry. */
export interface RegistryReference {
  transport: 'docker';
  /** As the user wrote it. */
  text: string;
  /** `host[:port]`, an IPv6 host in brackets; `docker.io` where none was written. */
  registry: string;
  /** Without registry, tag and digest; `library/` stands before the short names of docker.io. */
  repository: string;
  tag?: string;
  /** Wins over `tag` where both are given. */
  digest?: string;
}

/** An image in a directory or file. */
export interface LayoutReference {
  transport: 'oci' | 'oci-archive' | 'docker-archive';
  /** As the user wrote it. */
  text: string;
  path: string;
  /** The name of the image in there; for `docker-archive` as it was written, e.g. `ns/name:v1`. */
  tag?: string;
  /** Wins over `tag` where both are given. */
  digest?: string;
}

/** An image, wherever it is. */
export type Reference = RegistryReference | LayoutReference;

/**
 * Parses a reference in any of these forms; `oci:` and the like are always transports, so a registry of
 * such a name cannot be written without `docker://`.
 *
 * - `[docker://][REGISTRY/]REPOSITORY[:TAG][@DIGEST]`; without registry it is docker.io
 * - `oci:DIR[:TAG][@DIGEST]`, `oci-archive:FILE[:TAG][@DIGEST]`: the tag follows the last colon, unless a
 *   slash comes after that, so a path may hold colons in all but its last part
 * - `docker-archive:FILE[:REFERENCE]`: FILE ends at the first colon
 *
 * Nothing is made up: without tag and digest both stay undefined. Throws OpmateError INVALID.
 */
export function parseReference(text: string): Reference {
  const [, transport, rest] = /^(oci|oci-archive|docker-archive):(.*)$/s.exec(text) ?? [];
  if (transport === 'docker-archive') return parseDockerArchive(text, rest as string);
  if (transport !== undefined) return parseLayout(text, transport as 'oci' | 'oci-archive', rest as string);
  const name = text.startsWith('docker://') ? text.slice('docker://'.length) : text;
  const parts = splitNormalized(name);
  const fault = typeof parts === 'string' ? parts : registryFault(parts.registry);
  if (typeof parts === 'string' || fault !== undefined) throw invalid(text, fault as string, hintFor(name));
  return { transport: 'docker', text, ...parts };
}

/** Returns the reference that a text is; undefined for one that is none. */
export function findReference(text: string): Reference | undefined {
  try {
    return parseReference(text);
  } catch (error) {
    if (error instanceof OpmateError) return undefined;
    throw error;
  }
}

/**
 * Parses a reference that is written to. Its registry has to be given: a mistyped word must never become a repository
 * of docker.io. Throws OpmateError INVALID, and USAGE for a missing registry.
 */
export function parseTargetReference(text: string): Reference {
  const reference = parseReference(text);
  if (reference.transport !== 'docker' || hasRegistry(text)) return reference;
  throw missingRegistry(text, formatReference(reference));
}

/** Returns whether a registry reference names its registry. */
function hasRegistry(text: string): boolean {
  const [first = '', ...path] = text.replace(/^docker:\/\//, '').split('/');
  return path.length > 0 && (first === 'localhost' || /[.:]/.test(first));
}

/** Returns whether a text is a path by the way it is written; nobody writes an image like this. */
export function looksLikePath(text: string): boolean {
  return /^(?:\.{0,2}\/|~|\.{1,2}$)/.test(text);
}

/** Returns the error for a source or target without a registry; `onHub` is its name on Docker Hub. */
export function missingRegistry(text: string, onHub: string): OpmateError {
  return new UsageError('missing registry', {
    subject: text,
    hint: `use REGISTRY/${text.replace(/^docker:\/\//, '')}, or ${onHub} for Docker Hub`,
  });
}

/** Returns the same repository with another tag, or alone where none is given. */
export function withReferenceTag<R extends Reference>(reference: R, tag?: string): R {
  return { ...reference, tag, digest: undefined };
}

/** The normalized text of a reference; parsing it gives the same reference again. */
export function formatReference(reference: Reference): string {
  const { transport, tag, digest } = reference;
  const name =
    transport === 'docker'
      ? `${reference.registry}/${reference.repository}`
      : `${transport}:${reference.path}`;
  return name + (tag === undefined ? '' : `:${tag}`) + (digest === undefined ? '' : `@${digest}`);
}

/**
 * Checks an image reference in a catalog by the rules of `opm validate`: registry references only, short
 * names included. Returns what is wrong in the words of `opm`, or undefined.
 */
export function checkPullSpec(text: string): string | undefined {
  const parts = splitNormalized(text);
  if (typeof parts === 'string') return parts;
  // opm knows no IPv6 registries.
  return parts.registry.startsWith('[') ? invalidFormat : undefined;
}

interface NameParts {
  registry: string;
  repository: string;
  tag?: string;
  digest?: string;
}

const invalidFormat = 'invalid reference format';
const hostPattern = /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?$/;
const componentPattern = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const tagPattern = /^\w[\w.-]{0,127}$/;
const digestPattern = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}$/;

/** The longest registry and repository together. */
const maxNameLength = 255;

/** Takes a registry reference apart after filling in docker.io; returns text for what is wrong with it. */
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
  const fault = digest === undefined ? undefined : digestFault(digest);
  if (fault !== undefined) return fault;
  return { registry, repository, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
}

/** What stands before the first slash is a registry when it cannot be anything else. */
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

/** What the grammar lets pass but no URL can hold: a port or an address out of range. */
function registryFault(registry: string): string | undefined {
  return URL.canParse(`http://${registry}/`)
    ? undefined
    : `registry ${quoteGo(registry)} has no valid host or port`;
}

function parseLayout(text: string, transport: 'oci' | 'oci-archive', rest: string): LayoutReference {
  const position = /@sha\d+:/.test(rest) ? rest.lastIndexOf('@') : -1;
  const digest = position < 0 ? undefined : rest.slice(position + 1);
  if (digest !== undefined) parseDigest(digest);
  const named = position < 0 ? rest : rest.slice(0, position);
  const colon = named.lastIndexOf(':');
  const hasTag = colon > named.lastIndexOf('/');
  const path = hasTag ? named.slice(0, colon) : named;
  const tag = hasTag ? named.slice(colon + 1) : undefined;
  const kind = transport === 'oci' ? 'DIR' : 'FILE';
  if (path === '' || path.includes('\0'))
    throw invalid(text, 'has no path', `use ${transport}:${kind}[:TAG]`);
  if (tag === '')
    throw invalid(text, 'has an empty tag', `remove the last colon, or use ${transport}:${kind}:TAG`);
  return {
    transport,
    text,
    path,
    ...(tag !== undefined && { tag }),
    ...(digest !== undefined && { digest }),
  };
}

function parseDockerArchive(text: string, rest: string): LayoutReference {
  const transport = 'docker-archive';
  const colon = rest.indexOf(':');
  const path = colon < 0 ? rest : rest.slice(0, colon);
  const hint = 'use docker-archive:FILE or docker-archive:FILE:NAME:TAG';
  if (path === '' || path.includes('\0')) throw invalid(text, 'has no path', hint);
  if (colon < 0) return { transport, text, path };
  const tag = rest.slice(colon + 1);
  const parts = splitNormalized(tag);
  if (typeof parts === 'string') throw invalid(text, parts, hint);
  return { transport, text, path, tag };
}

function hintFor(name: string): string {
  if (hasCredentials(name)) return 'move credentials from the reference to an auth file';
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(name)?.[0];
  if (scheme !== undefined) return `remove ${scheme}`;
  if (/[A-Z]/.test(name)) return 'use lower case for the repository name';
  return 'use REGISTRY/REPOSITORY:TAG or REGISTRY/REPOSITORY@sha256:DIGEST';
}

/** Whether something like `user:password@` stands before a slash. */
function hasCredentials(text: string): boolean {
  const position = text.indexOf('@');
  return position >= 0 && text.lastIndexOf('/') > position;
}

/** A reference as a message may show it: what stands before an `@` in front of a slash may be a password. */
export function withoutCredentials(text: string): string {
  return hasCredentials(text) ? `***${text.slice(text.lastIndexOf('@', text.lastIndexOf('/')))}` : text;
}

function invalid(text: string, fault: string, hint: string): OpmateError {
  const safe = withoutCredentials(text);
  const shown = safe.length > 200 ? `${safe.slice(0, 200)}…` : safe;
  return new OpmateError('INVALID', fault, { subject: `image reference ${quoteGo(shown)}`, hint });
}
