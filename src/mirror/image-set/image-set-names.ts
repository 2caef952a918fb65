import { UsageError } from '../../core/errors.js';
import { quoteGo } from '../../document/go-json.js';
import {
  type Reference,
  type RegistryReference,
  parseReference,
  withoutCredentials,
} from '../../core/reference.js';

/** A registry to mirror to, and a path in it below which everything goes; the path may be empty. */
export interface MirrorTarget {
  /** `host[:port]`; empty for an archive on disk. */
  registry: string;
  path: string;
  /** Maximum components of a path in the registry, those of `path` included; unlimited unless set. */
  maxNestedPaths?: number | undefined;
}

/** What is on disk is named by its path alone. */
export const archiveTarget: MirrorTarget = { registry: '', path: '' };

/** Reads `docker://REGISTRY[/PATH]`. Throws UsageError. */
export function parseMirrorTarget(text: string, maxNestedPaths?: number): MirrorTarget {
  const hint = 'use docker://REGISTRY[/PATH]';
  const shown = quoteGo(withoutCredentials(text));
  if (!text.startsWith('docker://')) throw new UsageError('not a registry', { subject: shown, hint });
  const [registry = '', ...path] = text.slice('docker://'.length).replace(/\/+$/, '').split('/');
  // As in references: one word is a path of docker.io, and may be mistyped.
  if (registry !== '' && registry !== 'localhost' && !/[.:]/.test(registry)) {
    throw new UsageError('missing registry', {
      subject: shown,
      hint: 'use docker://REGISTRY[/PATH] with a domain or port',
    });
  }
  try {
    const parsed = parseReference(`docker://${[registry, ...path, 'x'].join('/')}`);
    const isPlain = parsed.tag === undefined && parsed.digest === undefined;
    if (parsed.transport === 'docker' && isPlain && registry !== '')
      return { registry, path: path.join('/'), maxNestedPaths };
  } catch {
    // Told below.
  }
  throw new UsageError('not a registry and path', { subject: shown, hint });
}

/** Where an image goes: the path in the target registry, and its tag there. */
export interface ImageName {
  repository: string;
  tag: string;
}

/**
 * The name that an image has below a target unless told otherwise: its path with its tag, or with
 * `sha256-HEX` where it is named by digest alone. (Source: oc-mirror v2.)
 */
export function nameOfImage(
  reference: Reference,
  input: { repository?: string | undefined; tag?: string | undefined } = {},
): ImageName {
  const { tag, digest } = reference;
  const own = getRepository(reference);
  const ownTag = tag ?? (digest === undefined ? 'latest' : tagOfDigest(digest));
  return { repository: input.repository ?? own, tag: input.tag ?? ownTag };
}

/** Returns the repository that an image has below a target: of one on disk, the last part of its path. */
export function getRepository(reference: Reference): string {
  if (reference.transport === 'docker') return reference.repository;
  return reference.path.replace(/\/+$/, '').replace(/^.*\//, '').toLowerCase();
}

/** How a digest is written where a tag is needed. */
export function tagOfDigest(digest: string): string {
  // No tag is longer.
  return digest.replace(':', '-').slice(0, 128);
}

/**
 * The path below a target, at most `maxNestedPaths` long with the target's own parts: what is beyond that is joined
 * by `-` to one. (Source: `--max-nested-paths` of oc-mirror v2.)
 */
export function pathBelow({ path, maxNestedPaths = Infinity }: MirrorTarget, repository: string): string {
  const parts = [path, repository]
    .filter((part) => part !== '')
    .join('/')
    .split('/');
  if (parts.length <= maxNestedPaths) return parts.join('/');
  return [...parts.slice(0, maxNestedPaths - 1), parts.slice(maxNestedPaths - 1).join('-')].join('/');
}

/** Returns the whole name of an image at a target, or of its repository without a tag. */
export function getDestination({ registry }: MirrorTarget, path: string, tag?: string): string {
  const name = tag === undefined ? path : `${path}:${tag}`;
  return registry === '' ? name : `${registry}/${name}`;
}

/** An image at a target as a reference; of one on disk it names nothing but the image itself. */
export function targetReference(target: MirrorTarget, repository: string, tag: string): RegistryReference {
  const registry = target.registry === '' ? 'localhost' : target.registry;
  return { transport: 'docker', text: getDestination(target, repository, tag), registry, repository, tag };
}

/** An image with its transport, as the left side of a mapping line: by digest where one is known. */
export function sourceText(reference: Reference): string {
  const { tag, digest } = reference;
  const version = digest === undefined ? `:${tag ?? 'latest'}` : `@${digest}`;
  if (reference.transport === 'docker')
    return `docker://${reference.registry}/${reference.repository}${version}`;
  const local = digest === undefined ? (tag === undefined ? '' : `:${tag}`) : version;
  return `${reference.transport}:${reference.path}${local}`;
}
