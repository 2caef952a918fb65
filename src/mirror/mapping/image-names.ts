/**
 * Image names as `oc` reads and writes them, and their names at a mirror. Unlike in references to pull, defaults are not
 * filled in: names at a mirror are computed from names as written. (Source: `oc adm catalog mirror`.)
 */
import { isDigest } from '../../core/digest.js';
import { OpmateError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import { checkPullSpec, looksLikePath, withoutCredentials } from '../../core/reference.js';

/** `[REGISTRY/][NAMESPACE/]NAME[:TAG][@DIGEST]`; missing parts are empty or undefined. */
export interface ImageName {
  /** `host[:port]` */
  registry: string;
  /** One path component. */
  namespace: string;
  /** All path components after the namespace. */
  name: string;
  tag?: string | undefined;
  digest?: string | undefined;
}

const hubHosts: ReadonlySet<string> = new Set(['docker.io', 'index.docker.io']);

/**
 * Parses a name. The first component is a registry if it contains a dot or colon or is `localhost`; a single component
 * only if it contains a dot or starts with `localhost`, so `myhost:5000` is tag 5000 of `myhost`. Names of Docker Hub
 * without namespace get `library`. Throws OpmateError INVALID; `isPrefix` accepts a registry alone.
 */
export function parseImageName(text: string, options: { isPrefix?: boolean } = {}): ImageName {
  const parts = splitImageName(text);
  const isBare = options.isPrefix === true && parts.name === '' && parts.registry !== '';
  const isEmpty = parts.name === '' && !isBare;
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
    return { registry: first, namespace: '', name: '' };
  const hasRegistry = first !== named && (/[.:]/.test(first) || first === 'localhost');
  const registry = hasRegistry ? first : '';
  const rest = hasRegistry ? named.slice(first.length + 1) : named;
  const colon = rest.indexOf(':', rest.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  return { registry, ...splitPath(registry, colon < 0 ? rest : rest.slice(0, colon)), tag, digest };
}

function splitPath(registry: string, path: string): { namespace: string; name: string } {
  const slash = path.indexOf('/');
  if (slash >= 0) return { namespace: path.slice(0, slash), name: path.slice(slash + 1) };
  return { namespace: hubHosts.has(registry) ? 'library' : '', name: path };
}

/** Formats a name; a digest replaces the tag. */
export function formatImageName(name: ImageName): string {
  const { tag, digest } = name;
  const suffix = digest !== undefined ? `@${digest}` : tag !== undefined ? `:${tag}` : '';
  return getRepository(name) + suffix;
}

/** Returns registry and path, without tag and digest. */
export function getRepository({ registry, namespace, name }: ImageName): string {
  return [registry, namespace, name].filter((part) => part !== '').join('/');
}

/** Returns registry and path with one host name for Docker Hub, which has several. */
export function getCanonicalRepository(name: ImageName): string {
  return getRepository(hubHosts.has(name.registry) ? { ...name, registry: 'docker.io' } : name);
}

/** Returns the path within the registry. */
export function getPath({ namespace, name }: ImageName): string {
  return [namespace, name].filter((part) => part !== '').join('/');
}

/** Adds the defaults of Docker clients: docker.io, `library`, and `latest` without a digest. */
export function withDockerDefaults(name: ImageName): ImageName {
  const registry = name.registry === '' ? 'docker.io' : name.registry;
  const namespace = name.namespace === '' && hubHosts.has(registry) ? 'library' : name.namespace;
  const tag = name.tag ?? (name.digest === undefined ? 'latest' : undefined);
  return { ...name, registry, namespace, tag };
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

/** Returns the path of an image below a destination; components from `maxComponents` on are joined by `-`; 0 is unlimited. */
export function getDestinationPath(prefix: string, name: ImageName, maxComponents: number): string {
  const components = `${prefix}/${getPath(name)}`.split('/').filter((component) => component !== '');
  if (maxComponents < 2 || components.length <= maxComponents) return components.join('/');
  const kept = components.slice(0, maxComponents - 1);
  return [...kept, components.slice(maxComponents - 1).join('-')].join('/');
}

/** An image in a registry, or in a directory below the root of `file://`. (Source: oc, imagesource.) */
export interface TypedImageReference {
  scheme: 'registry' | 'file';
  /** In `file://` the registry is empty, and the name is a path. */
  name: ImageName;
}

/** Formats a reference with its scheme, if it is `file://`. */
export function formatTypedReference({ scheme, name }: TypedImageReference): string {
  return (scheme === 'file' ? 'file://' : '') + formatImageName(name);
}

/**
 * Parses the source or destination of a command; `isPrefix` for a prefix of images. Throws OpmateError UNSUPPORTED for
 * `s3://`, INVALID, and UNSAFE for a path that leaves the root.
 */
export function parseTypedReference(text: string, options: { isPrefix?: boolean } = {}): TypedImageReference {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//.exec(text)?.[0];
  if (scheme === 's3://') {
    throw new OpmateError('UNSUPPORTED', 's3:// is not supported', {
      subject: text,
      hint: 'mirror to file://DIR, and copy that directory',
    });
  }
  if (scheme === 'file://') return { scheme: 'file', name: parseFileName(text, options.isPrefix === true) };
  const rest = scheme === 'docker://' ? text.slice(scheme.length) : text;
  return { scheme: 'registry', name: parseImageName(rest, options) };
}

const pathComponent = /^[A-Za-z0-9_.-]+$/;

function parseFileName(text: string, isPrefix: boolean): ImageName {
  const rest = text.slice('file://'.length).replace(/^\//, '').replace(/\/+$/, '');
  const position = rest.indexOf('@');
  const digest = position < 0 ? undefined : rest.slice(position + 1);
  const named = position < 0 ? rest : rest.slice(0, position);
  const colon = isPrefix ? -1 : named.indexOf(':', named.lastIndexOf('/') + 1);
  const tag = colon < 0 ? undefined : named.slice(colon + 1);
  const path = colon < 0 ? named : named.slice(0, colon);
  const components = path.split('/');
  if (components.includes('..') || components.includes('.'))
    throw new OpmateError('UNSAFE', 'a path must not contain . or ..', { subject: text });
  const isValid =
    components.every((component) => pathComponent.test(component)) &&
    (tag === undefined || /^\w[\w.-]{0,127}$/.test(tag)) &&
    (digest === undefined || isDigest(digest));
  if (!isValid) {
    throw new OpmateError('INVALID', 'not a file:// image location', {
      subject: text,
      hint: isPrefix ? 'use file://PATH' : 'use file://PATH:TAG or file://PATH@sha256:DIGEST',
    });
  }
  return { registry: '', ...splitPath('', path), tag, digest };
}
