/**
 * Image names as `oc` reads and writes them, and their names at a mirror. Unlike in references to pull, defaults are not
 * filled in: names at a mirror are computed from names as written. (Source: `oc adm catalog mirror`.)
 */
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type RegistryReference,
  checkPullSpec,
  looksLikePath,
  withoutCredentials,
} from '../../core/reference.js';

/** `[REGISTRY/]REPOSITORY[:TAG][@DIGEST]`; missing parts are empty or undefined. */
export interface ImageName {
  /** `host[:port]` */
  registry: string;
  /** Path in the registry. */
  repository: string;
  tag?: string | undefined;
  digest?: string | undefined;
}

/** Name of an image below a target. */
export type TargetName = Pick<ImageName, 'repository'> & { tag: string };

const hubHosts: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io']);

/**
 * Parses a name. The first component is a registry if it contains a dot or colon or is `localhost`; a single component
 * only if it contains a dot or starts with `localhost`, so `myhost:5000` is tag 5000 of `myhost`. Names of Docker Hub
 * without namespace get `library`. Throws OpmateError INVALID; `isPrefix` accepts a registry alone.
 */
export function parseImageName(text: string, options: { isPrefix?: boolean } = {}): ImageName {
  const parts = splitImageName(text);
  const isBare = options.isPrefix === true && parts.repository === '' && parts.registry !== '';
  const isEmpty = parts.repository === '' && !isBare;
  const fault = isEmpty ? 'has no name' : checkPullSpec(isBare ? `${parts.registry}/name` : text);
  if (fault === undefined) return parts;
  const shown = withoutCredentials(text);
  const isPath = looksLikePath(text);
  throw new OpmateError('INVALID', isPath ? 'a path, not an image reference' : fault, {
    subject: isPath ? shown : `image reference ${quoteGo(shown)}`,
    hint: isPath
      ? 'use REGISTRY/NAMESPACE/NAME:TAG, or file://PATH'
      : 'use REGISTRY/NAMESPACE/NAME:TAG or …@sha256:DIGEST',
  });
}

function splitImageName(text: string): ImageName {
  const position = text.indexOf('@');
  const digest = position < 0 ? undefined : text.slice(position + 1);
  const named = position < 0 ? text : text.slice(0, position);
  const first = named.split('/', 1)[0] as string;
  if (first === named && (first.includes('.') || first.startsWith('localhost')) && digest === undefined)
    return { registry: first, repository: '' };
  const hasRegistry = first !== named && (/[.:]/.test(first) || first === 'localhost');
  const registry = hasRegistry ? first : '';
  const rest = hasRegistry ? named.slice(first.length + 1) : named;
  const colon = rest.indexOf(':', rest.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  return { registry, repository: addLibrary(registry, colon < 0 ? rest : rest.slice(0, colon)), tag, digest };
}

function addLibrary(registry: string, repository: string): string {
  return hubHosts.has(registry) && !repository.includes('/') ? `library/${repository}` : repository;
}

/** Formats a name; a digest replaces the tag. */
export function formatImageName(name: ImageName): string {
  const { tag, digest } = name;
  const suffix = digest !== undefined ? `@${digest}` : tag !== undefined ? `:${tag}` : '';
  return formatRepository(name) + suffix;
}

/** Returns a name as a reference, unchecked; see `requireReference`. */
export function toReference(name: ImageName): RegistryReference {
  const { registry, repository, tag, digest } = name;
  const version = { ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest }) };
  return { transport: 'docker', text: formatImageName(name), registry, repository, ...version };
}

/** Formats registry and repository, without tag and digest. */
export function formatRepository({ registry, repository }: Omit<ImageName, 'tag' | 'digest'>): string {
  return [registry, repository].filter((part) => part !== '').join('/');
}

/** Formats registry and repository with one host name for Docker Hub, which has several. */
export function formatCanonicalRepository({ registry, repository }: ImageName): string {
  return formatRepository({ registry: hubHosts.has(registry) ? 'docker.io' : registry, repository });
}

/** Returns a repository without its first component, the namespace, if it has several. */
export function withoutNamespace(repository: string): string {
  return repository.slice(repository.indexOf('/') + 1);
}

/** Adds the defaults of Docker clients: docker.io, `library`, and `latest` without a digest. */
export function withDockerDefaults(name: ImageName): ImageName {
  const registry = name.registry === '' ? 'docker.io' : name.registry;
  const tag = name.tag ?? (name.digest === undefined ? 'latest' : undefined);
  return { ...name, registry, repository: addLibrary(registry, name.repository), tag };
}

/**
 * Returns the tag of an image at its destination: its tag, else for a digest the FNV-1a hash of the name as written, in
 * hexadecimal digits without leading zeros, else `latest`.
 */
export function getDestinationTag(name: ImageName): string {
  if (name.tag !== undefined) return name.tag;
  return name.digest === undefined ? 'latest' : computeHash(formatImageName(name));
}

/** FNV-1a, 32 bits, over UTF-8. */
function computeHash(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16);
}

/**
 * Returns the path of a repository below a prefix; components beyond `maxComponents` are joined by `-`. (Source:
 * `--max-components` of oc, `--max-nested-paths` of oc-mirror v2.)
 */
export function joinPath(prefix: string, repository: string, maxComponents = Infinity): string {
  const components = `${prefix}/${repository}`.split('/').filter((component) => component !== '');
  if (components.length <= maxComponents) return components.join('/');
  const kept = components.slice(0, maxComponents - 1);
  return [...kept, components.slice(maxComponents - 1).join('-')].join('/');
}
