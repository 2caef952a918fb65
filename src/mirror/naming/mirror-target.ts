import { UsageError } from '../../core/errors.js';
import {
  type Reference,
  type RegistryReference,
  parseReference,
  withoutCredentials,
} from '../../core/reference.js';
import { quoteGo } from '../../document/go-json.js';
import { type TargetName, joinPath } from './image-name.js';

/** A registry to mirror to, and a path below which all images are placed. */
export interface MirrorTarget {
  /** `host[:port]`; empty for an archive on disk. */
  registry: string;
  /** May be empty. */
  path: string;
  /** Maximum number of path components in the registry, including `path`; default unlimited. */
  maxNestedPaths?: number | undefined;
}

/** Target of archives, where images have no registry. */
export const archiveTarget: MirrorTarget = { registry: '', path: '' };

/** Parses `docker://REGISTRY[/PATH]`. Throws UsageError. */
export function parseMirrorTarget(text: string, maxNestedPaths?: number): MirrorTarget {
  const hint = 'use docker://REGISTRY[/PATH]';
  const subject = quoteGo(withoutCredentials(text));
  if (!text.startsWith('docker://')) throw new UsageError('not a registry', { subject, hint });
  const [registry = '', ...path] = text.slice('docker://'.length).replace(/\/+$/, '').split('/');
  // As in references, a single word is a path of docker.io, and may be mistyped.
  if (registry !== '' && registry !== 'localhost' && !/[.:]/.test(registry)) {
    throw new UsageError('missing registry', {
      subject,
      hint: 'use docker://REGISTRY[/PATH] with a domain or port',
    });
  }
  if (/[A-Z]/.test(path.join('/'))) {
    const lower = [registry, ...path.map((part) => part.toLowerCase())].join('/');
    throw new UsageError('repository names must be lower case', {
      subject,
      hint: `use docker://${lower}`,
    });
  }
  try {
    const parsed = parseReference(`docker://${[registry, ...path, 'x'].join('/')}`);
    const isPlain = parsed.tag === undefined && parsed.digest === undefined;
    if (parsed.transport === 'docker' && isPlain && registry !== '')
      return { registry, path: path.join('/'), maxNestedPaths };
  } catch {
    // Reported below.
  }
  throw new UsageError('not a registry and path', { subject, hint });
}

/**
 * Returns the name of an image below a target: by default its path with its tag, or with `sha256-HEX` if it has only
 * a digest. (Source: oc-mirror v2.)
 */
export function nameBelow(
  reference: Reference,
  configured: { repository?: string | undefined; tag?: string | undefined } = {},
): TargetName {
  const { tag, digest } = reference;
  return {
    repository: configured.repository ?? getTargetRepository(reference),
    tag: configured.tag ?? tag ?? (digest === undefined ? 'latest' : toDigestTag(digest)),
  };
}

/** Returns the default repository of an image below a target; the last part of the path of a local image. */
export function getTargetRepository(reference: Reference): string {
  if (reference.transport === 'docker') return reference.repository;
  return reference.path.replace(/\/+$/, '').replace(/^.*\//, '').toLowerCase();
}

/** Returns a digest as a tag, at most 128 characters long. */
export function toDigestTag(digest: string): string {
  return digest.replace(':', '-').slice(0, 128);
}

/** Returns the path of a repository at a target. */
export function pathBelow({ path, maxNestedPaths }: MirrorTarget, repository: string): string {
  return joinPath(path, repository, maxNestedPaths);
}

/** Returns the whole name of an image at a target, or of its repository without a tag. */
export function getDestination({ registry }: MirrorTarget, path: string, tag?: string): string {
  const name = tag === undefined ? path : `${path}:${tag}`;
  return registry === '' ? name : `${registry}/${name}`;
}

/** Returns the reference of an image at a target; in an archive the registry is `localhost`. */
export function targetReference(target: MirrorTarget, repository: string, tag: string): RegistryReference {
  const registry = target.registry === '' ? 'localhost' : target.registry;
  return { transport: 'docker', text: getDestination(target, repository, tag), registry, repository, tag };
}

/** Returns a reference with its transport, as in a mapping file: by digest if known. */
export function formatSource(reference: Reference): string {
  const { tag, digest } = reference;
  const version = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  if (reference.transport === 'docker')
    return `docker://${reference.registry}/${reference.repository}${version}`;
  const isUnnamed = digest === undefined && tag === undefined;
  return `${reference.transport}:${reference.path}${isUnnamed ? '' : version}`;
}
